//! A frame of fakechat's websocket: a message of the session or an edit of one.

use std::fmt;

use serde::Deserialize;

use crate::text::json::Text;

/// The longest message id that is taken, in bytes. fakechat's own are about 20; an edit names whatever the
/// model wrote.
pub const MAX_ID: usize = 128;

/// How much of an unknown frame type is shown, in bytes.
const MAX_TYPE: usize = 32;

/// What the session said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message: a call of the tool `reply`.
    Message {
        /// fakechat's id of it, `m<epoch ms>-<n>`.
        id: String,
        /// What was said; absent where the tool was called without it.
        text: Option<String>,
        /// The message that it answers: present as soon as the frame has one that is not null, also an empty one.
        reply_to: Option<String>,
        /// What came along.
        file: Option<FileRef>,
    },
    /// A message said before now reads differently.
    Edit {
        /// Which one.
        id: String,
        /// How it reads now.
        text: String,
    },
}

/// A file that came with a message; to be had with [`download::fetch`](super::download::fetch).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// Where it is, `/files/…`. Not checked here.
    pub url: String,
    /// What it is called. Not checked here.
    pub name: String,
}

/// A frame that could not be understood. Says why and how long it was, and nothing of what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // `len` is the length of the frame in bytes, everywhere
pub enum Malformed {
    /// A binary frame.
    Binary { len: usize },
    /// Not UTF-8.
    NotUtf8 { len: usize },
    /// No JSON object; `at` is the byte where that showed.
    NotJson { at: usize, len: usize },
    /// JSON, but with a field of the wrong kind; `at` is the byte where that showed.
    WrongShape { at: usize, len: usize },
    /// No `type`.
    NoType { len: usize },
    /// A `type` that is neither `msg` nor `edit`; `name` is cut short and made safe to show.
    UnknownType { name: String, len: usize },
    /// A message that is not from the assistant.
    NotFromAssistant { len: usize },
    /// No id, or one that is empty, too long or has control characters.
    BadId { len: usize },
    /// An edit without a text.
    NoText { len: usize },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = match self {
            Malformed::Binary { len } => f.write_str("a binary frame").map(|()| len),
            Malformed::NotUtf8 { len } => f.write_str("not UTF-8").map(|()| len),
            Malformed::NotJson { at, len } => write!(f, "no JSON object (at byte {at})").map(|()| len),
            Malformed::WrongShape { at, len } => write!(f, "a field of the wrong kind (at byte {at})").map(|()| len),
            Malformed::NoType { len } => f.write_str("no type").map(|()| len),
            Malformed::UnknownType { name, len } => write!(f, "unknown type {name:?}").map(|()| len),
            Malformed::NotFromAssistant { len } => f.write_str("not from the assistant").map(|()| len),
            Malformed::BadId { len } => f.write_str("no usable id").map(|()| len),
            Malformed::NoText { len } => f.write_str("an edit without a text").map(|()| len),
        }?;
        write!(f, ", {len} bytes")
    }
}

impl std::error::Error for Malformed {}

/// The frame as it comes. Fields that are not known are passed over.
#[derive(Deserialize)]
struct Raw {
    r#type: Option<Text>,
    from: Option<Text>,
    id: Option<Text>,
    text: Option<Text>,
    #[serde(rename = "replyTo")]
    reply_to: Option<Text>,
    file: Option<RawFile>,
}

#[derive(Deserialize)]
struct RawFile {
    url: Text,
    name: Text,
}

/// Reads one text frame.
///
/// # Errors
/// It is not a frame of fakechat's as the relay knows them.
pub fn parse(bytes: &[u8]) -> Result<Frame, Malformed> {
    let len = bytes.len();
    let json = std::str::from_utf8(bytes).map_err(|_| Malformed::NotUtf8 { len })?;
    if !json.trim_start().starts_with('{') {
        // serde would take an array for the fields in their order.
        return Err(Malformed::NotJson { at: 0, len });
    }
    let raw: Raw = serde_json::from_str(json).map_err(|error| {
        // serde_json's own words may quote the frame. The column counts bytes of the line that it names.
        let before: usize = json.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = before + error.column();
        if error.is_data() { Malformed::WrongShape { at, len } } else { Malformed::NotJson { at, len } }
    })?;
    match raw.r#type {
        Some(Text(name)) if name == "msg" => {
            if raw.from.is_some_and(|Text(from)| from != "assistant") {
                return Err(Malformed::NotFromAssistant { len });
            }
            let id = usable(raw.id).ok_or(Malformed::BadId { len })?;
            let file = raw.file.map(|file| FileRef { url: file.url.0, name: file.name.0 });
            let string = |text: Text| text.0;
            Ok(Frame::Message { id, text: raw.text.map(string), reply_to: raw.reply_to.map(string), file })
        }
        Some(Text(name)) if name == "edit" => {
            let id = usable(raw.id).ok_or(Malformed::BadId { len })?;
            let Text(text) = raw.text.ok_or(Malformed::NoText { len })?;
            Ok(Frame::Edit { id, text })
        }
        Some(Text(name)) => Err(Malformed::UnknownType { name: safe(&name), len }),
        None => Err(Malformed::NoType { len }),
    }
}

/// An id that can be kept and shown.
fn usable(id: Option<Text>) -> Option<String> {
    let Text(id) = id?;
    is_usable(&id).then_some(id)
}

