//! What follows from how a push ended.

use crate::handoff::{Attachment, Id, Push, PushOutcome, Reason};
use crate::text::count;

use super::event::{Now, Pushed, Token};
use super::push::{BACK_OFF, back_off};
use super::{Cargo, Queue};

impl Queue {
    pub(super) fn pushed(&mut self, token: Token, pushed: Pushed, now: Now) {
        if pushed == Pushed::Accepted {
            if let Some((side, _)) = self.flights.get(&token).copied() {
                self.posted(side, token);
            }
            return;
        }
        let Some((side, cargo)) = self.forget_flight(token) else { return };
        if pushed == Pushed::NotTried {
            let peer = self.peer(side);
            peer.slow = !peer.posting.is_empty();
        }
        match cargo {
            Cargo::HandOff { id, push } => self.hand_off_landed(id, push, pushed, now),
            Cargo::TakeBack { id } => self.take_back_landed(id, pushed, now),
            Cargo::Outcome { id, outcome, push } => self.outcome_landed(id, outcome, push, pushed, now),
            Cargo::Failure { id, push } => self.failure_landed(id, push, pushed, now),
            Cargo::Notice { key } => self.notice_landed(key, pushed, now),
        }
        if let Some(id) = cargo.owner().filter(|id| !self.touched.iter().any(|touch| touch.id == *id)) {
            self.book.forget_if_over(id);
        }
    }

    fn hand_off_landed(&mut self, id: Id, push: usize, pushed: Pushed, now: Now) {
        let Some(entry) = self.book.get(id) else { return };
        let halved = failed_in_parts(&pushed, &entry.h.text, &entry.h.files, self.settings.inline_bytes);
        let known = entry.h.pushes.get(push).is_none_or(|push| match push.outcome {
            PushOutcome::Unknown => false,
            // What was seen is its first part.
            PushOutcome::Seen => !(halved && entry.h.waits_for_result()),
            _ => true,
        });
        if pushed == Pushed::Cut || known {
            // Cut short by ourselves, or answered before its outcome was known.
            return;
        }
        if pushed == Pushed::NotTried {
            return self.change(id, true, |h| {
                h.not_pushed(push);
                h.drop_needless_take_back();
            });
        }
        self.change(id, true, |h| {
            end(&mut h.pushes, push, &pushed);
            h.drop_needless_take_back();
        });
        let Pushed::Failed { why, permanent } = pushed else {
            return self.note_fact(id, format!("is with the brain (attempt {})", push + 1));
        };
        let Some(entry) = self.book.get_mut(id) else { return };
        let attempts = entry.h.failed_attempts();
        entry.brain.not_before = now.mono + back_off(attempts);
        if !entry.h.waits_for_result() {
            return;
        }
        if permanent || entry.h.attempts() >= self.settings.max_attempts {
            let reason = if permanent { Reason::Refused } else { Reason::Attempts };
            self.warn_fact(id, format!("given up, {}, after {}: {why}", reason.word(), count(push + 1, "attempt")));
            self.change(id, true, |h| h.give_up(reason, Some(why), now.wall));
        } else {
            self.note_fact(id, format!("did not reach the brain (attempt {}): {why}; it is tried again", push + 1));
        }
    }

    fn take_back_landed(&mut self, id: Id, pushed: Pushed, now: Now) {
        match pushed {
            Pushed::Confirmed | Pushed::Failed { permanent: true, .. } => self.change(id, true, |h| h.taken_back()),
            _ => {
                if let Some(entry) = self.book.get_mut(id) {
                    entry.brain.not_before = now.mono + BACK_OFF;
                }
            }
        }
    }

    fn outcome_landed(&mut self, id: Id, outcome: usize, push: usize, pushed: Pushed, now: Now) {
        let result = self.book.get(id).and_then(|entry| entry.h.results.get(outcome));
        let seen = result.is_some_and(|result| {
            let halved = failed_in_parts(&pushed, &result.text, &result.files, self.settings.inline_bytes);
            !halved && result.pushes.get(push).is_some_and(|push| push.outcome == PushOutcome::Seen)
        });
        let pushed = if seen { Pushed::Confirmed } else { pushed };
        let told = pushed == Pushed::Confirmed;
        match pushed {
            Pushed::Cut => return,
            Pushed::NotTried => return self.change(id, true, |h| undo(&mut h.results[outcome].pushes, push)),
            _ => {}
        }
        let mut word = "";
        let mut failures = 0;
        self.change(id, true, |h| {
            let result = &mut h.results[outcome];
            end(&mut result.pushes, push, &pushed);
            result.told = told.then_some(now.wall);
            failures = result.pushes.iter().filter(|push| push.failed()).count();
            word = result.kind.word();
        });
        self.back_off_bot(id, &pushed, failures, now);
        match pushed {
            Pushed::Failed { why, permanent: true } => {
                self.warn_fact(
                    id,
                    format!("the bot's fakechat refused its {word}: {why}; the bot is told where it lies"),
                );
            }
            Pushed::Failed { why, .. } => {
                self.note_fact(id, format!("its {word} did not reach the bot: {why}; it is sent again"));
            }
            _ => self.note_fact(id, format!("its {word} is with the bot")),
        }
    }

    fn failure_landed(&mut self, id: Id, push: usize, pushed: Pushed, now: Now) {
        if pushed == Pushed::Cut {
            return;
        }
        let mut failures = 0;
        self.change(id, true, |h| {
            let Some(failed) = &mut h.failed else { return };
            if pushed == Pushed::NotTried {
                return undo(&mut failed.pushes, push);
            }
            if push < failed.pushes.len() {
                end(&mut failed.pushes, push, &pushed);
                failed.told = (pushed == Pushed::Confirmed).then_some(now.wall);
                failures = failed.pushes.iter().filter(|push| push.failed()).count();
            }
        });
        self.back_off_bot(id, &pushed, failures, now);
    }

    fn back_off_bot(&mut self, id: Id, pushed: &Pushed, failures: usize, now: Now) {
        if let (Pushed::Failed { .. }, Some(entry)) = (pushed, self.book.get_mut(id)) {
            entry.bot.not_before = now.mono + back_off(failures);
        }
    }
}

/// Whether a push of several parts failed: then that its first part was seen does not make it whole.
fn failed_in_parts(pushed: &Pushed, text: &str, files: &[Attachment], inline_bytes: usize) -> bool {
    let parts = files.iter().filter(|file| file.path.is_some() && file.bytes > 0).count();
    matches!(pushed, Pushed::Failed { .. }) && parts + usize::from(text.len() > inline_bytes) > 1
}

/// Writes down how a push ended.
fn end(pushes: &mut [Push], push: usize, pushed: &Pushed) {
    let Some(push) = pushes.get_mut(push) else { return };
    match pushed {
        Pushed::Confirmed if push.outcome == PushOutcome::Seen => {}
        Pushed::Confirmed => push.outcome = PushOutcome::Sent,
        Pushed::Failed { why, permanent } => {
            push.why = Some(why.clone());
            push.outcome = if *permanent { PushOutcome::Refused } else { PushOutcome::Unknown };
        }
        Pushed::Accepted | Pushed::NotTried | Pushed::Cut => {}
    }
}

/// Strikes out the last push, of which not a byte was posted: the next one is no further attempt.
fn undo(pushes: &mut Vec<Push>, push: usize) {
    if pushes.len() == push + 1 {
        pushes.pop();
    }
}
