//! Replies that wait until it is known which hand-off they are about, with those that came after them behind.

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::Error;
use crate::handoff::Id;
use crate::queue::event::Reply;
use crate::queue::{Effect, Now};
use crate::spool::Fs;

use super::Spooler;

/// How long after the disk could not be read it is tried again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Replies whose hand-off could not be looked up yet, and those that came after them.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    replies: VecDeque<Reply>,
    /// What they wait for.
    until: Option<Until>,
    /// Whether a person was told that the disk cannot be read.
    warned: bool,
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

    /// Whether a reply that comes now has to wait.
    pub fn is_on(&self) -> bool {
        self.until.is_some()
    }

    pub fn push(&mut self, reply: Reply) {
        self.replies.push_back(reply);
    }

    /// From here on they wait for the closed folders to be listed.
    pub fn until_listed(&mut self) {
        self.until = Some(Until::Listed);
    }

    /// The disk can be read.
    pub fn readable(&mut self) {
        self.warned = false;
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
        self.until = None;
        self.replies.drain(..).collect()
    }
}

impl<F: Fs> Spooler<F> {
    /// Replies have to wait until the disk can be read.
    pub(super) fn cannot_be_read(&mut self, why: &Error, of: Option<Id>, now: Now) {
        if !std::mem::replace(&mut self.deferred.warned, true) {
            let text = format!("a reply of the brain waits, for the spool cannot be read: {}", why.with_advice());
            self.effects.push(Effect::Warn { text, of });
        }
        self.deferred.until = Some(Until::Time(now.mono + LOOK_AGAIN));
    }
}
