//! What was changed has to be written, and what becomes of it if the disk does not take it.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::handoff::life::State;
use crate::handoff::{HandOff, Id, Push};

use super::book::Entry;
use super::event::{Now, Receipt, Token};
use super::{Fallout, Queue};

/// How long after a failed write the disk is tried again.
const DISK_RETRY: Duration = Duration::from_secs(1);
/// How often that doubles, while the disk takes a probe and then not what matters: to about a minute, so that a person
/// is not told of it every second.
const MAX_DISK_DOUBLINGS: u32 = 6;
/// A hand-off that was changed in this step and has to be written.
#[derive(Debug)]
pub(super) struct Touch {
    pub id: Id,
    /// What memory goes back to if it cannot be written.
    pub fallback: Fallback,
    /// Whether something has happened that has to be written some time.
    pub fact: bool,
}

/// See [`Touch`].
#[derive(Debug)]
pub(super) enum Fallback {
    /// It was never on disk: it is forgotten.
    Forget,
    /// It was only decided: it is as it was, and so is its wait.
    Restore(Box<(HandOff, (Duration, Duration))>),
    /// All that was decided was a push: that is struck out.
    Strike(Place),
    /// It has happened: it stays.
    Keep,
}

/// Whose pushes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// The hand-off's own, to the brain.
    HandOff,
    /// Those of this one of its outcomes, to the bot.
    Outcome(usize),
    /// Those of the word that it was given up.
    Failure,
}

impl Place {
    fn pushes(self, h: &mut HandOff) -> Option<&mut Vec<Push>> {
        match self {
            Place::HandOff => Some(&mut h.pushes),
            Place::Outcome(at) => h.results.get_mut(at).map(|outcome| &mut outcome.pushes),
            Place::Failure => h.failed.as_mut().map(|failed| &mut failed.pushes),
        }
    }
}

/// That the disk refused a write.
#[derive(Debug)]
pub(super) struct Trouble {
    why: String,
    pub next_try: Duration,
}

impl Queue {
    /// Changes a hand-off in memory, to be written after the event. `fact`: see the module's page.
    pub(super) fn change(&mut self, id: Id, fact: bool, with: impl FnOnce(&mut HandOff)) {
        self.touch(id, fact, |entry| Fallback::Restore(Box::new((entry.h.clone(), entry.wait()))));
        let Some(entry) = self.book.get_mut(id) else { return };
        with(&mut entry.h);
        self.reindex(id);
    }

    /// Decides on a push, to be written after the event. Like [`Queue::change`], with nothing copied to go back to.
    /// Returns which push of that place it is.
    pub(super) fn add_push(&mut self, id: Id, place: Place, push: impl FnOnce(usize) -> Push) -> usize {
        self.touch(id, false, |_| Fallback::Strike(place));
        let Some(pushes) = self.book.get_mut(id).and_then(|entry| place.pushes(&mut entry.h)) else { return 0 };
        let n = pushes.len();
        pushes.push(push(n));
        self.reindex(id);
        n
    }

    /// Marks a hand-off that is changed next as to be written. `undo`: what a decision goes back to.
    fn touch(&mut self, id: Id, fact: bool, undo: impl FnOnce(&Entry) -> Fallback) {
        let Some(entry) = self.book.get(id) else { return };
        let undo = || if entry.lies.is_some() { undo(entry) } else { Fallback::Forget };
        match self.touched.iter_mut().find(|touch| touch.id == id) {
            Some(touch) if fact => (touch.fact, touch.fallback) = (true, Fallback::Keep),
            Some(touch) if matches!(touch.fallback, Fallback::Keep) => touch.fallback = undo(),
            Some(_) => {}
            None if fact => self.touched.push(Touch { id, fallback: Fallback::Keep, fact }),
            None => self.touched.push(Touch { id, fallback: undo(), fact }),
        }
    }

    /// The hand-offs changed by the last event, in the order they have to be written.
    #[must_use]
    pub fn unwritten(&self) -> Vec<Id> {
        self.touched.iter().map(|touch| touch.id).collect()
    }

