//! Control: answers at the control socket. `status` is read off the board, so it waits for no other actor.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use serde_json::Value;
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::control::server::{self, MAX_CLIENTS};
use crate::control::wire::{Command, Reply};
use crate::error::{Error, Result};
use crate::message::{Ping, Reload, ToControl, ToGuard, ToQueue};
use crate::queue::{Event, Receipt};
use crate::spooler::request;

use super::wires::{One, Wires};

#[cfg(debug_assertions)]
use crate::message::Fault;

/// The actor's name.
pub const NAME: &str = "control";
/// How long the other actors may take over a request.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long to wait after a client could not be let in (too many open files, say).
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);

/// A request that another actor has to answer.
#[derive(Clone, Debug)]
enum Errand {
    Queue(Event),
    Guard,
}

/// Requests that wait for their answer, by number. It outlives the actor.
#[derive(Default)]
pub struct Desk {
    next: u64,
    waiting: HashMap<u64, (Errand, oneshot::Sender<Result<Value>>)>,
}

/// The actor.
pub struct Control {
    wires: Rc<Wires>,
    listener: Arc<UnixListener>,
    desk: Rc<RefCell<Desk>>,
}

impl Control {
    /// Control over that socket, which outlives it.
    #[must_use]
    pub fn new(wires: Rc<Wires>, listener: Arc<UnixListener>, desk: Rc<RefCell<Desk>>) -> Self {
        Control { wires, listener, desk }
    }
}

impl Actor for Control {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let accepting = accept(Arc::clone(&self.listener), Rc::clone(&self.wires), Rc::clone(&self.desk));
        ctx.spawn(accepting.into_actor(self));
    }
}

/// Lets clients in, and serves each by a task of its own.
async fn accept(listener: Arc<UnixListener>, wires: Rc<Wires>, desk: Rc<RefCell<Desk>>) {
    let room = Arc::new(Semaphore::new(MAX_CLIENTS));
    loop {
        let Ok(seat) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (wires, desk) = (Rc::clone(&wires), Rc::clone(&desk));
                actix_rt::spawn(async move {
                    server::serve(stream, |command| answer(Rc::clone(&wires), Rc::clone(&desk), command)).await;
                    drop(seat);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "letting a client in at the control socket");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

async fn answer(wires: Rc<Wires>, desk: Rc<RefCell<Desk>>, command: Command) -> (Reply, Option<One>) {
    // A wait for a result may last for days; a stop does not wait for it.
    let answering = (!matches!(command, Command::Wait { .. })).then(|| wires.answering.one());
    let reply = match command {
        Command::Status => serde_json::to_value(wires.status())
            .map_err(|error| Error::failed(format!("putting the status together: {error}"))),
        #[cfg(debug_assertions)]
        Command::Fault { actor, how } => fault(&wires, &actor, &how),
        command => ask(&wires, &desk, command).await,
    };
    let reply = match reply {
        Ok(value) => Reply::Ok(value),
        Err(error) => Reply::Error(error.into()),
    };
    (reply, answering)
}

/// Has another actor answer.
async fn ask(wires: &Wires, desk: &RefCell<Desk>, command: Command) -> Result<Value> {
    let patience = if matches!(command, Command::Wait { .. }) { Duration::MAX } else { ANSWER_WITHIN };
    let (sender, receiver) = oneshot::channel();
    let (number, errand) = {
        let mut desk = desk.borrow_mut();
        desk.next += 1;
        let number = desk.next;
        let errand = match command {
            Command::ResetBreaker => Errand::Guard,
            command => match request::event(command, Receipt::Request(number))? {
                Some(event) => Errand::Queue(event),
                None => return Err(Error::failed("carrying out a request: nobody is there for it")),
            },
        };
        desk.waiting.insert(number, (errand.clone(), sender));
        (number, errand)
    };
    // Whatever way this ends, also by the client's going.
    let _forget = Forget { desk, number };
    send(wires, errand, number);
    match timeout(patience, receiver).await {
        Ok(Ok(result)) => result,
        _ => Err(Error::failed(format!("waiting for the queue: no answer within {} s", patience.as_secs()))
            .hint("it stays in line, and may still be carried out; `anna-relay status` shows what holds it up")),
    }
}

struct Forget<'a> {
    desk: &'a RefCell<Desk>,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.desk.borrow_mut().waiting.remove(&self.number);
    }
}

fn send(wires: &Wires, errand: Errand, number: u64) {
    match errand {
        Errand::Queue(event) => wires.queue.send(ToQueue(event)),
        Errand::Guard => wires.guard.send(ToGuard::ResetBreaker(Receipt::Request(number))),
    }
}

#[cfg(debug_assertions)]
fn fault(wires: &Wires, actor: &str, how: &str) -> Result<Value> {
    use crate::message::Fault;
    let fault = match how {
        "panic" => Fault::Panic,
        "hang" => Fault::Hang,
        _ => return Err(Error::failed(format!("making {actor} fail: {how:?} is no way to"))),
    };
    match wires.faults.borrow().get(actor) {
        Some(recipient) => {
            recipient.do_send(fault);
            Ok(Value::Null)
        }
        None => Err(Error::failed(format!("making {actor:?} fail: there is no such actor"))),
    }
}

impl Handler<ToControl> for Control {
    type Result = ();

    fn handle(&mut self, message: ToControl, _: &mut Self::Context) {
        match message {
            ToControl::Answer(number, result) => {
                let waiting = self.desk.borrow_mut().waiting.remove(&number);
                if let Some((_, sender)) = waiting
                    && sender.send(result).is_err()
                {
                    tracing::debug!("a client did not wait for its answer");
                }
            }
            ToControl::Resend => {
                let waiting: Vec<(u64, Errand)> = {
                    let desk = self.desk.borrow();
                    desk.waiting.iter().map(|(number, (errand, _))| (*number, errand.clone())).collect()
                };
                for (number, errand) in waiting {
                    send(&self.wires, errand, number);
                }
            }
        }
    }
}

impl Handler<Ping> for Control {
    type Result = ();

    fn handle(&mut self, _: Ping, _: &mut Self::Context) {
        self.wires.answer_ping(NAME);
    }
}

impl Handler<Reload> for Control {
    type Result = ();

    fn handle(&mut self, _: Reload, _: &mut Self::Context) {}
}

#[cfg(debug_assertions)]
impl Handler<Fault> for Control {
    type Result = ();

    fn handle(&mut self, fault: Fault, ctx: &mut Self::Context) {
        fault.strike(ctx);
    }
}
