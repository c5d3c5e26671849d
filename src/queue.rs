//! What the queue does next: pure, no clock, no disk, no sockets. Events and the time go in; changed hand-offs to be
//! written and effects to be carried out come out. [`crate::spooler`] joins it to the disk, the Queue actor to the
//! rest.
//!
//! Two sorts of change are told apart, for the disk may refuse a write. A *fact* has happened (a push ended, an answer
//! came): it is kept in memory and written once the disk takes it. A *decision* (to accept, to push) counts only once
//! it is written: else it is undone, and nothing of it is carried out.

mod answered;
mod book;
pub mod event;
mod intake;
mod person;
mod push;
mod watch;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use time::OffsetDateTime;

use crate::config::{Config, Side};
use crate::control::wire::Paused;
use crate::handoff::{HandOff, Id, SessionKey};

use book::Book;
pub use book::Entry;
pub use event::{Effect, Event, Incoming, Now, Pushed, Receipt, Token};

/// How long after a failed write the disk is tried again.
const DISK_RETRY: Duration = Duration::from_secs(1);
/// How many notices wait for the bot at most; the oldest goes first.
const MAX_NOTICES: usize = 100;

/// What of the configuration decides what the queue does.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// A wait for a result longer than this is shown to a person.
    pub alarm: Duration,
    /// Failed pushes of one hand-off before it is given up.
    pub max_attempts: usize,
    /// A gap of the brain no longer than this is not worth a word.
    pub gap: Duration,
    /// Text with more bytes than this travels as a file.
    pub inline_bytes: usize,
}

/// What a gap may be longer than `settle_s`, before the bot hears of it (`spec.md`, "Nights").
const GAP_PAST_SETTLING: Duration = Duration::from_secs(5);

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Settings {
            alarm: config.relay.alarm,
            max_attempts: config.relay.max_attempts,
            gap: config.relay.settle + GAP_PAST_SETTLING,
            inline_bytes: config.relay.inline_kib * 1024,
        }
    }
}

/// A side, as far as pushing to it goes.
#[derive(Debug, Default)]
struct Peer {
    online: bool,
    session: Option<SessionKey>,
    /// The push whose POSTs are under way: one at a time.
    posting: Option<Token>,
}

/// What a push carries. The numbers are places in the hand-off's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cargo {
    HandOff { id: Id, push: usize },
    TakeBack { id: Id },
    Outcome { id: Id, outcome: usize, push: usize },
    Failure { id: Id, push: usize },
    Notice { key: u64 },
}

/// Word for the bot that is about no one hand-off, or about one that was never accepted. It lives in memory only.
#[derive(Debug)]
struct Notice {
    key: u64,
    text: String,
    /// Who waits for it to be told.
    receipt: Receipt,
    /// What it is about: where that can be over, the word is void then.
    about: About,
    attempts: u32,
    in_flight: bool,
    not_before: Duration,
}

/// What word for the bot is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// Something that has happened.
    Event,
    /// That the brain is away.
    Outage,
    /// That the brain waits for a person.
    Wait,
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

/// A hand-off that was changed in this step and has to be written.
#[derive(Debug)]
struct Touch {
    id: Id,
    /// What memory goes back to if it cannot be written.
    fallback: Fallback,
    /// Whether something has happened that has to be written some time.
    fact: bool,
}

/// See [`Touch`].
#[derive(Debug)]
enum Fallback {
    /// It was never on disk: it is forgotten.
    Forget,
    /// It was only decided: it is as it was.
    Restore(Box<HandOff>),
    /// It has happened: it stays.
    Keep,
}

/// An effect, bound to the write that has to succeed first.
#[derive(Debug)]
struct Step {
    owner: Option<Id>,
    effect: Effect,
}

impl Step {
    /// Whether it only says what happened.
    fn is_word(&self) -> bool {
        matches!(self.effect, Effect::Note { .. } | Effect::Warn { .. } | Effect::Done(_))
    }
}

