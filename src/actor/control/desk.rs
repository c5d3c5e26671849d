//! Who is at the control socket, and what they wait for. It outlives the actor: those whom one Control let in are
//! counted, and answered, by the next.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::control::room::{Doing, Room, who_goes};
use crate::control::wire::Command;
use crate::error::{Error, Result};
use crate::handoff::Id;
use crate::message::{ToGuard, ToQueue};
use crate::queue::{Event, Receipt};
use crate::spooler::request;

use super::super::wires::Wires;

/// A request that another actor has to answer.
#[derive(Clone, Debug)]
pub(super) enum Errand {
    Queue(Event),
    Guard(Receipt),
}

impl Errand {
    fn of(command: Command, receipt: Receipt) -> Result<Errand> {
        if command == Command::ResetBreaker {
            return Ok(Errand::Guard(receipt));
        }
        let event = request::event(command, receipt)?;
        event.map(Errand::Queue).ok_or_else(|| Error::failed("carrying out a request: nobody is there for it"))
    }

    pub(super) fn send(self, wires: &Wires) {
        match self {
            Errand::Queue(event) => wires.queue.send(ToQueue(event)),
            Errand::Guard(receipt) => wires.guard.send(ToGuard::ResetBreaker(receipt)),
        }
    }

    /// Whose result it waits for, if that is what it does.
    fn waits_for(&self) -> Option<Id> {
        match self {
            Errand::Queue(Event::Wait { id, .. }) => Some(*id),
            _ => None,
        }
    }
}

/// A request, and where its answer goes.
struct Asked {
    errand: Errand,
    by: Vec<oneshot::Sender<Result<Value>>>,
}

/// A client that was let in.
pub(super) struct Client {
    pub(super) doing: Rc<Cell<Doing>>,
    pub(super) task: JoinHandle<()>,
}

/// Clients, and requests that wait for their answer, by number.
#[derive(Default)]
pub struct Desk {
    next: u64,
    waiting: HashMap<u64, Asked>,
    /// In the order in which they came.
    clients: VecDeque<Client>,
}

impl Desk {
    /// Takes a request in that another actor has to answer, if there is room for one more of its kind. Returns what
    /// that actor is to be sent, unless somebody else waits for the same result already, and where the answer comes.
    pub(super) fn take(
        &mut self,
        room: Room,
        command: Command,
    ) -> Result<(Option<Errand>, oneshot::Receiver<Result<Value>>)> {
        self.next += 1;
        let errand = Errand::of(command, Receipt::Request(self.next))?;
        let waits_for = errand.waits_for();
        let of_its_kind =
            self.waiting.values().filter(|asked| asked.errand.waits_for().is_some() == waits_for.is_some());
        let others: usize = of_its_kind.map(|asked| asked.by.len()).sum();
        match waits_for {
            Some(id) if others >= room.waits => {
                return Err(Error::failed(format!("waiting for hand-off {id}: {others} others wait already"))
                    .hint(format!("look now and then instead: `anna-relay show {}`", id.short())));
            }
            None if others >= room.errands => {
                return Err(Error::failed(format!("carrying out a request: {others} others wait for the queue"))
                    .hint("do it again a little later; `anna-relay status` shows what holds them up"));
            }
            _ => {}
        }
        let (sender, receiver) = oneshot::channel();
        let same = |asked: &&mut Asked| waits_for.is_some() && asked.errand.waits_for() == waits_for;
        if let Some(same) = self.waiting.values_mut().find(same) {
            same.by.push(sender);
            return Ok((None, receiver));
        }
        self.waiting.insert(self.next, Asked { errand: errand.clone(), by: vec![sender] });
        Ok((Some(errand), receiver))
    }

    /// Passes an answer on.
    pub(super) fn answer(&mut self, number: u64, result: Result<Value>) {
        let Some(Asked { errand, by }) = self.waiting.remove(&number) else { return };
        let result = match errand.waits_for() {
            // However many wait, and however long it is, the document goes to none of them.
            Some(id) => result.map(|_| json!({ "id": id })),
            None => result,
        };
        for client in by {
            if client.send(result.clone()).is_err() {
                tracing::debug!("a client did not wait for its answer");
            }
        }
    }

    /// Forgets those who wait no more. That a result is waited for is kept: the Queue knows it, once.
    pub(super) fn tidy(&mut self) {
        self.waiting.retain(|_, asked| {
            asked.by.retain(|client| !client.is_closed());
            !asked.by.is_empty() || asked.errand.waits_for().is_some()
        });
    }

    /// What was not answered yet.
    pub(super) fn errands(&self) -> Vec<Errand> {
        self.waiting.values().map(|asked| asked.errand.clone()).collect()
    }

    /// Sees to it that one more client is not one too many.
    pub(super) fn make_room(&mut self, clients: usize) {
        self.clients.retain(|client| !client.task.is_finished());
        if self.clients.len() >= clients {
            self.show_out();
        }
    }

    /// One that can go has to go. False: there is none.
    pub(super) fn show_out(&mut self) -> bool {
        let goes = who_goes(self.clients.iter().map(|client| client.doing.get()));
        let goes = goes.and_then(|at| self.clients.remove(at));
        goes.inspect(|client| client.task.abort()).is_some()
    }

    pub(super) fn add(&mut self, client: Client) {
        self.clients.push_back(client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { clients: 8, waits: 2, errands: 1 };
    const PAUSE: Command = Command::Pause { reason: None };

    fn wait(id: Id) -> Command {
        Command::Wait { id: id.to_string() }
    }

    #[test]
    fn who_waits_for_a_result_keeps_nobody_from_asking_something_else() {
        let mut desk = Desk::default();
        let mut held: Vec<_> = (0..2).map(|_| desk.take(ROOM, wait(Id::now())).unwrap()).collect();
        let error = desk.take(ROOM, wait(Id::now())).unwrap_err();
        assert!(error.to_string().ends_with("2 others wait already") && error.advice().is_some(), "{error}");
        let pause = desk.take(ROOM, PAUSE).unwrap();
        let error = desk.take(ROOM, Command::ResetBreaker).unwrap_err();
        assert!(error.to_string().ends_with("1 others wait for the queue") && error.advice().is_some(), "{error}");
        // Who goes makes room for its own kind.
        drop(pause);
        desk.tidy();
        held.push(desk.take(ROOM, Command::ResetBreaker).unwrap());
        assert!(desk.take(ROOM, wait(Id::now())).is_err());
        held.remove(0);
        desk.tidy();
        desk.take(ROOM, wait(Id::now())).unwrap();
    }

    #[test]
    fn however_many_come_and_go_the_queue_is_asked_once_for_a_result() {
        let (mut desk, id) = (Desk::default(), Id::now());
        assert!(desk.take(ROOM, wait(id)).unwrap().0.is_some());
        for _ in 0..100 {
            desk.tidy();
            assert!(desk.take(ROOM, wait(id)).unwrap().0.is_none());
        }
        desk.tidy();
        let mut waiting = [desk.take(ROOM, wait(id)).unwrap().1, desk.take(ROOM, wait(id)).unwrap().1];
        let errands = desk.errands();
        let [Errand::Queue(Event::Wait { receipt: Receipt::Request(number), .. })] = errands[..] else {
            panic!("{errands:?}")
        };
        desk.answer(number, Ok(json!({ "id": id, "text": "long" })));
        for waiting in &mut waiting {
            assert_eq!(waiting.try_recv().unwrap().unwrap(), json!({ "id": id }));
        }
        assert!(desk.errands().is_empty());
    }
}
