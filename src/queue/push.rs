//! What is pushed next.

use std::time::Duration;

use crate::config::Side;
use crate::handoff::words::{self, Part};
use crate::handoff::{HandOff, Id, Push, PushOutcome, Reason, SessionKey};
use crate::text::count;

use super::disk::Place;
use super::event::{Effect, Now, Pushed, Token, Upload};
use super::{Cargo, Queue, Step};

/// The wait after a first failed push; it doubles with each further one.
pub(super) const BACK_OFF: Duration = Duration::from_secs(1);
/// What ends a word to the bot of which an earlier push may have arrived.
const SENT_AGAIN: &str = " (sent again: if already told, say nothing)";
/// The longest wait between pushes.
const MAX_BACK_OFF: Duration = Duration::from_secs(60);

/// A side, as far as pushing to it goes.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub online: bool,
    pub session: Option<SessionKey>,
    /// The pushes whose POSTs have not ended, in their order.
    pub posting: Vec<Token>,
    /// Whether the one that is posted takes long: what had been begun ahead of its turn came back.
    pub slow: bool,
}

/// How many pushes a side has at a time whose POSTs have not ended: one that is posted, and the next, which is written
/// meanwhile, so that a long queue waits for the disk or for the wire, not for one after the other.
const AHEAD: usize = 2;

impl Peer {
    pub fn has_room(&self) -> bool {
        self.online && self.posting.len() < if self.slow { 1 } else { AHEAD }
    }
}

/// How long to wait after the `n`th failure in a row.
pub(super) fn back_off(n: usize) -> Duration {
    let doublings = u32::try_from(n.saturating_sub(1)).unwrap_or(u32::MAX).min(6);
    (BACK_OFF * 2_u32.pow(doublings)).min(MAX_BACK_OFF)
}

impl Queue {
    pub(super) fn side(&mut self, side: Side, online: bool, session: Option<SessionKey>) {
        let peer = self.peer(side);
        let before = (peer.online, peer.session);
        (peer.online, peer.session) = (online, session.or(if online { None } else { peer.session }));
        if before == (peer.online, peer.session) {
            return;
        }
        if side == Side::Brain {
            for id in self.book.ids().collect::<Vec<_>>() {
                self.reindex(id);
            }
        }
    }

    pub(super) fn side_reset(&mut self, side: Side, now: Now) {
        self.side(side, false, None);
        let peer = self.peer(side);
        peer.posting.clear();
        peer.slow = false;
        let cut: Vec<Token> = self.flights.iter().filter(|(_, (s, _))| *s == side).map(|(token, _)| *token).collect();
        for token in cut {
            self.pushed(token, Pushed::Cut, now);
        }
    }

    pub(super) fn peer(&mut self, side: Side) -> &mut Peer {
        match side {
            Side::Brain => &mut self.brain,
            Side::Bot => &mut self.bot,
        }
    }

    /// Begins what can be begun: one push a side, for each is written before the next is thought of.
    pub(super) fn schedule(&mut self, now: Now) {
        if self.draining {
            return;
        }
        if self.brain.has_room() {
            self.push_to_brain(now);
        }
        if self.bot.has_room() && !self.push_notice(now) {
            self.push_to_bot(now);
        }
    }

    fn push_to_brain(&mut self, now: Now) {
        if self.is_blocked(now) {
            return;
        }
        let taken_back = self.book.take_backs.iter().map(|(_, id)| *id);
        let ready = |id: &Id| self.book.get(*id).is_some_and(|entry| entry.brain.not_before <= now.mono);
        if let Some(id) = taken_back.into_iter().find(ready) {
            return self.push_take_back(id, now);
        }
        if self.paused.is_some() {
            return;
        }
        // Strictly in order: while the first one waits to be tried again, the others wait behind it.
        let Some((_, id)) = self.book.for_brain.first().copied().filter(|(_, id)| ready(id)) else { return };
        let attempts = self.book.get(id).map_or(0, |entry| entry.h.attempts());
        if attempts >= self.settings.max_attempts {
            let why = "the sessions that had it ended without an answer".to_owned();
            self.warn(Some(id), format!("given up, attempts, after {}: {why}", count(attempts, "attempt")));
            self.change(id, false, |h| h.give_up(Reason::Attempts, Some(why), now.wall));
            return self.push_to_brain(now);
        }
        let (session, inline) = (self.brain.session, self.settings.inline_bytes);
        let push = self.add_push(id, Place::HandOff, |n| Push::begin(n + 1, session, now.wall));
        let Some(entry) = self.book.get(id) else { return };
        let parts = words::hand_off(&entry.h, push + 1, inline);
        let uploads = parts.into_iter().map(|part| Upload { id, part }).collect();
        self.launch(Side::Brain, Cargo::HandOff { id, push }, uploads);
    }

    fn push_take_back(&mut self, id: Id, now: Now) {
        let Some(entry) = self.book.get(id) else { return };
        let went_to = entry.h.pushes.last().and_then(|push| push.session);
        if matches!((went_to, self.brain.session), (Some(then), Some(present)) if then != present) {
            // The session that had it is gone, and the work with it.
            return self.change(id, false, |h| h.taken_back());
        }
        let part = Part { text: words::take_back(id), file: None };
        self.launch(Side::Brain, Cargo::TakeBack { id }, vec![Upload { id: self.issue(now), part }]);
    }

