//! What the spooler has promised, and said.

use std::collections::BTreeSet;

use anna_relay::config::Side;
use anna_relay::handoff::life::State;
use anna_relay::handoff::{HandOff, Id};

use super::world::World;

/// What the spooler promises with the word that something was dealt with.
#[derive(Clone, Debug)]
pub enum Promise {
    Accepted(Id),
    Recorded(Id, String),
    /// Nothing that could be looked for.
    Nothing,
    Cancelled(Id),
    Retried(Id),
    Paused(bool),
}

/// What is known of a hand-off outside of the relay.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// It was said to be accepted.
    pub accepted: bool,
    /// These texts of the brain were said to be recorded.
    pub recorded: BTreeSet<String>,
    /// The attempts that the brain was told of.
    pub attempts: Vec<usize>,
    /// Its place in the order in which they were said to be accepted.
    pub place: Option<u64>,
    /// How often a person was alarmed since the last retry.
    pub alarms: usize,
    /// What the bot was told in the words for the first time.
    pub told: BTreeSet<String>,
    pub cancelled: bool,
    pub retried: bool,
    pub replied_to: bool,
    pub placeless: bool,
}

impl World {
    /// A promise was given, or broken.
    pub fn kept(&mut self, n: u64, ok: bool) {
        let Some(promise) = self.promises.remove(&n).filter(|_| ok) else { return };
        match promise {
            Promise::Accepted(id) => {
                let known = self.known.entry(id).or_default();
                known.accepted = true;
                if !known.placeless {
                    known.place.get_or_insert(n);
                }
            }
            // One for a hand-off that was cancelled or pruned meanwhile is not recorded.
            Promise::Recorded(id, text) if self.find(id).is_some_and(|(h, _)| !h.is_cancelled()) => {
                self.known.entry(id).or_default().recorded.insert(text);
            }
            Promise::Recorded(..) | Promise::Nothing => {}
            Promise::Cancelled(id) => self.known.entry(id).or_default().cancelled = true,
            Promise::Retried(id) => {
                // The retry of one that has an answer brings that to the bot.
                let known = self.known.entry(id).or_default();
                known.retried |= !known.replied_to;
            }
            Promise::Paused(paused) => self.paused = Some(paused),
        }
    }

    /// Looks at the words of a push.
    pub fn pushed(&mut self, side: Side, text: &str) {
        let Some((head, _)) = text.strip_prefix("[relay ").and_then(|rest| rest.split_once(']')) else { return };
        let words: Vec<&str> = head.split([' ', ',', ':']).collect();
        match (side, &words[..]) {
            (Side::Brain, [id, "cancelled", ..]) => assert!(self.known.contains_key(&id.parse().unwrap())),
            (Side::Brain, [id, "from", "the", "bot", again @ ..]) => {
                let attempt = again.get(2).map_or(1, |n| n.parse().unwrap());
                let id: Id = id.parse().unwrap();
                self.check_order(id);
                let known = self.known.entry(id).or_default();
                let before = known.attempts.last().copied().unwrap_or_default();
                assert!(attempt > before, "attempt {attempt} of {id} after {before}");
                known.attempts.push(attempt);
            }
            (Side::Bot, [_, "for", id, again @ ..]) => {
                let known = self.known.entry(id.parse().unwrap()).or_default();
                if again.is_empty() {
                    assert!(known.told.insert(text.to_owned()), "told twice in the same words: {text}");
                } else {
                    assert!(again.starts_with(&["", "sent", "again"]), "{text}");
                }
            }
            _ => panic!("to {side:?}: {text}"),
        }
    }

    /// Not a byte of that push was posted, so its words may be said again.
    pub fn not_posted(&mut self, side: Side, text: &str) {
        let id = text.split([' ', ',', ']']).find_map(|word| word.parse::<Id>().ok());
        let Some(known) = id.and_then(|id| self.known.get_mut(&id)) else { return };
        match side {
            Side::Brain if text.contains(" from the bot") => drop(known.attempts.pop()),
            Side::Brain => {}
            Side::Bot => drop(known.told.remove(text)),
        }
    }

    /// Nothing that waits for its first push is passed over by one that was accepted later.
    fn check_order(&self, id: Id) {
        let Some(place) = self.known.get(&id).filter(|known| known.attempts.is_empty()).and_then(|known| known.place)
        else {
            return;
        };
        // One that was answered, perhaps not on this disk yet, waits no more.
        let waits = |known: &Known| known.attempts.is_empty() && !known.replied_to;
        let earlier = |known: &Known| waits(known) && known.place.is_some_and(|other| other < place);
        for (other, _) in self.known.iter().filter(|(_, known)| earlier(known)) {
            let waits = self.find(*other).is_some_and(|(h, _)| h.wants_push(None) && h.retried.is_none());
            assert!(!waits, "{id} is pushed before {other}");
        }
    }

    /// Looks whether a disk keeps what was promised.
    pub fn check_promises(&self, disk: &[(HandOff, State)]) {
        for (id, known) in &self.known {
            let h = disk.iter().map(|(h, _)| h).filter(|h| h.id == *id).max_by_key(|h| h.rev);
            let Some(h) = h else {
                assert!(!known.accepted, "{id} was accepted and is lost");
                continue;
            };
            let attempts = known.attempts.last().copied().unwrap_or_default();
            assert!(h.pushes.len() >= attempts || !known.accepted, "attempt {attempts} of {id} was not written down");
            for text in &known.recorded {
                assert!(h.results.iter().any(|r| r.text == *text), "{text:?} for {id} is lost");
            }
            assert!(!known.cancelled || h.is_cancelled(), "{id} is no longer cancelled");
            assert!(!known.retried || h.retried.is_some(), "{id} was not retried");
        }
    }
}
