//! The inbox: what hooks brought, on disk, until the bridge has taken it.
//!
//! ```text
//! <spool>/inbox/
//!   <Unix ms>-<uuid>.json                 a reply or an edit (crate::hook::Record)
//!   <Unix ms>-<uuid>.<side>-<kind>.json   a session's state; of a side and kind the newest only
//!   <Unix ms>-<uuid>.files/<n>-<name>     copies of the files that a reply named
//!   .new-<uuid>                           being written
//!   .overflow                             since when records are dropped, where they are
//! ```
//! Many write, with no lock: each hook is a process of its own, and names are never used twice. One takes: the
//! bridge. A record is there from the rename on, whole, its files before it; a hook that is killed before leaves a
//! `.new-` file or a `.files` folder without a record, which the bridge removes once they are old. They are not
//! written in `tmp/`, since a bridge that starts sweeps that.
//!
//! A power cut may bring back a record that was removed. So may a bridge that dies between acting on a record and
//! removing it. Whoever takes records has to know by their ids which it had.

mod copy;
mod take;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::error::{During, Result};
use crate::hook::{Record, What};
use crate::spool::fs::private_dir;
use crate::spool::store::{INBOX, Store};
use crate::spool::{Fs, RealFs};

pub use copy::{MAX_FILES, MAX_TOTAL};
pub use take::{BATCH_BYTES, BATCH_RECORDS, Entry, Listing, Stuck, files_of, list, remove};

/// How many records may wait. Weeks of two busy sessions; nobody may fill the disk because no bridge ever runs.
pub const MAX_RECORDS: usize = 10_000;
/// How many bytes they may have together with their files, checked before each new one: it may be passed by one.
pub const MAX_BYTES: u64 = 2 << 30;

/// The start of the name of a file being written.
const SCRATCH: &str = ".new-";
/// The ending of a record.
const RECORD: &str = ".json";
/// The ending of a folder of copies.
const COPIES: &str = ".files";
/// The file that says that records are dropped.
const OVERFLOW: &str = ".overflow";

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is there, on disk.
    Stored(PathBuf),
    /// It was dropped: too many wait. See [`overflow`].
    Full,
}

/// Puts a record into the inbox of that spool, which is made where it is missing, with copies of the files it names.
/// A file that cannot be had does not keep the record out: it says why.
///
/// # Errors
/// The record is not there; what was written of it has been removed, if that could be done.
pub fn put(spool: &Path, mut record: Record) -> Result<Put> {
    let inbox = open(spool)?;
    let doing = || format!("writing to {}", inbox.display());
    let older = match record.what.state() {
        Some(state) => same_state(&inbox, &ending(&record, state)).during(doing())?,
        None if is_full(&inbox).during(doing())? => {
            mark_overflow(&inbox, record.at).during(doing())?;
            return Ok(Put::Full);
        }
        None => Vec::new(),
    };
    let uuid = Uuid::now_v7();
    let stem = format!("{:013}-{uuid}", record.at.unix_timestamp_nanos() / 1_000_000);
    let copies = inbox.join(format!("{stem}{COPIES}"));
    let name = record.what.state().map_or_else(|| RECORD.to_owned(), |state| ending(&record, state));
    let (scratch, path) = (inbox.join(format!("{SCRATCH}{uuid}")), inbox.join(stem + &name));
    if let What::Reply { files, .. } = &mut record.what {
        copy::keep(files, &copies);
    }
    if let Err(error) = write(&scratch, &path, &record) {
        // The first error is the one to tell; what is left is swept later.
        RealFs.remove(&scratch).unwrap_or_default();
        RealFs.remove_dir(&copies).unwrap_or_default();
        return Err(error).during(doing());
    }
    // The record is there from here on. Doing it again would bring it twice, so nothing below is a failure.
    if let Err(error) = RealFs.sync_dir(&inbox) {
        tracing::warn!(%error, "syncing the inbox");
    }
    for old in older {
        RealFs.remove(&inbox.join(old)).unwrap_or_default();
    }
    Ok(Put::Stored(path))
}

/// Since when records have been dropped because too many wait; `None`: they have not.
///
/// # Errors
/// Those of reading the mark.
pub fn overflow(spool: &Path) -> io::Result<Option<OffsetDateTime>> {
    let mark = spool.join(INBOX).join(OVERFLOW);
    match RealFs.read(&mark) {
        Ok(text) => {
            let since = std::str::from_utf8(&text).ok().and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
            // A crash can leave it empty.
            Ok(Some(since.map_or_else(|| fs::metadata(&mark).and_then(|meta| meta.modified()).map(Into::into), Ok)?))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes that mark, once a person was told.
///
/// # Errors
/// Those of removing it.
pub fn clear_overflow(store: &Store) -> io::Result<()> {
    store.check_lock()?;
    gone(RealFs.remove(&store.root().join(INBOX).join(OVERFLOW)))
}

/// The inbox of that spool, made where it is missing.
fn open(spool: &Path) -> Result<PathBuf> {
    let inbox = spool.join(INBOX);
    let doing = || format!("opening the inbox {}", inbox.display());
    let is_new = !RealFs.exists(&inbox).during(doing())?;
    private_dir(spool).and_then(|_| private_dir(&inbox)).during(doing())?;
    if is_new {
        let above = [Some(spool), spool.parent()];
        above.into_iter().flatten().try_for_each(|dir| RealFs.sync_dir(dir)).during(doing())?;
    }
    Ok(inbox)
}

/// What the name of a state's record ends with.
fn ending(record: &Record, state: &str) -> String {
    format!(".{}-{state}{RECORD}", record.side)
}

/// The records of the same side and state that are there before this one. By what is there, not by times: a clock
/// that was wrong would else keep a stale state for ever.
fn same_state(inbox: &Path, ending: &str) -> io::Result<Vec<String>> {
    let names = RealFs.list(inbox)?;
    Ok(names.into_iter().filter(|name| name.ends_with(ending) && !name.starts_with('.')).collect())
}

fn write(scratch: &Path, path: &Path, record: &Record) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(record)?;
    bytes.push(b'\n');
    let mut file = RealFs.create(scratch)?;
    RealFs.write(&mut file, &bytes)?;
    RealFs.sync(&file)?;
    RealFs.rename(scratch, path)
}

/// Whether as much waits as may.
fn is_full(inbox: &Path) -> io::Result<bool> {
    let (mut records, mut bytes) = (0, 0_u64);
    for entry in fs::read_dir(inbox)? {
        let entry = entry?;
        // What goes away meanwhile counts nothing.
        let Ok(meta) = entry.metadata() else { continue };
        records += usize::from(!meta.is_dir());
        bytes = bytes.saturating_add(if meta.is_dir() { size_of_folder(&entry.path()) } else { meta.size() });
    }
    Ok(records >= MAX_RECORDS || bytes >= MAX_BYTES)
}

fn size_of_folder(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.size()).sum()
}

/// Says once that records are dropped.
fn mark_overflow(inbox: &Path, since: OffsetDateTime) -> io::Result<()> {
    match RealFs.create(&inbox.join(OVERFLOW)) {
        Ok(mut mark) => {
            let since = since.format(&Rfc3339).map_err(io::Error::other)?;
            RealFs.write(&mut mark, since.as_bytes())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// That something to be removed is not there is as good; nothing has a name that is too long.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    use io::ErrorKind::{InvalidFilename, NotFound};
    match removed {
        Err(error) if matches!(error.kind(), NotFound | InvalidFilename) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
