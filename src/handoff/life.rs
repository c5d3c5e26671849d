//! What may happen to a hand-off, as plain functions on it.
//!
//! The folder a hand-off lies in follows from its content ([`HandOff::state`]): whatever a crash leaves, recovery
//! puts each file where its content says.

use time::OffsetDateTime;

use super::{Failure, HandOff, Id, Origin, Push, PushOutcome, Reason, Retry, SessionKey, Source, VERSION};

pub use super::state::State;

impl HandOff {
    /// A hand-off as it is when it is accepted.
    #[must_use]
    pub fn new(id: Id, from: Origin, text: String, now: OffsetDateTime) -> Self {
        HandOff {
            v: VERSION,
            rev: 0,
            id,
            from,
            text,
            created: now,
            source: None,
            files: Vec::new(),
            pushes: Vec::new(),
            results: Vec::new(),
            alarmed: None,
            failed: None,
            retried: None,
            unknown: Default::default(),
        }
    }

    /// The message that made it.
    #[must_use]
    pub fn made_by(mut self, message: &str) -> Self {
        self.source = Some(Source { message: message.to_owned(), unknown: Default::default() });
        self
    }

    /// The folder its content says it belongs in.
    #[must_use]
    pub fn state(&self) -> State {
        let untold = self.results.iter().any(|r| r.told.is_none());
        match &self.failed {
            _ if untold || self.owes_failure() || self.owes_take_back() => State::Out,
            Some(_) if self.results.is_empty() || self.is_cancelled() => State::Failed,
            _ if !self.results.is_empty() => State::Done,
            _ if self.is_fresh() => State::New,
            _ => State::Brain,
        }
    }

    /// Whether the bot has yet to be told that it was given up. What the breaker refused is told of once for all,
    /// not one by one; an answer makes the word needless.
    #[must_use]
    pub fn owes_failure(&self) -> bool {
        self.failed.as_ref().is_some_and(|failed| {
            failed.told.is_none()
                && failed.reason != Reason::Breaker
                && (self.results.is_empty() || failed.reason == Reason::Cancelled)
        })
    }

    /// Whether the brain has yet to be told to stop work on it.
    #[must_use]
    pub fn owes_take_back(&self) -> bool {
        self.failed.as_ref().is_some_and(|failed| failed.take_back)
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.failed.as_ref().is_some_and(|failed| failed.reason == Reason::Cancelled)
    }

