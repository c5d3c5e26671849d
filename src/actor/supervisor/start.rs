//! Starts each of the actors, as a task of its own, and puts it where the others find it.

use std::rc::Rc;
use std::sync::Arc;

use actix::prelude::*;
use tokio::task::{AbortHandle, JoinHandle};

use crate::message::{Ping, Reload};

use super::super::bot_side::Bot;
use super::super::brain_side::Brain;
use super::super::control::{self, Control};
use super::super::guard::{self, Guard};
use super::super::orphan_reaper::{self, OrphanReaper};
use super::super::queue::{self, Queue};
use super::super::side::{Role, SideActor};
use super::super::wires::Wires;
use super::super::witness::{self, Witness};
use super::Supervisor;

#[cfg(debug_assertions)]
use crate::message::Fault;

/// An actor that was started.
pub(super) struct Running {
    pub abort: AbortHandle,
    pub ping: Recipient<Ping>,
    pub reload: Recipient<Reload>,
}

/// Starts an actor as a task, and puts it where the others find it.
fn run<A>(actor: A, found: impl FnOnce(&Addr<A>)) -> (JoinHandle<()>, Running)
where
    A: Actor<Context = Context<A>> + Handler<Ping> + Handler<Reload>,
{
    let context = Context::new();
    let address = context.address();
    found(&address);
    let task = actix_rt::spawn(context.into_future(actor));
    let running =
        Running { abort: task.abort_handle(), ping: address.clone().recipient(), reload: address.recipient() };
    (task, running)
}

pub(super) fn reaper(this: &Supervisor) -> (JoinHandle<()>, Running) {
    let wires = &this.wires;
    run(OrphanReaper::new(Rc::clone(wires)), |address| {
        wires.reaper.replace(Some(address.clone().recipient()));
        expose(wires, orphan_reaper::NAME, address);
    })
}

pub(super) fn queue(this: &Supervisor) -> (JoinHandle<()>, Running) {
    let wires = &this.wires;
    run(Queue::new(Rc::clone(wires)), |address| {
        wires.queue.fill(address.clone().recipient());
        expose(wires, queue::NAME, address);
    })
}

pub(super) fn guard(this: &Supervisor) -> (JoinHandle<()>, Running) {
    let wires = &this.wires;
    run(Guard::new(Rc::clone(wires)), |address| {
        wires.guard.fill(address.clone().recipient());
        expose(wires, guard::NAME, address);
    })
}

fn side<R: Role>(wires: &Rc<Wires>) -> (JoinHandle<()>, Running) {
    run(SideActor::<R>::new(Rc::clone(wires)), |address| {
        wires.side(R::SIDE).fill(address.clone().recipient());
        expose(wires, R::NAME, address);
    })
}

pub(super) fn brain(this: &Supervisor) -> (JoinHandle<()>, Running) {
    side::<Brain>(&this.wires)
}

pub(super) fn bot(this: &Supervisor) -> (JoinHandle<()>, Running) {
    side::<Bot>(&this.wires)
}

pub(super) fn witness(this: &Supervisor) -> (JoinHandle<()>, Running) {
    let wires = &this.wires;
    run(Witness::new(Rc::clone(wires)), |address| {
        wires.witness.fill(address.clone().recipient());
        expose(wires, witness::NAME, address);
    })
}

pub(super) fn control(this: &Supervisor) -> (JoinHandle<()>, Running) {
    let wires = &this.wires;
    let control = Control::new(Rc::clone(wires), Arc::clone(&this.listener), Rc::clone(&this.desk));
    run(control, |address| {
        wires.control.fill(address.clone().recipient());
        expose(wires, control::NAME, address);
    })
}

/// In test builds an actor can be made to fail.
#[cfg(debug_assertions)]
fn expose<A: Actor<Context = Context<A>> + Handler<Fault>>(wires: &Wires, name: &'static str, address: &Addr<A>) {
    wires.faults.borrow_mut().insert(name, address.clone().recipient());
}

#[cfg(not(debug_assertions))]
fn expose<A>(_: &Wires, _: &'static str, _: &A) {}
