//! Whose fakechat is it? A pure verdict over a table of processes: no I/O, no clock.
//!
//! Claude Code starts `bun run … start`, which starts `bun server.ts`, which listens. So the walk goes from the
//! listener up past fakechat's own processes, and what comes next decides: an init means that the session is gone
//! (an orphan), anything else is the session. It goes past *fakechat's* processes only, for a session itself may
//! run under `bunx`.
//!
//! Where something cannot be told the verdict is [`Verdict::Unknown`], never a guess: an orphan is ended, and a
//! live session is given work.

use std::collections::HashMap;

use super::process::{PortSetting, Process};
use crate::handoff::SessionKey;

/// How many ancestors are looked at, processes: fakechat has two of its own, so this many means a cycle or a lie.
pub const MAX_DEPTH: usize = 16;

/// The process that owns a fakechat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its process id.
    pub pid: u32,
    /// When it started.
    pub started: u64,
    /// Its command line, for a person.
    pub command: String,
}

impl Session {
    /// What a push remembers of it.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        SessionKey { pid: self.pid, started: self.started }
    }
}

impl From<&Process> for Session {
    fn from(process: &Process) -> Self {
        Session { pid: process.pid, started: process.started, command: process.command() }
    }
}

/// A fakechat whose session has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// `bun run … start`, where it is still there.
    pub wrapper: Option<Process>,
    /// `bun server.ts`, which holds the port.
    pub listener: Process,
    /// The session it was seen to have, if it was.
    pub lost: Option<Session>,
}

/// Who would be reached at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody.
    Free,
    /// A fakechat of a live session of this user.
    Live {
        /// The fakechat.
        listener: Process,
        /// The session.
        session: Session,
    },
    /// A fakechat of this user whose session has ended: a dead end.
    Orphan(Orphan),
    /// Something else.
    Foreign {
        /// Its process id, where that can be seen.
        pid: Option<u32>,
        /// Its command line, where that can be seen.
        command: Option<String>,
        /// What makes it foreign.
        why: String,
    },
    /// It cannot be told.
    Unknown {
        /// The reason.
        why: String,
    },
}

/// Processes by their ids.
pub type Table = HashMap<u32, Process>;

/// What is asked of [`judge`].
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The port.
    pub port: u16,
    /// The user this program runs as.
    pub own_uid: u32,
    /// Every process that has the listening socket, or one of them.
    pub holders: &'a [u32],
    /// The holders, their ancestors up to the first that is not fakechat, and `previous`, those of them that exist.
    pub table: &'a Table,
    /// The session that this listener was seen to have.
    pub previous: Option<&'a Session>,
}

/// Says who is at the port.
#[must_use]
pub fn judge(question: &Question) -> Verdict {
    let listener = match topmost(question.holders, question.table) {
        Ok(None) => return Verdict::Free,
        Ok(Some(listener)) => listener,
        Err(why) => return Verdict::Unknown { why },
    };
    let foreign = |why: String| Verdict::Foreign { pid: Some(listener.pid), command: Some(listener.command()), why };
    if listener.uid != question.own_uid {
        return foreign(format!("it belongs to another user (uid {})", listener.uid));
    }
    if !listener.is_server() {
        return foreign("it is not fakechat".to_owned());
    }
    match listener.setting {
        PortSetting::Port(port) if port == question.port => {}
        PortSetting::Port(0) => return foreign("its FAKECHAT_PORT asks for a random port".to_owned()),
        PortSetting::Port(port) => return foreign(format!("its FAKECHAT_PORT is {port}, so it is not this fakechat")),
        PortSetting::Nonsense => return foreign("its FAKECHAT_PORT is not a port".to_owned()),
        PortSetting::Unread => {
            return Verdict::Unknown { why: format!("the environment of process {} cannot be read", listener.pid) };
        }
    }
    match owner(listener, question.table, question.previous) {
        Owner::Session(session) if session.uid_differs(question) => {
            foreign(format!("its session (pid {}) belongs to another user", session.pid))
        }
        Owner::Session(session) => Verdict::Live { listener: listener.clone(), session },
        Owner::Nobody => Verdict::Orphan(Orphan {
            wrapper: wrapper_of(listener, question),
            listener: listener.clone(),
            lost: question.previous.cloned(),
        }),
        Owner::Unclear(why) => Verdict::Unknown { why },
    }
}

