//! The Queue: gives events to the `worker`, which decides and writes, and carries out what comes back.

mod worker;

use std::rc::Rc;
use std::sync::mpsc;
use std::time::SystemTime;

use actix::prelude::*;

use crate::config::{Config, Side};
use crate::message::{Ping, Reload, ToControl, ToQueue, ToSide, ToSupervisor};
use crate::queue::{Effect, Event, Receipt};
use crate::spool::closed::Listed;
use crate::spool::store::CORRUPT;
use crate::spool::{Fs, RealFs, pause, trouble};
use crate::spooler::Snapshot;

use super::wires::Wires;
use worker::Word;

#[cfg(debug_assertions)]
use crate::message::Fault;

/// The actor's name.
pub const NAME: &str = "queue";
/// At every so-manieth ping it looks at the disk with nothing else to do there: each time wakes a thread.
const TICK_EVERY: u32 = 8;

/// The actor.
pub struct Queue {
    wires: Rc<Wires>,
    /// The worker's inbox; none before it is started.
    worker: Option<mpsc::Sender<Event>>,
    pings: u32,
    /// Nothing was open when it was last pinged.
    rests: bool,
    /// When something was last seen to be put aside.
    put_aside_at: Option<SystemTime>,
}

impl Queue {
    /// A queue that recovers the spool as soon as it is started.
    #[must_use]
    pub fn new(wires: Rc<Wires>) -> Self {
        Queue { wires, worker: None, pings: 0, rests: false, put_aside_at: None }
    }

    /// Gives an event to the worker. One that has fallen says so itself.
    fn give(&self, event: Event) {
        if let Some(worker) = &self.worker {
            drop(worker.send(event));
        }
    }

    fn recovered(&self, snapshot: Snapshot) {
        self.show(snapshot);
        self.wires.supervisor.send(ToSupervisor::Recovered);
        self.give(Event::Tick);
        for (number, text) in &*self.wires.notices.borrow() {
            self.give(Event::Notify { text: text.clone(), receipt: Receipt::Notice(*number) });
        }
    }

    /// Whether nothing is open, and nothing under way.
    fn is_empty(&self) -> bool {
        let snapshot = &self.wires.board.borrow().queue;
        let counts = &snapshot.counts;
        snapshot.idle && snapshot.counted && counts.new + counts.brain + counts.out == 0
    }

    /// Looks for what a person made or removed.
    fn look(&mut self) {
        if self.pause_file_has_news() || self.corrupt_has_news() {
            self.give(Event::Tick);
        }
    }

    /// Whether a person made or removed the file that pauses.
    fn pause_file_has_news(&self) -> bool {
        let there = pause::file(&self.wires.config().paths.spool()).symlink_metadata().is_ok();
        there != self.wires.board.borrow().queue.paused.is_some()
    }

    /// Whether something was put aside, or taken from there.
    fn corrupt_has_news(&mut self) -> bool {
        let changed = RealFs.changed(&self.wires.config().paths.spool().join(CORRUPT));
        std::mem::replace(&mut self.put_aside_at, changed) != changed
    }

    /// Lists what is closed, on a thread of its own: all else goes on meanwhile.
    fn list(&self) {
        let Some(worker) = self.worker.clone() else { return };
        let (root, lock) = (self.wires.config().paths.spool(), self.wires.lock);
        let listing = std::thread::Builder::new().name("listing".to_owned()).spawn(move || {
            let listed = Listed::read(&RealFs, &root, Some(lock)).map_err(|error| trouble::explained(&error));
            drop(worker.send(Event::Listed(listed)));
        });
        if let Err(error) = listing {
            self.give(Event::Listed(Err(trouble::explained(&error))));
        }
    }

    fn show(&self, snapshot: Snapshot) {
        let mut board = self.wires.board.borrow_mut();
        (board.queue, board.queue_at) = (snapshot, self.wires.now().mono);
        drop(board);
        if self.rests && !self.is_empty() {
            // The worker had it already when all looked quiet.
            self.wires.supervisor.send(ToSupervisor::Stir);
        }
    }

