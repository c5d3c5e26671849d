//! What a request of a person or a script is to the spooler.

use crate::control::wire::Command;
use crate::error::{Error, Result};
use crate::handoff::{Id, Origin};
use crate::queue::event::Arrival;
use crate::queue::{Event, Incoming, Receipt};

/// The event that carries a request out. Given twice, it is carried out once: a hand-off gets its id here. `None`:
/// the request is not for the spooler.
///
/// # Errors
/// An id in it is none.
pub fn event(command: Command, receipt: Receipt) -> Result<Option<Event>> {
    Ok(Some(match command {
        Command::Send { text, files, .. } if text.trim().is_empty() && files.is_empty() => {
            return Err(
                Error::failed("accepting the hand-off: there is nothing in it").hint("give a text, a file, or both")
            );
        }
        Command::Send { text, files, id } => Event::Accept(Arrival {
            id: id.as_deref().map(whole).transpose()?.unwrap_or_else(Id::now),
            from: Origin::Script,
            text,
            message: None,
            files: files.into_iter().map(Incoming::Copy).collect(),
            receipt,
        }),
        Command::Wait { id } => Event::Wait { id: whole(&id)?, receipt },
        Command::Pause { reason } => Event::Pause { reason, receipt },
        Command::Resume => Event::Resume { receipt },
        Command::Retry { id } => Event::Retry { id: whole(&id)?, receipt },
        Command::Cancel { id } => Event::Cancel { id: whole(&id)?, receipt },
        Command::Prune { ids } => Event::Prune { ids: ids.iter().map(|id| whole(id)).collect::<Result<_>>()?, receipt },
        _ => return Ok(None),
    }))
}

fn whole(id: &str) -> Result<Id> {
    id.parse().map_err(|error| {
        Error::failed(format!("reading the hand-off's id {id:?}: {error}")).hint("give the whole id, as `list` has it")
    })
}
