//! What comes in: hand-offs from the bot and from scripts, and what the brain says.

use serde_json::json;

use crate::config::Side;
use crate::error::Error;
use crate::handoff::answers::Recorded;
use crate::handoff::{HandOff, Id, Origin, Reason, words};
use crate::text::for_event;

use super::event::{Arrival, Effect, Incoming, Now, Receipt, Reply};
use super::{About, Entry, Fallout, Queue};

/// A pause older than this is recalled to the bot at its next hand-off (`spec.md`, "Nights").
const LONG_PAUSE: time::Duration = time::Duration::hours(12);

impl Queue {
    /// Accepts a hand-off. It is on disk before anything else comes of it.
    pub(super) fn accept(&mut self, arrival: Arrival, now: Now) {
        if self.holds(arrival.id) {
            return self.done(None, arrival.receipt);
        }
        let Arrival { id, from, receipt, .. } = arrival;
        let (text, doing) = (for_event(&arrival.text).to_owned(), "accepting the hand-off".to_owned());
        self.enter(arrival, now);
        self.note(Some(id), format!("hand-off from {}: {text}", who(from)));
        match from {
            Origin::Script => {
                self.steps
                    .push(super::Step { owner: Some(id), effect: Effect::Answer(receipt, Ok(json!({ "id": id }))) });
                self.fallouts.push((id, Fallout::Answer { receipt, doing }));
            }
            Origin::Bot => {
                self.done(Some(id), receipt);
                self.fallouts.push((id, Fallout::RefuseBot { receipt, text }));
                self.recall_long_pause(now);
            }
        }
    }

    /// Keeps a hand-off that the breaker refused, or only says that it was.
    pub(super) fn refuse(&mut self, arrival: Arrival, keep: bool, now: Now) {
        let Arrival { id, receipt, .. } = arrival;
        if self.holds(id) {
            return self.done(None, receipt);
        }
        let said = format!("hand-off refused by the breaker: {}", for_event(&arrival.text));
        if !keep {
            // A hook brings it once more.
            if self.unclaimed.get(&id.to_string()).is_none() {
                self.unclaimed.insert(&id.to_string(), id);
                self.warn(None, said);
            }
            return self.done(None, receipt);
        }
        self.enter(arrival, now);
        self.change(id, false, |h| h.give_up(Reason::Breaker, None, now.wall));
        self.warn(Some(id), said.clone());
        self.done(Some(id), receipt);
        self.fallouts.push((id, Fallout::Lose { receipt, text: said }));
    }

    /// Puts a new hand-off into memory, to be written.
    fn enter(&mut self, arrival: Arrival, now: Now) {
        let created = self.book.next_created(now.wall);
        let mut h = HandOff::new(arrival.id, arrival.from, arrival.text, created);
        if let Some(message) = &arrival.message {
            h = h.made_by(message);
        }
        h.files = kept(arrival.files);
        self.book.insert(Entry::new(h, None, std::time::Duration::ZERO));
        self.change(arrival.id, false, |_| {});
    }

    /// What is done instead of accepting, if the disk does not take it.
    pub(super) fn fall_out(&mut self, fallout: Fallout, why: &Error, now: Now) {
        match fallout {
            Fallout::Answer { receipt, doing } => {
                let advice = why.advice().map(|advice| format!("{advice}, then ")).unwrap_or_default();
                let error =
                    Error::failed(format!("{doing}: {why}")).hint(format!("nothing was changed; {advice}do it again"));
                self.steps.push(super::Step { owner: None, effect: Effect::Answer(receipt, Err(error)) });
            }
            Fallout::RefuseBot { receipt, text } => {
                self.warn(None, format!("hand-off refused, for it cannot be kept ({why}): {text}"));
                let asked = words::asked(&text);
                self.notify(
                    format!("a hand-off was refused, for it cannot be kept: {why}; say it again later\n{asked}"),
                    About::Event,
                    now,
                );
                self.done(None, receipt);
            }
            Fallout::Lose { receipt, text } => {
                self.warn(None, format!("{text} (it cannot be kept for a retry: {why})"));
                self.done(None, receipt);
            }
        }
    }

    /// Refuses a hand-off of which the disk does not say whether it is known.
    pub fn turn_away(&mut self, arrival: Arrival, by_breaker: bool, why: &Error, now: Now) {
        let Arrival { receipt, text, from, .. } = arrival;
        let fallout = match from {
            Origin::Script => Fallout::Answer { receipt, doing: "accepting the hand-off".to_owned() },
            Origin::Bot if by_breaker => {
                Fallout::Lose { receipt, text: format!("hand-off refused by the breaker: {text}") }
            }
            Origin::Bot => Fallout::RefuseBot { receipt, text },
        };
        self.fall_out(fallout, why, now);
    }

    /// Whether something will come of a reply to that hand-off.
    #[must_use]
    pub fn wants_reply(&self, id: Id, message: &str) -> bool {
        self.book
            .get(id)
            .is_some_and(|entry| !entry.h.is_cancelled() && entry.h.answers().all(|known| known != message))
    }

