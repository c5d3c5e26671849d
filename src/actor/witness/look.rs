//! The Witness's look at the disk, on a thread that may wait for it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use time::OffsetDateTime;

use crate::config::Side;
use crate::error::Result;
use crate::inbox::{self, Listing};
use crate::port::registry;
use crate::queue::event::Sighted;
use crate::receipts::Receipts;
use crate::transcript::locate;

use super::super::wires::Live;

/// What a look found.
pub(super) struct Found {
    pub(super) receipts: Receipts,
    pub(super) listing: Result<Listing>,
    pub(super) dropped_since: Option<OffsetDateTime>,
    pub(super) more: bool,
}

/// Looks at the transcripts and into the inbox.
pub(super) fn find(
    mut receipts: Receipts,
    spool: &Path,
    live: &[Option<Live>; 2],
    now: OffsetDateTime,
    untold: &Mutex<Vec<Sighted>>,
) -> Found {
    for (side, live) in Side::BOTH.into_iter().zip(live) {
        let Some(live) = live else { continue };
        let transcript = || locate::find(&registry::claude_folder()?, &live.cwd, &live.session_id);
        receipts.registered(side, &live.session_id, transcript, now);
    }
    let mut sighted = Vec::new();
    let more = receipts.poll(|side, sighting, new| {
        let (message, bytes) = (sighting.message_id, sighting.text_len);
        sighted.push(Sighted { side, message, at: sighting.at.unwrap_or(now), bytes, new, of: None });
    });
    // Before it is kept how far they were read: a Witness that falls meanwhile leaves it to the next one to tell.
    untold.lock().unwrap_or_else(PoisonError::into_inner).append(&mut sighted);
    if let Err(error) = receipts.save() {
        tracing::debug!(%error, "keeping how far the transcripts were read");
    }
    let dropped_since = inbox::overflow(spool).ok().flatten();
    if dropped_since.is_some()
        && let Err(error) = inbox::clear_overflow(spool)
    {
        tracing::warn!(%error, "clearing the mark of a full inbox");
    }
    Found { receipts, listing: inbox::list(spool), dropped_since, more }
}
