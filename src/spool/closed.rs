//! What lies in the folders that a start does not read. To list them takes long where there is much, so it is done
//! beside their writer.

use std::io;
use std::path::Path;

use crate::handoff::Id;
use crate::handoff::life::State;

use super::document::id_of;
use super::fs::Fs;
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
}

impl Listed {
    /// Lists the folders of the spool there.
    ///
    /// # Errors
    /// Those of reading them.
    pub fn read(fs: &impl Fs, root: &Path) -> io::Result<Listed> {
        let ids = |state: State| -> io::Result<Vec<Id>> {
            let dir = root.join(state.name());
            let names = fs.list(&dir).on(&dir)?;
            Ok(names.iter().filter_map(|name| id_of(name)).collect())
        };
        let corrupt = root.join(CORRUPT);
        Ok(Listed {
            done: ids(State::Done)?,
            failed: ids(State::Failed)?,
            corrupt: fs.entries(&corrupt).on(&corrupt)?.len(),
        })
    }
}
