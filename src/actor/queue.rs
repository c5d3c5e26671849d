//! The Queue: gives events to the spooler, on a thread that may wait for the disk, one batch after the other, and
//! carries out what comes back.

use std::rc::Rc;
use std::sync::{Arc, PoisonError};

use actix::prelude::*;

use crate::config::Config;
use crate::error::{During, Result};
use crate::message::{Ping, Reload, ToControl, ToQueue, ToSide, ToSupervisor};
use crate::queue::{Effect, Event, Receipt, Settings};
use crate::spool::{Store, pause};
use crate::spooler::{Outcome, Spooler};
use crate::transcript::issued::{self, Issuer};

use super::wires::Wires;

#[cfg(debug_assertions)]
use crate::message::Fault;

/// The actor's name.
pub const NAME: &str = "queue";
/// At every so-manieth ping it looks at the disk with nothing else to do there: each time wakes a thread.
const TICK_EVERY: u32 = 8;

/// The actor.
pub struct Queue {
    wires: Rc<Wires>,
    /// Tells it from its predecessors; its first push token.
    number: u64,
    /// At home while no batch is under way.
    spooler: Option<Spooler>,
    pending: Vec<Event>,
    wake: Option<SpawnHandle>,
    pings: u32,
    draining: bool,
}

impl Queue {
    /// A queue that recovers the spool as soon as it is started.
    #[must_use]
    pub fn new(wires: Rc<Wires>) -> Self {
        let number = wires.token_range();
        Queue { wires, number, spooler: None, pending: Vec::new(), wake: None, pings: 0, draining: false }
    }

    fn recover(&mut self, ctx: &mut Context<Self>) {
        let (config, now, tokens) = (self.wires.config(), self.wires.now(), self.number);
        let spool = Arc::clone(&self.wires.spool);
        let opening = tokio::task::spawn_blocking(move || -> Result<Spooler> {
            let mut owner = spool.lock().unwrap_or_else(PoisonError::into_inner);
            *owner = tokens;
            let root = config.paths.spool();
            let issuer = Issuer::open(&root).during(format_args!("reading {}", root.join(issued::FILE).display()))?;
            let mut spooler = Spooler::open(Store::open(&root)?, Settings::from(&*config), tokens, now)?;
            spooler.set_issuer(issuer);
            Ok(spooler)
        });
        ctx.spawn(opening.into_actor(self).map(|opened, act, ctx| match opened {
            Ok(Ok(spooler)) => {
                act.wires.board.borrow_mut().queue = spooler.snapshot(act.wires.now());
                act.spooler = Some(spooler);
                act.wires.supervisor.send(ToSupervisor::Recovered);
                act.pending.push(Event::Tick);
                act.pending.push(Event::Count);
                let untold = act.wires.notices.borrow();
                let again = |(number, text): (&u64, &String)| Event::Notify {
                    text: text.clone(),
                    receipt: Receipt::Notice(*number),
                };
                act.pending.extend(untold.iter().map(again));
                drop(untold);
                act.pump(ctx);
            }
            Ok(Err(error)) => {
                act.wires.stream.warn(&format!("the spool cannot be used: {error}"));
                tracing::error!(%error, "recovering the spool");
                ctx.stop();
            }
            Err(_) => ctx.stop(),
        }));
    }

    /// Gives what is pending to the spooler, if that is at home.
    fn pump(&mut self, ctx: &mut Context<Self>) {
        if self.pending.is_empty() {
            return;
        }
        let Some(mut spooler) = self.spooler.take() else { return };
        if let Some(handle) = self.wake.take() {
            ctx.cancel_future(handle);
        }
        let (events, now) = (std::mem::take(&mut self.pending), self.wires.now());
        let (spool, me) = (Arc::clone(&self.wires.spool), self.number);
        let working = tokio::task::spawn_blocking(move || {
            let owner = spool.lock().unwrap_or_else(PoisonError::into_inner);
            if *owner != me {
                // The actor has fallen, and its successor has read the spool.
                return (spooler, Outcome::default());
            }
            let outcome = spooler.process(events, now);
            (spooler, outcome)
        });
        ctx.spawn(working.into_actor(self).map(|worked, act, ctx| match worked {
            Ok((spooler, outcome)) => {
                act.spooler = Some(spooler);
                act.carry_out(outcome, ctx);
                act.pump(ctx);
            }
            // It panicked, and was lost with its thread; the next Queue reads the truth from the disk.
            Err(_) => ctx.stop(),
        }));
    }

    /// Whether a person made or removed the file that pauses.
    fn pause_file_has_news(&self) -> bool {
        let there = pause::file(&self.wires.config().paths.spool()).symlink_metadata().is_ok();
        self.spooler.is_some() && there != self.wires.board.borrow().queue.paused.is_some()
    }

    fn carry_out(&mut self, outcome: Outcome, ctx: &mut Context<Self>) {
        let now = self.wires.now();
        for effect in outcome.effects {
            self.carry_out_one(effect);
        }
        if let Some(at) = outcome.wake_at {
            self.wake = Some(ctx.run_later(at.saturating_sub(now.mono), |act, ctx| {
                act.wake = None;
                act.pending.push(Event::Tick);
                act.pump(ctx);
            }));
        }
        if self.draining && outcome.snapshot.idle {
            self.wires.supervisor.send(ToSupervisor::Drained);
        }
        let mut board = self.wires.board.borrow_mut();
        board.queue_at = now.mono;
        board.queue = outcome.snapshot;
    }

    fn carry_out_one(&self, effect: Effect) {
        match effect {
            Effect::Push { side, token, uploads } => self.wires.side(side).send(ToSide::Push { token, uploads }),
            Effect::Note { .. } | Effect::Warn { .. } => self.wires.stream.record(&effect),
            Effect::Done(receipt) => self.wires.done(receipt),
            Effect::Answer(Receipt::Request(request), result) => {
                self.wires.control.send(ToControl::Answer(request, result));
            }
            Effect::Answer(..) => {}
        }
    }
}

impl Actor for Queue {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.recover(ctx);
    }
}

impl Handler<ToQueue> for Queue {
    type Result = ();

    fn handle(&mut self, ToQueue(event): ToQueue, ctx: &mut Self::Context) {
        self.draining |= matches!(event, Event::Drain);
        self.pending.push(event);
        self.pump(ctx);
    }
}

impl Handler<Ping> for Queue {
    type Result = ();

    /// The Supervisor's ping is also the tick by which files that people make or remove are seen.
    fn handle(&mut self, _: Ping, ctx: &mut Self::Context) {
        self.wires.answer_ping(NAME);
        self.pings = self.pings.wrapping_add(1);
        if self.pause_file_has_news() || self.pings.is_multiple_of(TICK_EVERY) {
            self.pending.push(Event::Tick);
            self.pump(ctx);
        }
    }
}

impl Handler<Reload> for Queue {
    type Result = ();

    fn handle(&mut self, Reload(config): Reload, ctx: &mut Self::Context) {
        let config: &Config = &config;
        self.pending.push(Event::Settings(config.into()));
        self.pump(ctx);
    }
}

#[cfg(debug_assertions)]
impl Handler<Fault> for Queue {
    type Result = ();

    fn handle(&mut self, fault: Fault, ctx: &mut Self::Context) {
        fault.strike(ctx);
    }
}
