//! `anna.toml`: from raw TOML to a validated [`Config`].
//!
//! What keys there are, their defaults and their ranges: [`keys`]. Where the file is looked for: [`load`].
//! From its text to a [`Config`]: [`parse`].

pub mod keys;
pub mod load;
pub mod parse;
#[cfg(test)]
mod samples;
mod value;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use load::Env;

/// Seconds in a minute: keys that end in `_min` hold minutes.
const SECONDS_PER_MINUTE: f64 = 60.0;

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

impl Holder {
    /// `session` or `any`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Holder::Session => "session",
            Holder::Any => "any",
        }
    }
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
    /// What was passed over and looks meant for us, with its line: other tools share the file, so it is no error.
    pub passed_over: Vec<String>,
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

impl Config {
    /// The value of a key of the table [`keys::KEYS`], as it would be written in the file (JSON's words for
    /// it are also TOML's).
    #[must_use]
    pub fn value(&self, key: &keys::Key) -> Value {
        let relay = &self.relay;
        match (key.section, key.name) {
            ("paths", "state") => json!(self.paths.state.to_string_lossy()),
            ("paths", "stream") => json!(self.paths.stream.to_string_lossy()),
            (_, "enabled") => json!(relay.enabled),
            (_, "brain_port") => json!(relay.brain_port),
            (_, "bot_port") => json!(relay.bot_port),
            (_, "settle_s") => number(relay.settle.as_secs_f64()),
            (_, "alarm_min") => number(relay.alarm.as_secs_f64() / SECONDS_PER_MINUTE),
            (_, "breaker_count") => json!(relay.breaker_count),
            (_, "breaker_window_s") => number(relay.breaker_window.as_secs_f64()),
            (_, "holder") => json!(relay.holder),
            (_, "confirm_ms") => number(relay.confirm.as_secs_f64() * 1e3),
            (_, "max_attempts") => json!(relay.max_attempts),
            (_, "inline_kib") => json!(relay.inline_kib),
            (_, "brain_channels") => json!(relay.brain_channels),
            (_, "bot_channels") => json!(relay.bot_channels),
            _ => Value::Null,
        }
    }
}

/// What changed from `old` to `new` that a running bridge cannot take over: it has to be started again.
#[must_use]
pub fn changed_needing_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let changes = [
        (old.paths.state != new.paths.state, "paths.state"),
        (old.paths.stream != new.paths.stream, "paths.stream"),
        (old.relay.brain_port != new.relay.brain_port, "relay.brain_port"),
        (old.relay.bot_port != new.relay.bot_port, "relay.bot_port"),
    ];
    changes.into_iter().filter_map(|(changed, key)| changed.then_some(key)).collect()
}

/// A number without a needless fraction.
fn number(value: f64) -> Value {
    let whole = value.round();
    // Parsing, multiplying and `Duration` leave an error far below a millionth.
    if (value - whole).abs() < 1e-6 { json!(whole as i64) } else { json!(value) }
}
