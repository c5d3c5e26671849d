//! What a file in the spool is: by its name, by its content, and by how reading it failed.

use std::io;

use crate::handoff::{HandOff, Id, VERSION};

use super::store::FILES;

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
    if h.rev > u64::MAX / 2 {
        return Err("its `rev` leaves no room for further writes".into());
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

/// The length of an id as text, bytes: a UUID's.
const ID_LEN: usize = 36;

/// The id that a file's name in a folder says.
pub(super) fn id_of(name: &str) -> Option<Id> {
    let stem = name.strip_suffix(".json")?;
    // There is one way to write an id: else two files could have the same one.
    let is_plain = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    if stem.len() != ID_LEN || !stem.bytes().enumerate().all(is_plain) {
        return None;
    }
    stem.parse().ok()
}
