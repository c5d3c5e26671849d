//! What goes over the control socket: newline-delimited JSON, one request and one response a line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::error::{Error, Kind};

/// The version of the protocol.
pub const VERSION: u32 = 1;

/// A request line. `v` is looked at before the rest, so that an unknown version can be told from junk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The version of the protocol that the asker speaks.
    pub v: u32,
    /// What is asked.
    #[serde(flatten)]
    pub command: Command,
}

/// What can be asked of a running bridge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "kebab-case")]
pub enum Command {
    /// How things stand: answered with a [`Status`].
    Status,
    /// Accept a hand-off from a script: answered with its id.
    Send {
        /// What is to be done.
        text: String,
        /// Absolute paths of files to copy and send along.
        #[serde(default)]
        files: Vec<PathBuf>,
        /// The id it is to have, so that whoever gets no answer can look whether it was accepted.
        #[serde(default)]
        id: Option<String>,
    },
    /// Wait until the hand-off has a result or was given up: answered with its id, for what there is to say is in its file.
    Wait {
        /// Its whole id.
        id: String,
    },
    /// Push nothing to the brain until `resume`.
    Pause {
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Go on pushing.
    Resume,
    /// Give a failed hand-off fresh attempts, push a waiting or unanswered one again.
    Retry {
        /// Its whole id.
        id: String,
    },
    /// Give a hand-off up.
    Cancel {
        /// Its whole id.
        id: String,
    },
    /// Delete these done or failed hand-offs with their files.
    Prune {
        /// Their whole ids.
        ids: Vec<String>,
    },
    /// Let hand-offs of the bot in again.
    ResetBreaker,
    /// Make an actor fail: in test builds only.
    #[cfg(debug_assertions)]
    Fault {
        /// Which one.
        actor: String,
        /// `panic` or `hang`.
        how: String,
    },
}

/// A response line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// It was done; the value depends on the command.
    Ok(serde_json::Value),
    /// It was not.
    Error(Refusal),
}

/// A response line with its version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The version of the protocol that the bridge speaks.
    pub v: u32,
    /// What came of it.
    #[serde(flatten)]
    pub reply: Reply,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What was being done, to what, why it failed.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal { message: error.to_string(), hint: error.advice().map(str::to_owned) }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let error = Error::new(Kind::Failed, refusal.message);
        match refusal.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// How things stand: the document of `status --json` (`spec.md`, "Commands").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Whether a bridge runs.
    pub running: bool,
    /// The bridge's process id.
    pub pid: Option<u32>,
    /// The bridge's version, or, without one, that of the program that was asked.
    pub version: String,
    /// How long it has run.
    pub uptime_s: Option<u64>,
    /// Whether the brain is wrapping up.
    pub paused: Option<Paused>,
    /// The breaker.
    pub breaker: BreakerStatus,
    /// The brain's side.
    pub brain: SideStatus,
    /// The bot's side.
    pub bot: SideStatus,
    /// How many hand-offs lie in each folder.
    pub queue: Counts,
    /// Whether the bridge is still reading the spool: until it has, it knows neither these counts, nor since when
    /// something waits, nor the alarms, nor whether it is paused.
    #[serde(default)]
    pub recovering: bool,
    /// How long the oldest hand-off has waited to be pushed.
    pub oldest_waiting_s: Option<u64>,
    /// How many hand-offs are without a result past `relay.alarm_min`.
    pub alarms: usize,
    /// The bridge's parts.
    pub actors: Vec<ActorStatus>,
}

/// That the brain is wrapping up; also what the spool's file `paused` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// Why, in the words of whoever paused.
    pub reason: Option<String>,
}

/// The breaker, as `status` shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BreakerStatus {
    /// Whether it lets nothing in.
    pub tripped: bool,
    /// How many bot hand-offs came in the last window.
    pub recent: usize,
    /// How many were refused since it tripped.
    pub refused: usize,
    /// `relay.breaker_count`.
    pub limit: usize,
    /// `relay.breaker_window_s`.
    pub window_s: f64,
}

/// One side, as `status` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideStatus {
    /// The port of its fakechat.
    pub port: u16,
    /// Where the connection stands.
    pub state: SideState,
    /// Why it is not online.
    pub why: Option<String>,
    /// Since when it is in this state.
    #[serde(with = "time::serde::rfc3339::option")]
    pub since: Option<OffsetDateTime>,
    /// The process that listens on the port.
    pub holder: Option<HolderStatus>,
    /// The session that owns the fakechat.
    pub session: Option<SessionStatus>,
}

/// Where the connection to a side stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SideState {
    /// No websocket, and none being opened right now.
    Offline,
    /// A websocket is being opened.
    Connecting,
    /// The websocket is up, but not yet for `relay.settle_s`.
    Settling,
    /// Things are pushed to it.
    Online,
    /// A fakechat whose session has ended holds the port.
    Orphan,
    /// Something that is not a fakechat of this user holds the port.
    Foreign,
}

/// The process that listens on a side's port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderStatus {
    /// Its process id.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// The session that owns a fakechat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Its process id.
    pub pid: u32,
    /// What it is doing, where Claude Code's registry says so.
    pub status: Option<Activity>,
    /// What it waits for.
    pub waiting_for: Option<String>,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// A turn is under way.
    Busy,
    /// It waits for a prompt.
    Idle,
    /// It waits for a person.
    Waiting,
}

/// How many hand-offs lie in each folder of the spool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Accepted, not pushed.
    pub new: usize,
    /// Pushed, no result yet.
    pub brain: usize,
    /// Something in it the bot was not told yet.
    pub out: usize,
    /// All told.
    pub done: usize,
    /// Given up, cancelled or refused.
    pub failed: usize,
    /// Could not be read.
    pub corrupt: usize,
}

/// One of the bridge's parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorStatus {
    /// Its name.
    pub name: String,
    /// `running` or `restarting`.
    pub state: String,
    /// How often it was started again.
    pub restarts: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_looks_as_the_contract_says() {
        let request = Request { v: VERSION, command: Command::Status };
        assert_eq!(serde_json::to_string(&request).unwrap(), r#"{"v":1,"cmd":"status"}"#);
        let reply = Response { v: VERSION, reply: Reply::Ok(serde_json::json!(1)) };
        assert_eq!(serde_json::to_string(&reply).unwrap(), r#"{"v":1,"ok":1}"#);
    }
}
