//! A file made beforehand, without a name: to make one can take a disk as long as to write it, and nobody has to wait
//! for it.

use std::io;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};

use super::fs::Fs;
use super::store::{Store, TMP};

/// What the next file is written into.
#[derive(Debug, Default)]
pub(super) enum Blank<T> {
    /// It is yet to be made.
    #[default]
    Due,
    /// It is made.
    Ready(T),
    /// It could not be made: the next one is made when it is written.
    None,
}

impl<F: Fs> Store<F> {
    fn blank(&self) -> MutexGuard<'_, Blank<F::File>> {
        self.blank.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is nothing to [`prepare`](Self::prepare).
    pub fn is_prepared(&self) -> bool {
        !matches!(*self.blank(), Blank::Due)
    }

    /// Makes the file that is written next.
    pub fn prepare(&self) {
        let made = self.check_lock().and_then(|()| self.fs().create_nameless(&self.dir(TMP)));
        *self.blank() = made.map_or(Blank::None, Blank::Ready);
    }

    /// Writes a new file, durably but for its name.
    pub(super) fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let blank = std::mem::take(&mut *self.blank());
        if let Blank::Ready(mut file) = blank {
            self.fill(&mut file, bytes)?;
            // It may have been made where that folder is no more.
            if self.fs().name(&file, path).is_ok() {
                return Ok(());
            }
        }
        let mut file = match self.fs().create(path) {
            // A write that failed, and then could not be cleared away.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.fs().remove(path).and_then(|()| self.fs().create(path))
            }
            created => created,
        }?;
        self.fill(&mut file, bytes)
    }

    fn fill(&self, file: &mut F::File, bytes: &[u8]) -> io::Result<()> {
        self.fs().write(file, bytes).and_then(|()| self.fs().sync(file))
    }
}
