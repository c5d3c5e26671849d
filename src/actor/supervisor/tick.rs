//! Asks the actors now and then whether they are there; rarely while none of them has to look soon, for each time wakes
//! the machine.

use std::time::Duration;

use actix::prelude::*;
use tokio::time::sleep_until;

use crate::beat;
use crate::message::Ping;

use super::{Child, Supervisor};

/// How often each actor is asked whether it is there, while there is something to do. Long, for each time wakes the
/// machine: at each beat.
const TICK: Duration = beat::BEAT;
/// The time between ticks, in ticks, while none of them has to look soon.
pub(super) const REST: u32 = 18;
/// An actor that has not answered so many pings by the next is frozen.
const PATIENCE: u32 = 2;

impl Supervisor {
    /// Asks all whether they are there, and puts an end to those that are not.
    pub(super) fn tick(&mut self, ctx: &mut Context<Self>) {
        (self.alive)(&self.wires, self.children.iter().all(|child| child.silent == 0 && child.running.is_some()));
        for child in &mut self.children {
            let Some(running) = &child.running else { continue };
            child.silent += 1;
            if child.silent > PATIENCE {
                running.abort.abort();
            } else {
                running.ping.do_send(Ping);
            }
        }
        self.tick_again(false, ctx);
    }

    /// The next tick comes soon; or, where nothing has to be done soon, after a rest.
    pub(super) fn tick_again(&mut self, rests: bool, ctx: &mut Context<Self>) {
        if let Some(next) = self.next.take() {
            ctx.cancel_future(next);
        }
        self.rests = rests;
        let wait = if rests { self.rest } else { self.tick };
        let next = sleep_until(beat::within(wait)).into_actor(self);
        self.next = Some(ctx.spawn(next.map(|(), act, ctx| {
            act.next = None;
            act.tick(ctx);
        })));
    }

    /// There is something to do. What the actors said until now, at this tick too, does not hold any more.
    pub(super) fn stir(&mut self, ctx: &mut Context<Self>) {
        self.children.iter_mut().for_each(|child| child.soon = true);
        if self.rests {
            self.tick_again(false, ctx);
        }
    }

    /// An actor is there, and says whether it has to look soon.
    pub(super) fn answered(&mut self, name: &str, soon: bool, ctx: &mut Context<Self>) {
        if let Some(child) = self.children.iter_mut().find(|child| child.name == name) {
            (child.silent, child.soon) = (0, soon);
        }
        let rest = |child: &Child| child.running.is_some() && child.silent == 0 && !child.soon;
        if !self.rests && self.children.iter().all(rest) {
            self.tick_again(true, ctx);
        }
    }
}

/// The tick; in test builds another can be given, so that no test waits for a frozen actor's full 16 s.
pub(super) fn tick() -> Duration {
    #[cfg(debug_assertions)]
    if let Some(millis) = std::env::var("ANNA_RELAY_TEST_TICK_MS").ok().and_then(|millis| millis.parse().ok()) {
        return Duration::from_millis(millis);
    }
    TICK
}
