//! Writing the spool: accept, change, recover, delete. See [`crate::spool`] for the commit points.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{During, Error, Result};
use crate::handoff::life::State;
use crate::handoff::{Attachment, HandOff, Id, VERSION};

use super::fs::{Fs, RealFs, private_dir};

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

/// The longest name of a kept file, in bytes: file systems take 255.
const MAX_NAME: usize = 120;
/// The largest file that goes along (fakechat's own limit for a reply's file, facts page).
pub const MAX_FILE: u64 = 50 * 1024 * 1024;

/// The folder a hand-off came to lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed(pub State);

/// Something that could not be read, and was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Where it lies now.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// What a start found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Every hand-off with something left to do, with the folder it lies in, the oldest first.
    pub open: Vec<(HandOff, State)>,
    /// What was put aside.
    pub quarantined: Vec<Quarantined>,
}

/// The spool on disk, for its one writer.
#[derive(Debug)]
pub struct Store<F: Fs = RealFs> {
    root: PathBuf,
    fs: F,
}

impl Store<RealFs> {
    /// Opens the spool, making its folders.
    ///
    /// # Errors
    /// Says which folder cannot be had, and why.
    pub fn open(root: &Path) -> Result<Self> {
        let below = State::ALL.map(State::name).into_iter().chain([CORRUPT, TMP, FILES, INBOX, LOG]);
        for path in std::iter::once(root.to_owned()).chain(below.map(|name| root.join(name))) {
            private_dir(&path).during(format_args!("opening the spool folder {}", path.display()))?;
        }
        Ok(Store::on(root, RealFs))
    }
}

impl<F: Fs> Store<F> {
    /// A spool whose folders are there already.
    pub fn on(root: &Path, fs: F) -> Self {
        Store { root: root.to_owned(), fs }
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

    fn dir(&self, name: &str) -> PathBuf {
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
        let committed = self.write(&tmp, h).and_then(|()| self.fs.rename(&tmp, &self.path(lies, h.id)));
        if let Err(error) = committed {
            h.rev -= 1;
            self.fs.remove(&tmp).unwrap_or_else(|_| tracing::debug!("tmp/ keeps a file until the next start"));
            return Err(error);
        }
        Ok(self.settle(h.id, lies, belongs))
    }

    fn write(&self, path: &Path, h: &HandOff) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(h)?;
        bytes.push(b'\n');
        let mut file = self.fs.create(path)?;
        self.fs.write(&mut file, &bytes)?;
        self.fs.sync(&file)
    }

    /// What follows the commit point: the move, and the folder's fsync.
    fn settle(&self, id: Id, lies: State, belongs: State) -> Placed {
        let mut placed = lies;
        if lies != belongs {
            match self.fs.rename(&self.path(lies, id), &self.path(belongs, id)) {
                Ok(()) => placed = belongs,
                Err(error) => tracing::warn!(%id, %error, "moving it from {} to {}", lies.name(), belongs.name()),
            }
        }
        if let Err(error) = self.fs.sync_dir(&self.dir(placed.name())) {
            tracing::warn!(%id, %error, "syncing the folder {}", placed.name());
        }
        Placed(placed)
    }

