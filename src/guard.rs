//! The guard's decisions, pure: what of the bot's words is a hand-off, and when too many of them trip the breaker.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::handoff::id::message_millis;

/// What a hand-off starts with, to the letter.
const PREFIX: &str = "RELAY:";
/// How many refused hand-offs are kept for a `retry`; the rest is counted (`spec.md`, "Breaker").
pub const KEPT: usize = 100;
/// How many messages are remembered, so that one that comes twice counts once. A day of a busy bot is far less.
const REMEMBERED: usize = 10_000;

/// What a message of the bot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// A hand-off, and what is to be done.
    HandOff(&'a str),
    /// A `RELAY:` in a reply to something: refused, so that no answer can make a hand-off.
    HasReplyTo,
    /// A `RELAY:` with nothing behind it and no file.
    Empty,
    /// Meant as one, it seems, and not written as one: for a person to see.
    NearMiss,
    /// Not for the relay.
    NotForUs,
}

/// Judges a message of the bot.
#[must_use]
pub fn judge<'a>(text: Option<&'a str>, reply_to: Option<&str>, with_file: bool) -> Verdict<'a> {
    let Some(rest) = text.and_then(|text| text.strip_prefix(PREFIX)) else {
        return if text.is_some_and(is_near_miss) { Verdict::NearMiss } else { Verdict::NotForUs };
    };
    match (reply_to, rest.trim()) {
        (Some(_), _) => Verdict::HasReplyTo,
        (None, "") if !with_file => Verdict::Empty,
        (None, rest) => Verdict::HandOff(rest),
    }
}

/// Whether a text is much like a hand-off: it has a `RELAY:` further on, or a line that starts like one (`relay:`,
/// `**RELAY:**`, ` RELAY :`, `RELAY water`). A model writes such things.
fn is_near_miss(text: &str) -> bool {
    text.contains(PREFIX) || text.lines().any(starts_alike)
}

fn starts_alike(line: &str) -> bool {
    let start = line.trim_start_matches(|c: char| c.is_whitespace() || "*_`#>-\"'".contains(c));
    let word = PREFIX.trim_end_matches(':');
    let Some((found, rest)) = start.split_at_checked(word.len()) else { return false };
    let colon = || rest.trim_start_matches(|c: char| c == ' ' || "*_`".contains(c)).starts_with([':', '：']);
    (found == word && rest.starts_with(' ')) || (found.eq_ignore_ascii_case(word) && colon())
}

/// Whether a hand-off is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is.
    Admitted,
    /// It is not; `kept`: it is kept for a `retry`.
    Refused {
        /// Whether it is kept.
        kept: bool,
    },
}

/// Stops the intake when hand-offs come too fast: a loop between the two sessions, most likely.
#[derive(Clone, Debug)]
pub struct Breaker {
    limit: usize,
    window: u64,
    /// When the recent hand-offs were said, in Unix milliseconds, the earliest first.
    times: Vec<u64>,
    tripped: bool,
    refused: usize,
    decided: HashMap<String, Admission>,
    order: VecDeque<String>,
}