/// What is done instead if a decision cannot be written.
#[derive(Debug)]
enum Fallout {
    Answer { receipt: Receipt, doing: String },
    RefuseBot { receipt: Receipt, text: String },
}

/// That the disk refused a write.
#[derive(Debug)]
struct Trouble {
    why: String,
    next_try: Duration,
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
    draining: bool,
    waiters: Vec<(Id, Receipt)>,
    touched: Vec<Touch>,
    begun: Vec<(Token, Id)>,
    fallouts: Vec<(Id, Fallout)>,
    steps: Vec<Step>,
    /// Word of what has happened and could not be written yet.
    owed: Vec<Step>,
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
            draining: false,
            waiters: Vec::new(),
            touched: Vec::new(),
            begun: Vec::new(),
            fallouts: Vec::new(),
            steps: Vec::new(),
            owed: Vec::new(),
        }
    }

    /// Takes in a hand-off that lies on the disk, which has waited `waited` (paused time not counted).
    pub fn restore(&mut self, h: HandOff, lies: crate::handoff::life::State, waited: Duration, now: Now) {
        let id = h.id;
        self.book.insert(Entry::new(h, Some(lies), waited), now, self.paused.is_some());
        self.reindex(id);
    }

    /// Takes an event, and decides what follows.
    pub fn handle(&mut self, event: Event, now: Now) {
        match event {
            Event::Tick => {}
            Event::Settings(settings) => self.set_settings(settings),
            Event::Accept(arrival) => self.accept(arrival, now),
            Event::Refuse { arrival, keep } => self.refuse(arrival, keep, now),
            Event::Reply(reply) => self.reply(reply, now),
            Event::Side { side, online, session } => self.side(side, online, session),
            Event::Brain(doing) => self.brain_does(doing),
            Event::SideReset(side) => self.side_reset(side, now),
            Event::Pushed { token, pushed } => self.pushed(token, pushed, now),
            Event::Notify { text, receipt } => self.notify_for(text, receipt, now),
            Event::Retry { id, receipt } => self.retry(id, receipt, now),
            Event::Cancel { id, receipt } => self.cancel(id, receipt, now),
            Event::Wait { id, receipt } => self.wait(id, receipt),
            Event::Drain => self.draining = true,
            // What needs the disk alone is the spooler's.
            Event::Pause { .. } | Event::Resume { .. } | Event::Prune { .. } | Event::Count => {}
        }
        self.watch(now);
        self.schedule(now);
    }

    /// The hand-offs changed by the last event, in the order they have to be written.
    #[must_use]
    pub fn unwritten(&self) -> Vec<Id> {
        self.touched.iter().map(|touch| touch.id).collect()
    }

    /// The hand-off of that id, to be written.
    pub fn entry_mut(&mut self, id: Id) -> Option<&mut Entry> {
        self.book.get_mut(id)
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

    /// Remembers which messages of the brain a closed hand-off was answered by.
    pub fn remember_answers(&mut self, h: &HandOff) {
        for result in &h.results {
            self.book.answered.insert(&result.message, h.id);
        }
    }

    /// A hand-off was written, and lies there now.
    pub fn written(&mut self, id: Id, lies: crate::handoff::life::State) {
        self.touched.retain(|touch| touch.id != id);
        self.fallouts.retain(|(owner, _)| *owner != id);
        let owed: Vec<Step> = self.owed.extract_if(.., |step| step.owner == Some(id)).collect();
        self.steps.splice(0..0, owed);
        if let Some(entry) = self.book.get_mut(id) {
            entry.lies = Some(lies);
            entry.dirty = false;
        }
        if let Some(trouble) = self.trouble.take() {
            self.note(None, format!("the disk takes writes again (it did not: {})", trouble.why));
        }
        self.answer_waiters(id);
        self.reindex(id);
        self.book.forget_if_over(id);
    }

    /// A hand-off could not be written: a decision is undone, a fact is kept and written later.
    pub fn not_written(&mut self, id: Id, why: &str, now: Now) {
        let Some(at) = self.touched.iter().position(|touch| touch.id == id) else { return };
        let touch = self.touched.remove(at);
        let held: Vec<Step> = self.steps.extract_if(.., |step| step.owner == Some(id)).collect();
        if touch.fact {
            // It has happened: word of it goes out once it is on disk. What was decided on top of it does not.
            self.owed.extend(held.into_iter().filter(Step::is_word));
        }
        let begun: Vec<Token> = self.begun.extract_if(.., |(_, owner)| *owner == id).map(|(token, _)| token).collect();
        for token in begun {
            self.forget_flight(token);
        }
        if let Some(entry) = self.book.get_mut(id) {
            entry.dirty |= touch.fact;
            match touch.fallback {
                Fallback::Keep => {}
                Fallback::Restore(before) => entry.h = *before,
                Fallback::Forget => self.book.remove(id),
            }
        }
        self.reindex(id);
        self.book.forget_if_over(id);
        if self.trouble.is_none() {
            self.warn(None, format!("the spool cannot be written: {why}"));
        }
        self.trouble = Some(Trouble { why: why.to_owned(), next_try: now.mono + DISK_RETRY });
        let fallouts: Vec<Fallout> =
            self.fallouts.extract_if(.., |(owner, _)| *owner == id).map(|(_, fallout)| fallout).collect();
        for fallout in fallouts {
            self.fall_out(fallout, why, now);
        }
    }

    /// Whether the disk refused the last write and it is time to try again.
    #[must_use]
    pub fn disk_retry_due(&self, now: Now) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.next_try <= now.mono)
    }

    /// Marks what the disk has not taken yet as to be written. Returns whether there was any.
    pub fn touch_dirty(&mut self) -> bool {
        let dirty: Vec<Id> = self.book.dirty();
        for id in &dirty {
            self.change(*id, true, |_| {});
        }
        !dirty.is_empty()
    }

    /// The disk was tried, with nothing to write.
    pub fn disk_probed(&mut self, result: Result<(), String>, now: Now) {
        match result {
            Ok(()) => {
                self.trouble = None;
                self.note(None, "the disk takes writes again".to_owned());
            }
            Err(why) => self.trouble = Some(Trouble { why, next_try: now.mono + DISK_RETRY }),
        }
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
        self.flights.is_empty() && self.book.dirty().is_empty()
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

    /// Changes a hand-off in memory, to be written after the event. `fact`: see the module's page.
    fn change(&mut self, id: Id, fact: bool, with: impl FnOnce(&mut HandOff)) {
        let Some(entry) = self.book.get_mut(id) else { return };
        let restore = |entry: &Entry| match entry.lies {
            Some(_) => Fallback::Restore(Box::new(entry.h.clone())),
            None => Fallback::Forget,
        };
        match self.touched.iter_mut().find(|touch| touch.id == id) {
            Some(touch) if fact => (touch.fact, touch.fallback) = (true, Fallback::Keep),
            Some(touch) if matches!(touch.fallback, Fallback::Keep) => touch.fallback = restore(entry),
            Some(_) => {}
            None if fact => self.touched.push(Touch { id, fallback: Fallback::Keep, fact }),
            None => self.touched.push(Touch { id, fallback: restore(entry), fact }),
        }
        with(&mut entry.h);
        self.reindex(id);
    }

    fn note(&mut self, owner: Option<Id>, text: String) {
        self.steps.push(Step { owner, effect: Effect::Note { text, of: owner } });
    }

    fn warn(&mut self, owner: Option<Id>, text: String) {
        self.steps.push(Step { owner, effect: Effect::Warn { text, of: owner } });
    }

    fn done(&mut self, owner: Option<Id>, receipt: Receipt) {
        self.steps.push(Step { owner, effect: Effect::Done(receipt) });
    }
}

#[cfg(test)]
mod tests;
