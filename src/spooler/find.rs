//! Finding what an event is about: in memory, else on the disk.

use std::io;
use std::time::Duration;

use serde_json::json;

use crate::config::Side;
use crate::error::During;
use crate::handoff::life::State;
use crate::handoff::{Id, Origin};
use crate::queue::event::{Arrival, Reply, Sighted};
use crate::queue::{Effect, Event, Now, Receipt};
use crate::spool::Fs;
use crate::spool::document::is_its_own_fault;

use super::Spooler;

/// The folders of hand-offs that are not in memory.
const CLOSED: [State; 2] = [State::Done, State::Failed];
/// How many closed hand-offs, the newest first, are looked through for the message that an edit names.
const LOOK_BACK: usize = 2_000;
/// How long after the disk could not be read it is tried again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl<F: Fs> Spooler<F> {
    /// Brings into memory what the event is about. None: it was dealt with. Else the event to be handled, and the
    /// hand-off that was brought for it.
    pub(super) fn look_up(&mut self, event: Event, now: Now) -> Option<(Event, Option<Id>)> {
        match event {
            Event::Accept(arrival) => self.admit(arrival, None, now).map(|arrival| (Event::Accept(arrival), None)),
            Event::Refuse { arrival, keep } => {
                self.admit(arrival, Some(keep), now).map(|arrival| (Event::Refuse { arrival, keep }, None))
            }
            Event::Reply(reply) => self.claim(reply, now),
            Event::Retry { id, receipt } | Event::Cancel { id, receipt } | Event::Wait { id, receipt } => {
                match self.bring(id, now).during(format_args!("reading hand-off {id}")) {
                    Ok(brought) => Some((event, brought.then_some(id))),
                    Err(error) => {
                        self.answer(receipt, Err(error));
                        None
                    }
                }
            }
            Event::Sighted(sighted) => self.recognise(sighted, now),
            event => Some((event, None)),
        }
    }

    /// Finds out which hand-off a message that a session has belongs to. One that is none of ours means that something
    /// else speaks to the session.
    fn recognise(&mut self, mut sighted: Sighted, now: Now) -> Option<(Event, Option<Id>)> {
        let id = sighted.message.parse::<Id>().ok();
        let own = id.is_some_and(|id| self.queue.issued(&id));
        sighted.of = match sighted.side {
            Side::Brain => id,
            Side::Bot => self.find_told_as(&sighted.message, own),
        };
        let brought = sighted.of.map_or(Ok(false), |id| self.bring(id, now));
        let known = sighted.of.is_some_and(|id| self.queue.holds(id));
        if !known && sighted.new && brought.is_ok() && !own {
            let Sighted { side, message, at, bytes, .. } = sighted;
            let at = at.replace_nanosecond(0).unwrap_or(at);
            let text =
                format!("something other than the relay prompted the {side} at {at}: message {message}, {bytes} bytes");
            self.effects.push(Effect::Warn { text, of: None });
            return None;
        }
        let brought = sighted.of.filter(|_| brought.is_ok_and(|brought| brought));
        Some((Event::Sighted(sighted), brought))
    }

    /// Finds out which hand-off a reply is about. Where the disk does not say, the reply waits, and those after it
    /// behind it.
    fn claim(&mut self, mut reply: Reply, now: Now) -> Option<(Event, Option<Id>)> {
        if self.look_again_at.is_some() {
            self.deferred.push_back(reply);
            return None;
        }
        let found = match (reply.edit, reply.reply_to.as_deref()) {
            (true, _) => self.find_answered_by(&reply.message),
            (false, Some(part)) => self.find_named(part),
            (false, None) => Ok(None),
        };
        let brought = found.and_then(|found| {
            reply.found = found;
            found.map_or(Ok(false), |id| self.bring(id, now))
        });
        match brought {
            Ok(brought) => {
                self.unreadable = false;
                let brought = reply.found.filter(|_| brought);
                Some((Event::Reply(self.keep_files(reply)), brought))
            }
            Err(error) => {
                if !std::mem::replace(&mut self.unreadable, true) {
                    let text = format!("a reply of the brain waits, for the spool cannot be read: {error}");
                    self.effects.push(Effect::Warn { text, of: reply.found });
                }
                self.look_again_at = Some(now.mono + LOOK_AGAIN);
                self.deferred.push_back(reply);
                None
            }
        }
    }

    /// The replies that have waited long enough for the disk to be readable.
    pub(super) fn deferred(&mut self, now: Now) -> Vec<Reply> {
        if self.look_again_at.is_none_or(|at| at > now.mono) {
            return Vec::new();
        }
        self.look_again_at = None;
        self.deferred.drain(..).collect()
    }

    /// Lets a hand-off in only if it is not known yet, with its files in their folder. `refused`: the breaker refused
    /// it, and whether it is kept.
    fn admit(&mut self, mut arrival: Arrival, refused: Option<bool>, now: Now) -> Option<Arrival> {
        let known = if self.queue.holds(arrival.id) { Ok(true) } else { self.store.is_closed(arrival.id) };
        let known = match known.during("looking whether the hand-off is known") {
            Ok(known) => known,
            Err(error) => {
                self.discard(&mut arrival.files);
                self.queue.turn_away(arrival, refused.is_some(), &error.to_string(), now);
                return None;
            }
        };
        if known {
            self.discard(&mut arrival.files);
            self.effects.push(match arrival.receipt {
                Receipt::Request(_) => Effect::Answer(arrival.receipt, Ok(json!({ "id": arrival.id }))),
                receipt => Effect::Done(receipt),
            });
            return None;
        }
        if refused == Some(false) {
            self.discard(&mut arrival.files);
        }
        let files = std::mem::take(&mut arrival.files);
        arrival.files = match arrival.from {
            Origin::Bot => self.bring_in_or_lose(arrival.id, files),
            Origin::Script => match self.bring_in(arrival.id, files) {
                Ok(files) => files,
                Err(error) => {
                    self.store.forget_files(arrival.id);
                    self.answer(arrival.receipt, Err(error));
                    return None;
                }
            },
        };
        Some(arrival)
    }

    /// Keeps the files of a reply, unless nothing will come of it.
    fn keep_files(&mut self, mut reply: Reply) -> Reply {
        if let Some(id) = reply.found.filter(|id| self.queue.wants_reply(*id, &reply.message)) {
            reply.files = self.bring_in_or_lose(id, std::mem::take(&mut reply.files));
        } else {
            self.discard(&mut reply.files);
        }
        reply
    }

    /// Brings a closed hand-off into memory. Whether it did.
    fn bring(&mut self, id: Id, now: Now) -> io::Result<bool> {
        if self.queue.holds(id) {
            return Ok(false);
        }
        match self.store.load(id, &CLOSED) {
            Ok(Some((h, lies))) => {
                self.queue.restore(h, lies, Duration::ZERO, now);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) if is_its_own_fault(&error) => {
                tracing::warn!(%id, %error, "reading a closed hand-off");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The hand-off that a `reply_to` names: a whole id, or a part of one, of 8 or more characters, that no other has,
    /// open or closed. For a minute ids begin alike, so a part that fits two is no guess to make.
    fn find_named(&mut self, part: &str) -> io::Result<Option<Id>> {
        let part = part.trim().to_ascii_lowercase();
        if let Ok(id) = part.parse::<Id>() {
            return Ok(Some(id));
        }
        if part.len() < 8 || !part.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
            return Ok(None);
        }
        let open = self.queue.ids_with_part(&part);
        let closed = self.closed_names()?;
        let line = |at: usize| closed[..at].rfind('\n').map_or(0, |end| end + 1);
        let closed = closed.match_indices(&part).filter_map(|(at, _)| closed[line(at)..].lines().next()?.parse().ok());
        let mut found: Option<Id> = None;
        for id in open.into_iter().chain(closed) {
            if found.replace(id).is_some_and(|other| other != id) {
                return Ok(None);
            }
        }
        Ok(found)
    }

    /// The ids in `done/` and `failed/`, one a line: read once, and kept up to date, for a brain that names what is not
    /// there must not have the folders listed over and over.
    fn closed_names(&mut self) -> io::Result<&str> {
        if self.closed_names.is_none() {
            let mut names = String::new();
            for state in CLOSED {
                self.store.ids(state)?.iter().for_each(|id| names.push_str(&format!("{id}\n")));
            }
            self.closed_names = Some(names);
        }
        Ok(self.closed_names.as_deref().unwrap_or_default())
    }

    /// The hand-off that has that message of the brain among its results.
    fn find_answered_by(&mut self, message: &str) -> io::Result<Option<Id>> {
        if self.queue.answered_by(message).is_none() && !self.looked_back {
            self.look_back()?;
        }
        Ok(self.queue.answered_by(message))
    }

    /// The hand-off of which the bot was told with that message; of one of our own also where that was before the start.
    fn find_told_as(&mut self, message: &str, own: bool) -> Option<Id> {
        let known = self.queue.sent_as(message);
        if known.is_none()
            && own
            && !self.looked_back
            && let Err(error) = self.look_back()
        {
            tracing::debug!(%error, "looking for what the bot was told");
        }
        known.or_else(|| self.queue.sent_as(message))
    }

    /// Has the queue remember what closed hand-offs were answered by, and told as. Once will do, since it remembers the later ones
    /// by itself; and a brain that edits what nobody knows must not have the disk read over and over.
    fn look_back(&mut self) -> io::Result<()> {
        let mut ids = self.store.ids(State::Done)?;
        ids.truncate(LOOK_BACK);
        for id in ids.into_iter().rev() {
            match self.store.load(id, &[State::Done]) {
                Ok(Some((h, _))) => self.queue.remember(&h),
                Err(error) if !is_its_own_fault(&error) => return Err(error),
                _ => {}
            }
        }
        self.looked_back = true;
        Ok(())
    }
}
