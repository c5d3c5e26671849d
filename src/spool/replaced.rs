//! Files that were replaced: second names of theirs, in `tmp/`, until there is time. To free a file takes some disks as
//! long as to write one, and nobody has to wait for it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

use super::fs::Fs;
use super::store::Store;

/// How many replaced files are kept at most, for a time with nothing else to do. More go two at a write.
pub(super) const MAX_REPLACED: usize = 64;
/// Longer ones than this, in bytes, are freed at once, for they would take the room that something new needs.
pub(super) const MAX_REPLACED_LEN: usize = 256 * 1024;

impl<F: Fs> Store<F> {
    /// Keeps what is replaced next. Where that cannot be, it is freed at once, and that takes longer.
    pub(super) fn keep_replaced(&self, path: &Path, old: PathBuf) {
        let kept = self.fs().link(path, &old).is_ok();
        let mut replaced = self.replaced();
        replaced.extend(kept.then_some(old));
        let over = replaced.len().saturating_sub(MAX_REPLACED).min(2);
        replaced.drain(..over).for_each(|old| self.clear_away(&old));
    }

    fn replaced(&self) -> MutexGuard<'_, VecDeque<PathBuf>> {
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is something to [`tidy`](Self::tidy).
    pub fn is_untidy(&self) -> bool {
        !self.replaced().is_empty()
    }

    /// Frees what was replaced.
    pub fn tidy(&self) {
        self.replaced().drain(..).for_each(|old| self.clear_away(&old));
    }
}

impl<F: Fs> Drop for Store<F> {
    fn drop(&mut self) {
        self.tidy();
    }
}
