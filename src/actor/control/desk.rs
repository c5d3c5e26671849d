//! Who is at the control socket, and what they wait for. It outlives the actor: those whom one Control let in are
//! counted, and answered, by the next.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::control::room::{Doing, Room, who_goes};
use crate::control::wire::Command;
use crate::error::{Error, Result};
use crate::queue::{Event, Receipt};
use crate::spooler::request;

/// A request that another actor has to answer.
#[derive(Clone, Debug)]
pub(super) enum Errand {
    Queue(Event),
    Guard,
}

impl Errand {
    fn of(command: Command, receipt: Receipt) -> Result<Errand> {
        if command == Command::ResetBreaker {
            return Ok(Errand::Guard);
        }
        let event = request::event(command, receipt)?;
        event.map(Errand::Queue).ok_or_else(|| Error::failed("carrying out a request: nobody is there for it"))
    }

    /// Whether it is a wait for a result.
    fn is_wait(&self) -> bool {
        matches!(self, Errand::Queue(Event::Wait { .. }))
    }
}

/// Where an answer goes.
pub(super) type Answer = oneshot::Sender<Result<Value>>;

/// A client that was let in.
pub(super) struct Client {
    pub(super) doing: Rc<Cell<Doing>>,
    pub(super) task: JoinHandle<()>,
}

/// Clients, and requests that wait for their answer, by number.
#[derive(Default)]
pub struct Desk {
    next: u64,
    waiting: HashMap<u64, (Errand, Answer)>,
    /// In the order in which they came.
    clients: VecDeque<Client>,
}

impl Desk {
    /// Takes a request in that another actor has to answer, if there is room for one more of its kind.
    pub(super) fn take(
        &mut self,
        room: Room,
        command: Command,
    ) -> Result<(u64, Errand, oneshot::Receiver<Result<Value>>)> {
        self.next += 1;
        let number = self.next;
        let errand = Errand::of(command, Receipt::Request(number))?;
        let waits = errand.is_wait();
        let others = self.waiting.values().filter(|(other, _)| other.is_wait() == waits).count();
        match waits {
            true if others >= room.waits => {
                return Err(Error::failed(format!("waiting for a result: {others} others wait at the bridge already"))
                    .hint("ask now and then instead: `anna-relay show ID`"));
            }
            false if others >= room.errands => {
                return Err(Error::failed(format!("carrying out a request: {others} others wait for the queue"))
                    .hint("do it again a little later; `anna-relay status` shows what holds them up"));
            }
            _ => {}
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.insert(number, (errand.clone(), sender));
        Ok((number, errand, receiver))
    }

    /// Who waits for that answer waits no more.
    pub(super) fn answered(&mut self, number: u64) -> Option<Answer> {
        self.waiting.remove(&number).map(|(_, answer)| answer)
    }

    /// What was not answered yet.
    pub(super) fn errands(&self) -> Vec<(u64, Errand)> {
        self.waiting.iter().map(|(number, (errand, _))| (*number, errand.clone())).collect()
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

    #[test]
    fn who_waits_for_a_result_keeps_nobody_from_asking_something_else() {
        let (mut desk, room) = (Desk::default(), Room { clients: 8, waits: 2, errands: 1 });
        let wait = || Command::Wait { id: crate::handoff::Id::now().to_string() };
        let held: Vec<_> = (0..2).map(|_| desk.take(room, wait()).unwrap()).collect();
        let error = desk.take(room, wait()).unwrap_err();
        assert!(error.to_string().ends_with("2 others wait at the bridge already"), "{error}");
        assert!(error.advice().is_some());
        let (pause, ..) = desk.take(room, Command::Pause { reason: None }).unwrap();
        let error = desk.take(room, Command::ResetBreaker).unwrap_err();
        assert!(error.to_string().ends_with("1 others wait for the queue") && error.advice().is_some(), "{error}");
        // Each makes room for its own kind.
        desk.answered(pause).unwrap();
        desk.take(room, Command::ResetBreaker).unwrap();
        assert!(desk.take(room, wait()).is_err());
        desk.answered(held[0].0).unwrap();
        desk.take(room, wait()).unwrap();
        assert_eq!(desk.errands().len(), 3);
    }
}
