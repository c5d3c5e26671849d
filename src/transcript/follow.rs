//! A transcript as it grows: each byte is read once, and a file in which nothing changed costs one `lstat`.
//!
//! A file that is first met may have hundreds of megabytes of past: only its last [`LOOK_BACK`] bytes are read then.
//! The same goes for one that was replaced or cut short, so a message may be sighted twice: what is done with a
//! sighting must bear that. A [`Position`] kept across a restart goes on where the last follower stopped.
//!
//! Folders may be links; the file itself must be a regular one of this user, so no poll waits for a pipe or a device.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::spool::fs::open_regular;

use super::line::Sighting;
use super::lines::Lines;

/// How much of a file that is first met is read, bytes: a push that is still waited for is near its end.
pub const LOOK_BACK: u64 = 1024 * 1024;
/// The most that one poll reads, bytes: tens of milliseconds, so that a stop is not held up.
pub const PER_POLL: u64 = 16 * 1024 * 1024;
/// How much is read at a time, bytes.
const CHUNK: usize = 64 * 1024;

/// How far a transcript has been read: what to keep across a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The file.
    pub path: PathBuf,
    /// The device it was on, for a person: devices are renumbered, so it is not compared.
    pub dev: u64,
    /// Its inode, 0 if it was never met.
    pub ino: u64,
    /// Where the first line starts that was not read whole.
    pub offset: u64,
}

/// What a poll did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// How much it read, bytes.
    pub bytes: u64,
    /// There is more to read at once: [`PER_POLL`] was reached.
    pub more: bool,
    /// There is no such file (yet).
    pub missing: bool,
    /// The file was replaced or cut short, and is read anew: past messages may be sighted again.
    pub restarted: bool,
    /// Lines that may have shown a message, but were too long to be looked at.
    pub too_long: u64,
}

/// Follows one transcript.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    /// The file as far as it was read, while it is open.
    held: Option<Held>,
    /// Where to go on once it is open (again).
    kept: Option<Position>,
}

#[derive(Debug)]
struct Held {
    file: File,
    dev: u64,
    ino: u64,
    lines: Lines,
}

impl Follower {
    /// Follows that file, which need not be there yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Follower { path, held: None, kept: None }
    }

    /// Goes on where another follower was; anew, if it is not the same file any more.
    #[must_use]
    pub fn resume(position: Position) -> Self {
        let path = position.path.clone();
        Follower { path, held: None, kept: (position.ino != 0).then_some(position) }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How far it was read.
    #[must_use]
    pub fn position(&self) -> Position {
        let unmet = || Position { path: self.path.clone(), dev: 0, ino: 0, offset: 0 };
        match (&self.held, &self.kept) {
            (Some(held), _) => match held.lines.boundary() {
                Some(offset) => Position { dev: held.dev, ino: held.ino, offset, ..unmet() },
                None => unmet(),
            },
            (None, Some(kept)) => kept.clone(),
            (None, None) => unmet(),
        }
    }

    /// Reads what came since the last time, and gives `sink` each message that the model has.
    ///
    /// # Errors
    /// Of kind `InvalidInput` if it is no regular file of this user; else those of the system. The next poll tries
    /// again from where this one came to.
    pub fn poll(&mut self, sink: &mut dyn FnMut(Sighting)) -> io::Result<Polled> {
        let mut polled = Polled::default();
        let meta = match std::fs::symlink_metadata(&self.path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                self.let_go();
                return Ok(Polled { missing: true, ..polled });
            }
            got => got?,
        };
        if let Some(held) = &self.held {
            let (read, same) = (held.lines.read_to(), held.ino == meta.ino() && held.dev == meta.dev());
            if same && meta.len() == read {
                return Ok(polled);
            }
            if !same || meta.len() < read || !held.continues()? {
                polled.restarted = true;
                self.held = None;
                self.kept = None;
            }
        }
        let read = self.advance(&mut polled, sink);
        if read.is_err() {
            self.let_go();
        }
        read.map(|()| polled)
    }

    /// Closes the file, and remembers how far it was read.
    fn let_go(&mut self) {
        if self.held.is_some() {
            self.kept = Some(self.position()).filter(|position| position.ino != 0);
            self.held = None;
        }
    }

    fn advance(&mut self, polled: &mut Polled, sink: &mut dyn FnMut(Sighting)) -> io::Result<()> {
        let held = match &mut self.held {
            Some(held) => held,
            none => {
                let (held, again) = Held::open(&self.path, self.kept.as_ref())?;
                polled.restarted |= again;
                self.kept = None;
                none.insert(held)
            }
        };
        let mut chunk = vec![0; CHUNK];
        while polled.bytes < PER_POLL {
            let got = match held.file.read_at(&mut chunk, held.lines.read_to()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                got => got?,
            };
            polled.too_long += held.lines.take(&chunk[..got], sink);
            polled.bytes += got as u64;
            // Less than asked for: that was the end, and what comes after it is for the next poll.
            if got < CHUNK {
                return Ok(());
            }
        }
        polled.more = held.file.metadata()?.len() > held.lines.read_to();
        Ok(())
    }
}

impl Held {
    /// Opens it to go on at `kept` or, if that is not in this file (then true), as one first met.
    fn open(path: &Path, kept: Option<&Position>) -> io::Result<(Self, bool)> {
        let file = open_regular(path)?;
        let meta = file.metadata()?;
        let (dev, ino, len) = (meta.dev(), meta.ino(), meta.len());
        if let Some(kept) = kept.filter(|kept| kept.ino == ino && kept.offset <= len) {
            let held = Held { file, dev, ino, lines: Lines::starting_at(kept.offset) };
            if held.continues()? {
                return Ok((held, false));
            }
            return Ok((Held { lines: first_met(len), ..held }, true));
        }
        Ok((Held { file, dev, ino, lines: first_met(len) }, kept.is_some()))
    }

    /// Whether what we read last is still where it was, as far as one byte can tell: a line's end.
    fn continues(&self) -> io::Result<bool> {
        let Some(before) = self.lines.boundary().and_then(|offset| offset.checked_sub(1)) else { return Ok(true) };
        let mut byte = [0];
        Ok(self.file.read_at(&mut byte, before)? == 1 && byte == *b"\n")
    }
}

fn first_met(len: u64) -> Lines {
    if len <= LOOK_BACK {
        Lines::starting_at(0)
    } else {
        // One byte more: if that is a line's end, no line is lost.
        Lines::starting_within(len - LOOK_BACK - 1)
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
