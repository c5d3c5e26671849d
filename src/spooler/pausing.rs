//! The pause, begun and ended by a request or by hand.

use serde_json::json;

use crate::control::wire::Paused;
use crate::queue::{Event, Now, Receipt};
use crate::spool::trouble::Explain;
use crate::spool::{Fs, pause};

use super::Spooler;

impl<F: Fs> Spooler<F> {
    pub(super) fn pause(&mut self, reason: Option<String>, receipt: Receipt, now: Now) {
        let before = self.queue.paused().cloned();
        let since = before.as_ref().map_or(now.wall, |paused| paused.since);
        let paused = Paused { since, reason: reason.or(before.and_then(|paused| paused.reason)) };
        let result = self.with_folders(|store| store.pause(&paused)).explain("pausing");
        if result.is_ok() {
            self.queue.set_paused(Some(paused), now);
            self.queue.handle(Event::Tick, now);
        }
        let waiting = self.queue.waiting();
        self.answer(receipt, result.map(|()| json!({ "waiting": waiting })));
        self.commit(now);
    }

    pub(super) fn resume(&mut self, receipt: Receipt, now: Now) {
        let result = match self.queue.paused().cloned() {
            Some(paused) => self.with_folders(|store| store.resume(&paused, now.wall)).explain("resuming"),
            None => Ok(()),
        };
        let waiting = self.queue.waiting();
        if result.is_ok() {
            self.queue.set_paused(None, now);
            self.queue.handle(Event::Tick, now);
        }
        self.answer(receipt, result.map(|()| json!({ "waiting": waiting })));
        self.commit(now);
    }

    /// A person may also make or remove the file by hand.
    pub(super) fn see_pause_file(&mut self, now: Now) {
        let there = self.store.check_lock().and_then(|()| self.store.fs().exists(&pause::file(self.store.root())));
        if !there.is_ok_and(|there| there != self.queue.paused().is_some()) {
            return;
        }
        let Ok(paused) = pause::read(self.store.fs(), self.store.root(), now.wall) else { return };
        if let (Some(before), None) = (self.queue.paused(), &paused)
            && let Err(error) = self.store.remember(before, now.wall)
        {
            tracing::warn!(%error, "remembering the pause that ended");
        }
        self.queue.set_paused(paused, now);
    }
}