    /// Reads the hand-off of that id, if there is one, and says where it lies.
    ///
    /// # Errors
    /// It is there but cannot be read.
    pub fn load(&self, id: Id, among: &[State]) -> io::Result<Option<(HandOff, State)>> {
        for state in among {
            match self.fs.read(&self.path(*state, id)) {
                Ok(bytes) => {
                    let h = parse(&bytes, id).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
                    return Ok(Some((h, *state)));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The ids in a folder, the newest first.
    ///
    /// # Errors
    /// Those of reading the folder.
    pub fn ids(&self, state: State) -> io::Result<Vec<Id>> {
        let names = self.fs.list(&self.dir(state.name()))?;
        let mut ids: Vec<Id> = names.iter().filter_map(|name| id_of(name)).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// How many things lie in a folder.
    ///
    /// # Errors
    /// Those of reading the folder.
    pub fn count(&self, folder: &str) -> io::Result<usize> {
        self.fs.list(&self.dir(folder)).map(|names| names.len())
    }

    /// Whether a hand-off of that id lies in `done/` or `failed/`.
    ///
    /// # Errors
    /// Those of looking.
    pub fn is_closed(&self, id: Id) -> io::Result<bool> {
        Ok(self.fs.exists(&self.path(State::Done, id))? || self.fs.exists(&self.path(State::Failed, id))?)
    }

    /// Deletes a hand-off with its files. Files first: without its document nothing would name them.
    ///
    /// # Errors
    /// What is left can be deleted by doing it again.
    pub fn delete(&self, id: Id, state: State) -> io::Result<()> {
        let files = self.dir(FILES).join(id.to_string());
        if self.fs.exists(&files)? {
            self.fs.remove_dir(&files)?;
        }
        self.fs.remove(&self.path(state, id))
    }

    /// Takes a file into `files/<id>/`, by moving it there, and returns how it is named from now on.
    ///
    /// # Errors
    /// It stays where it was.
    pub fn adopt(&self, id: Id, name: &str, from: &Path, bytes: u64) -> io::Result<Attachment> {
        let folder = self.dir(FILES).join(id.to_string());
        self.fs.make_dir(&folder)?;
        let safe = safe_name(name);
        let mut kept = safe.clone();
        let mut n = 1;
        while self.fs.exists(&folder.join(&kept))? {
            n += 1;
            kept = format!("{n}-{safe}");
        }
        self.fs.rename(from, &folder.join(&kept))?;
        self.fs.sync_dir(&folder)?;
        self.fs.sync_dir(&self.dir(FILES))?;
        let path = format!("{FILES}/{id}/{kept}");
        Ok(Attachment { name: safe, path: Some(path), bytes, unknown: Default::default() })
    }

    /// A new name in `tmp/`.
    pub fn scratch(&self) -> PathBuf {
        self.dir(TMP).join(Id::now().to_string())
    }

    /// Makes the spool whole after a stop of any kind: sweeps `tmp/`, puts aside what cannot be read, deletes the
    /// older of two copies, moves each hand-off where its content says. Does not look through `done/` and `failed/`.
    ///
    /// # Errors
    /// The disk cannot be read or written; nothing is lost.
    pub fn recover(&self) -> Result<Recovered> {
        self.sweep().during(format_args!("sweeping {}", self.dir(TMP).display()))?;
        let mut quarantined = Vec::new();
        let mut found = BTreeMap::new();
        for state in State::ALL.into_iter().filter(|state| state.is_open()) {
            let dir = self.dir(state.name());
            for name in self.fs.list(&dir).during(format_args!("reading {}", dir.display()))? {
                match self.read_entry(state, &name)? {
                    Ok(h) => self.keep_newer(&mut found, h, state)?,
                    Err(why) => quarantined.push(self.quarantine(state, &name, why)?),
                }
            }
        }
        let mut open = Vec::new();
        for (h, lies) in found.into_values() {
            if let Some(lies) = self.put_right(&h, lies)? {
                open.push((h, lies));
            }
        }
        open.sort_by_key(|(h, _)| (h.created, h.id));
        Ok(Recovered { open, quarantined })
    }

    /// Moves a hand-off where it belongs, or deletes it if it is the older copy of a closed one. Returns where it
    /// lies if there is something left to do with it.
    fn put_right(&self, h: &HandOff, lies: State) -> Result<Option<State>> {
        let closed = self.load(h.id, &[State::Done, State::Failed]).ok().flatten();
        if closed.is_some_and(|(other, _)| other.rev >= h.rev) {
            self.fs.remove(&self.path(lies, h.id)).during(format_args!("removing an older copy of {}", h.id))?;
            return Ok(None);
        }
        let belongs = h.state();
        let Placed(lies) = if lies == belongs { Placed(lies) } else { self.settle(h.id, lies, belongs) };
        Ok(lies.is_open().then_some(lies))
    }

    fn sweep(&self) -> io::Result<()> {
        for name in self.fs.list(&self.dir(TMP))? {
            let path = self.dir(TMP).join(&name);
            if self.fs.remove(&path).is_err() {
                self.fs.remove_dir(&path)?;
            }
        }
        Ok(())
    }

    /// Reads one entry of a folder: the hand-off, or what is wrong with it.
    fn read_entry(&self, state: State, name: &str) -> Result<std::result::Result<HandOff, String>> {
        let path = self.dir(state.name()).join(name);
        let Some(id) = id_of(name) else {
            return Ok(Err("its name is not that of a hand-off, <id>.json".into()));
        };
        match self.fs.read(&path) {
            Ok(bytes) => Ok(parse(&bytes, id)),
            Err(error) if is_its_own_fault(&error) => Ok(Err(error.to_string())),
            Err(error) => Err(Error::failed(format!("reading {}: {error}", path.display()))
                .hint("mend the disk or its permissions, then start again; nothing was changed")),
        }
    }

    /// Keeps, of two copies of a hand-off, the newer one.
    fn keep_newer(&self, found: &mut BTreeMap<Id, (HandOff, State)>, h: HandOff, state: State) -> Result<()> {
        let id = h.id;
        let (_, lies) = match found.get_mut(&id) {
            None => {
                found.insert(id, (h, state));
                return Ok(());
            }
            Some(twin) if h.rev > twin.0.rev => std::mem::replace(twin, (h, state)),
            Some(_) => (h, state),
        };
        self.fs.remove(&self.path(lies, id)).during(format_args!("removing an older copy of {id}"))
    }

    fn quarantine(&self, state: State, name: &str, why: String) -> Result<Quarantined> {
        let from = self.dir(state.name()).join(name);
        let mut to = self.dir(CORRUPT).join(name);
        let mut n = 0;
        let doing = format!("putting {} aside", from.display());
        while self.fs.exists(&to).during(&doing)? {
            n += 1;
            to = self.dir(CORRUPT).join(format!("{name}.{n}"));
        }
        self.fs.rename(&from, &to).during(&doing)?;
        Ok(Quarantined { path: to, why })
    }
}

/// Whether reading failed because of what the entry is, not because of the disk or this process.
pub(crate) fn is_its_own_fault(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, IsADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), InvalidData | InvalidInput | IsADirectory | NotFound | PermissionDenied)
}

/// Reads a hand-off that has to be the one named.
pub(super) fn parse(bytes: &[u8], id: Id) -> std::result::Result<HandOff, String> {
    let h: HandOff = serde_json::from_slice(bytes).map_err(|error| format!("it is not a hand-off: {error}"))?;
    if h.v != VERSION {
        return Err(format!("its format is version {}, and this program reads version {VERSION}", h.v));
    }
    if h.id != id {
        return Err(format!("it holds another hand-off, {}", h.id));
    }
    let own = format!("{FILES}/{id}/");
    let attachments = h.files.iter().chain(h.results.iter().flat_map(|r| &r.files));
    for path in attachments.filter_map(|file| file.path.as_deref()) {
        if !path.strip_prefix(&own).is_some_and(|name| !name.contains('/') && !["", ".", ".."].contains(&name)) {
            return Err("it names a file outside of its own folder".into());
        }
    }
    Ok(h)
}

/// The id that a file's name in a folder says.
pub(super) fn id_of(name: &str) -> Option<Id> {
    let id: Id = name.strip_suffix(".json")?.parse().ok()?;
    (name.len() == id.to_string().len() + ".json".len() && name.starts_with(&id.to_string())).then_some(id)
}

/// A file name that is safe in a folder, a message and a terminal: no separators, no control characters, no
/// leading dot, and not too long; its ending is kept.
#[must_use]
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let clean: String = last
        .chars()
        .map(|c| if c.is_control() || crate::text::is_hidden(c) || "[]\"".contains(c) { '_' } else { c })
        .collect();
    let clean = clean.trim().trim_start_matches('.');
    if clean.is_empty() {
        return "file".to_owned();
    }
    let mut start = clean.len().saturating_sub(MAX_NAME);
    while !clean.is_char_boundary(start) {
        start += 1;
    }
    clean[start..].trim_start_matches('.').to_owned()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
