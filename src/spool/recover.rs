//! Making the spool whole after a stop of any kind.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use crate::error::{Advise, During, Error, Result};
use crate::handoff::life::State;
use crate::handoff::{HandOff, Id};

use super::document::{id_of, is_its_own_fault, parse};
use super::fs::Fs;
use super::store::{CORRUPT, MEND, Placed, Store, TMP};

/// The longest name, in bytes, that is kept in `corrupt/`: file systems take 255, and a number may come with it.
pub(crate) const MAX_CORRUPT_NAME: usize = 240;

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

impl<F: Fs> Store<F> {
    /// Makes the spool whole after a stop of any kind: puts aside what cannot be read, deletes the
    /// older of two copies, moves each hand-off where its content says. Does not look through `done/` and `failed/`.
    ///
    /// # Errors
    /// The disk cannot be read or written; nothing is lost.
    pub fn recover(&self) -> Result<Recovered> {
        let mut quarantined = Vec::new();
        let mut found = BTreeMap::new();
        for state in State::ALL.into_iter().filter(|state| state.is_open()) {
            let dir = self.dir(state.name());
            for name in self.fs().entries(&dir).during(format_args!("reading {}", dir.display())).advise(MEND)? {
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
        if !quarantined.is_empty() {
            self.sync(&self.dir(CORRUPT));
        }
        // What a stopped process left is in memory from here on, and may be promised: so it has to be durable.
        State::ALL.into_iter().for_each(|state| self.sync_folder(state));
        self.sync(self.root());
        open.sort_by_key(|(h, _)| (h.created, h.id));
        Ok(Recovered { open, quarantined })
    }

    /// Moves a hand-off where it belongs, and deletes the older of it and a closed copy. Returns where it lies if
    /// there is something left to do with it.
    fn put_right(&self, h: &HandOff, lies: State) -> Result<Option<State>> {
        for state in State::ALL.into_iter().filter(|state| !state.is_open()) {
            let twin = match self.load(h.id, &[state]) {
                Err(error) if is_its_own_fault(&error) => None,
                loaded => loaded.during(format_args!("reading another copy of {}", h.id))?,
            };
            let Some((twin, _)) = twin else { continue };
            let older = if twin.rev >= h.rev { lies } else { state };
            self.fs().remove(&self.path(older, h.id)).during(format_args!("removing an older copy of {}", h.id))?;
            if older == lies {
                return Ok(None);
            }
        }
        let belongs = h.state();
        let Placed(lies) = if lies == belongs { Placed(lies) } else { self.settle(h.id, lies, lies, belongs) };
        Ok(lies.is_open().then_some(lies))
    }

    /// Empties `tmp/`, once a process has the lock. Not when its queue is started again: files that were fetched
    /// wait there for it.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub fn sweep(&self) -> Result<()> {
        let dir = self.dir(TMP);
        for name in self.fs().entries(&dir).during(format_args!("reading {}", dir.display())).advise(MEND)? {
            let path = dir.join(&name);
            let Err(error) = self.fs().remove(&path) else { continue };
            // A process that ends may have removed its own by now.
            if error.kind() != io::ErrorKind::NotFound {
                self.fs().remove_dir(&path).during(format_args!("removing {}", path.display())).advise(MEND)?;
            }
        }
        Ok(())
    }

    /// Reads one entry of a folder: the hand-off, or what is wrong with it.
    fn read_entry(&self, state: State, name: &OsStr) -> Result<std::result::Result<HandOff, String>> {
        let path = self.dir(state.name()).join(name);
        let Some(id) = name.to_str().and_then(id_of) else {
            return Ok(Err("its name is not that of a hand-off, <id>.json".into()));
        };
        match self.fs().read(&path) {
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
        self.fs().remove(&self.path(lies, id)).during(format_args!("removing an older copy of {id}"))
    }

    fn quarantine(&self, state: State, name: &OsStr, why: String) -> Result<Quarantined> {
        let from = self.dir(state.name()).join(name);
        // A name that leaves no room for a number gets another.
        let name = if name.len() > MAX_CORRUPT_NAME { OsString::from(Id::now().to_string()) } else { name.to_owned() };
        let mut to = self.dir(CORRUPT).join(&name);
        let mut n = 0;
        let doing = format!("putting {} aside", from.display());
        while self.fs().exists(&to).during(&doing).advise(MEND)? {
            n += 1;
            let mut numbered = name.clone();
            numbered.push(format!(".{n}"));
            to = self.dir(CORRUPT).join(numbered);
        }
        self.fs().rename(&from, &to).during(&doing).advise(MEND)?;
        Ok(Quarantined { path: to, why })
    }
}