    fn push_to_bot(&mut self, now: Now) {
        if self.is_blocked(now) {
            return;
        }
        let mut owing = self.book.for_bot.iter().map(|(_, id)| *id);
        let ready = |id: &Id| self.book.get(*id).is_some_and(|entry| entry.bot.not_before <= now.mono);
        let Some(id) = owing.find(ready) else { return };
        let (session, inline) = (self.bot.session, self.settings.inline_bytes);
        let Some(h) = self.book.get(id).map(|entry| &entry.h) else { return };
        let untold = h.results.iter().position(|r| r.told.is_none());
        let (place, parts) = match untold {
            Some(i) => {
                let parts = match outcome_refused(h, i) {
                    Some(notice) => vec![Part { text: words::notice(&notice), file: None }],
                    None => words::outcome(h, &h.results[i], !h.results[i].pushes.is_empty(), inline),
                };
                (Place::Outcome(i), parts)
            }
            None => (Place::Failure, vec![Part { text: words::notice(&failure_text(h)), file: None }]),
        };
        let own = self.issue(now);
        let push = self.add_push(id, place, |n| Push { id: Some(own), ..Push::begin(n + 1, session, now.wall) });
        self.book.sent_as.insert(&own.to_string(), id);
        let cargo = match untold {
            Some(outcome) => Cargo::Outcome { id, outcome, push },
            None => Cargo::Failure { id, push },
        };
        let ids = std::iter::once(own).chain(std::iter::repeat_with(|| self.issue(now)));
        let uploads = ids.zip(parts).map(|(id, part)| Upload { id, part }).collect();
        self.launch(Side::Bot, cargo, uploads);
    }

    pub(super) fn launch(&mut self, side: Side, cargo: Cargo, uploads: Vec<Upload>) {
        let token = Token(self.next_token);
        self.next_token += 1;
        self.flights.insert(token, (side, cargo));
        let posting = &mut self.peer(side).posting;
        let behind = posting.last().copied();
        posting.push(token);
        let owner = cargo.owner();
        if let Some(id) = owner {
            if let Some(entry) = self.book.get_mut(id) {
                let errand = if side == Side::Brain { &mut entry.brain } else { &mut entry.bot };
                errand.flight = Some(token);
            }
            self.reindex(id);
        }
        // Not every push waits for a write, and one that does not goes on if another of the same hand-off cannot.
        let owner = owner.filter(|id| self.touched.iter().any(|touch| touch.id == *id));
        self.begun.extend(owner.map(|id| (token, id)));
        self.steps.push(Step { owner, effect: Effect::Push { side, token, behind, uploads } });
    }

    /// Takes a flight out of the records, as if it had never begun or once it has ended.
    pub(super) fn forget_flight(&mut self, token: Token) -> Option<(Side, Cargo)> {
        let (side, cargo) = self.flights.remove(&token)?;
        self.posted(side, token);
        if let Some(id) = cargo.owner()
            && let Some(entry) = self.book.get_mut(id)
        {
            let errand = if side == Side::Brain { &mut entry.brain } else { &mut entry.bot };
            errand.flight = None;
            self.reindex(id);
        }
        Some((side, cargo))
    }

    /// The POSTs of a push have ended: the next may begin.
    pub(super) fn posted(&mut self, side: Side, token: Token) {
        let peer = self.peer(side);
        if peer.posting.first() == Some(&token) {
            peer.slow = false;
        }
        peer.posting.retain(|posting| *posting != token);
    }

    /// Takes back pushes that were begun ahead, if their turn has not come.
    pub(super) fn withdraw(&mut self, side: Side, which: impl Fn(Cargo) -> bool) {
        for token in self.peer(side).posting.clone() {
            if self.flights.get(&token).is_some_and(|(_, cargo)| which(*cargo)) {
                self.steps.push(Step { owner: None, effect: Effect::Withdraw { side, token } });
            }
        }
    }
}

impl Cargo {
    pub(super) fn owner(self) -> Option<Id> {
        match self {
            Cargo::HandOff { id, .. }
            | Cargo::TakeBack { id }
            | Cargo::Outcome { id, .. }
            | Cargo::Failure { id, .. } => Some(id),
            Cargo::Notice { .. } => None,
        }
    }
}

/// What the bot is told instead of a result that its fakechat refused for good.
fn outcome_refused(h: &HandOff, i: usize) -> Option<String> {
    let outcome = &h.results[i];
    let refused = outcome.pushes.iter().rev().find(|push| push.outcome == PushOutcome::Refused)?;
    let (word, why) = (outcome.kind.word(), refused.why.as_deref().unwrap_or("no reason given"));
    let asked = words::asked(&h.text);
    let told_before = outcome.pushes.last().is_some_and(|push| push.outcome != PushOutcome::Refused);
    let again = if told_before { SENT_AGAIN } else { "" };
    Some(format!(
        "the {word} for {} cannot be sent here ({why}); it lies in the spool: `anna-relay show {}` prints it{again}\n\
         {asked}",
        h.id,
        h.id.short()
    ))
}

/// What the bot is told of a hand-off that was given up.
fn failure_text(h: &HandOff) -> String {
    let Some(failed) = &h.failed else { return String::new() };
    let again = if failed.pushes.is_empty() { "" } else { SENT_AGAIN };
    let why = failed.detail.as_deref().unwrap_or("no reason given");
    let what = match failed.reason {
        Reason::Cancelled => "was cancelled".to_owned(),
        Reason::Refused => format!("was given up: the brain's fakechat refused it ({why})"),
        _ => format!("was given up after {}: {why}", count(h.pushes.len(), "attempt")),
    };
    let short = h.id.short();
    let next = match failed.reason {
        Reason::Cancelled => String::new(),
        Reason::Refused => format!("; it lies in the spool: `anna-relay show {short}` prints it"),
        _ => format!("; `anna-relay retry {short}` tries it again"),
    };
    format!("hand-off {} {what}{next}{again}\n{}", h.id, words::asked(&h.text))
}
