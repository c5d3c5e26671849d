//! The spool's folders: made at a start, and made again where one is gone; but only while the spool is the one that this
//! process has locked.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Advise, During, Result};
use crate::handoff::life::State;

use super::fs::{Fs, RealFs, private_dir};
use super::lock::Place;
use super::store::{CORRUPT, FILES, INBOX, LOG, MEND, Store, TMP};
use super::trouble::{self, On};

impl Store<RealFs> {
    /// Opens the spool, making its folders.
    ///
    /// # Errors
    /// Says which folder cannot be had, and why.
    pub fn open(root: &Path) -> Result<Self> {
        let new: Vec<&Path> = root.ancestors().take_while(|path| !path.exists()).collect();
        for path in std::iter::once(root.to_owned()).chain(folders().map(|name| root.join(name))) {
            private_dir(&path).during(format_args!("opening the spool folder {}", path.display())).advise(MEND)?;
        }
        // What lies in a folder is only as durable as the folder.
        for path in std::iter::once(root).chain(new.iter().filter_map(|path| path.parent())) {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            if let Err(error) = RealFs.sync_dir(path) {
                tracing::warn!(%error, "syncing the folder {}", path.display());
            }
        }
        Ok(Store::on(root, RealFs))
    }

    /// Opens the spool that this process has locked, unless it is gone, or another lies there.
    ///
    /// # Errors
    /// That, and those of [`Store::open`].
    pub fn open_locked(root: &Path, lock: Place) -> Result<Self> {
        lock.check(root).map_err(|error| trouble::explained(&error))?;
        let mut store = Store::open(root)?;
        store.lock = Some(lock);
        Ok(store)
    }
}

/// The names of the spool's folders.
fn folders() -> impl Iterator<Item = &'static str> {
    State::ALL.map(State::name).into_iter().chain([CORRUPT, TMP, FILES, INBOX, LOG])
}

impl<F: Fs> Store<F> {
    /// Whether it is still the spool that this process has locked.
    ///
    /// # Errors
    /// It is not, or the disk does not say.
    pub fn check_lock(&self) -> io::Result<()> {
        self.lock.map_or(Ok(()), |lock| lock.check(self.root()))
    }

    /// Makes those of its folders again that are gone. Returns which.
    ///
    /// # Errors
    /// It is not this process's spool any more, or they cannot be made.
    pub fn make_folders(&self) -> io::Result<Vec<PathBuf>> {
        self.check_lock()?;
        let mut made = Vec::new();
        for path in folders().map(|name| self.dir(name)) {
            if !self.fs().exists(&path).on(&path)? {
                self.fs().make_dir(&path).on(&path)?;
                made.push(path);
            }
        }
        if !made.is_empty() {
            self.sync(self.root());
        }
        Ok(made)
    }

    /// Whether it can be written.
    ///
    /// # Errors
    /// Why not.
    pub fn probe(&self) -> io::Result<()> {
        self.check_lock()?;
        let path = self.scratch();
        let mut file = self.fs().create(&path).on(&path)?;
        let written = self.fs().write(&mut file, &[0; 4096]).on(&path);
        self.fs().remove(&path).on(&path).and(written)
    }
}
