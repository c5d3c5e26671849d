//! How many closed hand-offs there are, and their ids. Both are found out on another thread, while this one goes on
//! moving hand-offs in and out: of those the listing is not believed, for only this one knows.

use std::collections::BTreeMap;
use std::io;
use std::time::SystemTime;

use crate::control::wire::Counts;
use crate::error::Result;
use crate::handoff::Id;
use crate::handoff::life::State;
use crate::queue::{Effect, Event, Now};
use crate::spool::closed::Listed;
use crate::spool::trouble::On;
use crate::spool::{Fs, trouble};

use super::Spooler;

/// What is known of the closed folders.
#[derive(Clone, Debug, Default)]
pub(super) struct Closed {
    /// Whether what lies in them is counted.
    pub counted: bool,
    /// The ids in them, one a line, once they were asked for.
    names: Option<String>,
    /// Whether they were.
    names_wanted: bool,
    /// When `corrupt/` had last changed before it was counted.
    corrupt_changed: Option<SystemTime>,
    /// The highest of them, as far as they are counted.
    newest: Option<Id>,
    /// While they are listed: what was written or deleted meanwhile, and where it lies now.
    moved: Option<BTreeMap<Id, Option<State>>>,
}

impl Closed {
    /// The ids, one a line. None: they have to be listed first.
    pub fn names(&mut self) -> Option<&str> {
        self.names_wanted = true;
        self.names.as_deref()
    }

    /// Whether it is newer than all of them, so that there is no need to look for it. Ids begin with the time.
    pub fn are_older_than(&self, id: Id) -> bool {
        self.counted && self.newest.is_none_or(|newest| newest < id)
    }

    /// A hand-off is about to be written or deleted there, or was, or was moved there.
    pub fn lies(&mut self, id: Id, at: Option<State>) {
        if let Some(moved) = &mut self.moved {
            moved.insert(id, at);
        }
    }

    fn came(&mut self, id: Id) {
        self.newest = self.newest.max(Some(id));
        if let Some(names) = &mut self.names {
            names.push_str(&format!("{id}\n"));
        }
    }

    /// The ids in both, as they are now.
    fn all(listed: Listed, moved: &BTreeMap<Id, Option<State>>) -> [(State, Vec<Id>); 2] {
        [(State::Done, listed.done), (State::Failed, listed.failed)].map(|(state, mut ids)| {
            ids.retain(|id| !moved.contains_key(id));
            ids.extend(moved.iter().filter(|(_, lies)| **lies == Some(state)).map(|(id, _)| *id));
            (state, ids)
        })
    }
}

impl<F: Fs> Spooler<F> {
    /// Has the closed folders listed, unless they are being listed.
    pub(super) fn list_closed(&mut self) {
        if self.closed.moved.is_none() {
            self.closed.moved = Some(BTreeMap::new());
            self.effects.push(Effect::List);
        }
    }

    /// Counts again what lies in `corrupt/`, if that has changed: others put things there too.
    pub(super) fn see_corrupt(&mut self) {
        let changed = self.store.corrupt_changed();
        if !self.closed.counted || changed == self.closed.corrupt_changed {
            return;
        }
        match self.store.count_corrupt() {
            Ok(count) => (self.counts.corrupt, self.closed.corrupt_changed) = (count, changed),
            Err(error) => tracing::debug!(%error, "counting what was put aside"),
        }
    }

    /// They were listed.
    pub(super) fn listed(&mut self, listed: Result<Listed>, now: Now) {
        let Some(moved) = self.closed.moved.take() else { return };
        match listed.and_then(|listed| self.listed_whole(listed)) {
            // They are listed once more.
            Ok(None) => return,
            Ok(Some(listed)) => {
                self.deferred.readable(None);
                self.counts.corrupt = listed.corrupt;
                let all = Closed::all(listed, &moved);
                for (state, ids) in &all {
                    *self.counter(*state) = ids.len();
                    self.closed.newest = self.closed.newest.max(ids.iter().max().copied());
                }
                self.closed.counted = true;
                if self.closed.names_wanted {
                    let ids = all.iter().flat_map(|(_, ids)| ids);
                    self.closed.names = Some(ids.map(|id| format!("{id}\n")).collect());
                }
            }
            Err(error) => {
                tracing::warn!(%error, "listing what is closed; it is tried again");
                if self.deferred.wait_for_listing() {
                    self.cannot_be_read(&error, None, now);
                }
            }
        }
        if self.deferred.wait_for_listing() {
            for reply in self.deferred.take() {
                self.step(Event::Reply(reply), now);
            }
        }
    }

    /// Whether all folders were there. Those that are gone are made again, and all are listed once more.
    fn listed_whole(&mut self, listed: Listed) -> Result<Option<Listed>> {
        let Some(gone) = &listed.gone else { return Ok(Some(listed)) };
        let made = self.store.make_folders().map_err(|error| trouble::explained(&error))?;
        self.were_made(&made);
        if !made.contains(gone) {
            // It was away only, or it leads nowhere.
            let error = Err::<(), _>(io::Error::from(io::ErrorKind::NotFound)).on(gone);
            error.map_err(|error| trouble::explained(&error))?;
        }
        self.list_closed();
        Ok(None)
    }

    /// A hand-off was written, or deleted (`after: None`).
    pub(super) fn moved(&mut self, id: Id, before: Option<State>, after: Option<State>) {
        self.closed.lies(id, after);
        if before == after {
            return;
        }
        match after {
            Some(state) if !state.is_open() => self.closed.came(id),
            // They are listed again where they are asked for.
            None => self.closed.names = None,
            Some(_) => {}
        }
        for (state, up) in before.map(|state| (state, false)).into_iter().chain(after.map(|state| (state, true))) {
            if state.is_open() || self.closed.counted {
                let n = self.counter(state);
                *n = if up { *n + 1 } else { n.saturating_sub(1) };
            }
        }
    }

    pub(super) fn counter(&mut self, state: State) -> &mut usize {
        let Counts { new, brain, out, done, failed, .. } = &mut self.counts;
        match state {
            State::New => new,
            State::Brain => brain,
            State::Out => out,
            State::Done => done,
            State::Failed => failed,
        }
    }
}
