//! The thread that works on the spool, for it may have to wait for the disk: it deals with one event after the other,
//! and has the Queue carry out what comes of each as soon as that is on disk.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::prelude::*;

use crate::config::Config;
use crate::error::{During, Error, Result};
use crate::queue::{Effect, Event, Settings};
use crate::spool::Store;
use crate::spool::lock::Place;
use crate::spooler::{Outcome, Pending, Snapshot, Spooler};
use crate::stream::Stream;
use crate::transcript::issued::{self, Issuer};

use super::super::wires::{Clock, Wires};
use super::Queue;

/// So many effects are handed over at once at most, where nobody waits for one of them.
const BUNDLE: usize = 64;

/// How old may be what the Queue shows of how things stand.
const STALE: Duration = Duration::from_millis(100);

/// After so long without an event there is time to make the next write ready: what the last one was for is posted.
const LULL: Duration = Duration::from_micros(500);

/// After so long without an event there is time to tidy up.
const REST: Duration = Duration::from_millis(250);

/// From the worker to its Queue.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) enum Word {
    /// The spool is recovered, and stands like this.
    Recovered(Snapshot),
    /// It cannot be, or there is no thread to do it.
    Unusable(Error),
    /// Carry these out.
    Do(Vec<Effect>),
    /// Carry these out; what was decided so far is done, and so things stand.
    Done(Vec<Effect>, Snapshot),
    /// Nothing is under way or waits, and nothing is begun any more.
    Drained,
    /// The worker has panicked.
    Fell,
}

/// Starts a worker, which ends when its inbox is dropped.
///
/// # Errors
/// There is no thread to be had.
pub(super) fn start(wires: &Wires, queue: Addr<Queue>) -> Result<Sender<Event>> {
    let (to, inbox) = mpsc::channel();
    let (config, number) = (wires.config(), wires.token_range());
    let mut worker = Worker {
        inbox,
        queue,
        owner: Arc::clone(&wires.spool),
        lock: wires.lock,
        number,
        clock: wires.clock(),
        stream: wires.stream.clone(),
        pending: Pending::default(),
        drain_asked: false,
        effects: Vec::new(),
        shown: Snapshot::default(),
        shown_at: Duration::ZERO,
    };
    std::thread::Builder::new()
        .name("spool".to_owned())
        .spawn(move || worker.run(&config))
        .during("starting the spool's thread")?;
    Ok(to)
}

struct Worker {
    inbox: Receiver<Event>,
    queue: Addr<Queue>,
    lock: Place,
    /// Held by whoever works on the spool, with the number of the worker whose it is.
    owner: Arc<Mutex<u64>>,
    /// Tells it from its predecessors; its first push token.
    number: u64,
    clock: Clock,
    stream: Stream,
    pending: Pending,
    /// Whether the bridge stops, and waits to hear that nothing is under way.
    drain_asked: bool,
    /// Not handed over yet.
    effects: Vec<Effect>,
    /// How things stood when that was last handed over, and when that was.
    shown: Snapshot,
    shown_at: Duration,
}

impl Worker {
    fn run(&mut self, config: &Config) {
        let owner = Arc::clone(&self.owner);
        let opened = {
            let mut owner = owner.lock().unwrap_or_else(PoisonError::into_inner);
            *owner = self.number;
            self.open(config)
        };
        let mut spooler = match opened {
            Ok(spooler) => spooler,
            Err(error) => return self.queue.do_send(Word::Unusable(error)),
        };
        self.shown = spooler.snapshot(self.clock.now());
        self.queue.do_send(Word::Recovered(self.shown.clone()));
        let mut wake_at = None;
        while let Some(event) = self.next(wake_at, &spooler) {
            let owner = owner.lock().unwrap_or_else(PoisonError::into_inner);
            if *owner != self.number {
                // The Queue has fallen, and its successor's worker has read the spool.
                return;
            }
            self.drain_asked |= matches!(event, Event::Drain);
            let outcome = spooler.process([event], self.clock.now());
            drop(owner);
            wake_at = outcome.wake_at;
            self.hand_over(outcome);
        }
    }

    fn open(&self, config: &Config) -> Result<Spooler> {
        let root = config.paths.spool();
        // First of all: nothing is written into a spool that is another's.
        let store = Store::open_locked(&root, self.lock)?;
        let issuer = Issuer::open(&root).during(format_args!("reading {}", root.join(issued::FILE).display()))?;
        let mut spooler = Spooler::open(store, Settings::from(config), self.number, self.clock.now())?;
        spooler.set_issuer(issuer);
        Ok(spooler)
    }

    /// Waits for the next event; none: the Queue is gone.
    fn next(&mut self, wake_at: Option<Duration>, spooler: &Spooler) -> Option<Event> {
        loop {
            self.pending.extend(self.inbox.try_iter(), self.clock.now());
            if let Some(event) = self.pending.next(wake_at, self.clock.now()) {
                return Some(event);
            }
            let wait = wake_at.map(|at| at.saturating_sub(self.clock.now().mono));
            let chore = match (spooler.is_prepared(), spooler.is_untidy()) {
                (false, _) => Some(LULL),
                (true, untidy) => untidy.then_some(REST),
            };
            let chore = chore.filter(|after| wait.is_none_or(|wait| wait > *after));
            let came = match chore.or(wait) {
                Some(wait) => self.inbox.recv_timeout(wait),
                None => self.inbox.recv().map_err(RecvTimeoutError::from),
            };
            match came {
                Ok(event) => self.pending.extend([event], self.clock.now()),
                Err(RecvTimeoutError::Timeout) if chore.is_none() => {}
                Err(RecvTimeoutError::Timeout) if spooler.is_prepared() => spooler.tidy(),
                Err(RecvTimeoutError::Timeout) => spooler.prepare(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Has the Queue carry out what came of an event: pushes and what somebody waits for at once, the rest together with
    /// that of the events that wait. What there is to say of it goes into the stream before anybody hears that it was done.
    fn hand_over(&mut self, outcome: Outcome) {
        let Outcome { effects, snapshot, .. } = outcome;
        let (pushes, rest): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Push { .. }));
        if !pushes.is_empty() {
            self.queue.do_send(Word::Do(pushes));
        }
        for effect in rest {
            match effect {
                Effect::Note { .. } | Effect::Warn { .. } => self.stream.record(&effect),
                effect => self.effects.push(effect),
            }
        }
        let at = self.clock.now().mono;
        let drained = self.drain_asked && snapshot.idle && self.pending.is_empty();
        let now = drained || self.effects.iter().any(|effect| matches!(effect, Effect::Answer(..)));
        let rested =
            self.pending.is_empty() || self.effects.len() >= BUNDLE || at.saturating_sub(self.shown_at) >= STALE;
        if now || rested && (!self.effects.is_empty() || snapshot != self.shown) {
            (self.shown, self.shown_at) = (snapshot.clone(), at);
            self.queue.do_send(Word::Done(std::mem::take(&mut self.effects), snapshot));
            if drained {
                self.drain_asked = false;
                self.queue.do_send(Word::Drained);
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.queue.do_send(Word::Fell);
        }
    }
}