/// Whether this process of a fakechat (server or wrapper) may be ended: no live session is above it.
///
/// # Errors
/// Why not.
pub fn may_be_ended(process: &Process, own_uid: u32, table: &Table, lost: Option<&Session>) -> Result<(), String> {
    if process.pid <= 1 || process.uid != own_uid || !process.is_fakechat() {
        return Err(format!("process {} is not a fakechat of this user", process.pid));
    }
    match owner(process, table, lost) {
        Owner::Nobody => Ok(()),
        Owner::Session(session) => {
            Err(format!("process {} belongs to a live session (pid {})", process.pid, session.pid))
        }
        Owner::Unclear(why) => Err(why),
    }
}

/// The one to judge of several processes that share a socket: the one from which the others have it.
fn topmost<'a>(holders: &[u32], table: &'a Table) -> Result<Option<&'a Process>, String> {
    let mut found: Option<&Process> = None;
    for pid in holders {
        let Some(process) = table.get(pid) else {
            return Err(format!("process {pid}, which held the port, went away meanwhile"));
        };
        if process.is_ending() {
            return Err(format!("process {pid}, which holds the port, is about to end"));
        }
        if process.parent != process.pid && holders.contains(&process.parent) {
            continue;
        }
        match found {
            Some(other) if other.pid != process.pid => {
                return Err(format!("processes {} and {pid} share the port", other.pid));
            }
            _ => found = Some(process),
        }
    }
    match found {
        None if !holders.is_empty() => Err("the processes that share the port are each other's parents".to_owned()),
        found => Ok(found),
    }
}

/// What is above a process of fakechat.
enum Owner {
    Session(Session),
    Nobody,
    Unclear(String),
}

impl Session {
    /// Whether it runs as somebody else.
    fn uid_differs(&self, question: &Question) -> bool {
        question.table.get(&self.pid).is_some_and(|process| process.uid != question.own_uid)
    }
}

/// Walks up past fakechat's own processes.
fn owner(from: &Process, table: &Table, previous: Option<&Session>) -> Owner {
    let mut child = from;
    for _ in 0..MAX_DEPTH {
        if child.parent == 0 {
            return Owner::Unclear(format!("the parent of process {} cannot be seen from here", child.pid));
        }
        let Some(parent) = table.get(&child.parent) else {
            return Owner::Unclear(format!(
                "process {}, the parent of {}, went away meanwhile",
                child.parent, child.pid
            ));
        };
        // A parent that has ended has no children left: this one is being handed to an init right now.
        if parent.zombie || parent.is_init() {
            return Owner::Nobody;
        }
        if parent.is_ending() {
            return Owner::Unclear(format!("process {}, the parent of {}, is about to end", parent.pid, child.pid));
        }
        // An ancestor is never younger. Clock ticks since boot can be compared, a wall clock cannot.
        if cfg!(target_os = "linux") && parent.started > child.started {
            return Owner::Unclear(format!("process id {} was given to another process meanwhile", parent.pid));
        }
        if !parent.is_fakechat() {
            return adopted(parent, table, previous);
        }
        child = parent;
    }
    Owner::Unclear(format!("process {} has more than {MAX_DEPTH} fakechats above it", from.pid))
}

/// A fakechat has one session for life: one that has another now was adopted, by whatever does that here.
fn adopted(parent: &Process, table: &Table, previous: Option<&Session>) -> Owner {
    match previous {
        Some(session) if session.key() != parent.key() => {
            let alive = table.get(&session.pid).is_some_and(|now| now.key() == session.key() && !now.zombie);
            if alive { Owner::Session(session.clone()) } else { Owner::Nobody }
        }
        _ => Owner::Session(Session::from(parent)),
    }
}

/// The wrapper right above a listener.
fn wrapper_of(listener: &Process, question: &Question) -> Option<Process> {
    let parent = question.table.get(&listener.parent)?;
    let is_one = parent.is_wrapper() && !parent.zombie && !parent.is_init() && parent.uid == question.own_uid;
    is_one.then(|| parent.clone())
}

#[cfg(test)]
mod tests;
