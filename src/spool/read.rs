//! Reading the spool beside its writer, without the lock: what `list`, `show` and a `status` without a bridge do.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use crate::control::wire::Counts;
use crate::error::{Advise, During, Error, Result};
use crate::handoff::life::State;
use crate::handoff::{HandOff, Id};

use super::document::id_of;
use super::fs::{Fs, RealFs};
use super::store::{CORRUPT, Store};

/// What to do where it cannot be read.
const MEND: &str = "look at what lies there; `anna-relay check` says where `paths.state` is";

/// The spool as a reader sees it.
#[derive(Debug)]
pub struct Reader {
    store: Store,
}

impl Reader {
    /// A reader of the spool there; that there is none yet is an empty one.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Reader { store: Store::on(root, RealFs) }
    }

    /// The ids in these folders, the newest first.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn ids(&self, states: &[State]) -> Result<Vec<Id>> {
        Ok(self.places(states)?.into_iter().map(|(id, _)| id).collect())
    }

    /// The same, each with the folder where it was seen.
    ///
    /// # Errors
    /// Those of [`Reader::ids`].
    pub fn places(&self, states: &[State]) -> Result<Vec<(Id, State)>> {
        let mut places = Vec::new();
        for state in states {
            let ids = none_if_missing(self.store.ids(*state)).during("reading the spool").advise(MEND)?;
            places.extend(ids.into_iter().map(|id| (id, *state)));
        }
        places.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        places.dedup_by_key(|(id, _)| *id);
        Ok(places)
    }

    /// The hand-off of that id with the folder it lies in. One that is moved meanwhile is looked for again.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn load(&self, id: Id) -> Result<Option<(HandOff, State)>> {
        for _ in 0..3 {
            let found = self.load_among(id, &State::ALL)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The same, of one that was seen in that folder.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn load_at(&self, id: Id, seen: State) -> Result<Option<(HandOff, State)>> {
        match self.load_among(id, &[seen])? {
            None => self.load(id),
            found => Ok(found),
        }
    }

    fn load_among(&self, id: Id, among: &[State]) -> Result<Option<(HandOff, State)>> {
        self.store.load(id, among).during(format_args!("reading hand-off {id}")).advise(MEND)
    }

    /// The one hand-off that a person means by `part`: its whole id, or a unique prefix or suffix of 4 characters
    /// or more.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn resolve(&self, part: &str) -> Result<Id> {
        let hint = "`anna-relay list --all` shows them";
        if let Ok(id) = part.parse::<Id>() {
            return match self.load(id)? {
                Some(_) => Ok(id),
                None => Err(Error::failed(format!("finding hand-off {id}: there is none of that id")).hint(hint)),
            };
        }
        if part.len() < 4 {
            return Err(Error::failed(format!("finding hand-off {part:?}: that is too short"))
                .hint("give its id, or 4 or more characters of its start or end"));
        }
        let matching: Vec<Id> = self.ids(&State::ALL)?.into_iter().filter(|id| id.has_end(part)).collect();
        match matching[..] {
            [id] => Ok(id),
            [] => Err(Error::failed(format!("finding hand-off {part:?}: none starts or ends so")).hint(hint)),
            _ => Err(Error::failed(format!("finding hand-off {part:?}: {} start or end so", matching.len()))
                .hint("give more characters of it; the last ones differ most")),
        }
    }

    /// How many hand-offs lie in each folder.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn counts(&self) -> Result<Counts> {
        let count = |folder: &str, only_hand_offs: bool| -> Result<usize> {
            let dir = self.store.root().join(folder);
            let names =
                none_if_missing(RealFs.entries(&dir)).during(format_args!("reading {}", dir.display())).advise(MEND)?;
            let is_hand_off = |name: &OsString| name.to_str().and_then(id_of).is_some();
            Ok(names.iter().filter(|name| !only_hand_offs || is_hand_off(name)).count())
        };
        Ok(Counts {
            new: count(State::New.name(), true)?,
            brain: count(State::Brain.name(), true)?,
            out: count(State::Out.name(), true)?,
            done: count(State::Done.name(), true)?,
            failed: count(State::Failed.name(), true)?,
            corrupt: count(CORRUPT, false)?,
        })
    }
}

fn none_if_missing<T>(result: io::Result<Vec<T>>) -> io::Result<Vec<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    }
}