impl Breaker {
    /// A breaker that trips at more than `limit` hand-offs in a window.
    #[must_use]
    pub fn new(limit: usize, window: Duration) -> Self {
        Breaker {
            limit,
            window: millis(window),
            times: Vec::new(),
            tripped: false,
            refused: 0,
            decided: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// The configuration was read again.
    pub fn configure(&mut self, limit: usize, window: Duration) {
        (self.limit, self.window) = (limit, millis(window));
    }

    /// Decides about a hand-off that came with this message at this Unix time in milliseconds. What was decided about
    /// a message stays decided.
    pub fn admit(&mut self, message: &str, received: u64) -> Admission {
        if let Some(decided) = self.decided.get(message) {
            return *decided;
        }
        if !self.tripped {
            self.count(message_millis(message).unwrap_or(received).min(received));
        }
        let admission = if self.tripped {
            self.refused += 1;
            Admission::Refused { kept: self.refused <= KEPT }
        } else {
            Admission::Admitted
        };
        self.remember(message, admission);
        admission
    }

    /// Counts a hand-off said at `at`, and trips if any window holds too many. By the time of saying, not of arrival:
    /// what hooks bring late was not said fast. Not later than the arrival, or a lying clock could thin it out.
    fn count(&mut self, at: u64) {
        let place = self.times.partition_point(|time| *time <= at);
        self.times.insert(place, at);
        let crowded = self.times.windows(self.limit + 1).any(|span| span[self.limit] - span[0] < self.window);
        self.tripped = crowded;
        // One window on each side of the newest is all that a later one could fall into.
        let newest = self.times.last().copied().unwrap_or_default();
        let horizon = newest.saturating_sub(self.window.saturating_mul(2));
        if self.times.len() > REMEMBERED {
            self.times.retain(|time| *time >= horizon);
        }
        let excess = self.times.len().saturating_sub(REMEMBERED);
        self.times.drain(..excess);
    }

    /// A `RELAY:` was refused for its shape. Whether that is news: the same message may come by two ways.
    pub fn dismiss(&mut self, message: &str) -> bool {
        let news = !self.decided.contains_key(message);
        if news {
            self.remember(message, Admission::Refused { kept: false });
        }
        news
    }

    fn remember(&mut self, message: &str, admission: Admission) {
        self.decided.insert(message.to_owned(), admission);
        self.order.push_back(message.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.decided.remove(&oldest);
        }
    }

    /// Lets hand-offs in again. Returns how many had been refused.
    pub fn reset(&mut self) -> usize {
        self.times.clear();
        self.tripped = false;
        std::mem::take(&mut self.refused)
    }

    /// Whether it lets nothing in.
    #[must_use]
    pub fn tripped(&self) -> bool {
        self.tripped
    }

    /// How many it refused since it tripped.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// How many hand-offs were said in the window before this Unix time in milliseconds.
    #[must_use]
    pub fn recent(&self, now: u64) -> usize {
        self.times.iter().filter(|time| now.saturating_sub(**time) < self.window).count()
    }
}

fn millis(window: Duration) -> u64 {
    u64::try_from(window.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(millis: u64, n: usize) -> String {
        format!("m{millis}-{n}")
    }

    const T: u64 = 1_796_031_734_360;

    #[test]
    fn only_an_explicit_relay_without_reply_to_is_a_hand_off() {
        let hand_off = Verdict::HandOff;
        for (text, reply_to, file, verdict) in [
            (Some("RELAY: water\nthe plants \n"), None, false, hand_off("water\nthe plants")),
            (Some("RELAY:x"), None, false, hand_off("x")),
            (Some("RELAY: RELAY: x"), None, false, hand_off("RELAY: x")),
            (Some("RELAY:"), None, true, hand_off("")),
            (Some("RELAY: \n"), None, false, Verdict::Empty),
            (Some("RELAY: x"), Some("id"), false, Verdict::HasReplyTo),
            (Some("RELAY: x"), Some(""), false, Verdict::HasReplyTo),
            (Some(" RELAY: x"), None, false, Verdict::NearMiss),
            (Some("relay: x"), None, false, Verdict::NearMiss),
            (Some("**RELAY:** x"), None, false, Verdict::NearMiss),
            (Some("RELAY : x"), Some("id"), false, Verdict::NearMiss),
            (Some("RELAY x"), None, false, Verdict::NearMiss),
            (Some("I said RELAY: x"), None, false, Verdict::NearMiss),
            (Some("Sure!\n- relay: x"), None, false, Verdict::NearMiss),
            (Some("RELAYS x"), None, false, Verdict::NotForUs),
            (Some("the relay: x"), None, false, Verdict::NotForUs),
            (Some("rélay: x"), None, false, Verdict::NotForUs),
            (Some("[relay] RELAY: x"), None, false, Verdict::NearMiss),
            (Some("hello"), Some("id"), false, Verdict::NotForUs),
            (None, None, true, Verdict::NotForUs),
        ] {
            assert_eq!(judge(text, reply_to, file), verdict, "{text:?} {reply_to:?}");
        }
    }

    #[test]
    fn more_than_the_limit_in_the_window_trips_until_reset() {
        let mut breaker = Breaker::new(5, Duration::from_secs(120));
        for n in 0..5 {
            assert_eq!(breaker.admit(&message(T, n), T), Admission::Admitted);
        }
        assert!(!breaker.tripped());
        assert_eq!(breaker.admit(&message(T + 119_999, 5), T + 119_999), Admission::Refused { kept: true });
        let later = T + 10_000_000;
        assert_eq!(breaker.admit(&message(later, 6), later), Admission::Refused { kept: true });
        assert_eq!((breaker.tripped(), breaker.refused()), (true, 2));
        assert_eq!(breaker.reset(), 2);
        assert_eq!(breaker.admit(&message(later, 7), later), Admission::Admitted);
        assert_eq!(breaker.recent(later), 1);
    }

    #[test]
    fn the_time_of_saying_counts_not_that_of_arrival() {
        let mut breaker = Breaker::new(2, Duration::from_secs(10));
        for n in 0..20 {
            assert_eq!(breaker.admit(&message(T + 6_000 * n, 1), T + 1_000_000), Admission::Admitted);
        }
        // Out of order, but said in one go with others.
        assert_eq!(breaker.admit(&message(T + 6_001, 2), T + 1_000_000), Admission::Refused { kept: true });
    }

    #[test]
    fn a_time_in_the_future_or_none_counts_as_now() {
        let mut breaker = Breaker::new(1, Duration::from_secs(10));
        assert_eq!(breaker.admit(&message(T + 900_000_000, 1), T), Admission::Admitted);
        assert_eq!(breaker.admit("no time in it", T + 1), Admission::Refused { kept: true });
    }

    #[test]
    fn the_same_message_counts_once_and_is_decided_once() {
        let mut breaker = Breaker::new(1, Duration::from_secs(10));
        for _ in 0..5 {
            assert_eq!(breaker.admit(&message(T, 1), T), Admission::Admitted);
        }
        for _ in 0..5 {
            assert_eq!(breaker.admit(&message(T, 2), T), Admission::Refused { kept: true });
        }
        assert_eq!(breaker.refused(), 1);
        breaker.reset();
        assert_eq!(breaker.admit(&message(T, 2), T), Admission::Refused { kept: true }, "it is in failed/ already");
    }

    #[test]
    fn the_first_hundred_are_kept() {
        let mut breaker = Breaker::new(1, Duration::from_secs(10));
        let kept = (0..300).filter(|n| breaker.admit(&message(T, *n), T) == Admission::Refused { kept: true }).count();
        assert_eq!((kept, breaker.refused()), (KEPT, 299));
    }

    proptest! {
        #[test]
        fn it_trips_just_when_some_window_holds_too_many(gaps in proptest::collection::vec(0_u64..4_000, 1..40), limit in 1_usize..6) {
            let window = 5_000;
            let mut breaker = Breaker::new(limit, Duration::from_millis(window));
            let mut times = Vec::new();
            let mut at = T;
            for (n, gap) in gaps.into_iter().enumerate() {
                at += gap;
                times.push(at);
                breaker.admit(&message(at, n), at);
                let crowded = times.iter().any(|t| times.iter().filter(|u| *u >= t && *u - t < window).count() > limit);
                prop_assert_eq!(breaker.tripped(), crowded);
            }
        }
    }
}
