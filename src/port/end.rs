//! Ending an orphan: SIGTERM to its wrapper and its listener, a short wait, SIGKILL, and then the port must be free.
//!
//! A signal goes to a process, not to a number: the process is held first (by a pidfd where there are such), then
//! looked at again, and signalled only if it is the very one that was judged, a fakechat of this user, with no live
//! session above it.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::family::{self, Orphan, Session, Table};
use super::process::Process;
use super::read;
use super::socket::{Holders, Lookup};
use super::{FIRST_PAUSE, LOOKS};

/// How long an orphan has to follow SIGTERM. fakechat has no handler for it, so it follows at once.
pub const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long the kernel has to carry out SIGKILL. Longer only when the process hangs in a system call.
pub const KILL_GRACE: Duration = Duration::from_secs(2);
/// Where a process cannot be waited for, how often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The processes that were signalled: none where others were faster.
    pub pids: Vec<u32>,
    /// Whether it took SIGKILL.
    pub forced: bool,
}

/// An orphan was not ended, or its port is not free.
#[derive(Debug)]
pub struct EndError {
    /// The processes that were signalled all the same.
    pub ended: Vec<u32>,
    /// Why.
    pub cause: EndCause,
}

/// Why an orphan was not ended.
#[derive(Debug)]
pub enum EndCause {
    /// It is not what it was judged to be. Judge anew.
    Changed(String),
    /// A signal could not be sent, or a process not be looked at.
    Io {
        /// The process.
        pid: u32,
        /// The cause.
        cause: io::Error,
    },
    /// It lives on after SIGKILL.
    Survived {
        /// The process.
        pid: u32,
    },
    /// It is gone, and something else holds the port. Judge anew.
    StillHeld,
}

impl fmt::Display for EndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            EndCause::Changed(why) => f.write_str(why),
            EndCause::Io { pid, cause } => write!(f, "process {pid}: {cause}"),
            EndCause::Survived { pid } => write!(f, "process {pid} lives on after SIGKILL"),
            EndCause::StillHeld => f.write_str("it is gone, but something else holds the port now"),
        }
    }
}

impl std::error::Error for EndError {}

/// Ends an orphan and sees that the port is free. Blocks, for [`TERM_GRACE`] and [`KILL_GRACE`] at most.
///
/// # Errors
/// Says why the port is not free, or why nothing was done.
pub fn end(orphan: &Orphan, port: u16) -> Result<Ended, EndError> {
    let mut ended = Ended { pids: Vec::new(), forced: false };
    match carry_out(orphan, port, &mut ended) {
        Ok(()) => Ok(ended),
        Err(cause) => Err(EndError { ended: ended.pids, cause }),
    }
}

fn carry_out(orphan: &Orphan, port: u16, ended: &mut Ended) -> Result<(), EndCause> {
    // The listener first: while its wrapper lives, nothing above it moves.
    let held: Vec<Held> = [&orphan.listener].into_iter().chain(&orphan.wrapper).filter_map(Held::of).collect();
    let lost = orphan.lost.as_ref();
    signal_all(&held, Signal::TERM, lost, &mut ended.pids)?;
    if !all_gone(&held, TERM_GRACE) {
        ended.forced = true;
        signal_all(&held, Signal::KILL, lost, &mut ended.pids)?;
        if !all_gone(&held, KILL_GRACE) {
            let survivor = held.iter().find(|one| !one.is_gone()).map_or(orphan.listener.pid, |one| one.process.pid);
            return Err(EndCause::Survived { pid: survivor });
        }
    }
    match Lookup::default().holders(port) {
        Ok(Holders::Nobody) => Ok(()),
        Ok(_) => Err(EndCause::StillHeld),
        Err(cause) => Err(EndCause::Io { pid: orphan.listener.pid, cause }),
    }
}

/// Signals those that are still there, each after another look at it.
fn signal_all(held: &[Held], signal: Signal, lost: Option<&Session>, pids: &mut Vec<u32>) -> Result<(), EndCause> {
    for one in held {
        let pid = one.process.pid;
        let sent =
            may_be_ended(&one.process, lost)? && one.signal(signal).map_err(|cause| EndCause::Io { pid, cause })?;
        if sent && !pids.contains(&pid) {
            pids.push(pid);
        }
    }
    Ok(())
}

