//! A hand-off as `list` and `show` present it: with the folder it lies in, its stage and its age.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::life::State;
use super::{HandOff, PushOutcome};

/// How far a hand-off has come, in words for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Not pushed yet.
    #[serde(rename = "queued")]
    Queued,
    /// Pushed; whether the brain has it is not known.
    #[serde(rename = "pushed")]
    Pushed,
    /// In the brain's transcript.
    #[serde(rename = "seen")]
    Seen,
    /// It has a result that the bot was not told yet.
    #[serde(rename = "answered")]
    Answered,
    /// The bot was told every result.
    #[serde(rename = "handed to the bot")]
    Told,
    /// Given up without a result.
    #[serde(rename = "failed")]
    Failed,
}

impl Stage {
    /// The stage of that hand-off.
    #[must_use]
    pub fn of(handoff: &HandOff) -> Self {
        if handoff.results.is_empty() {
            match handoff.pushes.last() {
                _ if handoff.failed.is_some() => Stage::Failed,
                _ if handoff.is_fresh() => Stage::Queued,
                Some(push) if push.outcome == PushOutcome::Seen => Stage::Seen,
                Some(_) => Stage::Pushed,
                None => Stage::Queued,
            }
        } else if handoff.results.iter().all(|result| result.told.is_some()) {
            Stage::Told
        } else {
            Stage::Answered
        }
    }

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stage::Queued => "queued",
            Stage::Pushed => "pushed",
            Stage::Seen => "seen",
            Stage::Answered => "answered",
            Stage::Told => "handed to the bot",
            Stage::Failed => "failed",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A hand-off with where it lies.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The hand-off.
    pub handoff: HandOff,
    /// The folder it lies in.
    pub state: State,
}

impl Listed {
    /// How far it has come.
    #[must_use]
    pub fn stage(&self) -> Stage {
        Stage::of(&self.handoff)
    }

    /// The whole seconds since it was accepted; 0 where the clock has gone back behind that.
    #[must_use]
    pub fn age_s(&self, now: OffsetDateTime) -> u64 {
        u64::try_from((now - self.handoff.created).whole_seconds()).unwrap_or(0)
    }

    /// The document of `list --json` and `show --json`: the file's own, with `state`, `stage` and `age_s`.
    #[must_use]
    pub fn document(&self, now: OffsetDateTime) -> Value {
        let mut document = match serde_json::to_value(&self.handoff) {
            Ok(Value::Object(fields)) => fields,
            // A hand-off is an object with text keys, and its times lie in the years that RFC 3339 knows.
            _ => Map::new(),
        };
        document.insert("state".to_owned(), self.state.name().into());
        document.insert("stage".to_owned(), self.stage().name().into());
        document.insert("age_s".to_owned(), self.age_s(now).into());
        Value::Object(document)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::datetime;

    use super::*;

    fn handoff(more: Value) -> HandOff {
        let mut document = json!({"v": 1, "id": "01939f3c-aaaa-7bbb-8ccc-1234567890ab", "from": "bot", "text": "x",
            "created": "2026-11-30T12:00:00Z", "source": null, "colour": "red"});
        let fields = document.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        serde_json::from_value(document).unwrap()
    }

    fn push(outcome: &str) -> Value {
        json!({"at": "2026-11-30T12:00:01Z", "attempt": 1, "session": null, "outcome": outcome})
    }

    fn result(told: Value) -> Value {
        json!({"kind": "result", "text": "y", "at": "2026-11-30T12:00:02Z", "message": "m1-1", "told": told})
    }

    #[test]
    fn the_stage_follows_from_the_document() {
        let failed = json!({"at": "2026-11-30T12:00:03Z", "reason": "cancelled"});
        let told = json!("2026-11-30T12:00:03Z");
        for (more, stage) in [
            (json!({}), Stage::Queued),
            (json!({"pushes": [push("refused")]}), Stage::Pushed),
            (json!({"pushes": [push("seen")]}), Stage::Seen),
            (json!({"pushes": [push("seen"), push("sent")]}), Stage::Pushed),
            (json!({"pushes": [push("seen")], "results": [result(Value::Null)]}), Stage::Answered),
            (json!({"results": [result(told.clone()), result(Value::Null)]}), Stage::Answered),
            (json!({"results": [result(told.clone())]}), Stage::Told),
            (json!({"pushes": [push("seen")], "failed": failed}), Stage::Failed),
            (json!({"results": [result(told)], "failed": failed}), Stage::Told),
        ] {
            let found = Stage::of(&handoff(more.clone()));
            assert_eq!(found, stage, "{more}");
            assert_eq!(json!(found), json!(stage.name()));
        }
    }

    #[test]
    fn the_document_is_the_files_own_with_three_more_fields() {
        let listed = Listed { handoff: handoff(json!({})), state: State::New };
        let document = listed.document(datetime!(2026-11-30 12:01:30.9 UTC));
        let mut expected = serde_json::to_value(&listed.handoff).unwrap();
        expected["state"] = json!("new");
        expected["stage"] = json!("queued");
        expected["age_s"] = json!(90);
        assert_eq!(document, expected);
        assert_eq!(document["colour"], "red");
        assert_eq!(listed.age_s(datetime!(2026-11-30 11:00:00 UTC)), 0);
    }

    #[test]
    fn every_state_is_found_by_its_name() {
        for state in State::ALL {
            assert_eq!(state.name().parse(), Ok(state));
            assert_eq!(json!(state), json!(state.name()));
        }
        assert!("corrupt".parse::<State>().is_err());
    }
}
