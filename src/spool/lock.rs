//! Who may write: one process a spool, one bridge a port.
//!
//! A lock is `flock` on a file, so the kernel releases it with the process, however that ends, and a stale file
//! blocks nobody. The file says who holds it, for a person.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::error::{Advise, During, Error, Kind, Result};

use super::fs::private_dir;
use super::trouble::{NotOurs, On};

/// How long a command's short hold on a lock is waited for: it writes one hand-off, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// What to do where there can be no lock.
const MEND: &str = "remove what lies there, or give it back to this user";
/// How often it is tried meanwhile: `flock` has no wait with a deadline.
const RETRY: Duration = Duration::from_millis(10);

/// What a process holds a lock for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It runs the relay, and holds the lock until it ends.
    Bridge,
    /// It changes the spool and is gone again.
    Command,
}

/// What a lock's file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// What it holds the lock for.
    pub role: Role,
}

impl Owner {
    /// Whether it will hold the lock for long. A bridge that is dead does not hold it: someone else took the lock just
    /// now, and has yet to write so.
    fn is_running_bridge(self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        let gone = pid.is_none_or(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH));
        self.role == Role::Bridge && !gone
    }
}

/// The file that a lock is on: the name may lead to another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    device: u64,
    inode: u64,
}

impl Place {
    fn of(meta: &Metadata) -> Self {
        Place { device: meta.dev(), inode: meta.ino() }
    }

    /// Whether the spool there is the one with this lock. One that was moved away, or another in its place, is not for
    /// the process that holds it: someone else may have locked that.
    ///
    /// # Errors
    /// It is not, or the disk does not say.
    pub(super) fn check(self, root: &Path) -> io::Result<()> {
        let path = file(root);
        let lost = |path: &Path, what| Err(io::Error::other(NotOurs { path: path.to_owned(), what }));
        match std::fs::symlink_metadata(&path) {
            Ok(meta) if Place::of(&meta) == self => Ok(()),
            Ok(_) => lost(&path, "it is not this bridge's any more"),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !root.exists() => lost(root, "the spool is gone"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => lost(&path, "the lock is gone"),
            Err(error) => Err(error).on(&path),
        }
    }
}

/// What to do where a spool is taken.
const OTHER_SPOOL: &str = "`anna-relay status` shows the bridge that runs; stop that one first, or give this one its own `paths.state` and ports";
/// What to do where a port is.
const OTHER_PORTS: &str = "that bridge has another spool, so `anna-relay status` does not show it with this configuration: \
    stop it first, or give this one ports of its own";

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// A file to remove with it.
    passing: Option<PathBuf>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held: whoever opened the file before sees that the name is another's, and opens it anew.
        if let Some(path) = &self.passing
            && std::fs::remove_file(path).is_ok()
            && let Some(dir) = path.parent()
        {
            // Only if it was the last one in it.
            std::fs::remove_dir(dir).unwrap_or_default();
        }
    }
}

impl Lock {
    /// Takes the lock on a spool.
    ///
    /// # Errors
    /// Of kind [`Kind::Busy`] if a bridge has it.
    pub fn spool(root: &Path, role: Role) -> Result<Lock> {
        Lock::take(&file(root), role, &format!("the spool {}", root.display()), None)
    }

    /// Where it is.
    ///
    /// # Errors
    /// The disk does not say.
    pub fn place(&self) -> Result<Place> {
        self.file.metadata().map(|meta| Place::of(&meta)).during("looking at the lock")
    }

    /// Takes the lock on a port of this machine.
    ///
    /// # Errors
    /// Of kind [`Kind::Busy`] if a bridge has it.
    pub fn port(port: u16) -> Result<Lock> {
        let dir = ports_dir();
        let path = dir.join(format!("port-{port}.lock"));
        Lock::take(&path, Role::Bridge, &format!("port {port}"), Some(&dir))
    }

