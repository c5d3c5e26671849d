//! Control: answers at the control socket. `status` is read off the board, so it waits for no other actor, but for the
//! hand-offs to be counted after a start.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use serde_json::Value;
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
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
/// How long `status` waits, after a start, for the hand-offs to be counted: the disk may be stuck.
const COUNTED_WITHIN: Duration = Duration::from_secs(2);
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

/// A client that was let in.
struct Client {
    /// Whether it waits for an answer.
    asks: Rc<Cell<bool>>,
    task: JoinHandle<()>,
}

/// Lets clients in, and serves each by a task of its own.
async fn accept(listener: Arc<UnixListener>, wires: Rc<Wires>, desk: Rc<RefCell<Desk>>) {
    let mut clients: VecDeque<Client> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) if make_room(&mut clients) => {
                let (wires, desk, asks) = (Rc::clone(&wires), Rc::clone(&desk), Rc::new(Cell::new(false)));
                let asking = Rc::clone(&asks);
                let serving = server::serve(stream, move |command| {
                    let (asks, answering) = (Asks::of(&asking), answer(Rc::clone(&wires), Rc::clone(&desk), command));
                    async {
                        let (reply, one) = answering.await;
                        (reply, (one, asks))
                    }
                });
                clients.push_back(Client { asks, task: actix_rt::spawn(serving) });
            }
            Ok(_) => tracing::warn!("a client was turned away from the control socket: {MAX_CLIENTS} wait for answers"),
            Err(error) => {
                tracing::warn!(%error, "letting a client in at the control socket");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// Whether there is room for one more: where there is not, the one goes that was let in first of those that ask nothing.
fn make_room(clients: &mut VecDeque<Client>) -> bool {
    clients.retain(|client| !client.task.is_finished());
    if clients.len() < MAX_CLIENTS {
        return true;
    }
    let idle = clients.iter().position(|client| !client.asks.get()).and_then(|at| clients.remove(at));
    idle.inspect(|client| client.task.abort()).is_some()
}

/// A client waits for an answer, until this is dropped.
struct Asks(Rc<Cell<bool>>);

impl Asks {
    fn of(client: &Rc<Cell<bool>>) -> Asks {
        client.set(true);
        Asks(Rc::clone(client))
    }
}

impl Drop for Asks {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

async fn answer(wires: Rc<Wires>, desk: Rc<RefCell<Desk>>, command: Command) -> (Reply, Option<One>) {
    // A wait for a result may last for days; a stop does not wait for it.
    let answering = (!matches!(command, Command::Wait { .. })).then(|| wires.answering.one());
    let reply = match command {
        Command::Status => status(&wires).await,
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

async fn status(wires: &Wires) -> Result<Value> {
    let mut counted = wires.counted.subscribe();
    if timeout(COUNTED_WITHIN, counted.wait_for(|counted| *counted)).await.is_err() {
        tracing::warn!("the closed hand-offs are not counted yet; `status` goes without them");
    }
    serde_json::to_value(wires.status()).map_err(|error| Error::failed(format!("putting the status together: {error}")))
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