/// Looks once more: whether it still is there; an error if it is there and must be left alone.
fn may_be_ended(process: &Process, lost: Option<&Session>) -> Result<bool, EndCause> {
    let own_uid = rustix::process::geteuid().as_raw();
    let mut why = String::new();
    for n in 0..LOOKS {
        if n > 0 {
            std::thread::sleep(FIRST_PAUSE * 2u32.pow(n - 1));
        }
        let mut table = Table::new();
        read::gather(&mut table, process.pid, lost).map_err(|cause| EndCause::Io { pid: process.pid, cause })?;
        let Some(now) = table.get(&process.pid).filter(|now| now.key() == process.key() && !now.zombie) else {
            return Ok(false);
        };
        match family::may_be_ended(now, own_uid, &table, lost) {
            Ok(()) => return Ok(true),
            Err(reason) => why = reason,
        }
    }
    Err(EndCause::Changed(why))
}

/// Waits until all have ended, for this long at most.
fn all_gone(held: &[Held], grace: Duration) -> bool {
    let deadline = Instant::now() + grace;
    loop {
        let left: Vec<&Held> = held.iter().filter(|one| !one.is_gone()).collect();
        if left.is_empty() {
            return true;
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return false;
        }
        wait_for_any(&left, remaining);
    }
}

/// A process, held so that its id cannot come to mean another one.
struct Held {
    process: Process,
    id: Pid,
    /// None where there are no pidfds; then only the moment between a look and a signal is left to chance.
    #[cfg(target_os = "linux")]
    fd: Option<std::os::fd::OwnedFd>,
}

impl Held {
    /// None if there is no such process any more.
    fn of(process: &Process) -> Option<Held> {
        let id = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
        Held::open(process.clone(), id)
    }

    #[cfg(target_os = "linux")]
    fn open(process: Process, id: Pid) -> Option<Held> {
        use rustix::io::Errno;
        use rustix::process::{PidfdFlags, pidfd_open};
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(fd) => Some(Held { process, id, fd: Some(fd) }),
            Err(Errno::SRCH) => None,
            Err(_) => Some(Held { process, id, fd: None }),
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[allow(clippy::unnecessary_wraps)]
    fn open(process: Process, id: Pid) -> Option<Held> {
        Some(Held { process, id })
    }

    /// Sends a signal; false if it has ended meanwhile.
    fn signal(&self, signal: Signal) -> io::Result<bool> {
        match self.send(signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(target_os = "linux")]
    fn send(&self, signal: Signal) -> rustix::io::Result<()> {
        match &self.fd {
            Some(fd) => rustix::process::pidfd_send_signal(fd, signal),
            None => rustix::process::kill_process(self.id, signal),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn send(&self, signal: Signal) -> rustix::io::Result<()> {
        rustix::process::kill_process(self.id, signal)
    }

    /// Whether it has ended, all its threads with it. One that nobody reaps has: it holds nothing any more.
    fn is_gone(&self) -> bool {
        !read::runs(self.process.key())
    }
}

/// Returns when one of them has ended, or it is time to look again.
#[cfg(target_os = "linux")]
fn wait_for_any(left: &[&Held], at_most: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let fds: Option<Vec<_>> = left.iter().map(|one| one.fd.as_ref()).collect();
    let timeout = Timespec::try_from(at_most).ok();
    if let Some(fds) = fds {
        let mut fds: Vec<PollFd> = fds.into_iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        if matches!(poll(&mut fds, timeout.as_ref()), Ok(0) | Err(rustix::io::Errno::INTR)) {
            return;
        }
    }
    // No pidfds, or one that is ready a moment before `/proc` says so.
    std::thread::sleep(LOOK_EVERY.min(at_most));
}

/// Returns when it is time to look again.
#[cfg(not(target_os = "linux"))]
fn wait_for_any(_left: &[&Held], at_most: Duration) {
    std::thread::sleep(LOOK_EVERY.min(at_most));
}
