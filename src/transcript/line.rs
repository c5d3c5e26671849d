//! One line of a transcript: which channel messages does it show the model to have? Pure.
//!
//! Two kinds of line do (`facts/fakechat.md`, and public captures of Claude Code from 2.1.150 on):
//!
//! - `{"type":"user","isMeta":true,"origin":{"kind":"channel","server":S},"message":{"role":"user","content":C},…}`,
//!   where a message began a turn;
//! - `{"type":"attachment","attachment":{"type":"queued_command","prompt":C,"commandMode":"prompt",
//!   "origin":{"kind":"channel"}},…}`, where one was taken in the middle of a turn.
//!
//! `C` is a string, or an array of blocks with texts, and is `<channel source="S" … message_id="ID" …>`, a line break,
//! the text, a line break, `</channel>`. A `queue-operation` line shows the same tag, and shows only that Claude Code
//! (not the model) has the message, or that it was taken off the queue: it counts for nothing.
//!
//! **Only a tag at the start of a block counts**, after white space at most. Message texts come from people and
//! models, and may hold tags of their own; whoever writes a text does not write the start of its block. So where
//! Claude Code puts two messages into one block, only the first is seen: a receipt too few, never one too many.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::tag::Tag;

/// What a channel tag of fakechat, as the official marketplace has it, says in `source`.
pub const FAKECHAT: &str = "plugin:fakechat:fakechat";
/// The longest id or source that is kept, bytes. Ours have 36; what is longer is cut there, so it is nobody's id but
/// still shows that something came.
pub const MAX_ID: usize = 128;
/// How much of a message's text is kept for a person to see what it was, bytes.
pub const MAX_HEAD: usize = 200;

/// The start of a channel tag, as it stands in a line of JSON as well.
pub(super) const TAG: &[u8] = b"<channel ";
/// Without this in it no line is worth parsing.
const ATTRIBUTE: &[u8] = b"message_id=";

/// The model has this channel message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The id it was posted with.
    pub message_id: String,
    /// The channel it came through, such as [`FAKECHAT`].
    pub source: String,
    /// When Claude Code wrote the line, where it says so.
    pub at: Option<OffsetDateTime>,
    /// How many bytes its text has, as Claude Code wrote it (it may have escaped some).
    pub text_len: usize,
    /// The first of its text, at most [`MAX_HEAD`] bytes. Anybody's words: show them as such.
    pub head: String,
    /// How the model got it.
    pub way: Way,
}

impl Sighting {
    /// Whether it came through fakechat, rather than through another channel of that session.
    #[must_use]
    pub fn is_fakechat(&self) -> bool {
        self.source == FAKECHAT
    }
}

/// How a message reached the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It began a turn.
    Turn,
    /// It was taken in the middle of one.
    MidTurn,
}

/// The channel messages that this line (with or without its line break) shows the model to have; most often none.
#[must_use]
pub fn read(line: &[u8]) -> Vec<Sighting> {
    if memmem::find(line, ATTRIBUTE).is_none() || memmem::find(line, TAG).is_none() {
        return Vec::new();
    }
    serde_json::from_slice::<Line>(line).map(Line::sightings).unwrap_or_default()
}

/// A line, as far as it concerns us.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, rename = "isSidechain")]
    sidechain: Flag,
    #[serde(default)]
    origin: Lenient<Origin>,
    #[serde(default)]
    message: Lenient<Message>,
    #[serde(default)]
    attachment: Lenient<Attached>,
    #[serde(default)]
    timestamp: Lenient<String>,
}

/// Something of the shape we know, or anything else.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lenient<T> {
    Known(T),
    Odd(IgnoredAny),
}

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Lenient::Odd(IgnoredAny)
    }
}

impl<T> Lenient<T> {
    fn known(self) -> Option<T> {
        match self {
            Lenient::Known(it) => Some(it),
            Lenient::Odd(_) => None,
        }
    }
}

type Flag = Lenient<bool>;

#[derive(Deserialize)]
struct Origin {
    kind: String,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    origin: Lenient<Origin>,
    content: Content,
}

#[derive(Deserialize)]
struct Attached {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    origin: Lenient<Origin>,
    prompt: Content,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Lenient<Block>>),
}

/// A block of text; one of another type has no `text`, or is not one of ours.
#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: String,
}

impl Line<'_> {
    fn sightings(self) -> Vec<Sighting> {
        // A side conversation: what is said there this session's model need not have.
        if matches!(self.sidechain, Lenient::Known(true)) {
            return Vec::new();
        }
        let outer = self.origin.known();
        let (content, way) = match (&*self.kind, self.message, self.attachment) {
            ("user", Lenient::Known(message), _) => {
                let origin = outer.or(message.origin.known());
                if origin.is_none_or(|origin| origin.kind != "channel") {
                    return Vec::new();
                }
                (message.content, Way::Turn)
            }
            ("attachment", _, Lenient::Known(attached)) if attached.kind == "queued_command" => {
                // Older versions name no origin there; a person's own words do, in newer ones.
                let origin = attached.origin.known().or(outer);
                if origin.is_some_and(|origin| origin.kind != "channel") {
                    return Vec::new();
                }
                (attached.prompt, Way::MidTurn)
            }
            _ => return Vec::new(),
        };
        let at = self.timestamp.known().and_then(|text| OffsetDateTime::parse(&text, &Rfc3339).ok());
        content.texts().iter().filter_map(|text| sighting(text, at, way)).collect()
    }
}

impl Content {
    fn texts(self) -> Vec<String> {
        match self {
            Content::Text(text) => vec![text],
            Content::Blocks(blocks) => {
                let known = blocks.into_iter().filter_map(Lenient::known);
                known.filter(|block| block.kind == "text").map(|block| block.text).collect()
            }
        }
    }
}

fn sighting(block: &str, at: Option<OffsetDateTime>, way: Way) -> Option<Sighting> {
    let tag = Tag::at_start(block)?;
    let (id, source) = (tag.get("message_id")?, tag.get("source")?);
    if id.is_empty() {
        return None;
    }
    Some(Sighting {
        message_id: cut(id, MAX_ID).to_owned(),
        source: cut(source, MAX_ID).to_owned(),
        at,
        text_len: tag.text.len(),
        head: cut(tag.text, MAX_HEAD).to_owned(),
        way,
    })
}

/// The first of `text`, at most `max` bytes, whole characters.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
