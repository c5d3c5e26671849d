//! The hand-offs in memory, with indexes, so that no step looks at all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use time::OffsetDateTime;

use crate::handoff::life::State;
use crate::handoff::{HandOff, Id, SessionKey};

use super::event::{Now, Token};
use super::remembered::Remembered;

/// Hand-offs accepted less than this before one another came at once.
const AT_ONCE: time::Duration = time::Duration::SECOND;

/// Word that has to be brought to a side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errand {
    /// It is under way.
    pub flight: Option<Token>,
    /// It is not tried before this.
    pub not_before: Duration,
}

/// A hand-off in memory.
#[derive(Debug)]
pub struct Entry {
    /// It.
    pub h: HandOff,
    /// The folder it lies in; none before it is written for the first time.
    pub lies: Option<State>,
    pub(super) brain: Errand,
    pub(super) bot: Errand,
    pub(super) dirty: bool,
    /// How long it had waited for a result by `mark`.
    waited: Duration,
    mark: Duration,
    seq: u64,
    index: Index,
}

/// Where an entry is in the indexes.
#[derive(Debug, Default)]
struct Index {
    brain: bool,
    take_back: bool,
    bot: bool,
    alarm: Option<Duration>,
    alarmed: bool,
}

impl Entry {
    /// An entry for a hand-off that has waited so long for a result.
    #[must_use]
    pub fn new(h: HandOff, lies: Option<State>, waited: Duration) -> Self {
        Entry {
            h,
            lies,
            brain: Errand::default(),
            bot: Errand::default(),
            dirty: false,
            waited,
            mark: Duration::ZERO,
            seq: 0,
            index: Index::default(),
        }
    }

    /// How long it has waited, for [`Entry::set_wait`].
    pub(super) fn wait(&self) -> (Duration, Duration) {
        (self.waited, self.mark)
    }

    pub(super) fn set_wait(&mut self, wait: (Duration, Duration)) {
        (self.waited, self.mark) = wait;
    }
}

/// The hand-offs in memory.
#[derive(Debug, Default)]
pub(super) struct Book {
    entries: BTreeMap<Id, Entry>,
    /// To be pushed to the brain, in the order they were accepted.
    pub for_brain: BTreeSet<(u64, Id)>,
    /// To be taken back from the brain.
    pub take_backs: BTreeSet<(u64, Id)>,
    /// With something the bot was not told yet.
    pub for_bot: BTreeSet<(u64, Id)>,
    /// When each wait becomes an alarm, by [`Book::ran`].
    pub alarms: BTreeSet<(Duration, Id)>,
    /// How many waits have become alarms.
    pub alarmed: usize,
    /// Unpaused time: the clock of waits.
    ran: Duration,
    ran_at: Option<Duration>,
    /// Also of hand-offs that are not in memory any more.
    pub answered: Remembered,
    /// What was pushed to the bot, by the message ids it was posted with.
    pub sent_as: Remembered,
    next_seq: u64,
    /// When the latest one was accepted.
    last_created: Option<OffsetDateTime>,
}

impl Book {
    pub fn get(&self, id: Id) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub fn get_mut(&mut self, id: Id) -> Option<&mut Entry> {
        self.entries.get_mut(&id)
    }

    pub fn ids(&self) -> impl Iterator<Item = Id> {
        self.entries.keys().copied()
    }

    pub fn dirty(&self) -> Vec<Id> {
        self.entries.values().filter(|entry| entry.dirty).map(|entry| entry.h.id).collect()
    }

    pub fn is_dirty(&self) -> bool {
        self.entries.values().any(|entry| entry.dirty)
    }

    pub fn insert(&mut self, mut entry: Entry) {
        entry.seq = self.next_seq;
        entry.mark = self.ran;
        self.next_seq += 1;
        self.last_created = self.last_created.max(Some(entry.h.created));
        self.remember(&entry.h);
        self.entries.insert(entry.h.id, entry);
    }

    /// Remembers by what it was answered, and what the bot was told of it.
    pub fn remember(&mut self, h: &HandOff) {
        h.answers().for_each(|message| self.answered.insert(message, h.id));
        let told = h.results.iter().flat_map(|result| &result.pushes);
        for sent in told.chain(h.failed.iter().flat_map(|failed| &failed.pushes)).filter_map(|push| push.id) {
            self.sent_as.insert(&sent.to_string(), h.id);
        }
    }

