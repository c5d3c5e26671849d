//! Control: answers at the control socket. `status` is read off the board, so it waits for no other actor.

mod desk;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use rustix::io::Errno;
use serde_json::Value;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::control::room::{Doing, Room};
use crate::control::server;
use crate::control::wire::{Command, Reply};
use crate::error::{Error, Result};
use crate::message::{Ping, Reload, ToControl, ToSupervisor};

use super::wires::{One, Wires};
use desk::Client;
pub use desk::Desk;

#[cfg(debug_assertions)]
use crate::message::Fault;

/// The actor's name.
pub const NAME: &str = "control";
/// How long the other actors may take over a request.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long to wait after a client could not be let in (too many open files, say).
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);

/// The actor.
pub struct Control {
    door: Door,
    listener: Arc<UnixListener>,
}

impl Control {
    /// Control over that socket, which outlives it.
    #[must_use]
    pub fn new(wires: Rc<Wires>, listener: Arc<UnixListener>, desk: Rc<RefCell<Desk>>) -> Self {
        Control { door: Door { wires, desk, room: Room::here() }, listener }
    }
}

impl Actor for Control {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.spawn(accept(Arc::clone(&self.listener), self.door.clone()).into_actor(self));
    }
}

/// What a client is served with.
#[derive(Clone)]
struct Door {
    wires: Rc<Wires>,
    desk: Rc<RefCell<Desk>>,
    room: Room,
}

/// Lets clients in, and serves each by a task of its own.
async fn accept(listener: Arc<UnixListener>, door: Door) {
    let mut failing = false;
    loop {
        let error = match listener.accept().await {
            Ok((stream, _)) => {
                failing = false;
                door.let_in(stream);
                continue;
            }
            Err(error) => error,
        };
        let want_of_files = [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
        if want_of_files.contains(&error.raw_os_error()) && door.desk.borrow_mut().show_out() {
            // It is closed when its task comes round.
            tokio::task::yield_now().await;
            continue;
        }
        if !failing {
            tracing::warn!(%error, "letting a client in at the control socket; it is tried again");
        }
        failing = true;
        tokio::time::sleep(ACCEPT_AGAIN).await;
    }
}

impl Door {
    fn let_in(&self, stream: UnixStream) {
        self.desk.borrow_mut().make_room(self.room.clients);
        let (door, doing) = (self.clone(), Rc::new(Cell::new(Doing::Nothing)));
        let does = Rc::clone(&doing);
        let serving = server::serve(stream, move |command| {
            let (door, asks) = (door.clone(), Asks::of(&does));
            async move {
                let (reply, one) = door.answer(command).await;
                asks.0.set(Doing::Reading);
                (reply, (one, asks))
            }
        });
        let task = actix_rt::spawn(serving);
        self.desk.borrow_mut().add(Client { doing, task });
    }

    async fn answer(&self, command: Command) -> (Reply, Option<One>) {
        // A wait for a result may last for days; a stop does not wait for it.
        let answering = (!matches!(command, Command::Wait { .. })).then(|| self.wires.answering.one());
        // What is shown is soon to be new again.
        self.wires.supervisor.send(ToSupervisor::Stir);
        let reply = match command {
            Command::Status => serde_json::to_value(self.wires.status())
                .map_err(|error| Error::failed(format!("putting the status together: {error}"))),
            #[cfg(debug_assertions)]
            Command::Fault { actor, how } => fault(&self.wires, &actor, &how),
            command => self.ask(command).await,
        };
        let reply = match reply {
            Ok(value) => Reply::Ok(value),
            Err(error) => Reply::Error(error.into()),
        };
        (reply, answering)
    }

    /// Has another actor answer.
    async fn ask(&self, command: Command) -> Result<Value> {
        let patience = if matches!(command, Command::Wait { .. }) { Duration::MAX } else { ANSWER_WITHIN };
        let (errand, answer) = self.desk.borrow_mut().take(self.room, command)?;
        // Whatever way this ends, also by the client's going.
        let _tidy = Tidy(&self.desk);
        if let Some(errand) = errand {
            errand.send(&self.wires);
        }
        match timeout(patience, answer).await {
            Ok(Ok(result)) => result,
            _ => Err(Error::failed(format!("waiting for the queue: no answer within {} s", patience.as_secs()))
                .hint("it stays in line, and may still be carried out; `anna-relay status` shows what holds it up")),
        }
    }
}

/// A client waits for an answer or reads it, until this is dropped.
struct Asks(Rc<Cell<Doing>>);

impl Asks {
    fn of(client: &Rc<Cell<Doing>>) -> Asks {
        client.set(Doing::Waiting);
        Asks(Rc::clone(client))
    }
}

impl Drop for Asks {
    fn drop(&mut self) {
        self.0.set(Doing::Nothing);
    }
}

struct Tidy<'a>(&'a RefCell<Desk>);

impl Drop for Tidy<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().tidy();
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
            ToControl::Answer(number, result) => self.door.desk.borrow_mut().answer(number, result),
            ToControl::Resend => {
                let errands = self.door.desk.borrow().errands();
                errands.into_iter().for_each(|errand| errand.send(&self.door.wires));
            }
        }
    }
}

impl Handler<Ping> for Control {
    type Result = ();

    fn handle(&mut self, _: Ping, _: &mut Self::Context) {
        self.door.wires.answer_ping(NAME, false);
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