    fn done(&self, effects: Vec<Effect>, snapshot: Snapshot) {
        self.show(snapshot);
        effects.into_iter().for_each(|effect| self.carry_out(effect));
    }

    fn carry_out(&self, effect: Effect) {
        match effect {
            Effect::Push { side, token, behind, uploads } => {
                self.wires.side(side).send(ToSide::Push { token, behind, uploads });
            }
            Effect::Withdraw { side, token } => self.wires.side(side).send(ToSide::Withdraw(token)),
            Effect::Done(receipt) => self.wires.done(receipt),
            Effect::List => self.list(),
            Effect::Answer(Receipt::Request(request), result) => {
                self.wires.control.send(ToControl::Answer(request, result));
            }
            // What is said of it the worker has said.
            Effect::Answer(..) | Effect::Note { .. } | Effect::Warn { .. } => {}
        }
    }
}

impl Actor for Queue {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        match worker::start(&self.wires, ctx.address()) {
            Ok(inbox) => {
                self.worker = Some(inbox);
                // Before it hears that a side is there, and pushes.
                if self.wires.stopping.get() {
                    self.give(Event::Drain);
                }
            }
            // Not from here: an actor that stops while it is started spins.
            Err(error) => ctx.notify(Word::Unusable(error)),
        }
    }
}

impl Handler<Word> for Queue {
    type Result = ();

    fn handle(&mut self, word: Word, ctx: &mut Self::Context) {
        match word {
            Word::Recovered(snapshot) => self.recovered(snapshot),
            Word::Do(effects) => effects.into_iter().for_each(|effect| self.carry_out(effect)),
            Word::Done(effects, snapshot) => self.done(effects, snapshot),
            Word::Drained => self.wires.supervisor.send(ToSupervisor::Drained),
            Word::Unusable(error) => {
                self.wires.stream.warn(&format!("the spool cannot be used: {}", error.with_advice()));
                tracing::error!(%error, "recovering the spool");
                ctx.stop();
            }
            // It panicked; the next Queue reads the truth from the disk.
            Word::Fell => ctx.stop(),
        }
    }
}

impl Handler<ToQueue> for Queue {
    type Result = ();

    fn handle(&mut self, ToQueue(event): ToQueue, _: &mut Self::Context) {
        let pushed_to = match event {
            Event::Accept(_) => Some(Side::Brain),
            Event::Reply(_) => Some(Side::Bot),
            _ => None,
        };
        if std::mem::take(&mut self.rests) {
            self.wires.supervisor.send(ToSupervisor::Stir);
            // The last look was long ago.
            self.look();
        }
        self.give(event);
        // After that, for the worker need not wait for it.
        if let Some(side) = pushed_to {
            self.wires.side(side).send(ToSide::Expect);
        }
    }
}

impl Handler<Ping> for Queue {
    type Result = ();

    /// The Supervisor's ping is also the tick by which files that people make or remove are seen.
    fn handle(&mut self, _: Ping, _: &mut Self::Context) {
        self.rests = self.is_empty();
        self.wires.answer_ping(NAME, !self.rests);
        self.pings = self.pings.wrapping_add(1);
        if self.pings.is_multiple_of(TICK_EVERY) {
            self.give(Event::Tick);
        } else {
            self.look();
        }
    }
}

impl Handler<Reload> for Queue {
    type Result = ();

    fn handle(&mut self, Reload(config): Reload, _: &mut Self::Context) {
        let config: &Config = &config;
        self.give(Event::Settings(config.into()));
    }
}

#[cfg(debug_assertions)]
impl Handler<Fault> for Queue {
    type Result = ();

    fn handle(&mut self, fault: Fault, ctx: &mut Self::Context) {
        fault.strike(ctx);
    }
}
