//! Which hand-off a message belongs to: the brain's that answered one, for edits of it; the relay's own to the bot, for
//! receipts.

use std::collections::{HashMap, VecDeque};

use crate::handoff::Id;

/// How many messages are remembered; the oldest goes first. A busy month is far less.
const REMEMBERED: usize = 10_000;

/// Messages with their hand-offs.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    of: HashMap<String, Id>,
    order: VecDeque<String>,
}

impl Remembered {
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
        let mut remembered = Remembered::default();
        let id = Id::now();
        for n in 0..=REMEMBERED {
            remembered.insert(&format!("m1-{n}"), id);
            remembered.insert("m1-1", id);
        }
        assert_eq!((remembered.get("m1-0"), remembered.get("m1-1")), (None, Some(id)));
        assert_eq!(remembered.of.len(), REMEMBERED);
    }
}
