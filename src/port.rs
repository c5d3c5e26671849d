//! Who holds a port: the fakechat of a live session, an orphan, a stranger, or nobody.
//!
//! fakechat outlives its session, keeps its port and goes on saying 204, and anything else may listen there first.
//! So the relay looks before it acts on a websocket and before each push ([`Judge`]), and ends orphans ([`end`]).
//!
//! [`socket`] finds the process, `read` looks at it and its ancestors, [`process`] and [`family`] decide (pure),
//! [`end`] acts, [`registry`] asks what a session is doing.

pub mod end;
pub mod exit;
pub mod family;
pub mod process;
mod read;
pub mod registry;
pub mod socket;

use std::collections::HashMap;
use std::io;
use std::time::Duration;

pub use family::{Orphan, Session, Verdict};
pub use process::Process;

use family::{MAX_DEPTH, Question, Table};
use socket::{Holders, Lookup};

use crate::handoff::SessionKey;

/// How often it is looked before the answer is that it cannot be told: processes come and go between two reads, and
/// a later look then finds them settled.
const LOOKS: u32 = 5;
/// How long the first pause between two looks is; each is twice the one before. A process that ends takes about this
/// long to let go of its files.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Says who holds a port. It remembers, per port, the socket's process, so that looking again is cheap, and the
/// session that each listener had, so that an orphan is known whoever adopts it.
#[derive(Clone, Debug)]
pub struct Judge {
    own_uid: u32,
    ports: HashMap<u16, Memory>,
}

/// What is remembered of a port.
#[derive(Clone, Debug, Default)]
struct Memory {
    lookup: Lookup,
    session: Option<(SessionKey, Session)>,
    seen: Option<Seen>,
}

/// A live session or a stranger as it was last seen, with what it was told from: while none of that changes, it is one.
#[derive(Clone, Debug)]
struct Seen {
    verdict: Verdict,
    /// The listener and, of a fakechat, its ancestors up to the session, each with what a glimpse of it showed.
    chain: Vec<(SessionKey, read::Glimpse)>,
}

impl Judge {
    /// A judge for the processes of this user.
    #[must_use]
    pub fn new(own_uid: u32) -> Self {
        Judge { own_uid, ports: HashMap::new() }
    }

    /// A judge for the processes of the user that this program runs as.
    #[must_use]
    pub fn of_this_user() -> Self {
        Judge::new(rustix::process::geteuid().as_raw())
    }

    /// The live session or the stranger that was seen at this port, if nothing of what that was told from has changed. It
    /// costs some microseconds and waits for nothing but the kernel's own tables.
    pub fn still(&self, port: u16) -> Option<Verdict> {
        let memory = self.ports.get(&port)?;
        let seen = memory.seen.as_ref()?;
        let (listener, _) = seen.chain.first()?;
        let holds = memory.lookup.still(port) == Some(listener.pid);
        let unchanged = |(key, before): &(SessionKey, read::Glimpse)| read::glimpse(*key).as_ref() == Some(before);
        (holds && seen.chain.iter().all(unchanged)).then(|| seen.verdict.clone())
    }

    /// Who would be reached at this port. Blocks on the kernel's own tables, and some 15 ms more
    /// where it cannot be told.
    pub fn judge(&mut self, port: u16) -> Verdict {
        if let Some(verdict) = self.still(port) {
            return verdict;
        }
        let mut verdict = self.look(port);
        for n in 1..LOOKS {
            if !matches!(verdict, Verdict::Unknown { .. }) {
                break;
            }
            std::thread::sleep(FIRST_PAUSE * 2u32.pow(n - 1));
            verdict = self.look(port);
        }
        verdict
    }

