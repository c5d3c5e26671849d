//! Where a hand-off stands.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where a hand-off stands; the folder of the spool it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Accepted, not pushed (or, after a `retry`, not pushed again).
    New,
    /// Pushed, no result yet.
    Brain,
    /// There is something in it that the bot (or, after a `cancel`, the brain) was not told yet.
    Out,
    /// Answered, and all told.
    Done,
    /// Given up, cancelled or refused.
    Failed,
}

impl State {
    /// All of them, in the order a hand-off goes through them.
    pub const ALL: [State; 5] = [State::New, State::Brain, State::Out, State::Done, State::Failed];

    /// The folder's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::New => "new",
            State::Brain => "brain",
            State::Out => "out",
            State::Done => "done",
            State::Failed => "failed",
        }
    }

    /// Whether the bridge still has something to do with hand-offs in this state.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, State::New | State::Brain | State::Out)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        State::ALL.into_iter().find(|state| state.name() == name).ok_or_else(|| format!("no such state: {name}"))
    }
}