    /// Records what the brain said, or puts it into the stream where it belongs to nothing.
    pub(super) fn reply(&mut self, reply: Reply, now: Now) {
        let receipt = reply.receipt;
        let Some(id) = reply.found.filter(|id| self.holds(*id)) else {
            self.unclaimed(&reply, "names no known hand-off");
            return self.done(None, receipt);
        };
        if self.book.get(id).is_some_and(|entry| entry.h.is_cancelled()) {
            self.unclaimed(&reply, &format!("is for the cancelled hand-off {}", id.short()));
            return self.done(None, receipt);
        }
        let Reply { message, text, files, edit, .. } = reply;
        let files = kept(files);
        let said = for_event(&text).to_owned();
        let repeated = self.book.get(id).is_some_and(|entry| match edit {
            true => entry.h.results.iter().any(|r| r.message == message && r.text == text),
            false => entry.h.answers().any(|known| known == message),
        });
        if repeated {
            return self.done_once_written(id, receipt);
        }
        let mut recorded = Recorded::Before;
        self.change(id, true, |h| {
            h.answered();
            recorded = match edit {
                true => h.record_edit(&message, text, now.wall),
                false => h.record_reply(&message, text, files, now.wall),
            };
        });
        if let Recorded::As(kind) = recorded {
            self.note_fact(id, format!("{} from the brain: {said}", kind.word()));
        }
        // Also where nothing was added: it may have said the same as a message before it.
        self.book.answered.insert(&message, id);
        self.owed.push((id, receipt));
    }

    /// Says that something is dealt with, but not before the disk has what is in memory.
    fn done_once_written(&mut self, id: Id, receipt: Receipt) {
        match self.book.get(id).is_some_and(|entry| entry.dirty) {
            true => self.owed.push((id, receipt)),
            false => self.done(None, receipt),
        }
    }

    fn unclaimed(&mut self, reply: &Reply, why: &str) {
        let said = Id::derive(Side::Brain, &reply.text);
        if self.unclaimed.get(&reply.message) == Some(said) {
            return;
        }
        self.unclaimed.insert(&reply.message, said);
        let what = if reply.edit { "edit" } else { "reply" };
        match (&reply.reply_to, reply.edit) {
            (None, false) => self.note(None, format!("the brain said, to nobody: {}", reply.text)),
            (Some(to), false) => {
                self.warn(None, format!("a reply of the brain {why} (reply_to {to:?}): {}", reply.text))
            }
            (_, true) => self.note(None, format!("an {what} of the brain {why}: {}", reply.text)),
        }
    }

    fn recall_long_pause(&mut self, now: Now) {
        let Some(paused) = self.paused.as_ref().filter(|paused| now.wall - paused.since > LONG_PAUSE) else { return };
        let again = time::Duration::try_from(self.recalled.map_or(std::time::Duration::MAX, |at| now.mono - at));
        if again.is_ok_and(|since| since < LONG_PAUSE) {
            return;
        }
        self.recalled = Some(now.mono);
        let hours = (now.wall - paused.since).whole_hours();
        let text = format!(
            "the brain has been paused for {hours} hours, so this waits too; `anna-relay resume` lets all go on",
        );
        self.notify(text, About::Event, now);
    }

    /// Answers those who wait for this hand-off, if there is something to say.
    pub(super) fn answer_waiters(&mut self, id: Id) {
        if !self.waiters.iter().any(|(waited, _)| *waited == id) {
            return;
        }
        let said = |entry: &&Entry| !entry.h.waits_for_result() && !entry.dirty;
        let Some(entry) = self.book.get(id).filter(said) else { return };
        let document = serde_json::to_value(&entry.h).unwrap_or_default();
        for (_, receipt) in self.waiters.extract_if(.., |(waited, _)| *waited == id) {
            self.steps.push(super::Step { owner: None, effect: Effect::Answer(receipt, Ok(document.clone())) });
        }
    }

    pub(super) fn wait(&mut self, id: Id, receipt: Receipt) {
        if !self.holds(id) {
            let error = Error::failed(format!("waiting for hand-off {id}: there is none of that id"));
            return self.steps.push(super::Step { owner: None, effect: Effect::Answer(receipt, Err(error)) });
        }
        self.waiters.push((id, receipt));
        self.answer_waiters(id);
        self.book.forget_if_over(id);
    }
}

fn who(from: Origin) -> &'static str {
    match from {
        Origin::Bot => "the bot",
        Origin::Script => "a script",
    }
}

/// What the spooler made of the files on their way in.
fn kept(files: Vec<Incoming>) -> Vec<crate::handoff::Attachment> {
    let lost = |name| crate::handoff::Attachment { name, path: None, bytes: 0, unknown: Default::default() };
    files
        .into_iter()
        .map(|file| match file {
            Incoming::Kept(attachment) => attachment,
            Incoming::Lost { name } | Incoming::Fetched { name, .. } => lost(name),
            Incoming::Copy(path) => lost(path.to_string_lossy().into_owned()),
        })
        .collect()
}
