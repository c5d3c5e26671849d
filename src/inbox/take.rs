//! The bridge's side of the inbox: what lies there, and removing what was taken.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use uuid::Uuid;

use crate::config::Side;
use crate::error::{During, Error, Result};
use crate::hook::{NamedFile, Record, VERSION, What};
use crate::queue::Incoming;
use crate::spool::document::is_its_own_fault;
use crate::spool::recover::{MAX_CORRUPT_NAME, Quarantined};
use crate::spool::store::{CORRUPT, INBOX, Store};
use crate::spool::{Fs, RealFs};

use super::{COPIES, OVERFLOW, RECORD, SCRATCH, gone};

/// How many records are read at once; the others are for the next time.
pub const BATCH_RECORDS: usize = 256;
/// After how many bytes of them no more are read: one may have many MiB.
pub const BATCH_BYTES: u64 = 64 * 1024 * 1024;
/// What is unfinished for this long will not be finished: a hook has seconds.
const STALE: Duration = Duration::from_secs(3600);

/// A record that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it lies.
    pub path: PathBuf,
    /// What it says.
    pub record: Record,
}

impl Entry {
    /// Where the copy of one of its files is, if there is one. May be moved away from there.
    #[must_use]
    pub fn copy_of(&self, file: &NamedFile) -> Option<PathBuf> {
        file.kept.as_ref().map(|name| self.copies().join(name))
    }

    /// The files of this reply, on their way to a hand-off.
    #[must_use]
    pub fn incoming(&self, files: &[NamedFile]) -> Vec<Incoming> {
        let one = |file: &NamedFile| {
            let name = file.named.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            match self.copy_of(file) {
                Some(path) => Incoming::Fetched { name, path, bytes: file.bytes },
                None => Incoming::Lost { name },
            }
        };
        files.iter().map(one).collect()
    }

    fn copies(&self) -> PathBuf {
        copies(&self.path)
    }
}

/// What waits in the inbox.
#[derive(Debug, Default)]
pub struct Listing {
    /// The records, the oldest first.
    pub entries: Vec<Entry>,
    /// Whether there are more than these; remove these, and look again.
    pub more: bool,
    /// What could not be read, and lies in `corrupt/` now.
    pub put_aside: Vec<Quarantined>,
    /// What could be neither read nor put aside, and still lies there.
    pub stuck: Vec<Stuck>,
    /// Why not all was looked at.
    pub failed: Option<Error>,
}

/// Something in the inbox that is passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Where it lies.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// All the files that a reply named, if its hook has brought it: the websocket's frame has the first only. Looks at the
/// newest records, and leaves all as it is.
#[must_use]
pub fn files_of(spool: &Path, side: Side, message: &str) -> Option<Vec<Incoming>> {
    let inbox = spool.join(INBOX);
    let mut names = RealFs.list(&inbox).ok()?;
    names.retain(|name| name.ends_with(RECORD) && !name.starts_with('.'));
    names.sort_unstable_by(|a, b| b.cmp(a));
    names.iter().take(BATCH_RECORDS).find_map(|name| {
        let path = inbox.join(name);
        let (record, _) = read(&path, name).ok()?;
        let entry = Entry { path, record };
        match &entry.record.what {
            What::Reply { message: own, files, .. } if own == message && entry.record.side == side => {
                Some(entry.incoming(files))
            }
            _ => None,
        }
    })
}

/// What waits in the inbox of that spool, as much of it as is good to have at once. Puts aside what is no record,
/// removes what dead hooks left, and makes an inbox that is gone again. Each entry is dealt with on its own.
#[must_use]
pub fn list(store: &Store) -> Listing {
    let mut listing = Listing::default();
    listing.failed = fill(&mut listing, store).err();
    listing
}