    /// A hand-off was written, and lies there now.
    pub fn written(&mut self, id: Id, lies: State, now: Now) {
        self.touched.retain(|touch| touch.id != id);
        self.fallouts.retain(|(owner, _)| *owner != id);
        let mut misplaced = false;
        if let Some(entry) = self.book.get_mut(id) {
            entry.lies = Some(lies);
            entry.dirty = false;
            misplaced = entry.h.state() != lies;
        }
        if misplaced {
            self.is_misplaced(id, now);
        } else {
            self.relapses = 0;
            self.end_trouble();
        }
        let owed: Vec<Receipt> =
            self.owed.extract_if(.., |(owner, _)| *owner == id).map(|(_, receipt)| receipt).collect();
        for receipt in owed {
            self.done(None, receipt);
        }
        self.answer_waiters(id);
        self.reindex(id);
        self.book.forget_if_over(id);
    }

    /// A hand-off could not be written: a decision is undone, a fact is kept and written later.
    pub fn not_written(&mut self, id: Id, why: &Error, now: Now) {
        let Some(at) = self.touched.iter().position(|touch| touch.id == id) else { return };
        let touch = self.touched.remove(at);
        self.steps.retain(|step| step.owner != Some(id));
        let begun: Vec<Token> = self.begun.extract_if(.., |(_, owner)| *owner == id).map(|(token, _)| token).collect();
        for token in begun {
            self.forget_flight(token);
        }
        if let Some(entry) = self.book.get_mut(id) {
            entry.dirty |= touch.fact;
            match touch.fallback {
                Fallback::Keep => {}
                Fallback::Strike(place) => {
                    place.pushes(&mut entry.h).and_then(Vec::pop);
                }
                Fallback::Restore(before) => {
                    let (h, wait) = *before;
                    entry.h = h;
                    entry.set_wait(wait);
                }
                Fallback::Forget => self.book.remove(id),
            }
        }
        self.reindex(id);
        self.book.forget_if_over(id);
        self.trouble(why, now);
        let fallouts: Vec<Fallout> =
            self.fallouts.extract_if(.., |(owner, _)| *owner == id).map(|(_, fallout)| fallout).collect();
        for fallout in fallouts {
            self.fall_out(fallout, why, now);
        }
    }

    /// A hand-off could not be moved into its folder: that is tried again.
    pub(super) fn is_misplaced(&mut self, id: Id, now: Now) {
        let Some(entry) = self.book.get_mut(id) else { return };
        entry.dirty = true;
        let why = Error::failed(format!("hand-off {id} cannot be moved into {}/", entry.h.state()));
        self.trouble(&why.hint("see the bridge's log for why (`journalctl --user -u anna-relay`)"), now);
    }

    /// A folder with hand-offs was gone, and they with it: they are written once more.
    pub fn write_anew(&mut self, lies: State) {
        let gone = self.book.ids().filter(|id| self.book.get(*id).is_some_and(|entry| entry.lies == Some(lies)));
        for id in gone.collect::<Vec<_>>() {
            self.change(id, true, |_| {});
        }
    }

    /// The disk did not do what it should: it is tried again soon, and nothing is begun until then.
    fn trouble(&mut self, why: &Error, now: Now) {
        if self.trouble.is_none() {
            self.warn(None, format!("the spool cannot be written: {}", why.with_advice()));
            self.relapses += 1;
        }
        let pause = DISK_RETRY * 2_u32.pow(self.relapses.saturating_sub(1).min(MAX_DISK_DOUBLINGS));
        self.trouble = Some(Trouble { why: why.to_string(), next_try: now.mono + pause });
    }

    /// The disk takes writes again, and has all it did not take before.
    fn end_trouble(&mut self) {
        if self.book.is_dirty() {
            return;
        }
        if let Some(trouble) = self.trouble.take() {
            self.note(None, format!("the disk takes writes again (it did not: {})", trouble.why));
        }
    }

    /// Whether decisions that need a write have to wait.
    pub(super) fn is_blocked(&self, now: Now) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.next_try > now.mono)
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
    pub fn disk_probed(&mut self, result: Result<()>, now: Now) {
        match result {
            Ok(()) => self.end_trouble(),
            Err(why) => self.trouble(&why, now),
        }
    }
}
