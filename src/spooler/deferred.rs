//! Replies that wait until it is known which hand-off they are about, or until that can be read, with those that came
//! after them and are about the same, or may be, behind.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::error::Error;
use crate::handoff::Id;
use crate::queue::event::Reply;
use crate::queue::{Effect, Now};
use crate::spool::Fs;

use super::Spooler;

/// How long after the disk could not be read it is tried again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Replies whose hand-off could not be looked up or read yet, and those that came after them.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    replies: VecDeque<Reply>,
    /// What they wait for.
    until: Option<Until>,
    /// Whether the next ones wait too, whatever they are about.
    all: bool,
    /// The hand-offs that could not be read.
    of: BTreeSet<Id>,
    /// The messages whose edits wait.
    edits: BTreeSet<String>,
    /// Of which hand-off (none: of the closed ones as a whole) a person was told that it cannot be read.
    warned: BTreeSet<Option<Id>>,
}

/// What replies wait for.
#[derive(Debug, PartialEq)]
enum Until {
    /// The disk is read again then.
    Time(Duration),
    /// That the closed folders are listed.
    Listed,
}

impl Deferred {
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Whether each reply that comes now has to wait.
    pub fn holds_all(&self) -> bool {
        self.all
    }

    /// Whether one waits that is about that hand-off.
    pub fn has_one_for(&self, id: Id) -> bool {
        self.of.contains(&id)
    }

    /// Whether edits wait of messages that nobody knows yet.
    pub fn has_edits(&self) -> bool {
        !self.edits.is_empty()
    }

    /// Whether an edit of that message waits.
    pub fn has_edit_of(&self, message: &str) -> bool {
        self.edits.contains(message)
    }

    pub fn push(&mut self, reply: Reply) {
        self.replies.push_back(reply);
    }

    /// The same, of one whose hand-off cannot be read.
    pub fn push_for(&mut self, of: Option<Id>, reply: Reply) {
        self.of.extend(of);
        self.push(reply);
    }

    /// The same, of an edit of which it is not known what it is about.
    pub fn push_edit(&mut self, reply: Reply) {
        self.edits.insert(reply.message.clone());
        self.push(reply);
    }

    /// From here on all wait for the closed folders to be listed.
    pub fn until_listed(&mut self) {
        (self.until, self.all) = (Some(Until::Listed), true);
    }

    /// That can be read.
    pub fn readable(&mut self, of: Option<Id>) {
        self.warned.remove(&of);
    }

    /// When they are looked at again.
    pub fn look_again_at(&self) -> Option<Duration> {
        match self.until {
            Some(Until::Time(at)) => Some(at),
            _ => None,
        }
    }

    /// Those that have waited long enough for the disk to be readable.
    pub fn due(&mut self, now: Now) -> Vec<Reply> {
        self.look_again_at().filter(|at| *at <= now.mono).map_or_else(Vec::new, |_| self.take())
    }

    /// Whether they wait for the closed folders to be listed.
    pub fn wait_for_listing(&self) -> bool {
        self.until == Some(Until::Listed)
    }

    /// All; they wait no more.
    pub fn take(&mut self) -> Vec<Reply> {
        (self.until, self.all) = (None, false);
        self.of.clear();
        self.edits.clear();
        self.replies.drain(..).collect()
    }
}

impl<F: Fs> Spooler<F> {
    /// Replies have to wait until the disk can be read: those about that hand-off, or about one not known yet.
    pub(super) fn cannot_be_read(&mut self, why: &Error, of: Option<Id>, now: Now) {
        if self.deferred.warned.insert(of) {
            let text = format!("a reply of the brain waits, for the spool cannot be read: {}", why.with_advice());
            self.effects.push(Effect::Warn { text, of });
        }
        let at = self.deferred.look_again_at().unwrap_or(now.mono + LOOK_AGAIN);
        self.deferred.until = Some(Until::Time(at));
    }
}
