//! What the queue does next: pure, no clock, no disk, no sockets. Events and the time go in; changed hand-offs to be
//! written and effects to be carried out come out. [`crate::spooler`] joins it to the disk, the Queue actor to the
//! rest.
//!
//! Two sorts of change are told apart, for the disk may refuse a write. A *fact* has happened (a push ended, an answer
//! came): it is kept in memory and written once the disk takes it. A *decision* (to accept, to push) counts only once
//! it is written: else it is undone, and nothing of it is carried out.

mod book;
mod disk;
pub mod event;
mod intake;
mod landing;
mod notice;
mod person;
mod push;
mod receipts;
mod remembered;
mod settings;
mod watch;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use time::OffsetDateTime;

use crate::config::Side;
use crate::control::wire::Paused;
use crate::handoff::{HandOff, Id, SessionKey};
use crate::transcript::issued::Issuer;

use book::Book;
pub use book::Entry;
use disk::{Touch, Trouble};
pub use event::{Effect, Event, Incoming, Now, Pushed, Receipt, Token};
use notice::{About, Notice};
use push::Peer;
use remembered::Remembered;
pub use settings::Settings;

/// What a push carries. The numbers are places in the hand-off's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cargo {
    HandOff { id: Id, push: usize },
    TakeBack { id: Id },
    Outcome { id: Id, outcome: usize, push: usize },
    Failure { id: Id, push: usize },
    Notice { key: u64 },
}

/// That the brain's session waits for a person.
#[derive(Debug)]
struct Wait {
    session: SessionKey,
    since: Option<u64>,
    what: Option<String>,
    told: bool,
}

/// An outage of the brain: it is away or wrapping up.
#[derive(Debug)]
struct Outage {
    since: Duration,
    told: bool,
}

/// An effect, bound to the write that has to succeed first.
#[derive(Debug)]
struct Step {
    owner: Option<Id>,
    effect: Effect,
}

/// What is done instead if a decision cannot be written.
#[derive(Debug)]
enum Fallout {
    Answer { receipt: Receipt, doing: String },
    RefuseBot { receipt: Receipt, text: String },
    Lose { receipt: Receipt, text: String },
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    settings: Settings,
    book: Book,
    brain: Peer,
    bot: Peer,
    flights: HashMap<Token, (Side, Cargo)>,
    next_token: u64,
    notices: VecDeque<Notice>,
    paused: Option<Paused>,
    recalled: Option<Duration>,
    outage: Option<Outage>,
    wait: Option<Wait>,
    trouble: Option<Trouble>,
    /// How often in a row the disk seemed well, and was not.
    relapses: u32,
    draining: bool,
    waiters: Vec<(Id, Receipt)>,
    /// Makes ids that are known as our own later. Without it, as in a command, nothing is pushed.
    issuer: Option<Issuer>,
    /// Messages that come to nothing and were put into the stream, the brain's that name no hand-off and hand-offs that
    /// the breaker refused and nobody keeps: hooks bring them once more.
    unclaimed: Remembered,
    touched: Vec<Touch>,
    begun: Vec<(Token, Id)>,
    fallouts: Vec<(Id, Fallout)>,
    /// Who waits for facts to be on disk.
    owed: Vec<(Id, Receipt)>,
    steps: Vec<Step>,
}

