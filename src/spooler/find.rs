//! Finding what an event is about: in memory, else on the disk.

use std::io;
use std::time::Duration;

use serde_json::json;

use crate::config::Side;
use crate::handoff::life::State;
use crate::handoff::{Id, Origin};
use crate::queue::event::{Arrival, Reply, Sighted};
use crate::queue::{Effect, Event, Now, Receipt};
use crate::spool::document::is_its_own_fault;
use crate::spool::trouble::Explain;
use crate::spool::{Fs, trouble};

use super::Spooler;

/// The folders of hand-offs that are not in memory.
const CLOSED: [State; 2] = [State::Done, State::Failed];
/// How many closed hand-offs, the newest first, are looked through for the message that an edit names.
const LOOK_BACK: usize = 2_000;
/// After so many of them that cannot be read the others are left for the next time.
const UNREAD: usize = 8;

/// What a `reply_to` says.
enum Named {
    /// An id.
    Whole(Id),
    /// A part of one, of 8 or more characters.
    Part(String),
}

fn named(reply_to: &str) -> Option<Named> {
    let said = reply_to.trim().to_ascii_lowercase();
    match said.parse::<Id>() {
        Ok(id) => Some(Named::Whole(id)),
        Err(_) if said.len() >= 8 && said.chars().all(|c| c.is_ascii_hexdigit() || c == '-') => Some(Named::Part(said)),
        Err(_) => None,
    }
}

/// The one hand-off, open or closed (`closed`: ids, one a line), whose id has that part. For a minute ids begin alike,
/// so a part that fits two is no guess to make.
fn find_part(part: &str, open: Vec<Id>, closed: &str) -> Option<Id> {
    let line = |at: usize| closed[..at].rfind('\n').map_or(0, |end| end + 1);
    let closed = closed.match_indices(part).filter_map(|(at, _)| closed[line(at)..].lines().next()?.parse().ok());
    let mut fitting = open.into_iter().chain(closed);
    let found = fitting.next()?;
    fitting.all(|other| other == found).then_some(found)
}

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
                match self.bring(id, now).explain(format_args!("reading hand-off {id}")) {
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

    /// Finds out which hand-off a reply is about. Where the disk does not say, the reply waits, and behind it those
    /// after it that are about the same, as far as that is known.
    fn claim(&mut self, mut reply: Reply, now: Now) -> Option<(Event, Option<Id>)> {
        if self.deferred.holds_all() || reply.edit && self.deferred.has_edit_of(&reply.message) {
            self.deferred.push(reply);
            return None;
        }
        if reply.edit && self.deferred.has_edits() && self.queue.answered_by(&reply.message).is_none() {
            self.deferred.push_edit(reply);
            return None;
        }
        let found = match (reply.edit, reply.reply_to.as_deref().and_then(named)) {
            (true, _) => self.find_answered_by(&reply.message),
            (false, Some(Named::Whole(id))) => Ok(Some(id)),
            (false, Some(Named::Part(part))) => match self.closed.names() {
                Some(closed) => Ok(find_part(&part, self.queue.ids_with_part(&part), closed)),
                None => {
                    self.deferred.until_listed();
                    self.deferred.push(reply);
                    self.list_closed();
                    return None;
                }
            },
            (false, None) => Ok(None),
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                self.cannot_be_read(&trouble::explained(&error), None, now);
                self.deferred.push_edit(reply);
                return None;
            }
        };
        reply.found = found;
        if found.is_some_and(|id| self.deferred.has_one_for(id)) {
            self.deferred.push(reply);
            return None;
        }
        match found.map_or(Ok(false), |id| self.bring(id, now)) {
            Ok(brought) => {
                if found.is_some() {
                    self.deferred.readable(found);
                }
                let brought = reply.found.filter(|_| brought);
                Some((Event::Reply(self.keep_files(reply)), brought))
            }
            Err(error) => {
                self.cannot_be_read(&trouble::explained(&error), found, now);
                self.deferred.push_for(found, reply);
                None
            }
        }
    }

    /// Lets a hand-off in only if it is not known yet, with its files in their folder. `refused`: the breaker refused
    /// it, and whether it is kept.
    fn admit(&mut self, mut arrival: Arrival, refused: Option<bool>, now: Now) -> Option<Arrival> {
        let known = match arrival.id {
            id if self.queue.holds(id) => Ok(true),
            id if self.closed.are_older_than(id) => Ok(false),
            id => self.store.is_closed(id),
        };
        let known = match known {
            Ok(known) => known,
            Err(error) => {
                self.discard(&mut arrival.files);
                self.queue.turn_away(arrival, refused.is_some(), &trouble::explained(&error), now);
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

    /// The hand-off that has that message of the brain among its results.
    fn find_answered_by(&mut self, message: &str) -> io::Result<Option<Id>> {
        if let Some(id) = self.queue.answered_by(message) {
            return Ok(Some(id));
        }
        let read = self.look_back();
        match self.queue.answered_by(message) {
            None => read.map(|()| self.deferred.readable(None)).map(|()| None),
            found => Ok(found),
        }
    }

    /// The hand-off of which the bot was told with that message; of one of our own also where that was before the start.
    fn find_told_as(&mut self, message: &str, own: bool) -> Option<Id> {
        let known = self.queue.sent_as(message);
        if known.is_none()
            && own
            && let Err(error) = self.look_back()
        {
            tracing::debug!(%error, "looking for what the bot was told");
        }
        known.or_else(|| self.queue.sent_as(message))
    }

    /// Has the queue remember what closed hand-offs were answered by, and told as. Once will do, since it remembers the
    /// later ones by itself; and a brain that edits what nobody knows must not have the disk read over and over. One
    /// that cannot be read is tried again the next time.
    pub(super) fn look_back(&mut self) -> io::Result<()> {
        let mut unread = match self.unread.take() {
            Some(unread) => unread,
            None => {
                let ids = self.with_folders(|store| store.ids(State::Done))?;
                ids.into_iter().take(LOOK_BACK).rev().collect()
            }
        };
        let (mut failed, mut why) = (0, Ok(()));
        for _ in 0..unread.len() {
            if failed == UNREAD {
                break;
            }
            let Some(id) = unread.pop_front() else { break };
            match self.store.load(id, &[State::Done]) {
                Ok(Some((h, _))) => self.queue.remember(&h),
                Err(error) if !is_its_own_fault(&error) => {
                    unread.push_back(id);
                    failed += 1;
                    why = why.and(Err(error));
                }
                _ => {}
            }
        }
        self.unread = Some(unread);
        why
    }
}
