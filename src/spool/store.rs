//! Writing the spool: accept, change, recover, delete. See [`crate::spool`] for the commit points.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use crate::handoff::life::State;
use crate::handoff::{HandOff, Id};

use super::blank::Blank;
use super::document::{id_of, parse};
use super::fs::{Fs, RealFs};
use super::lock::Place;
use super::replaced::MAX_REPLACED_LEN;
use super::trouble::On;

pub use super::attach::safe_name;

/// The folder of what could not be read.
pub const CORRUPT: &str = "corrupt";
/// The folder of files being written.
pub const TMP: &str = "tmp";
/// The folder of what came along with hand-offs.
pub const FILES: &str = "files";
/// What the hooks brought, until it is taken.
pub const INBOX: &str = "inbox";
/// The bridge's own log.
pub const LOG: &str = "log";

/// What to do where the spool cannot be opened.
pub(super) const MEND: &str = "mend the disk, make it a folder of this user, or set `paths.state` to another place";

/// The largest file that goes along (fakechat's own limit for a reply's file, facts page).
pub const MAX_FILE: u64 = 50 * 1024 * 1024;

/// The folder a hand-off came to lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed(pub State);

/// The spool on disk, for its one writer.
#[derive(Debug)]
pub struct Store<F: Fs = RealFs> {
    root: PathBuf,
    fs: F,
    /// What the next file is written into.
    pub(super) blank: Mutex<Blank<F::File>>,
    /// What was replaced and is freed later.
    pub(super) replaced: Mutex<VecDeque<PathBuf>>,
    /// The lock that this process holds on it, where that may get lost: nothing is written without it.
    pub(super) lock: Option<Place>,
}

impl<F: Fs> Store<F> {
    /// A spool whose folders are there already.
    pub fn on(root: &Path, fs: F) -> Self {
        Store { root: root.to_owned(), fs, blank: Mutex::default(), replaced: Mutex::default(), lock: None }
    }

    /// Where it lies.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file system it lies on.
    pub fn fs(&self) -> &F {
        &self.fs
    }

    /// Where the file of a hand-off in that state is.
    pub fn path(&self, state: State, id: Id) -> PathBuf {
        self.root.join(state.name()).join(format!("{id}.json"))
    }

