//! Joins the queue's decisions to the disk: finds what an event is about, has the queue decide, writes what it
//! changed, and only then hands out the effects. Plain calls, one event after the other, for the Queue actor, for
//! commands without a bridge, and for tests.

mod closed;
mod deferred;
mod files;
mod find;
mod pausing;
mod pending;
pub mod request;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::control::wire::{Counts, Paused};
use crate::error::{Error, Result};
use crate::handoff::Id;
use crate::handoff::life::State;
use crate::queue::{Effect, Event, Now, Queue, Receipt, Settings};
use crate::spool::trouble::Explain;
use crate::spool::{Fs, Placed, RealFs, Store, pause, trouble};
use crate::transcript::issued::Issuer;

use closed::Closed;
use deferred::Deferred;
pub use pending::Pending;

/// How the queue stands: what `status` shows of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// How many hand-offs lie in each folder.
    pub counts: Counts,
    /// Whether that is so of the closed ones too: they are counted after the start.
    pub counted: bool,
    /// How long the oldest hand-off has waited to be pushed.
    pub oldest_waiting: Option<Duration>,
    /// How many hand-offs are without a result past the alarm.
    pub alarms: usize,
    /// Whether it is paused.
    pub paused: Option<Paused>,
    /// Whether nothing is under way.
    pub idle: bool,
}

/// What came of some events.
#[derive(Debug, Default)]
pub struct Outcome {
    /// To be carried out, in this order.
    pub effects: Vec<Effect>,
    /// When there will be something to do if nothing happens until then, by [`Now::mono`].
    pub wake_at: Option<Duration>,
    /// How things stand.
    pub snapshot: Snapshot,
}

/// The queue with its disk.
#[derive(Debug)]
pub struct Spooler<F: Fs = RealFs> {
    store: Store<F>,
    queue: Queue,
    /// Effects that are the spooler's own.
    effects: Vec<Effect>,
    deferred: Deferred,
    counts: Counts,
    closed: Closed,
    /// Closed hand-offs that have yet to be looked through for what they were answered by; none: they were not listed.
    unread: Option<VecDeque<Id>>,
}

impl<F: Fs> Spooler<F> {
    /// Recovers the spool and takes in what is open.
    ///
    /// # Errors
    /// The spool cannot be read or mended.
    pub fn open(store: Store<F>, settings: Settings, first_token: u64, now: Now) -> Result<Self> {
        let recovered = store.recover()?;
        let root = store.root().to_owned();
        let paused = pause::read(store.fs(), &root, now.wall).explain("reading whether the relay is paused")?;
        let ended = pause::remembered(store.fs(), &root);
        let mut spooler = Spooler {
            queue: Queue::new(settings, first_token, now),
            store,
            effects: Vec::new(),
            deferred: Deferred::default(),
            counts: Counts::default(),
            closed: Closed::default(),
            unread: None,
        };
        spooler.counts.corrupt = recovered.quarantined.len();
        for found in recovered.quarantined {
            let text = format!("put aside as {}: {}", found.path.display(), found.why);
            spooler.effects.push(Effect::Warn { text, of: None });
        }
        let since = paused.as_ref().map(|paused| paused.since);
        for (h, lies) in recovered.open {
            let waited = Duration::try_from(now.wall - h.waiting_since()).unwrap_or_default();
            let idle = pause::overlap(&ended, since, h.waiting_since(), now.wall);
            *spooler.counter(lies) += 1;
            spooler.queue.restore(h, lies, waited.saturating_sub(idle), now);
        }
        spooler.queue.restore_pause(paused);
        Ok(spooler)
    }

    /// Gives the queue what it makes ids of messages with.
    pub fn set_issuer(&mut self, issuer: Issuer) {
        self.queue.set_issuer(issuer);
    }

