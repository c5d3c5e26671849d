//! The Witness's look at the disk, on a thread that may wait for it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use time::OffsetDateTime;

use crate::config::Side;
use crate::error::{During, Result};
use crate::inbox::{self, Listing};
use crate::port::registry;
use crate::queue::event::Sighted;
use crate::receipts::Receipts;
use crate::spool::lock::Place;
use crate::spool::store::Store;
use crate::stream::Stream;
use crate::transcript::locate;

use super::super::wires::Live;

/// What a look found.
pub(super) struct Found {
    pub(super) receipts: Receipts,
    /// None: the spool is not ours now.
    pub(super) seen: Option<Seen>,
}

/// What was seen in our spool.
pub(super) struct Seen {
    pub(super) store: Arc<Store>,
    pub(super) listing: Listing,
    /// Whether there is more to read in the transcripts.
    pub(super) more: bool,
}

/// What a look goes by.
pub(super) struct Look {
    pub(super) spool: PathBuf,
    pub(super) lock: Place,
    /// The spool, once it was ours.
    pub(super) store: Option<Arc<Store>>,
    pub(super) live: [Option<Live>; 2],
    pub(super) now: OffsetDateTime,
    pub(super) untold: Arc<Mutex<Vec<Sighted>>>,
    pub(super) stream: Stream,
}

impl Look {
    /// Looks at the transcripts and into the inbox, if the spool is the one that is locked.
    pub(super) fn find(self, mut receipts: Receipts) -> Found {
        let seen = self.see(&mut receipts);
        let seen = seen.inspect_err(|error| tracing::debug!(%error, "looking at the spool")).ok();
        Found { receipts, seen }
    }

    fn see(&self, receipts: &mut Receipts) -> Result<Seen> {
        let ours = |store: &Store| store.check_lock().during("looking at the lock");
        let store = if let Some(store) = &self.store {
            ours(store)?;
            Arc::clone(store)
        } else {
            let store = Store::open_locked(&self.spool, self.lock)?;
            // Those before may be another's.
            *receipts = Receipts::open(&self.spool);
            Arc::new(store)
        };
        let more = self.read(&store, receipts);
        if let Some(since) = inbox::overflow(store.root()).ok().flatten() {
            if let Err(error) = inbox::clear_overflow(&store) {
                tracing::warn!(%error, "clearing the mark of a full inbox");
            }
            self.stream.warn(&format!("the inbox was full: what was said after {since} may be lost"));
        }
        let listing = inbox::list(&store);
        // Here, for the Witness may fall meanwhile.
        for aside in &listing.put_aside {
            self.stream.warn(&format!("put aside as {}: {}", aside.path.display(), aside.why));
        }
        // What was read may be another's.
        ours(&store)?;
        Ok(Seen { store, listing, more })
    }

    /// Reads the transcripts. Whether there is more to read at once.
    fn read(&self, store: &Store, receipts: &mut Receipts) -> bool {
        for (side, live) in Side::BOTH.into_iter().zip(&self.live) {
            let Some(live) = live else { continue };
            let transcript = || locate::find(&registry::claude_folder()?, &live.cwd, &live.session_id);
            receipts.registered(side, &live.session_id, transcript, self.now);
        }
        let mut sighted = Vec::new();
        let more = receipts.poll(|side, sighting, new| {
            let (message, bytes) = (sighting.message_id, sighting.text_len);
            sighted.push(Sighted { side, message, at: sighting.at.unwrap_or(self.now), bytes, new, of: None });
        });
        // Before it is kept how far they were read: a Witness that falls meanwhile leaves it to the next one to tell.
        self.untold.lock().unwrap_or_else(PoisonError::into_inner).append(&mut sighted);
        if let Err(error) = store.check_lock().and_then(|()| receipts.save()) {
            tracing::debug!(%error, "keeping how far the transcripts were read");
        }
        more
    }
}
