//! The words of the domain: a hand-off, its pushes and its results, and what may happen to them. No I/O.
//!
//! The structs here are also the spool's file format (`spec.md`, "The spool"). What a hand-off may do next is
//! in [`life`]; what the brain answered in [`answers`]; the exact words that are sent in [`words`].

pub mod answers;
pub mod id;
pub mod life;
pub mod listed;
mod state;
pub mod words;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;

pub use id::Id;

/// The version of the file format.
pub const VERSION: u32 = 1;

/// Fields this version does not know, kept as they were found.
type Unknown = Map<String, Value>;

/// Who made a hand-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The bot, with a `RELAY:` reply.
    Bot,
    /// A script, with `anna-relay send`.
    Script,
}

/// One piece of work from the bot or a script to the brain, with its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandOff {
    /// The version of the file format, [`VERSION`].
    pub v: u32,
    /// Counts the writes of this file: of two copies, left by a power cut, the higher one is the newer.
    #[serde(default)]
    pub rev: u64,
    /// Its name.
    pub id: Id,
    /// Who made it.
    pub from: Origin,
    /// What is to be done.
    pub text: String,
    /// When it was accepted.
    #[serde(with = "time::serde::rfc3339")]
    pub created: OffsetDateTime,
    /// The message of the bot that made it.
    pub source: Option<Source>,
    /// What came along with it.
    #[serde(default)]
    pub files: Vec<Attachment>,
    /// Each time it was pushed to the brain, the first one first.
    #[serde(default)]
    pub pushes: Vec<Push>,
    /// What the brain answered, in the order it came.
    #[serde(default)]
    pub results: Vec<Outcome>,
    /// When a person was told that it has no result.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub alarmed: Option<OffsetDateTime>,
    /// That, and why, it was given up.
    #[serde(default)]
    pub failed: Option<Failure>,
    /// The last `retry` by a person: attempts and the wait for a result count from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<Retry>,
    #[serde(flatten)]
    #[doc(hidden)]
    pub unknown: Unknown,
}

/// The message that made a hand-off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// fakechat's id of it, `m<epoch ms>-<n>`.
    pub message: String,
    #[serde(flatten)]
    #[doc(hidden)]
    pub unknown: Unknown,
}

/// A file that goes with a hand-off or a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The name it was given, made safe.
    pub name: String,
    /// Where it lies, relative to the spool; none where it could not be had.
    pub path: Option<String>,
    /// Its size.
    pub bytes: u64,
    #[serde(flatten)]
    #[doc(hidden)]
    pub unknown: Unknown,
}

/// One try to bring something to a side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// When it was begun.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// 1 for the first.
    pub attempt: usize,
    /// The session it went to, where sessions are told apart.
    pub session: Option<SessionKey>,
    /// What became of it.
    pub outcome: PushOutcome,
    /// The message id it was posted with, where that is not the hand-off's own: a push to the bot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// Why it did not succeed. An `unknown` push with no reason is one that the relay itself cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(flatten)]
    #[doc(hidden)]
    pub unknown: Unknown,
}

/// The process that owns a fakechat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// Its process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot (Linux) or Unix seconds: tells it from a later process of that id.
    pub started: u64,
}

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PushOutcome {
    /// fakechat took it, and its websocket stayed up for `confirm_ms`.
    Sent,
    /// It is in the session's own transcript.
    Seen,
    /// fakechat said no: it is surely not in the session.
    Refused,
    /// It may or may not have arrived.
    Unknown,
}

/// Something the brain said about a hand-off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which of the three it is.
    pub kind: OutcomeKind,
    /// What it said.
    pub text: String,
    /// When it came.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The brain's message: fakechat's id of it.
    pub message: String,
    /// Later messages that said the same and are not told again, for one of them may be the one that is edited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<String>,
    /// What came along with it.
    #[serde(default)]
    pub files: Vec<Attachment>,
    /// Each time it was pushed to the bot.
    #[serde(default)]
    pub pushes: Vec<Push>,
    /// When the bot had it.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub told: Option<OffsetDateTime>,
    #[serde(flatten)]
    #[doc(hidden)]
    pub unknown: Unknown,
}

/// The kinds of [`Outcome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// The first answer.
    Result,
    /// A later one.
    FollowUp,
    /// An edit of one of them.
    Correction,
}

impl OutcomeKind {
    /// The word for it in messages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            OutcomeKind::Result => "result",
            OutcomeKind::FollowUp => "follow-up",
            OutcomeKind::Correction => "correction",
        }
    }
}

/// That a hand-off was given up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Why.
    pub reason: Reason,
    /// The cause, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Each time the bot was told of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pushes: Vec<Push>,
    /// When the bot had been told.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub told: Option<OffsetDateTime>,
    /// Whether the brain still has to be told to stop (a cancelled hand-off that had been pushed).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take_back: bool,
    #[serde(flatten)]
    #[doc(hidden)]
    pub unknown: Unknown,
}

/// Why a hand-off was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// `relay.max_attempts` pushes failed.
    Attempts,
    /// fakechat refused it for good.
    Refused,
    /// A person did not want it any more.
    Cancelled,
    /// The breaker had tripped.
    Breaker,
    /// A reason of a later version.
    #[serde(untagged)]
    Other(String),
}

impl Reason {
    /// The word for it in the file and for a person.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Reason::Attempts => "attempts",
            Reason::Refused => "refused",
            Reason::Cancelled => "cancelled",
            Reason::Breaker => "breaker",
            Reason::Other(word) => word,
        }
    }
}

/// A fresh start that a person gave a hand-off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// How many pushes had been made by then.
    pub pushes: usize,
}