    fn look(&mut self, port: u16) -> Verdict {
        let own_uid = self.own_uid;
        let memory = self.ports.entry(port).or_default();
        memory.seen = None;
        let holders = match memory.lookup.holders(port) {
            Ok(Holders::Nobody) => return Verdict::Free,
            Ok(Holders::Processes(pids)) => pids,
            Ok(Holders::Hidden { uid }) => return hidden(uid, own_uid),
            Err(error) => return Verdict::Unknown { why: format!("looking up who holds the port: {error}") },
        };
        let mut table = Table::new();
        let remembered = memory.session.as_ref().filter(|(listener, _)| holders.contains(&listener.pid));
        for pid in &holders {
            if let Err(error) = read::gather(&mut table, *pid, remembered.map(|(_, session)| session)) {
                return Verdict::Unknown { why: format!("looking at process {pid}: {error}") };
            }
        }
        let is_same = |listener: &SessionKey| table.get(&listener.pid).is_some_and(|now| now.key() == *listener);
        let previous = remembered.filter(|(listener, _)| is_same(listener)).map(|(_, session)| session);
        let verdict = family::judge(&Question { port, own_uid, holders: &holders, table: &table, previous });
        let chain = match &verdict {
            Verdict::Live { listener, session } => {
                memory.session = Some((listener.key(), session.clone()));
                chain(listener, session, &table)
            }
            Verdict::Foreign { pid: Some(pid), .. } => table.get(pid).and_then(alone),
            _ => None,
        };
        memory.seen = chain.map(|chain| Seen { verdict: verdict.clone(), chain });
        verdict
    }
}

/// The way up from a listener to its session; none where it does not lead there (any more).
fn chain(listener: &Process, session: &Session, table: &Table) -> Option<Vec<(SessionKey, read::Glimpse)>> {
    let mut chain = Vec::new();
    let mut process = listener;
    for _ in 0..MAX_DEPTH {
        let seen = read::glimpse(process.key())?;
        // What is above the session is nobody's business, and may change.
        let above = if process.key() == session.key() { seen.parent } else { process.parent };
        if seen.parent != above {
            return None;
        }
        chain.push((process.key(), seen));
        if process.key() == session.key() {
            return Some(chain);
        }
        process = table.get(&process.parent)?;
    }
    None
}

/// What a stranger is told from: itself, as long as it is the program that was looked at.
fn alone(stranger: &Process) -> Option<Vec<(SessionKey, read::Glimpse)>> {
    let seen = read::glimpse(stranger.key()).filter(|seen| seen.name == stranger.name)?;
    Some(vec![(stranger.key(), seen)])
}

/// The verdict on a process that cannot be seen.
fn hidden(uid: Option<u32>, own_uid: u32) -> Verdict {
    match uid {
        Some(uid) if uid == own_uid => {
            Verdict::Unknown { why: "the process that holds the port cannot be seen from here".to_owned() }
        }
        Some(uid) => {
            Verdict::Foreign { pid: None, command: None, why: format!("it belongs to another user (uid {uid})") }
        }
        None => Verdict::Foreign { pid: None, command: None, why: "it belongs to another user".to_owned() },
    }
}

/// The sessions of this user that were launched for this port (their environment says so), oldest first. Ask where the
/// port is not held by any of them. One that is still here a minute later came up while an orphan held the port, or lost
/// its fakechat: it has no channel, and only a restart of the session gives it one.
///
/// # Errors
/// The processes cannot be listed.
pub fn without_channel(port: u16) -> io::Result<Vec<Session>> {
    let own_uid = rustix::process::geteuid().as_raw();
    let mut found = read::claudes()?;
    found.retain(|(process, setting)| {
        process.uid == own_uid && !process.is_ending() && *setting == Some(process::PortSetting::Port(port))
    });
    // What a session starts has its environment, also another session: that one was not meant to have a channel.
    let pids: Vec<u32> = found.iter().map(|(process, _)| process.pid).collect();
    found.retain(|(process, _)| !has_ancestor(process, &pids));
    found.sort_by_key(|(process, _)| process.started);
    Ok(found.iter().map(|(process, _)| Session::from(process)).collect())
}

/// Whether one of these is above it.
fn has_ancestor(process: &Process, pids: &[u32]) -> bool {
    let mut parent = process.parent;
    for _ in 0..MAX_DEPTH {
        if pids.contains(&parent) {
            return true;
        }
        match read::read(parent) {
            Ok(Some(above)) if above.pid > 1 => parent = above.parent,
            _ => break,
        }
    }
    false
}
