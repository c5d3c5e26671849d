//! The thread that writes the stream, and the file it writes.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use time::OffsetDateTime;

/// How long after a failure the same is tried again: a full disk is not freed faster.
pub(super) const RETRY: Duration = Duration::from_secs(5);

/// How long lines are gathered before they are written: what they tell of is going on just now, and has the processor to
/// itself. A push is made within a fraction of this; nobody reads the stream as fast.
const GATHER: Duration = Duration::from_millis(1);

/// What the handles and the writer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) queue: Mutex<Queue>,
    /// Something to do for the writer.
    pub(super) work: Condvar,
    /// The queue became empty, or a try failed.
    pub(super) tried: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The first one stays here until it is on disk.
    pub(super) lines: VecDeque<String>,
    /// How many did not fit any more.
    pub(super) lost: usize,
    /// Try again at once, for someone waits.
    pub(super) hurry: bool,
    /// No handle is left.
    pub(super) closed: bool,
}

impl Shared {
    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        // No line is ever half in the queue, so a panic elsewhere does no harm to it.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that writes.
pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) file: Option<Open>,
    pub(super) shared: Arc<Shared>,
}

/// An opened stream file.
pub(super) struct Open {
    file: File,
    /// Device and inode: whether the path still leads to it.
    place: (u64, u64),
    /// Whether it ends within a line, which must not be gone on with.
    torn: bool,
}

impl Writer {
    pub(super) fn run(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut failed: Option<Instant> = None;
        loop {
            let mut queue = shared.queue();
            loop {
                let due = failed.is_none_or(|at| at.elapsed() >= RETRY) || queue.hurry || queue.closed;
                if !queue.lines.is_empty() && due {
                    break;
                }
                if queue.closed {
                    return;
                }
                queue.hurry = false;
                queue = match failed.filter(|_| !queue.lines.is_empty()) {
                    None => shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner),
                    Some(at) => {
                        let left = RETRY.saturating_sub(at.elapsed());
                        shared.work.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0
                    }
                };
            }
            queue = shared
                .work
                .wait_timeout_while(queue, GATHER, |queue| !queue.hurry && !queue.closed)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            queue.hurry = false;
            drop(queue);
            let outcome = self.write_all();
            shared.tried.notify_all();
            match outcome {
                Ok(()) => failed = None,
                Err(_) if shared.queue().closed => return,
                Err(cause) => {
                    if failed.is_none() {
                        tracing::warn!("writing the stream {}: {cause}; it will be tried again", self.path.display());
                    }
                    failed = Some(Instant::now());
                }
            }
        }
    }

    /// Writes what is in the queue, line by line, and takes out what is written.
    fn write_all(&mut self) -> io::Result<()> {
        self.follow_path()?;
        loop {
            let Some(line) = self.shared.queue().lines.front().cloned() else { return Ok(()) };
            self.write(&line)?;
            let mut queue = self.shared.queue();
            queue.lines.pop_front();
            if queue.lines.is_empty() && queue.lost > 0 {
                let text = format!("{} events could not be written here and are lost", queue.lost);
                queue.lost = 0;
                queue.lines.push_back(super::line(OffsetDateTime::now_utc(), "⚠ ", &text, None));
            }
        }
    }

    /// Opens the file anew where the path leads to another one by now, or to none: it was rotated.
    fn follow_path(&mut self) -> io::Result<()> {
        let same = |open: &Open| fs::metadata(&self.path).is_ok_and(|about| place(&about) == open.place);
        if !self.file.as_ref().is_some_and(same) {
            self.file = None;
            self.file = Some(open(&self.path)?);
        }
        Ok(())
    }

    /// Appends a line with one write, so that lines of other programs never end up inside it.
    fn write(&mut self, line: &str) -> io::Result<()> {
        let Some(open) = self.file.as_mut() else { return Err(ErrorKind::NotFound.into()) };
        let torn = if open.torn { format!("\n{line}") } else { String::new() };
        let bytes = if open.torn { torn.as_bytes() } else { line.as_bytes() };
        loop {
            match open.file.write(bytes) {
                Ok(written) if written == bytes.len() => {
                    open.torn = false;
                    return Ok(());
                }
                Ok(written) => {
                    open.torn |= written > 0;
                    return Err(ErrorKind::StorageFull.into());
                }
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
    }
}

fn place(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

/// Opens the file to append to it; it and its folder are created where they are missing.
pub(super) fn open(path: &Path) -> io::Result<Open> {
    let regular = |about: &Metadata| match about.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    };
    match fs::metadata(path) {
        // Before it is opened, for opening a device or a pipe can do something or wait for ever.
        Ok(about) => regular(&about)?,
        Err(_) => {
            if let Some(folder) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
        }
    }
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(nonblock).open(path)?;
    let about = file.metadata()?;
    regular(&about)?;
    let mut last = *b"\n";
    if about.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        // It may have been emptied just now.
        if file.read(&mut last)? == 0 {
            last = *b"\n";
        }
    }
    Ok(Open { file, place: place(&about), torn: last != *b"\n" })
}
