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

use crate::handoff::SessionKey;

/// How many ancestors are looked at, processes: fakechat has two of its own, so this many means a cycle or a lie.
pub const MAX_DEPTH: usize = 16;

/// The port fakechat takes where `FAKECHAT_PORT` is not set.
pub const DEFAULT_PORT: u16 = 8787;

/// How much of a command line is shown, characters: one line of a terminal or so.
const SHOWN_COMMAND: usize = 160;

/// Programs that adopt orphans and never own a fakechat, whatever their process id: inits of containers and
/// service managers that are made subreapers. (PID 1 needs no name, and `systemd --user` is asked for by its flag.)
const INITS: [&str; 10] = [
    "init",
    "launchd",
    "tini",
    "dumb-init",
    "docker-init",
    "catatonit",
    "s6-svscan",
    "runsvdir",
    "containerd-shim-runc-v2",
    "conmon",
];

/// Programs that run a script given as an argument, as Claude Code is where it was installed with npm.
const RUNTIMES: [&str; 4] = ["node", "nodejs", "bun", "deno"];

/// A process, as it was at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// The process id of its parent; 0 where that is outside of what can be seen.
    pub parent: u32,
    /// When it started (see [`SessionKey::started`]): tells it from a later process of that id.
    pub started: u64,
    /// Its effective user id.
    pub uid: u32,
    /// Whether it has ended and was not reaped.
    pub zombie: bool,
    /// The kernel's short name for it, for those that have no command line.
    pub name: String,
    /// Its command line.
    pub argv: Vec<String>,
    /// What its environment says about the port. Only read for what looks like fakechat.
    pub setting: PortSetting,
}

/// What the environment of a fakechat says about its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSetting {
    /// This port. Not set means [`DEFAULT_PORT`]; set and empty means 0, a random one.
    Port(u16),
    /// Something that is no port.
    Nonsense,
    /// It was not read, or could not be.
    Unread,
}

impl PortSetting {
    /// Reads the value of `FAKECHAT_PORT` as fakechat does (`Number(… ?? 8787)`).
    #[must_use]
    pub fn parse(value: Option<&str>) -> Self {
        match value.map(str::trim) {
            None => PortSetting::Port(DEFAULT_PORT),
            Some("") => PortSetting::Port(0),
            Some(text) => text.parse().map_or(PortSetting::Nonsense, PortSetting::Port),
        }
    }
}

impl Process {
    /// Its command line, for a person: one line, of bounded length, control characters made visible.
    #[must_use]
    pub fn command(&self) -> String {
        let line = if self.argv.is_empty() { format!("[{}]", self.name) } else { self.argv.join(" ") };
        let mut shown = String::new();
        for (n, character) in line.chars().enumerate() {
            if n == SHOWN_COMMAND {
                shown.push('…');
                break;
            }
            if character.is_control() {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
        }
        shown
    }

    /// What tells it from every other process, also later ones.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        SessionKey { pid: self.pid, started: self.started }
    }

    /// Whether it is fakechat's server: `bun server.ts`.
    #[must_use]
    pub fn is_server(&self) -> bool {
        let script = self.argv.get(1).map_or("", String::as_str);
        self.program() == "bun" && (script == "server.ts" || script.ends_with("/server.ts"))
    }

    /// Whether it is what Claude Code starts fakechat with: `bun run … start`.
    #[must_use]
    pub fn is_wrapper(&self) -> bool {
        self.program() == "bun"
            && self.argv.get(1).is_some_and(|word| word == "run")
            && self.argv.len() > 2
            && self.argv.last().is_some_and(|word| word == "start")
    }

    /// Whether it is one of fakechat's own processes.
    #[must_use]
    pub fn is_fakechat(&self) -> bool {
        self.is_server() || self.is_wrapper()
    }

    /// Whether it adopts orphans. PID 1 does whatever its name, unless it is Claude Code itself, as in a container.
    #[must_use]
    pub fn is_init(&self) -> bool {
        let program = self.program();
        let manager = program == "systemd" && self.argv.iter().any(|word| word == "--user");
        manager || INITS.contains(&program) || (self.pid == 1 && !self.is_claude())
    }

    /// Whether it is Claude Code by its name: only asked of PID 1, where a name has to do.
    fn is_claude(&self) -> bool {
        let program = self.program();
        let script = || self.argv.iter().skip(1).find(|word| !word.starts_with('-'));
        program == "claude" || (RUNTIMES.contains(&program) && script().is_some_and(|path| path.contains("claude")))
    }

    /// The last part of the path it was started as. Login shells have a dash in front, kernel threads nothing.
    fn program(&self) -> &str {
        let first = self.argv.first().map_or(self.name.as_str(), String::as_str);
        first.rsplit('/').next().unwrap_or(first)
    }
}

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
        if process.zombie {
            return Err(format!("process {pid}, which held the port, has just ended"));
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
