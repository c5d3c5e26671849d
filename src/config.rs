//! `anna.toml`: from raw TOML to a validated [`Config`].

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One of Anna's two sessions, with its own fakechat on its own port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Does the work.
    Brain,
    /// Is the conversation.
    Bot,
}

impl Side {
    /// Both of them.
    pub const BOTH: [Side; 2] = [Side::Brain, Side::Bot];

    /// `brain` or `bot`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Side::Brain => "brain",
            Side::Bot => "bot",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whom the relay deals with at a port (`relay.holder`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holder {
    /// Only with a fakechat of a live session of this user.
    Session,
    /// With whatever holds the port.
    Any,
}

/// Everything `anna.toml` says about the relay, checked, with defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The file it was read from, or, where there was none, the file that would have been read.
    pub file: PathBuf,
    /// Whether that file was there.
    pub found: bool,
    /// `[paths]`
    pub paths: Paths,
    /// `[relay]`
    pub relay: Relay,
}

/// The `[paths]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Anna's state; the spool is in `relay/` below it.
    pub state: PathBuf,
    /// The stream.
    pub stream: PathBuf,
}

impl Paths {
    /// The spool's folder.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.state.join("relay")
    }
}

/// The `[relay]` section.
#[derive(Clone, Debug, PartialEq)]
pub struct Relay {
    /// The bridge refuses to start without it.
    pub enabled: bool,
    /// The port of the brain's fakechat.
    pub brain_port: u16,
    /// The port of the bot's fakechat.
    pub bot_port: u16,
    /// A websocket counts as online only after it has been up this long.
    pub settle: Duration,
    /// A hand-off with no result after this long is shown to a person.
    pub alarm: Duration,
    /// More bot hand-offs than this in the window trip the breaker.
    pub breaker_count: usize,
    /// The breaker's window.
    pub breaker_window: Duration,
    /// Whom to deal with.
    pub holder: Holder,
    /// A push fails if the websocket drops within this time after the 204.
    pub confirm: Duration,
    /// Pushes of one hand-off before it is given up.
    pub max_attempts: usize,
    /// Longer text travels as a file; KiB.
    pub inline_kib: usize,
    /// What `launch brain` passes to `--channels`.
    pub brain_channels: Vec<String>,
    /// What `launch bot` passes to `--channels`.
    pub bot_channels: Vec<String>,
}

impl Relay {
    /// The port of that side's fakechat.
    #[must_use]
    pub fn port(&self, side: Side) -> u16 {
        match side {
            Side::Brain => self.brain_port,
            Side::Bot => self.bot_port,
        }
    }
}
