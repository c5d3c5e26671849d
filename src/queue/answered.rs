//! Which hand-off each message of the brain answered, for edits of it.

use std::collections::{HashMap, VecDeque};

use crate::handoff::Id;

/// How many messages are remembered; the oldest goes first. A busy month is far less.
const REMEMBERED: usize = 10_000;

/// The brain's messages that became results.
#[derive(Debug, Default)]
pub(super) struct Answered {
    of: HashMap<String, Id>,
    order: VecDeque<String>,
}

impl Answered {
    pub fn get(&self, message: &str) -> Option<Id> {
        self.of.get(message).copied()
    }

    pub fn insert(&mut self, message: &str, id: Id) {
        if self.of.insert(message.to_owned(), id).is_some() {
            return;
        }
        self.order.push_back(message.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.of.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut answered = Answered::default();
        let id = Id::now();
        for n in 0..=REMEMBERED {
            answered.insert(&format!("m1-{n}"), id);
            answered.insert("m1-1", id);
        }
        assert_eq!((answered.get("m1-0"), answered.get("m1-1")), (None, Some(id)));
        assert_eq!(answered.of.len(), REMEMBERED);
    }
}