    /// Takes the lock of that file. `passing`: it is removed afterwards, and the folder made for it.
    fn take(path: &Path, role: Role, what: &str, passing: Option<&Path>) -> Result<Lock> {
        let doing = || format!("locking {}", path.display());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let deadline = Instant::now() + PATIENCE;
        let mut file = loop {
            if let Some(dir) = passing {
                private_dir(dir).during(format_args!("opening the folder of locks {}", dir.display())).advise(MEND)?;
            }
            let mut file = match options.open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < deadline => continue,
                opened => opened.during(doing()).advise(MEND)?,
            };
            match file.try_lock() {
                Ok(()) if is_at(&file, path) => break file,
                Ok(()) => continue,
                Err(TryLockError::Error(error)) => return Err(Error::failed(format!("{}: {error}", doing()))),
                Err(TryLockError::WouldBlock) => {}
            }
            let owner = owner(&mut file);
            if owner.is_some_and(|owner| owner.is_running_bridge()) || Instant::now() > deadline {
                let instead = if passing.is_some() { OTHER_PORTS } else { OTHER_SPOOL };
                return Err(taken(what, owner).hint(instead));
            }
            std::thread::sleep(RETRY);
        };
        let owner = serde_json::to_vec(&Owner { pid: std::process::id(), role }).during(doing())?;
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&owner));
        if let Err(error) = written {
            // The lock is held all the same; only what it tells a person is missing (a full disk, say).
            tracing::warn!(%error, "writing who holds {}", path.display());
        }
        Ok(Lock { file, passing: passing.map(|_| path.to_owned()) })
    }
}

/// The file of a spool's lock.
fn file(root: &Path) -> PathBuf {
    root.join("lock")
}

/// Whether the file is still the one of that name.
fn is_at(file: &File, path: &Path) -> bool {
    let (named, held) = (std::fs::symlink_metadata(path), file.metadata());
    matches!((named, held), (Ok(named), Ok(held)) if Place::of(&named) == Place::of(&held))
}

fn owner(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(1024).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn taken(what: &str, owner: Option<Owner>) -> Error {
    let by = match owner {
        Some(Owner { pid, role: Role::Bridge }) => format!("another bridge has it (pid {pid})"),
        Some(Owner { pid, role: Role::Command }) => format!("another anna-relay command has it (pid {pid})"),
        None => "another process has it".to_owned(),
    };
    Error::new(Kind::Busy, format!("taking {what}: {by}"))
}

/// Where port locks lie: the same folder for every process of this user, whatever its environment says.
fn ports_dir() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    let run = PathBuf::from(format!("/run/user/{uid}"));
    if run.is_dir() { run.join("anna-relay") } else { PathBuf::from(format!("/tmp/anna-relay-{uid}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_bridge_is_told_who_has_it_and_a_stale_file_blocks_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::spool(dir.path(), Role::Bridge).unwrap();
        let error = Lock::spool(dir.path(), Role::Bridge).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy);
        assert!(error.to_string().contains(&format!("pid {}", std::process::id())), "{error}");
        drop(first);
        Lock::spool(dir.path(), Role::Bridge).unwrap();
    }

    #[test]
    fn a_command_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let command = Lock::spool(dir.path(), Role::Command).unwrap();
        let path = dir.path().to_owned();
        let bridge = std::thread::spawn(move || Lock::spool(&path, Role::Bridge).map(drop));
        drop(command);
        bridge.join().unwrap().unwrap();
    }

    #[test]
    fn a_spool_that_was_moved_replaced_or_lost_its_lock_is_not_the_one_that_was_locked() {
        let dir = tempfile::tempdir().unwrap();
        let [root, away] = ["relay", "away"].map(|name| dir.path().join(name));
        std::fs::create_dir(&root).unwrap();
        let lock = Lock::spool(&root, Role::Bridge).unwrap();
        let place = lock.place().unwrap();
        place.check(&root).unwrap();
        let why = || place.check(&root).unwrap_err().to_string();
        std::fs::rename(&root, &away).unwrap();
        assert_eq!(why(), format!("{}: the spool is gone", root.display()));
        std::fs::create_dir(&root).unwrap();
        assert_eq!(why(), format!("{}: the lock is gone", file(&root).display()));
        std::fs::copy(file(&away), file(&root)).unwrap();
        assert_eq!(why(), format!("{}: it is not this bridge's any more", file(&root).display()));
        std::fs::remove_dir_all(&root).unwrap();
        std::fs::rename(&away, &root).unwrap();
        place.check(&root).unwrap();
    }

    #[test]
    fn a_link_in_place_of_the_lock_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("lock")).unwrap();
        assert!(Lock::spool(dir.path(), Role::Bridge).is_err());
    }
}