    pub(super) fn dir(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a hand-off, new (`lies: None`) or changed, and moves it where it belongs. Returns where it lies.
    ///
    /// # Errors
    /// Nothing was changed. A failure after the commit point is not an error.
    pub fn put(&self, h: &mut HandOff, lies: Option<State>) -> io::Result<Placed> {
        h.rev += 1;
        let belongs = h.state();
        let lies = lies.unwrap_or(belongs);
        let tmp = self.dir(TMP).join(format!("{}.{}", h.id, h.rev));
        let at = if lies.is_open() { lies } else { belongs };
        let committed = self.check_lock().and_then(|()| self.write(&tmp, h)).and_then(|len| {
            self.reopen(h.id, lies, at)?;
            if h.rev > 1 && len <= MAX_REPLACED_LEN {
                self.keep_replaced(&self.path(at, h.id), tmp.with_extension(format!("{}.old", h.rev)));
            }
            let to = self.path(at, h.id);
            self.fs.rename(&tmp, &to).on(&to).inspect_err(|_| self.close_again(h.id, lies, at))
        });
        if let Err(error) = committed {
            h.rev -= 1;
            self.clear_away(&tmp);
            // It may be room that there is none of.
            self.tidy();
            return Err(error);
        }
        Ok(self.settle(h.id, lies, at, belongs))
    }

    /// Returns how long it is.
    fn write(&self, path: &Path, h: &HandOff) -> io::Result<usize> {
        let texts = h.text.len() + h.results.iter().map(|result| result.text.len()).sum::<usize>();
        // All in one piece, but for texts full of what JSON escapes.
        let mut bytes = Vec::with_capacity(texts + texts / 8 + 4096);
        serde_json::to_writer(&mut bytes, h)?;
        bytes.push(b'\n');
        self.write_new(path, &bytes).on(path)?;
        Ok(bytes.len())
    }

    /// Moves a hand-off, as it is, out of a folder that a start does not look through.
    fn reopen(&self, id: Id, lies: State, to: State) -> io::Result<()> {
        if lies == to {
            return Ok(());
        }
        let from = self.path(lies, id);
        match self.fs.rename(&from, &self.path(to, id)) {
            // It was removed by hand: what is written now is all there is.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved.on(&from),
        }
    }

    fn close_again(&self, id: Id, lies: State, at: State) {
        if let Err(error) = self.reopen(id, at, lies) {
            tracing::warn!(%id, %error, "moving it back from {} to {}", at.name(), lies.name());
        }
    }

    /// What follows the commit point: the move, and the fsync of the folder where it is now. The one where it was
    /// needs one only if no start looks through it: else the next start finds an older copy there, and deletes it.
    pub(super) fn settle(&self, id: Id, lay: State, at: State, belongs: State) -> Placed {
        let mut placed = at;
        if at != belongs {
            match self.fs.rename(&self.path(at, id), &self.path(belongs, id)) {
                Ok(()) => placed = belongs,
                Err(error) => tracing::warn!(%id, %error, "moving it from {} to {}", at.name(), belongs.name()),
            }
        }
        self.sync_folder(placed);
        if lay != placed && !lay.is_open() {
            self.sync_folder(lay);
        }
        Placed(placed)
    }

    /// Syncs the folder of a state, after the commit point.
    pub fn sync_folder(&self, state: State) {
        self.sync(&self.dir(state.name()));
    }

    /// Brings to the disk that the open folders do not have any more what has left them: a copy that comes back after
    /// a power cut is known for an old one only as long as the newer one is there.
    ///
    /// # Errors
    /// Those of syncing them.
    pub fn sync_open_folders(&self) -> io::Result<()> {
        State::ALL
            .into_iter()
            .filter(|state| state.is_open())
            .map(|state| self.dir(state.name()))
            .try_for_each(|dir| self.fs.sync_dir(&dir).on(&dir))
    }

    /// Syncs a folder after the commit point: what is done is done, also if it may not outlast a power cut.
    pub(super) fn sync(&self, dir: &Path) {
        if let Err(error) = self.fs.sync_dir(dir) {
            tracing::warn!(%error, "syncing the folder {}", dir.display());
        }
    }

    /// Reads the hand-off of that id, if there is one, and says where it lies.
    ///
    /// # Errors
    /// It is there but cannot be read.
    pub fn load(&self, id: Id, among: &[State]) -> io::Result<Option<(HandOff, State)>> {
        self.check_lock()?;
        for state in among {
            let path = self.path(*state, id);
            match self.fs.read(&path) {
                Ok(bytes) => {
                    let h = parse(&bytes, id).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why));
                    return Ok(Some((h.on(&path)?, *state)));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).on(&path),
            }
        }
        Ok(None)
    }

    /// The ids in a folder, the newest first.
    ///
    /// # Errors
    /// Those of reading the folder.
    pub fn ids(&self, state: State) -> io::Result<Vec<Id>> {
        let dir = self.dir(state.name());
        self.check_lock()?;
        let names = self.fs.list(&dir).on(&dir)?;
        self.check_lock()?;
        let mut ids: Vec<Id> = names.iter().filter_map(|name| id_of(name)).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// When something last came into `corrupt/` or left it, as far as that is known.
    pub fn corrupt_changed(&self) -> Option<SystemTime> {
        self.fs.changed(&self.dir(CORRUPT))
    }

    /// How many things lie in `corrupt/`.
    ///
    /// # Errors
    /// Those of reading the folder.
    pub fn count_corrupt(&self) -> io::Result<usize> {
        let dir = self.dir(CORRUPT);
        self.check_lock()?;
        let count = match self.fs.entries(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            entries => entries.on(&dir)?.len(),
        };
        self.check_lock()?;
        Ok(count)
    }

    /// Whether a hand-off of that id lies in `done/` or `failed/`.
    ///
    /// # Errors
    /// Those of looking.
    pub fn is_closed(&self, id: Id) -> io::Result<bool> {
        self.check_lock()?;
        let lies_in = |state| {
            let path = self.path(state, id);
            self.fs.exists(&path).on(&path)
        };
        Ok(lies_in(State::Done)? || lies_in(State::Failed)?)
    }

    /// Deletes a hand-off with its files. Files first: without its document nothing would name them.
    ///
    /// # Errors
    /// What is left can be deleted by doing it again.
    pub fn delete(&self, id: Id, state: State) -> io::Result<()> {
        self.check_lock()?;
        let files = self.dir(FILES).join(id.to_string());
        if self.fs.exists(&files).on(&files)? {
            self.fs.remove_dir(&files).on(&files)?;
        }
        let document = self.path(state, id);
        self.fs.remove(&document).on(&document)
    }

    /// Removes a file of `tmp/` whose writing failed; what cannot be removed goes with the next start.
    pub fn clear_away(&self, tmp: &Path) {
        self.fs.remove(tmp).unwrap_or_else(|error| tracing::debug!(%error, "{} stays", tmp.display()));
    }

    /// A new name in `tmp/`.
    pub fn scratch(&self) -> PathBuf {
        self.dir(TMP).join(Id::now().to_string())
    }

    /// Whether that is a name in `tmp/`.
    #[must_use]
    pub fn is_scratch(&self, path: &Path) -> bool {
        path.parent() == Some(&self.dir(TMP))
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