    /// Whether nothing can be made ready for the next write.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.store.is_prepared()
    }

    /// Makes it ready.
    pub fn prepare(&self) {
        self.store.prepare();
    }

    /// Whether there is something to do once there is time.
    #[must_use]
    pub fn is_untidy(&self) -> bool {
        self.store.is_untidy()
    }

    /// Does it.
    pub fn tidy(&self) {
        self.store.tidy();
    }

    /// Deals with events in their order.
    pub fn process(&mut self, events: impl IntoIterator<Item = Event>, now: Now) -> Outcome {
        for event in events {
            self.step(event, now);
        }
        Outcome {
            effects: std::mem::take(&mut self.effects),
            wake_at: self.queue.wake_at(now).into_iter().chain(self.deferred.look_again_at()).min(),
            snapshot: self.snapshot(now),
        }
    }

    fn step(&mut self, event: Event, now: Now) {
        let event = match event {
            Event::Pause { reason, receipt } => return self.pause(reason, receipt, now),
            Event::Resume { receipt } => return self.resume(receipt, now),
            Event::Prune { ids, receipt } => return self.prune(&ids, receipt),
            Event::Listed(listed) => return self.listed(listed, now),
            Event::Tick => {
                for reply in self.deferred.due(now) {
                    self.step(Event::Reply(reply), now);
                }
                self.see_pause_file(now);
                self.see_corrupt();
                self.retry_disk(now);
                if !self.closed.counted {
                    self.list_closed();
                }
                Event::Tick
            }
            event => event,
        };
        let subject = match self.look_up(event, now) {
            Some((event, subject)) => {
                self.queue.handle(event, now);
                subject
            }
            None => None,
        };
        self.commit(now);
        if let Some(id) = subject {
            self.queue.release(id);
        }
    }

    /// Writes what the queue changed, and collects the effects.
    fn commit(&mut self, now: Now) {
        let mut made = Vec::new();
        for id in self.queue.unwritten() {
            let Some(entry) = self.queue.entry_mut(id) else { continue };
            let before = entry.lies;
            self.closed.lies(id, before);
            match with_folders(&self.store, &mut made, |store| store.put(&mut entry.h, before)) {
                Ok(Placed(lies)) => {
                    self.moved(id, before, Some(lies));
                    self.queue.written(id, lies, now);
                }
                Err(error) => {
                    self.queue.not_written(id, &trouble::explained(&error), now);
                    if !self.queue.holds(id) {
                        self.store.forget_files(id);
                    }
                }
            }
        }
        self.were_made(&made);
        if !self.queue.unwritten().is_empty() {
            return self.commit(now);
        }
        for mut effect in self.queue.effects() {
            self.drop_lost_files(&mut effect);
            self.effects.push(effect);
        }
    }

    fn retry_disk(&mut self, now: Now) {
        if !self.queue.disk_retry_due(now) {
            return;
        }
        let made = self.store.make_folders();
        self.were_made(made.as_deref().unwrap_or_default());
        if !self.queue.touch_dirty() {
            self.queue.disk_probed(self.store.probe().map_err(|error| trouble::explained(&error)), now);
        }
    }

    /// Does what needs the spool's folders, also where one is gone.
    fn with_folders<T>(&mut self, act: impl FnMut(&Store<F>) -> io::Result<T>) -> io::Result<T> {
        let mut made = Vec::new();
        let done = with_folders(&self.store, &mut made, act);
        self.were_made(&made);
        done
    }

    /// Folders were gone, and are there again: so has to be what lay in them.
    fn were_made(&mut self, made: &[PathBuf]) {
        for path in made {
            let text = format!("a folder of the spool was gone and was made again: {}", path.display());
            self.effects.push(Effect::Warn { text, of: None });
        }
        for state in State::ALL.into_iter().filter(|state| made.iter().any(|path| path.ends_with(state.name()))) {
            self.queue.write_anew(state);
            if !state.is_open() {
                self.list_closed();
            }
        }
    }

    fn prune(&mut self, ids: &[Id], receipt: Receipt) {
        let synced = self.store.check_lock().and_then(|()| self.store.sync_open_folders());
        if let Err(error) = synced.explain("syncing the spool's folders") {
            return self.answer(receipt, Err(error));
        }
        let result = self.delete(ids);
        // One of the same id may be accepted next, which must not meet the old one again after a power cut.
        [State::Done, State::Failed].into_iter().for_each(|state| self.store.sync_folder(state));
        self.answer(receipt, result);
    }

    fn delete(&mut self, ids: &[Id]) -> Result<serde_json::Value> {
        let mut pruned = Vec::new();
        let mut failed = None;
        for id in ids {
            for state in [State::Done, State::Failed] {
                let there = self.store.fs().exists(&self.store.path(state, *id));
                if self.queue.holds(*id) || !there.is_ok_and(|there| there) {
                    continue;
                }
                self.closed.lies(*id, Some(state));
                match self.store.delete(*id, state) {
                    Ok(()) => {
                        self.moved(*id, Some(state), None);
                        pruned.push(*id);
                    }
                    Err(error) => failed = failed.or(Some((*id, error))),
                }
            }
        }
        match failed {
            None => Ok(json!({ "pruned": pruned })),
            Some((id, error)) => {
                Err(trouble::in_part(&error, format_args!("deleting hand-off {id}"), pruned.len(), ids.len()))
            }
        }
    }

    fn answer(&mut self, receipt: Receipt, result: Result<serde_json::Value, Error>) {
        self.effects.push(Effect::Answer(receipt, result));
    }

    /// How things stand.
    #[must_use]
    pub fn snapshot(&self, now: Now) -> Snapshot {
        Snapshot {
            counts: self.counts,
            counted: self.closed.counted,
            oldest_waiting: self.queue.oldest_waiting(now.wall),
            alarms: self.queue.alarms(),
            paused: self.queue.paused().cloned(),
            idle: self.queue.is_idle() && self.deferred.is_empty(),
        }
    }
}

/// Does what needs the spool's folders; where one is gone, they are made again first. Says which those were.
fn with_folders<F: Fs, T>(
    store: &Store<F>,
    made: &mut Vec<PathBuf>,
    mut act: impl FnMut(&Store<F>) -> io::Result<T>,
) -> io::Result<T> {
    match act(store) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            made.extend(store.make_folders()?);
            act(store)
        }
        done => done,
    }
}

#[cfg(test)]
mod tests;