    /// When a hand-off that is accepted now was accepted: later than those before it, also where they came at once,
    /// for after a restart that is all that tells their order. A clock that was set back is not made up for.
    pub fn next_created(&self, now: OffsetDateTime) -> OffsetDateTime {
        match self.last_created {
            Some(last) if last >= now && last - now < AT_ONCE => last + time::Duration::NANOSECOND,
            _ => now,
        }
    }

    pub fn remove(&mut self, id: Id) {
        self.unindex(id);
        self.entries.remove(&id);
    }

    /// Lets go of a hand-off with nothing left to do.
    pub fn forget_if_over(&mut self, id: Id) {
        let over = self.entries.get(&id).is_some_and(|entry| {
            let at_rest = entry.brain.flight.is_none() && entry.bot.flight.is_none() && !entry.dirty;
            at_rest && entry.lies.is_some_and(|state| !state.is_open())
        });
        if over {
            self.remove(id);
        }
    }

    /// The clock of waits goes on, unless it is paused.
    pub fn run_to(&mut self, now: Now, paused: bool) {
        if let Some(before) = self.ran_at.replace(now.mono)
            && !paused
        {
            self.ran += now.mono.saturating_sub(before);
        }
    }

    /// When the next wait becomes an alarm, if nothing is paused until then.
    pub fn next_alarm(&self) -> Option<Duration> {
        let (at, _) = self.alarms.first()?;
        Some(self.ran_at.unwrap_or_default() + at.saturating_sub(self.ran))
    }

    /// The waits that have become alarms.
    pub fn due_alarms(&self) -> Vec<Id> {
        /// How many at a time: each is written, and a start after a week away must not hold up all else with them.
        const AT_ONCE: usize = 64;
        self.alarms.iter().take_while(|(at, _)| *at <= self.ran).take(AT_ONCE).map(|(_, id)| *id).collect()
    }

    /// A new wait begins.
    pub fn wait_anew(&mut self, id: Id) {
        let ran = self.ran;
        if let Some(entry) = self.entries.get_mut(&id) {
            (entry.waited, entry.mark) = (Duration::ZERO, ran);
        }
    }

    /// Brings the indexes in line with a hand-off that was changed. `present`: the brain's session.
    pub fn reindex(&mut self, id: Id, present: Option<SessionKey>, alarm: Duration) {
        self.unindex(id);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let waits = entry.h.waits_for_result();
        let index = Index {
            brain: entry.brain.flight.is_none() && entry.h.wants_push(present),
            take_back: entry.brain.flight.is_none() && entry.h.owes_take_back(),
            bot: entry.bot.flight.is_none()
                && (entry.h.owes_failure() || entry.h.results.iter().any(|r| r.told.is_none())),
            alarm: (waits && entry.h.alarmed.is_none()).then(|| entry.mark + alarm.saturating_sub(entry.waited)),
            alarmed: waits && entry.h.alarmed.is_some(),
        };
        let key = (entry.seq, id);
        for (is, set) in [
            (index.brain, &mut self.for_brain),
            (index.take_back, &mut self.take_backs),
            (index.bot, &mut self.for_bot),
        ] {
            if is {
                set.insert(key);
            }
        }
        if let Some(at) = index.alarm {
            self.alarms.insert((at, id));
        }
        self.alarmed += usize::from(index.alarmed);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.index = index;
        if let Some(last) = entry.h.results.last() {
            self.answered.insert(&last.message, id);
        }
    }

    fn unindex(&mut self, id: Id) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let key = (entry.seq, id);
        let index = std::mem::take(&mut entry.index);
        for (was, set) in [
            (index.brain, &mut self.for_brain),
            (index.take_back, &mut self.take_backs),
            (index.bot, &mut self.for_bot),
        ] {
            if was {
                set.remove(&key);
            }
        }
        if let Some(at) = index.alarm {
            self.alarms.remove(&(at, id));
        }
        self.alarmed -= usize::from(index.alarmed);
    }
}
