//! The pause: the file `paused`, and the memory of pauses that ended, since paused time is no waiting.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::control::wire::Paused;

use super::document::is_its_own_fault;
use super::fs::Fs;
use super::store::{Store, TMP};
use super::trouble::On;

/// How many ended pauses are remembered: more than a year of nights.
const REMEMBERED: usize = 500;

/// A pause that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// From when.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// Until when.
    #[serde(with = "time::serde::rfc3339")]
    pub until: OffsetDateTime,
}

/// How much of the time from `since` to `now` was paused.
#[must_use]
pub fn overlap(
    ended: &[Ended],
    present: Option<OffsetDateTime>,
    since: OffsetDateTime,
    now: OffsetDateTime,
) -> Duration {
    // A crash while it ended leaves the present pause among the ended ones, too.
    let ended = ended.iter().copied().filter(|span| present != Some(span.since));
    let spans = ended.chain(present.map(|from| Ended { since: from, until: now }));
    let inside = spans.map(|span| span.until.min(now) - span.since.max(since));
    inside.map(|part| Duration::try_from(part).unwrap_or_default()).sum()
}

/// The file that exists while paused.
#[must_use]
pub fn file(root: &Path) -> PathBuf {
    root.join("paused")
}

fn memory(root: &Path) -> PathBuf {
    root.join("pauses.json")
}

/// Whether it is paused, and since when. A file that says nothing, as made by `touch`, is a pause of unknown reason.
///
/// # Errors
/// The disk cannot be read.
pub fn read(fs: &impl Fs, root: &Path, now: OffsetDateTime) -> io::Result<Option<Paused>> {
    match fs.read(&file(root)) {
        Ok(bytes) => {
            let made = std::fs::metadata(file(root)).and_then(|meta| meta.modified());
            let since = made.map_or(now, OffsetDateTime::from);
            Ok(Some(serde_json::from_slice(&bytes).unwrap_or(Paused { since, reason: None })))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(Some(Paused { since: now, reason: None })),
        Err(error) => Err(error).on(&file(root)),
    }
}

/// The pauses that ended.
#[must_use]
pub fn remembered(fs: &impl Fs, root: &Path) -> Vec<Ended> {
    try_remembered(fs, root).unwrap_or_default()
}

/// The same; one that says nothing legible remembers none.
fn try_remembered(fs: &impl Fs, root: &Path) -> io::Result<Vec<Ended>> {
    match fs.read(&memory(root)) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(error) if is_its_own_fault(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

impl<F: Fs> Store<F> {
    /// Pauses.
    ///
    /// # Errors
    /// It is not paused.
    pub fn pause(&self, paused: &Paused) -> io::Result<()> {
        self.replace(&file(self.root()), &serde_json::to_vec(paused)?)
    }

    /// Ends the pause. What is remembered of it is written first: a crash between leaves it paused.
    ///
    /// # Errors
    /// It is still paused.
    pub fn resume(&self, paused: &Paused, now: OffsetDateTime) -> io::Result<()> {
        self.remember(paused, now)?;
        match self.fs().remove(&file(self.root())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).on(&file(self.root())),
            // A person may have removed it by hand.
            _ => self.sync(self.root()),
        }
        Ok(())
    }

    /// Remembers a pause that ended, also one whose file a person removed.
    ///
    /// # Errors
    /// It will count as waiting.
    pub fn remember(&self, paused: &Paused, now: OffsetDateTime) -> io::Result<()> {
        let mut ended = try_remembered(self.fs(), self.root())?;
        ended.retain(|span| span.since != paused.since);
        ended.push(Ended { since: paused.since, until: now });
        let from = ended.len().saturating_sub(REMEMBERED);
        self.replace(&memory(self.root()), &serde_json::to_vec(&ended[from..])?)
    }

    /// Replaces a small file as a whole.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let tmp = self.root().join(TMP).join(crate::handoff::Id::now().to_string());
        let write = || {
            self.check_lock()?;
            let mut file = self.fs().create(&tmp).on(&tmp)?;
            self.fs().write(&mut file, bytes).and_then(|()| self.fs().sync(&file)).on(&tmp)?;
            self.fs().rename(&tmp, path).on(path)
        };
        write().inspect_err(|_| self.clear_away(&tmp))?;
        self.sync(self.root());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::spool::RealFs;

    #[test]
    fn paused_time_is_what_lies_within_the_wait() {
        let at = |minute: i64| datetime!(2026-11-30 10:00 UTC) + time::Duration::minutes(minute);
        let ended = [Ended { since: at(-10), until: at(5) }, Ended { since: at(20), until: at(30) }];
        let minutes = |present, since, now| overlap(&ended, present, since, now).as_secs() / 60;
        assert_eq!(minutes(None, at(0), at(60)), 15);
        assert_eq!(minutes(Some(at(50)), at(0), at(60)), 25);
        assert_eq!(minutes(None, at(31), at(60)), 0);
        assert_eq!(minutes(None, at(60), at(0)), 0, "a clock that was set back is no paused time");
    }

    #[test]
    fn a_pause_is_there_until_it_is_ended_and_is_remembered_then() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let now = datetime!(2026-11-30 10:00 UTC);
        assert_eq!(read(&RealFs, dir.path(), now).unwrap(), None);
        let paused = Paused { since: now, reason: Some("night".into()) };
        store.pause(&paused).unwrap();
        assert_eq!(read(&RealFs, dir.path(), now).unwrap(), Some(paused.clone()));
        let later = now + time::Duration::hours(8);
        store.resume(&paused, later).unwrap();
        assert_eq!(read(&RealFs, dir.path(), now).unwrap(), None);
        assert_eq!(remembered(&RealFs, dir.path()), [Ended { since: now, until: later }]);
    }

    #[test]
    fn a_touched_file_pauses_too() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(file(dir.path()), "").unwrap();
        let paused = read(&RealFs, dir.path(), OffsetDateTime::now_utc()).unwrap().unwrap();
        assert_eq!(paused.reason, None);
    }
}
