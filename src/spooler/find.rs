//! Finding what an event is about: in memory, else on the disk.

use serde_json::json;

use crate::error::During;
use crate::handoff::life::State;
use crate::handoff::{Id, Origin};
use crate::queue::event::{Arrival, Reply};
use crate::queue::{Effect, Event, Now, Receipt};
use crate::spool::Fs;

use super::Spooler;

/// The folders of hand-offs that are not in memory.
const CLOSED: [State; 2] = [State::Done, State::Failed];
/// How many closed hand-offs, the newest first, are looked through for the message that an edit names.
const LOOK_BACK: usize = 2_000;

impl<F: Fs> Spooler<F> {
    /// Brings into memory what the event is about. None: it was dealt with. Else the event to be handled, and the
    /// hand-off that was brought for it.
    pub(super) fn look_up(&mut self, event: Event, now: Now) -> Option<(Event, Option<Id>)> {
        match event {
            Event::Accept(arrival) => self.admit(arrival).map(|arrival| (Event::Accept(arrival), None)),
            Event::Refuse { arrival, keep } => {
                self.admit(arrival).map(|arrival| (Event::Refuse { arrival, keep }, None))
            }
            Event::Reply(mut reply) => {
                reply.found = match reply.edit {
                    true => self.find_answered_by(&reply.message),
                    false => reply.reply_to.as_deref().and_then(|part| self.find_named(part)),
                };
                let brought = reply.found.filter(|id| self.bring(*id, now));
                let reply = self.keep_files(reply);
                Some((Event::Reply(reply), brought))
            }
            Event::Retry { id, .. } | Event::Cancel { id, .. } | Event::Wait { id, .. } => {
                let brought = self.bring(id, now).then_some(id);
                Some((event, brought))
            }
            event => Some((event, None)),
        }
    }

    /// Lets a hand-off in only if it is not known yet, with its files in their folder.
    fn admit(&mut self, mut arrival: Arrival) -> Option<Arrival> {
        let known = self.queue.holds(arrival.id)
            || match self.store.is_closed(arrival.id).during("looking whether a hand-off is known") {
                Ok(known) => known,
                Err(error) => {
                    tracing::warn!(%error, id = %arrival.id, "taking it as new");
                    false
                }
            };
        if known {
            self.effects.push(match arrival.receipt {
                Receipt::Request(_) => Effect::Answer(arrival.receipt, Ok(json!({ "id": arrival.id }))),
                receipt => Effect::Done(receipt),
            });
            return None;
        }
        match self.bring_in(arrival.id, std::mem::take(&mut arrival.files)) {
            Ok(files) => arrival.files = files,
            Err(error) if arrival.from == Origin::Script => {
                self.answer(arrival.receipt, Err(error));
                return None;
            }
            Err(error) => {
                self.effects.push(Effect::Warn { text: error.to_string(), of: None });
            }
        }
        Some(arrival)
    }

    fn keep_files(&mut self, mut reply: Reply) -> Reply {
        let Some(id) = reply.found.filter(|_| !reply.files.is_empty()) else { return reply };
        match self.bring_in(id, std::mem::take(&mut reply.files)) {
            Ok(files) => reply.files = files,
            Err(error) => self.effects.push(Effect::Warn { text: error.to_string(), of: Some(id) }),
        }
        reply
    }

    /// Brings a closed hand-off into memory. Whether it did.
    fn bring(&mut self, id: Id, now: Now) -> bool {
        if self.queue.holds(id) {
            return false;
        }
        match self.store.load(id, &CLOSED) {
            Ok(Some((h, lies))) => {
                self.queue.restore(h, lies, std::time::Duration::ZERO, now);
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::warn!(%id, %error, "reading a closed hand-off");
                false
            }
        }
    }

    /// The hand-off that a `reply_to` names: a whole id, or a part of one, of 8 or more characters, that is unique
    /// among the open ones, or, where none of these has it, among the closed ones.
    fn find_named(&self, part: &str) -> Option<Id> {
        let part = part.trim();
        if let Ok(id) = part.parse::<Id>() {
            return Some(id);
        }
        let only = |ids: Vec<Id>| match ids[..] {
            [id] => Ok(Some(id)),
            [] => Ok(None),
            _ => Err(()),
        };
        match only(self.queue.ids_with_part(part)) {
            Ok(None) => {}
            found => return found.ok().flatten(),
        }
        if part.len() < 8 {
            return None;
        }
        let closed = CLOSED.iter().flat_map(|state| self.store.ids(*state).unwrap_or_default());
        only(closed.filter(|id| id.has_part(part)).collect()).ok().flatten()
    }

    /// The hand-off that has that message of the brain among its results.
    fn find_answered_by(&mut self, message: &str) -> Option<Id> {
        if self.queue.answered_by(message).is_none() && !self.looked_back {
            self.look_back();
        }
        self.queue.answered_by(message)
    }

    /// Has the queue remember what closed hand-offs were answered by. Once will do, since it remembers the later ones
    /// by itself; and a brain that edits what nobody knows must not have the disk read over and over.
    fn look_back(&mut self) {
        self.looked_back = true;
        let mut ids = self.store.ids(State::Done).unwrap_or_default();
        ids.truncate(LOOK_BACK);
        for id in ids.into_iter().rev() {
            if let Ok(Some((h, _))) = self.store.load(id, &[State::Done]) {
                self.queue.remember_answers(&h);
            }
        }
    }
}
