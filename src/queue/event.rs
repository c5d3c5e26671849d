//! What the queue is told, and what it has done.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;

use crate::config::Side;
use crate::control::wire::Activity;
use crate::error::Error;
use crate::handoff::words::Part;
use crate::handoff::{Id, Origin, SessionKey};
use crate::spool::closed::Listed;

use super::Settings;

/// The time, by two clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Now {
    /// Since some moment, by a clock that never jumps: for waits.
    pub mono: Duration,
    /// Of day: for the record.
    pub wall: OffsetDateTime,
}

impl Now {
    /// The time of day in Unix milliseconds, as fakechat's message ids have it.
    #[must_use]
    pub fn unix_millis(&self) -> u64 {
        u64::try_from(self.wall.unix_timestamp_nanos() / 1_000_000).unwrap_or_default()
    }
}

/// Names a push while it is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Who waits for word that something was dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// Nobody.
    None,
    /// The side that took this frame: it keeps it until then.
    Frame(Side, u64),
    /// A request on the control socket.
    Request(u64),
    /// What a hook brought: it stays in the inbox until then.
    Inbox(u64),
    /// Who has it told again, until the bot had it: a notice of that number.
    Notice(u64),
}

/// A hand-off on its way in.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Its name.
    pub id: Id,
    /// Who made it.
    pub from: Origin,
    /// What is to be done.
    pub text: String,
    /// The bot's message that made it.
    pub message: Option<String>,
    /// What came along.
    pub files: Vec<Incoming>,
    /// Who waits for it to be on disk.
    pub receipt: Receipt,
}

/// A reply of the brain, or an edit of one.
#[derive(Clone, Debug)]
pub struct Reply {
    /// fakechat's id of it; of the one that was edited.
    pub message: String,
    /// What it names in `reply_to`.
    pub reply_to: Option<String>,
    /// Whether it is an edit.
    pub edit: bool,
    /// What it says.
    pub text: String,
    /// What came along.
    pub files: Vec<Incoming>,
    /// The hand-off that is meant, once the spooler has found it.
    pub found: Option<Id>,
    /// Who waits for it to be on disk.
    pub receipt: Receipt,
}

/// A file on its way in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// It was brought into the spool's `tmp/`.
    Fetched {
        /// The name it was given.
        name: String,
        /// Where it lies.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// A person's file, to be copied.
    Copy(PathBuf),
    /// It could not be had.
    Lost {
        /// The name it was given.
        name: String,
    },
    /// It lies in `files/<id>/` already.
    Kept(crate::handoff::Attachment),
}

/// What can happen.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed.
    Tick,
    /// The configuration was read again.
    Settings(Settings),
    /// A hand-off that the guard let in, or a script's.
    Accept(Arrival),
    /// A hand-off that the breaker refused; `keep`: for a `retry`.
    Refuse {
        /// What was refused.
        arrival: Arrival,
        /// Whether it is kept.
        keep: bool,
    },
    /// The brain said something.
    Reply(Reply),
    /// A side came or went.
    Side {
        /// Which.
        side: Side,
        /// Whether it can be pushed to.
        online: bool,
        /// Whose fakechat it is, where sessions are told apart.
        session: Option<SessionKey>,
    },
    /// The brain's session does something else than before.
    Brain(Doing),
    /// A session's transcript shows a message of its fakechat.
    Sighted(Sighted),
    /// A side's actor was started again: what it had under way will never be heard of.
    SideReset(Side),
    /// Word of a push.
    Pushed {
        /// Which.
        token: Token,
        /// What became of it.
        pushed: Pushed,
    },
    /// Something the bot has to be told.
    Notify {
        /// What.
        text: String,
        /// Who waits for it to be told. The same [`Receipt::Notice`] again is the same notice.
        receipt: Receipt,
    },
    /// A person pauses.
    Pause {
        /// Why.
        reason: Option<String>,
        /// Who waits for it.
        receipt: Receipt,
    },
    /// A person resumes.
    Resume {
        /// Who waits for it.
        receipt: Receipt,
    },
    /// A person wants it tried again.
    Retry {
        /// Which.
        id: Id,
        /// Who waits for it.
        receipt: Receipt,
    },
    /// A person does not want it any more.
    Cancel {
        /// Which.
        id: Id,
        /// Who waits for it.
        receipt: Receipt,
    },
    /// A person deletes closed hand-offs.
    Prune {
        /// Which.
        ids: Vec<Id>,
        /// Who waits for it.
        receipt: Receipt,
    },
    /// Somebody waits for its result.
    Wait {
        /// Which.
        id: Id,
        /// Who.
        receipt: Receipt,
    },
    /// The folders that a start does not read were listed, or why not.
    Listed(Result<Listed, Error>),
    /// The bridge stops: begin nothing any more.
    Drain,
}

/// A message that a session has, by its own transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighted {
    /// Whose session.
    pub side: Side,
    /// The message's id.
    pub message: String,
    /// When the session had it.
    pub at: OffsetDateTime,
    /// How long it is, in bytes.
    pub bytes: usize,
    /// Whether it came since the transcript was met, and is told for the first time: only then is a stranger's word
    /// news.
    pub new: bool,
    /// The hand-off it belongs to, once the spooler has found it.
    pub of: Option<Id>,
}

/// What a session is doing, by its own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doing {
    /// Which session.
    pub session: SessionKey,
    /// What; none where that is not known.
    pub status: Option<Activity>,
    /// When it began to, where that is known: tells one wait from the next.
    pub since: Option<u64>,
    /// What it waits for. Text of another program.
    pub waiting_for: Option<String>,
}

/// What became of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// All of it got its 204; the next push may begin. Whether it was taken is not yet known.
    Accepted,
    /// The websocket stayed up for `confirm_ms` after that.
    Confirmed,
    /// It failed.
    Failed {
        /// Why.
        why: String,
        /// Whether it would fail again however often it is tried.
        permanent: bool,
    },
    /// Not a byte of it was posted: the side had gone, the push before it failed or takes long, or it was
    /// withdrawn.
    NotTried,
    /// Nobody will ever say what became of it.
    Cut,
}

/// One upload of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The message id it is posted with.
    pub id: Id,
    /// What is posted.
    pub part: Part,
}

/// What has to be done.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Post these to a side, one after the other.
    Push {
        /// To which.
        side: Side,
        /// To be named in the word of what became of it.
        token: Token,
        /// The push whose POSTs had not ended when this one was begun: where that one comes to nothing, so does this.
        behind: Option<Token>,
        /// What.
        uploads: Vec<Upload>,
    },
    /// Do not post that push, if not a byte of it was posted yet.
    Withdraw {
        /// To which side.
        side: Side,
        /// Which.
        token: Token,
    },
    /// List the folders that a start does not read. Answered by [`Event::Listed`].
    List,
    /// A line for the stream.
    Note {
        /// What happened.
        text: String,
        /// To which hand-off.
        of: Option<Id>,
    },
    /// A line for the stream that needs a look.
    Warn {
        /// What happened.
        text: String,
        /// To which hand-off.
        of: Option<Id>,
    },
    /// It was dealt with.
    Done(Receipt),
    /// An answer to a request.
    Answer(Receipt, Result<Value, Error>),
}