fn fill(listing: &mut Listing, store: &Store) -> Result<()> {
    let inbox = store.root().join(INBOX);
    let doing = || format!("reading the inbox {}", inbox.display());
    match fs::symlink_metadata(&inbox) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err(Error::failed(format!("{}: it is not a folder", doing()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return make(store, &inbox).during(doing()),
        Err(error) => return Err(error).during(doing()),
    }
    let mut names = Vec::new();
    for name in RealFs.entries(&inbox).during(doing())? {
        match name.into_string() {
            Ok(name) => names.push(name),
            Err(name) => put_aside(listing, store, &inbox.join(name), "", "its name is not text".into()),
        }
    }
    names.sort_unstable();
    let mut bytes = 0;
    for name in &names {
        let path = inbox.join(name);
        if name == OVERFLOW && is_no_file(&path) {
            put_aside(listing, store, &path, name, "it is not a regular file".into());
            continue;
        }
        if name.starts_with('.') || name.ends_with(COPIES) {
            sweep(store, &path, name, &names);
            continue;
        }
        if listing.entries.len() >= BATCH_RECORDS || bytes >= BATCH_BYTES {
            listing.more = true;
            break;
        }
        match read(&path, name) {
            Ok((record, len)) => {
                bytes += len;
                listing.entries.push(Entry { path, record });
            }
            // A hook put a newer one in its place.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if is_everybodys(&error) => {
                return Err(error).during(format_args!("reading {}", path.display()));
            }
            Err(error) if is_its_own_fault(&error) || is_no_file(&path) => {
                put_aside(listing, store, &path, name, error.to_string());
            }
            // It may be well later.
            Err(error) => listing.stuck.push(Stuck { path, why: error.to_string() }),
        }
    }
    Ok(())
}

/// Removes a record that was taken, and its files.
///
/// # Errors
/// It is still there, or its files are, which the next [`list`] removes once they are old.
pub fn remove(store: &Store, entry: &Entry) -> Result<()> {
    let removed = store.check_lock().and_then(|()| gone(RealFs.remove(&entry.path)));
    let removed = removed.and_then(|()| gone(RealFs.remove_dir(&entry.copies())));
    removed.during(format_args!("removing {}", entry.path.display()))
}

/// Makes a folder where it is missing, but not the spool above it: one that is gone may come back to its place.
fn make(store: &Store, folder: &Path) -> io::Result<()> {
    store.check_lock()?;
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        made => made,
    }
}

/// Whether it is this process that can read nothing now, or nobody can.
fn is_everybodys(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// Whether it is a socket, say, which is not even opened.
fn is_no_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file())
}

/// Where the files of a record lie.
fn copies(record: &Path) -> PathBuf {
    record.with_extension(&COPIES[1..])
}

fn read(path: &Path, name: &str) -> io::Result<(Record, u64)> {
    let odd = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    if !name.ends_with(RECORD) {
        return Err(odd("its name is not that of a record".into()));
    }
    let bytes = RealFs.read(path)?;
    let record: Record = serde_json::from_slice(&bytes).map_err(|error| odd(format!("it is no record: {error}")))?;
    if record.v != VERSION {
        return Err(odd(format!("its format is version {}, and this program reads version {VERSION}", record.v)));
    }
    if let What::Reply { files, .. } = &record.what {
        let plain = |name: &String| !name.contains('/') && !["", ".", ".."].contains(&name.as_str());
        if !files.iter().filter_map(|file| file.kept.as_ref()).all(plain) {
            return Err(odd("it names a file outside of its own folder".into()));
        }
    }
    Ok((record, bytes.len() as u64))
}

/// Removes what a hook left that was killed: an unfinished file, files without their record. What cannot be removed
/// is in nobody's way.
fn sweep(store: &Store, path: &Path, name: &str, names: &[String]) {
    let is_left = match name.strip_suffix(COPIES) {
        Some(stem) => names.binary_search(&format!("{stem}{RECORD}")).is_err(),
        None => name.starts_with(SCRATCH) && name != OVERFLOW,
    };
    let age = fs::symlink_metadata(path).and_then(|meta| meta.modified());
    let is_old = age.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > STALE));
    if is_left && is_old && store.check_lock().is_ok() && RealFs.remove(path).is_err() {
        RealFs.remove_dir(path).unwrap_or_default();
    }
}

/// Moves something to `corrupt/`, with its files, or says that it is in the way.
fn put_aside(listing: &mut Listing, store: &Store, path: &Path, name: &str, why: String) {
    match set_aside(store, path, name) {
        Ok(Some(path)) => listing.put_aside.push(Quarantined { path, why }),
        Ok(None) => {}
        Err(error) => {
            let why = format!("{why}; putting it aside: {error}");
            listing.stuck.push(Stuck { path: path.to_owned(), why });
        }
    }
}

/// Moves it. `None`: it is not there any more. A name that does not do there gets another.
fn set_aside(store: &Store, path: &Path, name: &str) -> io::Result<Option<PathBuf>> {
    let corrupt = store.root().join(CORRUPT);
    make(store, &corrupt)?;
    if !fs::symlink_metadata(&corrupt)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "`corrupt` is not a folder"));
    }
    let is_fit = (1..=MAX_CORRUPT_NAME).contains(&name.len());
    let name = if is_fit { name.to_owned() } else { format!("{}{RECORD}", Uuid::now_v7()) };
    let mut to = corrupt.join(&name);
    let mut n = 0;
    while RealFs.exists(&to)? || RealFs.exists(&copies(&to))? {
        n += 1;
        to = corrupt.join(format!("{n}-{name}"));
    }
    match RealFs.rename(path, &to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    }
    // Those of `x.json` are not those of `x.json~`.
    if path.extension().is_some_and(|ending| ending == &RECORD[1..])
        && let Err(error) = gone(RealFs.rename(&copies(path), &copies(&to)))
    {
        tracing::warn!(%error, "putting the files of {} aside", path.display());
    }
    Ok(Some(to))
}
