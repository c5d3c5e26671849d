//! The queue in made-up time, on a disk that takes what it is told to take.

mod disk;
mod people;
mod pushes;
mod times;

use std::time::Duration;

use time::macros::datetime;

use super::event::{Arrival, Reply, Upload};
use super::*;
use crate::error::Error;
use crate::handoff::life::State;
use crate::handoff::{HandOff, Origin, PushOutcome};

const ONE: SessionKey = SessionKey { pid: 1, started: 1 };
const TWO: SessionKey = SessionKey { pid: 2, started: 1 };

/// A queue with all that is around it.
struct Rig {
    queue: Queue,
    now: Now,
    /// What the disk says to the next writes.
    broken: bool,
    /// How often something was written.
    writes: usize,
    flights: Vec<(Side, Token, Vec<Upload>)>,
    notes: Vec<String>,
    warnings: Vec<String>,
    done: Vec<Receipt>,
    answers: Vec<(Receipt, bool)>,
    /// Pushes that were taken back before their turn.
    withdrawn: Vec<Token>,
    messages: u64,
}

fn settings() -> Settings {
    Settings {
        alarm: Duration::from_secs(1800),
        max_attempts: 3,
        gap: Duration::from_secs(10),
        inline_bytes: 64 * 1024,
    }
}

fn failed() -> Pushed {
    Pushed::Failed { why: "HTTP 500".into(), permanent: false }
}

fn refused() -> Pushed {
    Pushed::Failed { why: "HTTP 413".into(), permanent: true }
}

impl Rig {
    fn new() -> Self {
        let now = Now { mono: Duration::from_secs(100), wall: datetime!(2026-11-30 10:00 UTC) };
        Rig {
            queue: Queue::new(settings(), 0, now),
            now,
            broken: false,
            writes: 0,
            flights: Vec::new(),
            notes: Vec::new(),
            warnings: Vec::new(),
            done: Vec::new(),
            answers: Vec::new(),
            withdrawn: Vec::new(),
            messages: 0,
        }
    }

    /// With the brain there.
    fn with_brain() -> Self {
        let mut rig = Rig::new();
        rig.side(Side::Brain, Some(None));
        rig
    }

    fn with_both() -> Self {
        let mut rig = Rig::with_brain();
        rig.side(Side::Bot, Some(None));
        rig
    }

    /// Gives the queue an event, and does what follows.
    fn event(&mut self, event: Event) {
        if matches!(event, Event::Tick) && self.queue.disk_retry_due(self.now) && !self.queue.touch_dirty() {
            let probed = if self.broken { Err(Error::failed("full")) } else { Ok(()) };
            self.queue.disk_probed(probed, self.now);
        }
        self.queue.handle(event, self.now);
        for id in self.queue.unwritten() {
            if self.broken {
                self.queue.not_written(id, &Error::failed("full"), self.now);
            } else {
                self.writes += 1;
                let lies = self.queue.entry_mut(id).unwrap().h.state();
                self.queue.written(id, lies, self.now);
            }
        }
        for effect in self.queue.effects() {
            match effect {
                Effect::Push { side, token, uploads, .. } => self.flights.push((side, token, uploads)),
                Effect::Note { text, .. } => self.notes.push(text),
                Effect::Warn { text, .. } => self.warnings.push(text),
                Effect::Done(receipt) => self.done.push(receipt),
                Effect::Answer(receipt, result) => self.answers.push((receipt, result.is_ok())),
                Effect::Withdraw { token, .. } => self.withdrawn.push(token),
                Effect::List => unreachable!("that is the spooler's"),
            }
        }
    }

    /// Time passes, with a tick whenever the queue asks for one.
    fn pass(&mut self, seconds: u64) {
        let end = self.now.mono + Duration::from_secs(seconds);
        for _ in 0..10_000 {
            let Some(at) = self.queue.wake_at(self.now).filter(|at| *at <= end) else { break };
            self.set(at.max(self.now.mono));
            self.event(Event::Tick);
            if self.queue.wake_at(self.now) == Some(self.now.mono) && self.now.mono == end {
                break;
            }
        }
        self.set(end);
        self.event(Event::Tick);
    }

    /// Time passes, and nothing happens.
    fn set(&mut self, mono: Duration) {
        self.now.wall += mono - self.now.mono;
        self.now.mono = mono;
    }

    fn side(&mut self, side: Side, up: Option<Option<SessionKey>>) {
        self.event(Event::Side { side, online: up.is_some(), session: up.flatten() });
    }

    fn message(&mut self) -> String {
        self.messages += 1;
        format!("m{}-1", 1000 + self.messages)
    }

    fn accept(&mut self, text: &str) -> Id {
        let message = self.message();
        let id = Id::derive(Side::Bot, &message);
        let receipt = Receipt::Frame(Side::Bot, self.messages);
        let (from, text, message) = (Origin::Bot, text.to_owned(), Some(message));
        self.event(Event::Accept(Arrival { id, from, text, message, files: vec![], receipt }));
        id
    }

    fn says(&mut self, id: Id, message: &str, text: &str, edit: bool) {
        let (found, message) = (Some(id), message.to_owned());
        let receipt = Receipt::Frame(Side::Brain, 1);
        let reply_to = Some(id.to_string());
        self.event(Event::Reply(Reply { message, reply_to, edit, text: text.into(), files: vec![], found, receipt }));
    }

    fn reply(&mut self, id: Id, text: &str) {
        let message = self.message();
        self.says(id, &message, text, false);
    }

    /// Word of the oldest push to that side.
    fn land(&mut self, side: Side, pushed: Pushed) {
        let at = self.flights.iter().position(|(to, ..)| *to == side).expect("a push to that side");
        let (_, token, _) = self.flights.remove(at);
        self.event(Event::Pushed { token, pushed });
    }

    /// The oldest push to that side got its 204.
    fn accepted(&mut self, side: Side) {
        let token = self.flights.iter().find(|(to, ..)| *to == side).expect("a push to that side").1;
        self.event(Event::Pushed { token, pushed: Pushed::Accepted });
    }

    /// All that is under way to that side, now and because of it, goes well.
    fn deliver(&mut self, side: Side) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(text) = self.said(side) {
            said.push(text);
            self.land(side, Pushed::Confirmed);
        }
        said
    }

    /// What the oldest push to that side says.
    fn said(&self, side: Side) -> Option<String> {
        self.flights.iter().find(|(to, ..)| *to == side).map(|(_, _, uploads)| uploads[0].part.text.clone())
    }

    /// How many pushes to that side are under way.
    fn flying(&self, side: Side) -> usize {
        self.flights.iter().filter(|(to, ..)| *to == side).count()
    }

    fn h(&self, id: Id) -> &HandOff {
        &self.queue.book.get(id).expect("in memory").h
    }

    fn wake_in(&self) -> Option<u64> {
        Some((self.queue.wake_at(self.now)? - self.now.mono).as_secs())
    }

    fn retry(&mut self, id: Id) {
        self.event(Event::Retry { id, receipt: Receipt::Request(1) });
    }

    fn cancel(&mut self, id: Id) {
        self.event(Event::Cancel { id, receipt: Receipt::Request(2) });
    }

    fn pause(&mut self, pause: bool) {
        let paused = Paused { since: self.now.wall, reason: None };
        self.queue.set_paused(pause.then_some(paused), self.now);
        self.event(Event::Tick);
    }

    /// One that is with the brain.
    fn sent(&mut self) -> Id {
        let id = self.accept("water the plants");
        self.land(Side::Brain, Pushed::Confirmed);
        id
    }
}
