//! What the brain answered: how a reply, or an edit of one, is recorded in its hand-off.

use time::OffsetDateTime;

use super::{Attachment, HandOff, Outcome, OutcomeKind, PushOutcome};

/// How many messages that say the same are remembered. A brain that says it more often edits none of the others.
const MAX_REPEATS: usize = 64;

/// What a reply or an edit of the brain did to a hand-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It was added as this.
    As(OutcomeKind),
    /// The same had been recorded before.
    Before,
}

impl HandOff {
    /// The brain has answered: so it had the last push, whatever was known of it.
    pub fn answered(&mut self) {
        if let Some(push) = self.pushes.last_mut().filter(|push| push.outcome == PushOutcome::Unknown) {
            push.outcome = PushOutcome::Sent;
            push.why = None;
        }
    }

    /// The messages of the brain that answered it.
    pub fn answers(&self) -> impl Iterator<Item = &str> {
        self.results.iter().flat_map(|r| std::iter::once(&r.message).chain(&r.repeats)).map(String::as_str)
    }

    /// Records a reply of the brain. One that says the same as one before (of replies with files only the message
    /// tells) is not told again, and its message is remembered.
    pub fn record_reply(
        &mut self,
        message: &str,
        text: String,
        files: Vec<Attachment>,
        now: OffsetDateTime,
    ) -> Recorded {
        if self.answers().any(|known| known == message) {
            return Recorded::Before;
        }
        let same = |r: &&mut Outcome| files.is_empty() && r.files.is_empty() && r.text == text;
        if let Some(before) = self.results.iter_mut().find(same) {
            if before.repeats.len() < MAX_REPEATS {
                before.repeats.push(message.to_owned());
            }
            return Recorded::Before;
        }
        let kind = if self.results.is_empty() { OutcomeKind::Result } else { OutcomeKind::FollowUp };
        self.results.push(Outcome { files, ..Outcome::new(kind, message, text, now) });
        Recorded::As(kind)
    }

    /// Records an edit of one of the brain's replies.
    pub fn record_edit(&mut self, message: &str, text: String, now: OffsetDateTime) -> Recorded {
        if self.results.iter().any(|r| r.message == message && r.text == text) {
            return Recorded::Before;
        }
        self.results.push(Outcome::new(OutcomeKind::Correction, message, text, now));
        Recorded::As(OutcomeKind::Correction)
    }
}

impl Outcome {
    fn new(kind: OutcomeKind, message: &str, text: String, at: OffsetDateTime) -> Self {
        Outcome {
            kind,
            text,
            at,
            message: message.to_owned(),
            repeats: Vec::new(),
            files: Vec::new(),
            pushes: Vec::new(),
            told: None,
            unknown: Default::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::handoff::{Id, Origin};

    const NOW: OffsetDateTime = datetime!(2026-11-30 10:00 UTC);

    #[test]
    fn the_same_answer_twice_is_recorded_once() {
        let mut h = HandOff::new(Id::now(), Origin::Bot, "water the plants".into(), NOW);
        h.record_reply("m1-1", "done".into(), vec![], NOW);
        assert_eq!(h.record_reply("m1-1", "other".into(), vec![], NOW), Recorded::Before);
        assert_eq!(h.record_reply("m1-2", "done".into(), vec![], NOW), Recorded::Before);
        assert_eq!(h.answers().collect::<Vec<_>>(), ["m1-1", "m1-2"], "either may be edited");
        assert_eq!(h.record_edit("m1-1", "done".into(), NOW), Recorded::Before);
        assert_eq!(h.record_edit("m1-1", "done!".into(), NOW), Recorded::As(OutcomeKind::Correction));
        assert_eq!(h.record_edit("m1-1", "done!".into(), NOW), Recorded::Before);
    }
}
