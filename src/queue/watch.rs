//! What time brings: the word about an outage, the alarm of a hand-off without a result.

use std::time::Duration;

use crate::handoff::{HandOff, PushOutcome};
use crate::text::count;

use super::event::Now;
use super::{Outage, Queue};

impl Queue {
    /// Looks at what is due.
    pub(super) fn watch(&mut self, now: Now) {
        self.book.run_to(now, self.paused.is_some());
        self.watch_outage(now);
        if self.is_blocked(now) {
            return;
        }
        for id in self.book.due_alarms() {
            let Some(entry) = self.book.get(id) else { continue };
            let text = alarm_text(&entry.h, self.brain.online, self.paused.is_some(), self.settings.alarm);
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
        let brain_free = self.brain.online && self.brain.posting.is_none() && self.paused.is_none();
        let brain = self.book.for_brain.first().filter(|_| brain_free);
        let take_backs = self.book.take_backs.iter().filter(|_| self.brain.online && self.brain.posting.is_none());
        let not_before = |(_, id): &(u64, crate::handoff::Id)| Some(self.book.get(*id)?.brain.not_before);
        let bot_free = self.bot.online && self.bot.posting.is_none();
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
            self.notices.retain(|notice| !notice.of_outage || notice.in_flight);
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
        self.notify_of_outage(
            format!("the brain {why}: {} {wait} on when it is back", count(waiting, "hand-off")),
            now,
        );
    }
}

/// What a person is told of a hand-off without a result.
fn alarm_text(h: &HandOff, online: bool, paused: bool, alarm: Duration) -> String {
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