    /// Whether it was not pushed since it was accepted or last retried.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.pushes.len() == self.retried_from()
    }

    /// Whether it has to be pushed to the brain: it never was, its last push failed or was cut short, or the
    /// session it went to (known only where sessions are told apart) is not the present one.
    #[must_use]
    pub fn wants_push(&self, present: Option<SessionKey>) -> bool {
        if self.failed.is_some() || !self.results.is_empty() {
            return false;
        }
        self.is_fresh()
            || self.pushes.last().is_none_or(|push| match push.outcome {
                PushOutcome::Unknown | PushOutcome::Refused => true,
                PushOutcome::Sent | PushOutcome::Seen => {
                    matches!((push.session, present), (Some(then), Some(now)) if then != now)
                }
            })
    }

    /// How many pushes since the last retry failed for a reason other than the relay's own stop.
    #[must_use]
    pub fn failed_attempts(&self) -> usize {
        self.pushes.iter().skip(self.retried_from()).filter(|push| push.failed()).count()
    }

    /// How many pushes count towards `relay.max_attempts`: those since the last retry, but for those that the relay's
    /// own stop cut short. One that a session took counts too: where another is wanted, that session has ended
    /// without an answer, and a hand-off that no session survives must not end them all.
    #[must_use]
    pub fn attempts(&self) -> usize {
        let cut = |push: &&Push| push.outcome == PushOutcome::Unknown && push.why.is_none();
        self.pushes.iter().skip(self.retried_from()).filter(|push| !cut(push)).count()
    }

    fn retried_from(&self) -> usize {
        self.retried.as_ref().map_or(0, |retry| retry.pushes)
    }

    /// When the present wait for a result began.
    #[must_use]
    pub fn waiting_since(&self) -> OffsetDateTime {
        self.retried.as_ref().map_or(self.created, |retry| retry.at)
    }

    /// Whether it still waits for its first result.
    #[must_use]
    pub fn waits_for_result(&self) -> bool {
        self.results.is_empty() && self.failed.is_none()
    }

    /// Gives it up.
    pub fn give_up(&mut self, reason: Reason, detail: Option<String>, now: OffsetDateTime) {
        let take_back = reason == Reason::Cancelled && self.may_be_in_a_session();
        self.failed = Some(Failure {
            at: now,
            reason,
            detail,
            pushes: Vec::new(),
            told: None,
            take_back,
            unknown: Default::default(),
        });
    }

    /// Whether some push of it may have reached a session.
    fn may_be_in_a_session(&self) -> bool {
        self.pushes.iter().any(|push| push.outcome != PushOutcome::Refused)
    }

    /// Gives it fresh attempts; a failure is forgotten.
    pub fn retry(&mut self, now: OffsetDateTime) {
        self.failed = None;
        self.alarmed = None;
        self.retried = Some(Retry { at: now, pushes: self.pushes.len() });
    }

    /// Strikes out its last push, of which not a byte was posted.
    pub fn not_pushed(&mut self, push: usize) {
        if self.pushes.len() == push + 1 && push >= self.retried_from() {
            self.pushes.pop();
        }
    }

    /// The brain has been told to stop work on it, or need not be.
    pub fn taken_back(&mut self) {
        if let Some(failed) = &mut self.failed {
            failed.take_back = false;
        }
    }

    /// Nothing has to be taken back that surely no session has.
    pub fn drop_needless_take_back(&mut self) {
        if !self.may_be_in_a_session() {
            self.taken_back();
        }
    }
}

impl Push {
    /// A push that is about to be made. Until its outcome is known it is `unknown`, with no reason: so a crash in
    /// the middle leaves the truth.
    #[must_use]
    pub fn begin(attempt: usize, session: Option<SessionKey>, at: OffsetDateTime) -> Self {
        Push { at, attempt, session, outcome: PushOutcome::Unknown, id: None, why: None, unknown: Default::default() }
    }

    /// Whether it did not succeed, for a reason other than the relay's own stop.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.outcome == PushOutcome::Refused || (self.outcome == PushOutcome::Unknown && self.why.is_some())
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::handoff::OutcomeKind;
    use crate::handoff::answers::Recorded;

    const NOW: OffsetDateTime = datetime!(2026-11-30 10:00 UTC);

    fn hand_off() -> HandOff {
        HandOff::new(Id::now(), Origin::Bot, "water the plants".into(), NOW)
    }

    fn push(h: &mut HandOff, outcome: PushOutcome, why: Option<&str>) {
        let mut push = Push::begin(h.pushes.len() + 1, None, NOW);
        push.outcome = outcome;
        push.why = why.map(str::to_owned);
        h.pushes.push(push);
    }

    #[test]
    fn its_content_says_where_it_belongs() {
        let mut h = hand_off();
        assert_eq!(h.state(), State::New);
        push(&mut h, PushOutcome::Unknown, None);
        assert_eq!(h.state(), State::Brain);
        assert_eq!(h.record_reply("m1-1", "done".into(), vec![], NOW), Recorded::As(OutcomeKind::Result));
        assert_eq!(h.state(), State::Out);
        h.results[0].told = Some(NOW);
        assert_eq!(h.state(), State::Done);
        assert_eq!(h.record_reply("m1-2", "and more".into(), vec![], NOW), Recorded::As(OutcomeKind::FollowUp));
        assert_eq!(h.state(), State::Out);
    }

