//! What lies in the folders that a start does not read. To list them takes long where there is much, so it is done
//! beside their writer.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::handoff::Id;
use crate::handoff::life::State;

use super::document::id_of;
use super::fs::Fs;
use super::lock::Place;
use super::store::CORRUPT;
use super::trouble::On;

/// What was found there. Of what came or went meanwhile it says nothing.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The hand-offs in `done/`.
    pub done: Vec<Id>,
    /// Those in `failed/`.
    pub failed: Vec<Id>,
    /// How many things lie in `corrupt/`.
    pub corrupt: usize,
    /// A folder that was not there: what it held is not known.
    pub gone: Option<PathBuf>,
}

impl Listed {
    /// Lists the folders of the spool there, if it is the one with that lock all the while.
    ///
    /// # Errors
    /// It is not, and those of reading them.
    pub fn read(fs: &impl Fs, root: &Path, lock: Option<Place>) -> io::Result<Listed> {
        let check = || lock.map_or(Ok(()), |lock| lock.check(root));
        check()?;
        let mut gone = None;
        let mut list = |folder: &str| {
            let dir = root.join(folder);
            match fs.entries(&dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    gone = Some(dir);
                    Ok(Vec::new())
                }
                listed => listed.on(&dir),
            }
        };
        let (done, failed) = (list(State::Done.name())?, list(State::Failed.name())?);
        let corrupt = list(CORRUPT)?.len();
        check()?;
        let ids = |names: Vec<OsString>| names.iter().filter_map(|name| id_of(name.to_str()?)).collect();
        Ok(Listed { done: ids(done), failed: ids(failed), corrupt, gone })
    }
}
