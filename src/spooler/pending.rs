//! The events that wait for the spooler, and which comes next.
//!
//! They are dealt with as they came, but for two things. Word that only has to be written down, that a push was
//! confirmed or seen, is overtaken by what somebody waits for, as long as it does not itself wait too long. Each takes
//! the disk as long as a push does, and under a stream of hand-offs they fall due just then. And a stop overtakes all,
//! and from then on so does word of pushes: what was under way is finished first, nothing more is begun, and the time
//! that is left goes to what has yet to be accepted.

use std::collections::VecDeque;
use std::time::Duration;

use crate::queue::event::{Event, Now, Pushed};

/// How long word may be overtaken: a crash before it is written means a push that is made again.
const OVERTAKEN_FOR: Duration = Duration::from_secs(1);

/// The events that wait.
#[derive(Debug, Default)]
pub struct Pending {
    waiting: VecDeque<(Duration, Event)>,
    /// Whether the last one was the tick that was due.
    ticked: bool,
    /// Whether the bridge stops.
    stopping: bool,
}

impl Pending {
    /// Takes in what came.
    pub fn extend(&mut self, events: impl IntoIterator<Item = Event>, now: Now) {
        for event in events {
            match event {
                Event::Drain => self.waiting.push_front((now.mono, event)),
                event => self.waiting.push_back((now.mono, event)),
            }
        }
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next one. A tick comes once `wake_at` is past, but never twice in a row while others wait.
    pub fn next(&mut self, wake_at: Option<Duration>, now: Now) -> Option<Event> {
        if matches!(self.waiting.front(), Some((_, Event::Drain))) {
            self.stopping = true;
            return self.waiting.pop_front().map(|(_, event)| event);
        }
        let of_push = || self.waiting.iter().position(|(_, event)| matches!(event, Event::Pushed { .. }));
        if let Some(at) = self.stopping.then(of_push).flatten() {
            return self.waiting.remove(at).map(|(_, event)| event);
        }
        let due = wake_at.is_some_and(|at| at <= now.mono);
        if due && (!self.ticked || self.is_empty()) {
            self.ticked = true;
            return Some(Event::Tick);
        }
        self.ticked = false;
        let first = self.waiting.iter().position(|(_, event)| !can_wait(event)).unwrap_or_default();
        let overtakes = self.waiting.get(first).is_some_and(|(_, event)| overtakes(event))
            && self.waiting.front().is_some_and(|(came, _)| now.mono.saturating_sub(*came) < OVERTAKEN_FOR);
        let (_, event) = self.waiting.remove(if overtakes { first } else { 0 })?;
        Some(event)
    }
}

/// Whether it only has to be written down.
fn can_wait(event: &Event) -> bool {
    matches!(event, Event::Sighted(_) | Event::Pushed { pushed: Pushed::Confirmed, .. })
}

/// Whether somebody waits for it, and it means the same before and after such word.
fn overtakes(event: &Event) -> bool {
    matches!(event, Event::Accept(_) | Event::Reply(_) | Event::Pushed { pushed: Pushed::Accepted, .. })
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::config::Side;
    use crate::queue::{Receipt, Token};

    fn at(millis: u64) -> Now {
        Now { mono: Duration::from_millis(millis), wall: datetime!(2026-11-30 10:00 UTC) }
    }

    fn word(token: u64, pushed: Pushed) -> Event {
        Event::Pushed { token: Token(token), pushed }
    }

    fn drained(pending: &mut Pending, now: Now) -> Vec<String> {
        std::iter::from_fn(|| pending.next(None, now)).map(|event| format!("{event:?}")).collect()
    }

    fn names(events: &[Event]) -> Vec<String> {
        events.iter().map(|event| format!("{event:?}")).collect()
    }

    #[test]
    fn what_somebody_waits_for_overtakes_what_only_has_to_be_written_down() {
        let mut pending = Pending::default();
        let [slow, slow_too] = [1, 2].map(|token| word(token, Pushed::Confirmed));
        let [quick, quick_too] = [3, 4].map(|token| word(token, Pushed::Accepted));
        pending.extend([slow.clone(), quick.clone(), slow_too.clone(), quick_too.clone()], at(0));
        assert_eq!(drained(&mut pending, at(999)), names(&[quick, quick_too, slow, slow_too]));
    }

    #[test]
    fn it_is_overtaken_for_a_second_at_most_and_never_by_word_of_the_same_push() {
        let mut pending = Pending::default();
        let slow = word(1, Pushed::Confirmed);
        let quick = word(3, Pushed::Accepted);
        let reset = Event::SideReset(Side::Brain);
        pending.extend([slow.clone(), quick.clone()], at(0));
        assert_eq!(drained(&mut pending, at(1_000)), names(&[slow.clone(), quick.clone()]));
        pending.extend([slow.clone(), reset.clone(), quick.clone()], at(2_000));
        assert_eq!(drained(&mut pending, at(2_000)), names(&[slow, reset, quick]));
    }

    #[test]
    fn a_stop_overtakes_all_and_then_word_of_pushes_does() {
        let mut pending = Pending::default();
        let said = Event::Notify { text: "said".into(), receipt: Receipt::None };
        let word = word(1, Pushed::Confirmed);
        pending.extend([said.clone(), word.clone(), Event::Drain], at(0));
        assert_eq!(drained(&mut pending, at(0)), names(&[Event::Drain, word.clone(), said.clone()]));
        pending.extend([said.clone(), word.clone()], at(0));
        assert_eq!(drained(&mut pending, at(0)), names(&[word, said]));
    }

    #[test]
    fn a_due_tick_comes_first_and_holds_up_nothing() {
        let mut pending = Pending::default();
        let due = Some(Duration::ZERO);
        pending.extend([word(1, Pushed::Accepted), word(2, Pushed::Accepted)], at(0));
        let order: Vec<bool> =
            (0..5).filter_map(|_| pending.next(due, at(0))).map(|event| matches!(event, Event::Tick)).collect();
        assert_eq!(order, [true, false, true, false, true]);
        assert!(pending.next(Some(Duration::from_millis(1)), at(0)).is_none());
    }
}