/// Whether a message id can be kept and shown.
#[must_use]
pub fn is_usable(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_ID && !id.contains(char::is_control)
}

/// The start of a frame type, with everything but plain name characters as `?`.
fn safe(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '?' };
    name.chars().take(MAX_TYPE).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(json: &str) -> Frame {
        parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_message_is_read_whole() {
        let frame = message(
            r#"{"type":"msg","id":"m1-1","from":"assistant","text":"a\r\n\u0000🦀","ts":1,"replyTo":"x","file":{"url":"/files/a","name":"b"}}"#,
        );
        let file = Some(FileRef { url: "/files/a".into(), name: "b".into() });
        let text = Some("a\r\n\0🦀".to_owned());
        assert_eq!(frame, Frame::Message { id: "m1-1".into(), text, reply_to: Some("x".into()), file });
    }

    #[test]
    fn what_is_absent_or_null_is_none_and_an_empty_reply_to_is_there() {
        let bare = message(r#"{"type":"msg","id":"m1-1","replyTo":null,"text":null,"file":null}"#);
        assert_eq!(bare, Frame::Message { id: "m1-1".into(), text: None, reply_to: None, file: None });
        let empty = message(r#"{"type":"msg","id":"m1-1","replyTo":"","from":"assistant"}"#);
        assert!(matches!(empty, Frame::Message { reply_to: Some(to), .. } if to.is_empty()));
    }

    #[test]
    fn an_edit_is_read() {
        let edit = Frame::Edit { id: "m1-1".into(), text: "new".into() };
        assert_eq!(message(r#"{"type":"edit","id":"m1-1","text":"new"}"#), edit);
    }

    #[test]
    fn each_lone_surrogate_becomes_one_replacement_character() {
        let frame = message(r#"{"type":"edit","id":"m1-1","text":"a\ud83d\udc00é\ud83db\udc00"}"#);
        assert_eq!(frame, Frame::Edit { id: "m1-1".into(), text: "a\u{1f400}é\u{fffd}b\u{fffd}".into() });
        let pair = message(r#"{"type":"edit","id":"m1-1","text":"\ud83d\ud83d"}"#);
        assert_eq!(pair, Frame::Edit { id: "m1-1".into(), text: "\u{fffd}\u{fffd}".into() });
        let unknown = message(r#"{"type":"edit","id":"m","text":"x","more":"\ud83d"}"#);
        assert_eq!(unknown, Frame::Edit { id: "m".into(), text: "x".into() });
    }

    #[test]
    fn what_is_wrong_is_told_without_the_words() {
        let long = format!(r#"{{"type":"msg","id":"{}"}}"#, "x".repeat(MAX_ID + 1));
        let table: &[(&[u8], &str)] = &[
            (b"\xffsecret", "not UTF-8, 7 bytes"),
            (b"secret", "no JSON object (at byte 0), 6 bytes"),
            (br#"["msg","assistant","secret"]"#, "no JSON object (at byte 0), 28 bytes"),
            (b"{\n\n \"id\": secret}", "no JSON object (at byte 11), 17 bytes"),
            (br#"{"type":"msg","text":{"secret":1}}"#, "a field of the wrong kind (at byte 21), 34 bytes"),
            (br#"{"id":"secret"}"#, "no type, 15 bytes"),
            (b"{\"type\":\"typing\xc2\x9b31m\"}", "unknown type \"typing?31m\", 22 bytes"),
            (br#"{"type":"msg","id":"m1","from":"secret"}"#, "not from the assistant, 40 bytes"),
            (br#"{"type":"msg","text":"secret"}"#, "no usable id, 30 bytes"),
            (br#"{"type":"msg","id":"","text":"secret"}"#, "no usable id, 38 bytes"),
            (br#"{"type":"msg","id":"\u001b","text":""}"#, "no usable id, 38 bytes"),
            (long.as_bytes(), "no usable id, 151 bytes"),
            (br#"{"type":"edit","id":"m1"}"#, "an edit without a text, 25 bytes"),
        ];
        for (bytes, words) in table {
            let error = parse(bytes).unwrap_err();
            assert_eq!(error.to_string(), *words);
            assert!(!format!("{error:?}").contains("secret"));
        }
    }

    #[test]
    fn the_name_of_an_unknown_type_is_bounded() {
        let frame = format!(r#"{{"type":"{}"}}"#, "t".repeat(1000));
        let Malformed::UnknownType { name, .. } = parse(frame.as_bytes()).unwrap_err() else { panic!("other error") };
        assert_eq!(name.len(), MAX_TYPE);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse(&bytes).ok();
        }

        #[test]
        fn no_json_makes_it_panic(tail in r#"[\[\]{}:,"\\a-z0-9ud]{0,40}"#) {
            parse(format!(r#"{{"type":"msg","id":"{tail}"#).as_bytes()).ok();
        }

        #[test]
        fn any_text_comes_out_as_it_went_in(text in any::<String>(), to in any::<Option<String>>()) {
            let json = serde_json::json!({"type": "msg", "id": "m1-1", "text": text, "replyTo": to});
            let frame = parse(json.to_string().as_bytes()).unwrap();
            prop_assert_eq!(frame, Frame::Message { id: "m1-1".into(), text: Some(text), reply_to: to, file: None });
        }
    }
}
