//! The JSON of hooks as it comes, recordings in `tests/fixtures/claude-code/`. Fields that are not known are passed
//! over, and what is not needed is not looked at: its type may be any.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::fakechat::frame::is_usable;
use crate::text::json::Text;

/// Reads an object; `None` for anything else.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    serde_json::from_slice(json).ok().map(|Object(whole)| whole)
}

/// Which hook it is.
#[derive(Deserialize)]
pub(super) struct Head {
    pub hook_event_name: Option<Text>,
    pub tool_name: Option<Text>,
}

/// What every hook tells of its session.
#[derive(Deserialize)]
pub(super) struct About {
    pub session_id: Option<Text>,
    pub transcript_path: Option<Text>,
    pub cwd: Option<Text>,
}

/// `SessionStart`, `SessionEnd` and `Notification`.
#[derive(Deserialize)]
pub(super) struct Session {
    pub source: Option<Text>,
    pub reason: Option<Text>,
    pub notification_type: Option<Text>,
    pub message: Option<Text>,
}

/// `PermissionRequest`.
#[derive(Deserialize)]
pub(super) struct PermissionRequest {
    pub tool_name: Option<Text>,
}

/// `PostToolUse`.
#[derive(Deserialize)]
#[serde(bound = "I: DeserializeOwned")]
pub(super) struct ToolUse<I> {
    pub tool_input: Option<Object<I>>,
    pub tool_response: Option<Answer>,
}

/// What `reply` is called with.
#[derive(Deserialize)]
pub(super) struct ReplyInput {
    pub text: Option<Text>,
    pub reply_to: Option<Text>,
    pub files: Option<Vec<Text>>,
}

/// What `edit_message` is called with.
#[derive(Deserialize)]
pub(super) struct EditInput {
    pub message_id: Option<Text>,
    pub text: Option<Text>,
}

/// A JSON object. By itself, serde also takes an array, for the fields in their order.
pub(super) struct Object<T>(pub T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Only<T>(std::marker::PhantomData<T>);

        impl<'de, T: DeserializeOwned> Visitor<'de> for Only<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Only(std::marker::PhantomData))
    }
}

/// What a tool answered: the texts in it, whatever they are wrapped in (a list of blocks, recorded; a string, one
/// block, or an object with `content`, to be safe), and whether it says of itself that it is an error.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    texts: Vec<String>,
    error: bool,
}

impl Answer {
    /// The message id in `sent (m…)`, the first one where there are several; none where nothing was sent.
    pub fn sent(&self) -> Option<String> {
        let ids = self.texts.iter().find_map(|text| text.trim().strip_prefix("sent (")?.split_once(')'))?.0;
        let first = ids.split(',').next().unwrap_or_default().trim();
        (!self.error && is_usable(first) && !first.contains(char::is_whitespace)).then(|| first.to_owned())
    }

    /// Whether an edit was made.
    pub fn is_ok(&self) -> bool {
        !self.error && self.texts.iter().any(|text| text.trim() == "ok")
    }

    fn add(&mut self, mut other: Answer) {
        self.texts.append(&mut other.texts);
        self.error |= other.error;
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnswerVisitor)
    }
}

struct AnswerVisitor;

impl<'de> Visitor<'de> for AnswerVisitor {
    type Value = Answer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<Answer, E> {
        Ok(Answer { texts: vec![text.to_owned()], error: false })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Answer, E> {
        Ok(Answer::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Answer, E> {
        Ok(Answer::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Answer, E> {
        Ok(Answer::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Answer, E> {
        Ok(Answer::default())
    }

    fn visit_unit<E>(self) -> Result<Answer, E> {
        Ok(Answer::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Answer, A::Error> {
        let mut whole = Answer::default();
        while let Some(part) = seq.next_element()? {
            whole.add(part);
        }
        Ok(whole)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Answer, A::Error> {
        let mut whole = Answer::default();
        while let Some(Text(key)) = map.next_key()? {
            match key.as_str() {
                "text" | "content" => whole.add(map.next_value()?),
                "isError" | "is_error" => whole.error |= map.next_value::<serde_json::Value>()? == true,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(whole)
    }
}
