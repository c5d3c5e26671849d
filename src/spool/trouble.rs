//! What a person is told of a call that the disk refused: on what it was made, why, and what to do.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::error::{Error, Result};

/// A call that failed, with what it was made on.
#[derive(Debug)]
struct Failed {
    on: PathBuf,
    error: io::Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.on.display(), self.error)
    }
}

impl std::error::Error for Failed {}

/// That the spool is not the one any more that this process has locked.
#[derive(Debug)]
pub(super) struct NotOurs {
    /// What is missing, or is another.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: &'static str,
}

impl fmt::Display for NotOurs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for NotOurs {}

/// Says what a call was made on: `create(path).on(path)?`.
pub trait On<T> {
    /// The same failure, of the same kind.
    ///
    /// # Errors
    /// It.
    fn on(self, path: &Path) -> io::Result<T>;
}

impl<T> On<T> for io::Result<T> {
    fn on(self, path: &Path) -> io::Result<T> {
        self.map_err(|error| io::Error::new(error.kind(), Failed { on: path.to_owned(), error }))
    }
}

/// Turns it into one that a person can act on.
pub trait Explain<T> {
    /// Says what was being done, and what to do about it; nothing was changed.
    ///
    /// # Errors
    /// The same failure.
    fn explain(self, doing: impl fmt::Display) -> Result<T>;
}

impl<T> Explain<T> for io::Result<T> {
    fn explain(self, doing: impl fmt::Display) -> Result<T> {
        self.map_err(|error| {
            Error::failed(format!("{doing}: {error}"))
                .hint(format!("nothing was changed; {}, then do it again", advice(&error)))
        })
    }
}

/// The same, of what was done with some only.
pub fn in_part(error: &io::Error, doing: impl fmt::Display, done: usize, of: usize) -> Error {
    Error::failed(format!("{doing}: {error}; {done} of {of} were deleted"))
        .hint(format!("{}, then do it again", advice(error)))
}

/// The same, of what goes on by itself once the disk is well.
#[must_use]
pub fn explained(error: &io::Error) -> Error {
    Error::failed(error.to_string()).hint(advice(error))
}

/// What to do about it, in the imperative.
fn advice(error: &io::Error) -> &'static str {
    let inner = error.get_ref();
    if inner.is_some_and(|inner| inner.is::<NotOurs>()) {
        return "put the spool back as it was, or restart the bridge, which goes on with what lies there";
    }
    let failed = inner.and_then(|inner| inner.downcast_ref::<Failed>()).map_or(error, |failed| &failed.error);
    match Errno::from_io_error(failed) {
        Some(Errno::NOSPC) => "make room on that disk (`anna-relay prune` deletes old hand-offs)",
        Some(Errno::DQUOT) => "make room: this user's quota is used up",
        Some(Errno::ROFS) => "see why the disk is read-only (`dmesg`), and mount it writable",
        Some(Errno::IO) => "see what the disk complains of (`dmesg`): it fails",
        Some(Errno::ACCESS | Errno::PERM) => "give the folder back to this user, with the rights to write in it",
        Some(Errno::MFILE | Errno::NFILE) => "raise the limit of open files, or close some: there are too many",
        _ => match failed.kind() {
            ErrorKind::NotFound => "see who removes files from the spool, and put back what is missing",
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => "move away what lies in the place of that folder",
            _ => "see to that path",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_says_where_and_what_to_do_about_that_one() {
        for (errno, words) in [
            (Errno::NOSPC, "make room on that disk"),
            (Errno::DQUOT, "quota"),
            (Errno::ROFS, "read-only"),
            (Errno::IO, "dmesg"),
            (Errno::ACCESS, "give the folder back"),
            (Errno::MFILE, "open files"),
            (Errno::NOENT, "put back what is missing"),
            (Errno::NOTDIR, "move away"),
            (Errno::XDEV, "see to that path"),
        ] {
            let plain = || io::Error::from(errno);
            let kind = plain().kind();
            let error = Err::<(), _>(plain()).on(Path::new("/x/new")).unwrap_err();
            assert_eq!(error.kind(), kind);
            let explained = explained(&error);
            assert!(explained.to_string().starts_with("/x/new: "), "{explained}");
            assert!(explained.advice().is_some_and(|advice| advice.contains(words)), "{explained:?}");
            let error = Err::<(), _>(error).explain("pausing").unwrap_err();
            assert!(error.to_string().starts_with("pausing: /x/new: "), "{error}");
            assert!(error.advice().is_some_and(|advice| advice.starts_with("nothing was changed; ")), "{error:?}");
        }
    }
}
