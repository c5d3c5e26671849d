//! One start after the other. Each start has `bun install` run in the plugin's folder, which both sessions share, and
//! two of them at once break it. It is over when the port opens, so the next one waits for that.
//!
//! The file `launching` in the spool says which start was the last. It is locked while a port is being cleared, and the
//! kernel lets go of that lock when the launcher becomes `claude`, or ends. `claude` has the launcher's process id.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::cli::out;
use crate::config::Side;
use crate::error::{Advise, During, Error, Result};
use crate::spool::fs::private_dir;

/// How long a start may hold up the next one: 14 to 16 s are common until the port opens, 45 s were seen.
const PATIENCE: Duration = Duration::from_secs(60);
/// What to do where the file cannot be used.
const MEND: &str = "remove what lies there, or give it back to this user";
/// How often it is looked meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The most that is read of the file, bytes: it has under 100.
const MAX_FILE: u64 = 1024;

/// The last start, as the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Start {
    side: Side,
    port: u16,
    /// The launcher's process id, which is the session's.
    pid: u32,
    /// When, in seconds since 1970.
    at: i64,
}

impl Start {
    /// How long it may hold up the next one; none: no longer. A start in the future is one before the clock was set.
    fn remaining(&self, now: i64, is_alive: bool, is_port_free: bool) -> Option<Duration> {
        let age = u64::try_from(now - self.at).ok().map(Duration::from_secs)?;
        let left = PATIENCE.checked_sub(age).filter(|left| !left.is_zero())?;
        (is_alive && is_port_free).then_some(left)
    }
}

/// The right to start a session; nobody else starts one meanwhile.
#[derive(Debug)]
pub struct Turn {
    file: File,
    path: PathBuf,
}

impl Turn {
    /// Waits until no other start is under way. `is_free` says whether nobody holds a port.
    ///
    /// # Errors
    /// The file cannot be used, or another launcher keeps it locked.
    pub fn wait(spool: &Path, mut is_free: impl FnMut(u16) -> bool) -> Result<Turn> {
        private_dir(spool).during(format_args!("opening the spool {}", spool.display())).advise(MEND)?;
        let path = spool.join("launching");
        let doing = || format!("waiting for another launch: locking {}", path.display());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let mut file = options.open(&path).during(doing()).advise(MEND)?;
        let deadline = Instant::now() + PATIENCE;
        let mut said = None;
        loop {
            match file.try_lock() {
                Ok(()) => {
                    let Some(start) = last(&mut file).filter(|start| is_under_way(start, &mut is_free)) else { break };
                    if Instant::now() > deadline {
                        out::say(&format!("the {} has not opened its port {} yet: going on", start.side, start.port));
                        break;
                    }
                    file.unlock().during(doing())?;
                    if said.replace(start) != Some(start) {
                        let Start { side, port, pid, .. } = start;
                        out::say(&format!(
                            "the {side} (pid {pid}) is starting: waiting up to {} s for its port {port}",
                            PATIENCE.as_secs()
                        ));
                    }
                }
                Err(TryLockError::Error(cause)) => return Err(Error::failed(format!("{}: {cause}", doing()))),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                    return Err(Error::failed(format!("{}: another `anna-relay launch` has it", doing()))
                        .hint("see what it does: `pgrep -af anna-relay`"));
                }
                Err(TryLockError::WouldBlock) => {}
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(Turn { file, path })
    }

    /// Notes that this process is about to become the session. The lock stays until it does.
    ///
    /// # Errors
    /// It cannot be written down.
    pub fn take(mut self, side: Side, port: u16) -> Result<Turn> {
        let doing = format!("noting the launch in {}", self.path.display());
        let start = Start { side, port, pid: std::process::id(), at: OffsetDateTime::now_utc().unix_timestamp() };
        let text = serde_json::to_vec(&start).during(&doing)?;
        self.file.set_len(0).and_then(|()| self.file.rewind()).during(&doing)?;
        self.file.write_all(&text).during(&doing).advise("see that the disk has room")?;
        Ok(self)
    }

    /// It came to nothing: the next one need not wait.
    pub fn give_back(self) {
        // If this fails, the next one sees that the process is gone.
        self.file.set_len(0).unwrap_or_default();
    }
}

fn last(file: &mut File) -> Option<Start> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(MAX_FILE).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn is_under_way(start: &Start, is_free: &mut impl FnMut(u16) -> bool) -> bool {
    let now = OffsetDateTime::now_utc().unix_timestamp();
    // The port last, for that costs most.
    start.remaining(now, is_alive(start.pid), true).is_some() && is_free(start.port)
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_holds_up_the_next_one_until_its_port_opens_or_it_ends_or_a_minute_has_passed() {
        let start = Start { side: Side::Bot, port: 1, pid: 2, at: 1000 };
        assert_eq!(start.remaining(1010, true, true), Some(Duration::from_secs(50)));
        assert_eq!(start.remaining(1059, true, true), Some(Duration::from_secs(1)));
        assert_eq!(start.remaining(1060, true, true), None);
        assert_eq!(start.remaining(1010, false, true), None);
        assert_eq!(start.remaining(1010, true, false), None);
        assert_eq!(start.remaining(999, true, true), None);
    }

    #[test]
    fn the_next_one_waits_while_this_one_starts() {
        let dir = tempfile::tempdir().unwrap();
        let turn = Turn::wait(dir.path(), |_| true).unwrap().take(Side::Brain, 7).unwrap();
        drop(turn);
        let mut looks = 0;
        let turn = Turn::wait(dir.path(), |port| {
            assert_eq!(port, 7);
            looks += 1;
            looks < 3
        });
        drop(turn.unwrap().take(Side::Bot, 8).unwrap());
        assert_eq!(looks, 3);
        Turn::wait(dir.path(), |port| port != 8).unwrap().give_back();
        Turn::wait(dir.path(), |_| panic!("nothing is starting")).unwrap();
    }

    #[test]
    fn what_the_file_cannot_mean_holds_up_nobody() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "{", "{\"side\":\"bot\",\"port\":1,\"pid\":0,\"at\":1}", "\0\0"] {
            std::fs::write(dir.path().join("launching"), text).unwrap();
            Turn::wait(dir.path(), |_| true).unwrap();
        }
    }
}
