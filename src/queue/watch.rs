//! What time brings: the word about an outage, the alarm of a hand-off without a result.

use std::time::Duration;

use crate::control::wire::Activity;
use crate::handoff::{HandOff, PushOutcome, SessionKey};
use crate::text::{count, on_one_line};

use super::event::{Doing, Now};
use super::{About, Outage, Queue, Wait};

impl Queue {
    /// Looks at what is due.
    pub(super) fn watch(&mut self, now: Now) {
        self.book.run_to(now, self.paused.is_some());
        self.watch_outage(now);
        self.watch_wait(now);
        if self.is_blocked(now) {
            return;
        }
        for id in self.book.due_alarms() {
            let Some(entry) = self.book.get(id) else { continue };
            let waits = self.held_up().filter(|wait| is_with(&entry.h, wait.session));
            let text = alarm_text(&entry.h, waits, self.brain.online, self.paused.is_some(), self.settings.alarm);
            self.change(id, false, |h| h.alarmed = Some(now.wall));
            self.warn(Some(id), text);
        }
    }

    /// When there will be something to do, if nothing happens until then.
    #[must_use]
    pub fn wake_at(&self, now: Now) -> Option<Duration> {
        let trouble = self.trouble.as_ref().map(|trouble| trouble.next_try.max(now.mono));
        if self.draining {
            return trouble;
        }
        let outage = self.outage.as_ref().filter(|outage| !outage.told && self.waiting() > 0);
        let brain_free = self.brain.has_room();
        let brain = self.book.for_brain.first().filter(|_| brain_free && self.paused.is_none());
        let take_backs = self.book.take_backs.iter().filter(|_| brain_free);
        let not_before = |(_, id): &(u64, crate::handoff::Id)| Some(self.book.get(*id)?.brain.not_before);
        let bot_free = self.bot.has_room();
        let owing = self.book.for_bot.iter().filter(|_| bot_free);
        let notices = self.notices.iter().filter(|notice| bot_free && !notice.in_flight);
        let written = trouble.is_none();
        [
            outage.map(|outage| outage.since + self.settings.gap),
            brain.and_then(not_before).filter(|_| written),
            take_backs.filter_map(not_before).min().filter(|_| written),
            owing.filter_map(|(_, id)| Some(self.book.get(*id)?.bot.not_before)).min().filter(|_| written),
            notices.map(|notice| notice.not_before).min(),
            self.book.next_alarm().filter(|_| self.paused.is_none() && written),
            trouble,
        ]
        .into_iter()
        .flatten()
        .min()
        .map(|at| at.max(now.mono))
    }

    fn watch_outage(&mut self, now: Now) {
        if self.brain.online && self.paused.is_none() {
            self.outage = None;
            self.retract(About::Outage);
            return;
        }
        let waiting = self.waiting();
        let paused = self.paused.clone();
        let gap = self.settings.gap;
        let outage = self.outage.get_or_insert(Outage { since: now.mono, told: false });
        if outage.told || waiting == 0 || now.mono.saturating_sub(outage.since) < gap {
            return;
        }
        outage.told = true;
        let why = match paused {
            None => "is away".to_owned(),
            Some(paused) => match paused.reason {
                Some(reason) => format!("is wrapping up ({reason})"),
                None => "is wrapping up".to_owned(),
            },
        };
        let wait = if waiting == 1 { "waits and goes" } else { "wait and go" };
        self.notify(
            format!("the brain {why}: {} {wait} on when it is back", count(waiting, "hand-off")),
            About::Outage,
            now,
        );
    }

    /// The brain's session does something else than before.
    pub(super) fn brain_does(&mut self, doing: Doing) {
        let Doing { session, status, since, waiting_for: what } = doing;
        let told = self.wait.as_ref().is_some_and(|wait| wait.told && (wait.session, wait.since) == (session, since));
        let waits = status == Some(Activity::Waiting);
        self.wait = waits.then_some(Wait { session, since, what, told });
        if !(waits && told) {
            self.retract(About::Wait);
        }
    }

    /// The wait for a person that the brain that is here is in.
    fn held_up(&self) -> Option<&Wait> {
        let here = |wait: &&Wait| self.brain.online && self.brain.session.is_none_or(|here| here == wait.session);
        self.wait.as_ref().filter(here)
    }

    /// Tells the bot, once a wait, that a hand-off is held up by it.
    fn watch_wait(&mut self, now: Now) {
        let Some(wait) = self.held_up().filter(|wait| !wait.told) else { return };
        if !self.book.ids().filter_map(|id| self.book.get(id)).any(|entry| is_with(&entry.h, wait.session)) {
            return;
        }
        let what = for_what(wait);
        let text = format!("the brain waits for a person{what}: its hand-off goes on once that is answered there");
        if let Some(wait) = &mut self.wait {
            wait.told = true;
        }
        self.note(None, text.clone());
        self.notify(text, About::Wait, now);
    }
}

/// Whether that session has it, and has not answered.
fn is_with(h: &HandOff, session: SessionKey) -> bool {
    let last = h.pushes.last().filter(|push| matches!(push.outcome, PushOutcome::Sent | PushOutcome::Seen));
    h.waits_for_result() && last.is_some_and(|push| push.session.is_none_or(|went_to| went_to == session))
}

/// What it waits for, in brackets, where that is known.
fn for_what(wait: &Wait) -> String {
    wait.what.as_deref().map(|what| format!(" ({})", on_one_line(what))).unwrap_or_default()
}

/// What a person is told of a hand-off without a result.
fn alarm_text(h: &HandOff, waits: Option<&Wait>, online: bool, paused: bool, alarm: Duration) -> String {
    if let Some(wait) = waits {
        return format!("no result after {}: the session waits for a person{}", minutes(alarm), for_what(wait));
    }
    let why = match h.pushes.last().map(|push| push.outcome) {
        Some(PushOutcome::Seen) => "seen and unanswered",
        Some(_) if online => "pushed and not seen; `anna-relay retry` pushes it again",
        Some(_) => "pushed and not seen, and the brain is away",
        None if paused => "not seen: it was not pushed, for the brain is wrapping up",
        None if online => "not seen: it was not pushed yet",
        None => "not seen: it was not pushed, for the brain is away",
    };
    format!("no result after {}: {why}", minutes(alarm))
}

/// `30 min`, `1.5 min`, `20 s`.
fn minutes(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 60.0 => format!("{seconds:.0} s"),
        seconds => format!("{} min", (seconds / 6.0).round() / 10.0),
    }
}

#[cfg(test)]
mod tests;
