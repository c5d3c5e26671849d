//! What the sessions' own transcripts prove: a push that shows there was seen.

use crate::config::Side;
use crate::handoff::{HandOff, Id, Push, PushOutcome};

use super::Queue;
use super::event::Sighted;

/// Claude Code writes milliseconds.
const SAME_TIME: time::Duration = time::Duration::SECOND;

impl Queue {
    /// The hand-off whose push to the bot was posted with that id, of those since the start.
    #[must_use]
    pub fn sent_as(&self, message: &str) -> Option<Id> {
        self.book.sent_as.get(message)
    }

    /// Whether that id is one of our own, of whatever push.
    #[must_use]
    pub fn issued(&self, id: &Id) -> bool {
        self.issuer.as_ref().is_none_or(|issuer| issuer.is_own(id))
    }

    /// A session has a message: if it is a push of ours, that was seen.
    pub(super) fn sighted(&mut self, sighted: &Sighted) {
        let Some(id) = sighted.of.filter(|id| self.holds(*id)) else { return };
        let seen = |h: &mut HandOff| match sighted.side {
            // Each of its pushes has the same id, so what a session had before the last one proves nothing of that.
            Side::Brain => mark(&mut h.pushes, |push| push.at <= sighted.at + SAME_TIME),
            Side::Bot => {
                let own = |push: &Push| push.id.is_some_and(|id| id.is(&sighted.message));
                let results = h.results.iter_mut().map(|result| &mut result.pushes);
                let mut all = results.chain(h.failed.as_mut().map(|failed| &mut failed.pushes));
                all.any(|pushes| mark(pushes, own))
            }
        };
        let news = self.book.get(id).is_some_and(|entry| seen(&mut entry.h.clone()));
        if news {
            self.change(id, true, |h| {
                seen(h);
            });
            self.note_fact(id, format!("was seen by the {}", sighted.side));
        }
    }
}

/// Marks the last push that is meant as seen. Whether that is news.
fn mark(pushes: &mut [Push], meant: impl Fn(&Push) -> bool) -> bool {
    let push = pushes.iter_mut().rev().find(|push| meant(push));
    let news = push.filter(|push| matches!(push.outcome, PushOutcome::Sent | PushOutcome::Unknown));
    news.map(|push| (push.outcome, push.why) = (PushOutcome::Seen, None)).is_some()
}
