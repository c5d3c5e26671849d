//! What a person wants of a hand-off: retry, cancel; and the pause.

use serde_json::json;

use crate::config::Side;
use crate::control::wire::Paused;
use crate::error::Error;
use crate::handoff::life::State;
use crate::handoff::{HandOff, Id, Reason};

use super::event::{Effect, Now, Receipt};
use super::{Cargo, Fallout, Queue, Step};

impl Queue {
    /// Gives a failed hand-off fresh attempts, pushes a waiting or unanswered one again.
    pub(super) fn retry(&mut self, id: Id, receipt: Receipt, now: Now) {
        let Some(h) = self.found("retrying", id, receipt) else { return };
        if h.state() == State::Done {
            return self.fail(receipt, done_already("retrying", id));
        }
        if !h.results.is_empty() && !h.is_cancelled() {
            // Its answer waits for the bot: it is tried again at once.
            if let Some(entry) = self.book.get_mut(id) {
                entry.bot.not_before = now.mono;
            }
            return self.succeed(None, receipt, id);
        }
        self.change(id, false, |h| h.retry(now.wall));
        if let Some(entry) = self.book.get_mut(id) {
            entry.brain.not_before = now.mono;
        }
        self.book.wait_anew(id);
        self.reindex(id);
        self.note(Some(id), "is tried again, as a person wanted".to_owned());
        self.fallouts.push((id, Fallout::Answer { receipt, doing: format!("retrying hand-off {id}") }));
        self.succeed(Some(id), receipt, id);
    }

    /// Gives a hand-off up.
    pub(super) fn cancel(&mut self, id: Id, receipt: Receipt, now: Now) {
        let Some(h) = self.found("cancelling", id, receipt) else { return };
        if h.is_cancelled() {
            return self.succeed(None, receipt, id);
        }
        if !h.results.is_empty() {
            return self.fail(receipt, done_already("cancelling", id));
        }
        self.change(id, false, |h| h.give_up(Reason::Cancelled, None, now.wall));
        self.withdraw(Side::Brain, |cargo| matches!(cargo, Cargo::HandOff { id: of, .. } if of == id));
        self.note(Some(id), "was cancelled".to_owned());
        self.fallouts.push((id, Fallout::Answer { receipt, doing: format!("cancelling hand-off {id}") }));
        self.succeed(Some(id), receipt, id);
    }

    /// It was paused before the start.
    pub fn restore_pause(&mut self, paused: Option<Paused>) {
        self.paused = paused;
    }

    /// The pause began or ended; the spooler has seen to the file.
    pub fn set_paused(&mut self, paused: Option<Paused>, now: Now) {
        self.book.run_to(now, self.paused.is_some());
        match (&self.paused, &paused) {
            (None, Some(Paused { reason, .. })) => {
                let why = reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
                self.note(None, format!("paused{why}: hand-offs wait"));
            }
            (Some(_), None) => self.note(None, "resumed: hand-offs go on".to_owned()),
            (Some(Paused { reason: before, .. }), Some(Paused { reason: Some(reason), .. }))
                if before.as_ref() != Some(reason) =>
            {
                self.note(None, format!("still paused, now for another reason: {reason}"));
            }
            _ => {}
        }
        match paused {
            Some(_) => self.withdraw(Side::Brain, |cargo| matches!(cargo, Cargo::HandOff { .. })),
            None => self.recalled = None,
        }
        self.paused = paused;
    }

    fn found(&mut self, doing: &str, id: Id, receipt: Receipt) -> Option<&HandOff> {
        if !self.holds(id) {
            self.fail(receipt, Error::failed(format!("{doing} hand-off {id}: there is none of that id")));
        }
        self.book.get(id).map(|entry| &entry.h)
    }

    fn succeed(&mut self, owner: Option<Id>, receipt: Receipt, id: Id) {
        self.steps.push(Step { owner, effect: Effect::Answer(receipt, Ok(json!({ "id": id }))) });
        if owner.is_none() {
            self.book.forget_if_over(id);
        }
    }

    fn fail(&mut self, receipt: Receipt, error: Error) {
        self.steps.push(Step { owner: None, effect: Effect::Answer(receipt, Err(error)) });
    }
}

fn done_already(doing: &str, id: Id) -> Error {
    Error::failed(format!("{doing} hand-off {id}: it has its result already"))
        .hint(format!("`anna-relay show {}` shows it", id.short()))
}