impl Queue {
    /// An empty queue; both sides are away. `first_token` sets the tokens of a queue that was started again apart
    /// from those of its predecessor.
    #[must_use]
    pub fn new(settings: Settings, first_token: u64, now: Now) -> Self {
        Queue {
            settings,
            book: Book::default(),
            brain: Peer::default(),
            bot: Peer::default(),
            flights: HashMap::new(),
            next_token: first_token,
            notices: VecDeque::new(),
            paused: None,
            recalled: None,
            outage: Some(Outage { since: now.mono, told: false }),
            wait: None,
            trouble: None,
            relapses: 0,
            draining: false,
            waiters: Vec::new(),
            issuer: None,
            unclaimed: Remembered::default(),
            touched: Vec::new(),
            begun: Vec::new(),
            fallouts: Vec::new(),
            owed: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Takes in a hand-off that lies on the disk, which has waited `waited` (paused time not counted).
    pub fn restore(&mut self, h: HandOff, lies: crate::handoff::life::State, waited: Duration, now: Now) {
        let id = h.id;
        self.book.run_to(now, self.paused.is_some());
        let misplaced = h.state() != lies;
        self.book.insert(Entry::new(h, Some(lies), waited));
        if misplaced {
            self.is_misplaced(id, now);
        }
        self.reindex(id);
    }

    /// Takes an event, and decides what follows.
    pub fn handle(&mut self, event: Event, now: Now) {
        self.book.run_to(now, self.paused.is_some());
        match event {
            Event::Tick => {}
            Event::Settings(settings) => self.set_settings(settings),
            Event::Accept(arrival) => self.accept(arrival, now),
            Event::Refuse { arrival, keep } => self.refuse(arrival, keep, now),
            Event::Reply(reply) => self.reply(reply, now),
            Event::Side { side, online, session } => self.side(side, online, session),
            Event::Brain(doing) => self.brain_does(doing),
            Event::Sighted(sighted) => self.sighted(&sighted),
            Event::SideReset(side) => self.side_reset(side, now),
            Event::Pushed { token, pushed } => self.pushed(token, pushed, now),
            Event::Notify { text, receipt } => self.notify_for(text, receipt, now),
            Event::Retry { id, receipt } => self.retry(id, receipt, now),
            Event::Cancel { id, receipt } => self.cancel(id, receipt, now),
            Event::Wait { id, receipt } => self.wait(id, receipt),
            Event::Drain => self.draining = true,
            // What needs the disk alone is the spooler's.
            Event::Pause { .. } | Event::Resume { .. } | Event::Prune { .. } | Event::Listed(_) => {}
        }
        self.watch(now);
        self.schedule(now);
    }

    /// The hand-off of that id, to be written.
    pub fn entry_mut(&mut self, id: Id) -> Option<&mut Entry> {
        self.book.get_mut(id)
    }

    /// Gives it what it makes ids with.
    pub fn set_issuer(&mut self, issuer: Issuer) {
        self.issuer = Some(issuer);
    }

    /// An id for a message that is no hand-off.
    fn issue(&self, now: Now) -> Id {
        self.issuer.as_ref().map_or_else(Id::now, |issuer| issuer.issue(now.wall))
    }

    /// Whether it has that hand-off in memory.
    #[must_use]
    pub fn holds(&self, id: Id) -> bool {
        self.book.get(id).is_some()
    }

    /// The ids in memory that contain `part`.
    #[must_use]
    pub fn ids_with_part(&self, part: &str) -> Vec<Id> {
        self.book.ids().filter(|id| id.has_part(part)).collect()
    }

    /// The hand-off that the brain's message answered, of those that are or lately were in memory.
    #[must_use]
    pub fn answered_by(&self, message: &str) -> Option<Id> {
        self.book.answered.get(message)
    }

    /// Remembers by which messages of the brain a closed hand-off was answered, and as which the bot was told.
    pub fn remember(&mut self, h: &HandOff) {
        self.book.remember(h);
    }

    /// The effects to carry out, once all was written that could be.
    pub fn effects(&mut self) -> Vec<Effect> {
        self.begun.clear();
        std::mem::take(&mut self.steps).into_iter().map(|step| step.effect).collect()
    }

    /// Lets go of a hand-off that was only looked at, if there is nothing left to do with it.
    pub fn release(&mut self, id: Id) {
        self.book.forget_if_over(id);
    }

    /// Whether nothing is under way: what a stop waits for.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty() && !self.book.is_dirty()
    }

    /// Whether it is paused.
    #[must_use]
    pub fn paused(&self) -> Option<&Paused> {
        self.paused.as_ref()
    }

    /// How many hand-offs wait to be pushed to the brain.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.book.for_brain.len()
    }

    /// How long the oldest of them has waited.
    #[must_use]
    pub fn oldest_waiting(&self, now: OffsetDateTime) -> Option<Duration> {
        let (_, id) = self.book.for_brain.first()?;
        let waited = now - self.book.get(*id)?.h.waiting_since();
        Some(Duration::try_from(waited).unwrap_or_default())
    }

    /// How many hand-offs are without a result past the alarm.
    #[must_use]
    pub fn alarms(&self) -> usize {
        self.book.alarmed
    }

    fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
        for id in self.book.ids().collect::<Vec<_>>() {
            self.reindex(id);
        }
    }

    fn reindex(&mut self, id: Id) {
        self.book.reindex(id, self.brain.session.filter(|_| self.brain.online), self.settings.alarm);
    }

    fn note(&mut self, owner: Option<Id>, text: String) {
        self.steps.push(Step { owner, effect: Effect::Note { text, of: owner } });
    }

    fn warn(&mut self, owner: Option<Id>, text: String) {
        self.steps.push(Step { owner, effect: Effect::Warn { text, of: owner } });
    }

    /// Says what has happened, whether or not the disk takes it now.
    fn note_fact(&mut self, id: Id, text: String) {
        self.steps.push(Step { owner: None, effect: Effect::Note { text, of: Some(id) } });
    }

    /// The same, for what needs a look.
    fn warn_fact(&mut self, id: Id, text: String) {
        self.steps.push(Step { owner: None, effect: Effect::Warn { text, of: Some(id) } });
    }

    fn done(&mut self, owner: Option<Id>, receipt: Receipt) {
        self.steps.push(Step { owner, effect: Effect::Done(receipt) });
    }
}

#[cfg(test)]
mod tests;
