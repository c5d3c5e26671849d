//! What is to happen, and when.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anna_relay::config::Side;

/// Something that is to happen.
#[derive(Debug)]
pub enum Act {
    /// The bot hands something off.
    Say,
    /// The brain answers this hand-off.
    Answer { id: String, text: String },
    /// The brain changes what it said.
    Edit { id: String, message: String, text: String },
    /// A session's hook runs.
    Hook { side: Side, json: String },
    /// A person has a look at a hand-off that seems to be forgotten.
    LookAfter { id: String },
    /// Something breaks.
    Fault,
    /// All that is wrong with that side's fakechat is right again.
    Heal(Side),
    /// That side's fakechat goes away for so many milliseconds.
    Leave(Side, u64),
    /// That side's fakechat comes back, or anew.
    Back(Side),
    /// The bridge ends.
    End,
    /// The bridge is started.
    Start,
}

/// The acts by their time.
#[derive(Default)]
pub struct Agenda {
    acts: BTreeMap<(Instant, u64), Act>,
    next: u64,
}

impl Agenda {
    pub fn after(&mut self, millis: u64, act: Act) {
        self.at(Instant::now() + Duration::from_millis(millis), act);
    }

    pub fn at(&mut self, time: Instant, act: Act) {
        self.next += 1;
        self.acts.insert((time, self.next), act);
    }

    /// What is due now.
    pub fn due(&mut self) -> Option<Act> {
        let first = self.acts.first_entry().filter(|first| first.key().0 <= Instant::now())?;
        Some(first.remove())
    }

    /// How long there is nothing to do.
    pub fn rest(&self) -> Duration {
        let first = self.acts.keys().next();
        first.map_or(Duration::from_millis(100), |(at, _)| at.saturating_duration_since(Instant::now()))
    }

    /// Whether any is left like that.
    pub fn has(&self, like: impl Fn(&Act) -> bool) -> bool {
        self.acts.values().any(like)
    }
}