    #[test]
    fn given_up_stays_out_until_told_and_a_late_answer_is_still_its_result() {
        let mut h = hand_off();
        push(&mut h, PushOutcome::Unknown, Some("timed out"));
        h.give_up(Reason::Attempts, None, NOW);
        assert_eq!(h.state(), State::Out);
        assert!(!h.wants_push(None));
        h.failed.as_mut().unwrap().told = Some(NOW);
        assert_eq!(h.state(), State::Failed);
        h.record_reply("m1-1", "done after all".into(), vec![], NOW);
        assert_eq!(h.state(), State::Out);
        h.results[0].told = Some(NOW);
        assert_eq!(h.state(), State::Done);
    }

    #[test]
    fn cancelled_stays_out_until_the_brain_was_told_too() {
        let mut h = hand_off();
        push(&mut h, PushOutcome::Sent, None);
        h.give_up(Reason::Cancelled, None, NOW);
        h.failed.as_mut().unwrap().told = Some(NOW);
        assert_eq!(h.state(), State::Out);
        h.failed.as_mut().unwrap().take_back = false;
        assert_eq!(h.state(), State::Failed);

        let mut never_pushed = hand_off();
        never_pushed.give_up(Reason::Cancelled, None, NOW);
        assert!(!never_pushed.failed.unwrap().take_back);
    }

    #[test]
    fn a_retry_makes_it_new_with_fresh_attempts() {
        let mut h = hand_off();
        push(&mut h, PushOutcome::Refused, Some("500"));
        push(&mut h, PushOutcome::Unknown, Some("dropped"));
        push(&mut h, PushOutcome::Unknown, None);
        assert_eq!(h.failed_attempts(), 2, "one cut short by the relay itself does not count");
        h.give_up(Reason::Attempts, None, NOW);
        h.retry(NOW);
        assert_eq!((h.state(), h.failed_attempts(), h.wants_push(None)), (State::New, 0, true));
        push(&mut h, PushOutcome::Sent, None);
        assert_eq!((h.state(), h.wants_push(None)), (State::Brain, false));
        h.not_pushed(2);
        assert_eq!(h.pushes.len(), 4, "only the last one can be struck out");
        h.not_pushed(3);
        assert_eq!((h.state(), h.pushes.len(), h.wants_push(None)), (State::New, 3, true));
        h.not_pushed(2);
        assert_eq!(h.pushes.len(), 3, "what was before the retry stays");
    }

    #[test]
    fn an_unanswered_one_goes_to_the_next_session_only_where_sessions_are_told_apart() {
        let (old, new) = (SessionKey { pid: 1, started: 1 }, SessionKey { pid: 1, started: 2 });
        let mut h = hand_off();
        push(&mut h, PushOutcome::Sent, None);
        assert!(!h.wants_push(Some(new)));
        h.pushes[0].session = Some(old);
        assert!(h.wants_push(Some(new)) && !h.wants_push(Some(old)) && !h.wants_push(None));
        push(&mut h, PushOutcome::Unknown, None);
        push(&mut h, PushOutcome::Unknown, Some("dropped"));
        assert_eq!(
            (h.attempts(), h.failed_attempts()),
            (2, 1),
            "a session that ended with it counts, the relay's stop not"
        );
    }

    #[test]
    fn unknown_fields_and_reasons_survive_a_rewrite() {
        let text = r#"{"v":1,"id":"01939f3c-aaaa-7bbb-8ccc-1234567890ab","from":"script","text":"x",
            "created":"2026-11-30T10:00:00Z","source":{"message":"m1-1","odd":1},"later":{"a":[1]},
            "failed":{"at":"2026-11-30T10:00:00Z","reason":"moon","told":null}}"#;
        let h: HandOff = serde_json::from_str(text).unwrap();
        assert_eq!(h.failed.as_ref().unwrap().reason, Reason::Other("moon".into()));
        let again = serde_json::to_value(&h).unwrap();
        assert_eq!(again["later"]["a"][0], 1);
        assert_eq!(again["source"]["odd"], 1);
        assert_eq!(again["failed"]["reason"], "moon");
        assert_eq!(again["alarmed"], serde_json::Value::Null);
    }
}
