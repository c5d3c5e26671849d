//! What a hook of Claude Code tells, pure: from the JSON on its standard input to a [`Record`].
//!
//! fakechat has no history, so what a session says while nobody listens at its websocket is gone. Claude Code's own
//! hooks see it too: `PostToolUse` of fakechat's tools has the whole reply and its message id, the very one of the
//! websocket's frame. What comes by both ways is told apart by that id (an edit: by id and text).
//!
//! Little is kept. Of the bot only what concerns the relay, a reply that starts with `RELAY:`; the rest of its
//! conversation is nobody's business. Prompts and last words of a turn are not kept at all.

mod raw;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::config::Side;
use crate::fakechat::frame::is_usable;
use crate::guard::{Verdict, judge};
use crate::text::json::Text;

use raw::{About, EditInput, Head, PermissionRequest, ReplyInput, Session, ToolUse, read};

/// The version of a record's format.
pub const VERSION: u32 = 1;

/// The tool with which a session says something. Only in the form that a *plugin's* server has: the same tools
/// under a server's own name (`mcp__fakechat__reply`) are of some other fakechat, on a port that is not the side's,
/// and its words must not count as the side's.
pub const REPLY_TOOL: &str = "mcp__plugin_fakechat_fakechat__reply";
/// The tool with which a session changes what it said.
pub const EDIT_TOOL: &str = "mcp__plugin_fakechat_fakechat__edit_message";

/// The hooks that tell something: what the settings in `contrib/claude/` have to name.
pub const EVENTS: [&str; 7] =
    ["PostToolUse", "SessionStart", "SessionEnd", "Notification", "PermissionRequest", "Stop", "UserPromptSubmit"];

/// The kind of notification that means a person is waited for.
const PERMISSION_PROMPT: &str = "permission_prompt";
/// How many of the files that one reply names are looked at; of more, nobody would miss one.
const MAX_NAMED: usize = 64;
/// The longest word of Claude Code's own (a source, a reason, what is waited for), in characters; known ones have 30.
const MAX_WORDS: usize = 200;
/// The longest path, in bytes (Linux' `PATH_MAX`).
const MAX_PATH: usize = 4096;

/// What a hook told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The version of the format, [`VERSION`].
    pub v: u32,
    /// Whose session it was.
    pub side: Side,
    /// When the hook ran.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Claude's id of the session.
    pub session_id: Option<String>,
    /// The session's transcript.
    pub transcript: Option<PathBuf>,
    /// What happened.
    pub what: What,
}

/// What happened in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// It said something.
    Reply {
        /// fakechat's id of the message, as in the websocket's frame.
        message: String,
        /// What was said; absent where the tool was called without it.
        text: Option<String>,
        /// The message that it answers; present also when empty, as in a frame.
        reply_to: Option<String>,
        /// The files it named: all of them, where the frame has the first only.
        #[serde(default)]
        files: Vec<NamedFile>,
    },
    /// It changed what it had said.
    Edit {
        /// Which message.
        message: String,
        /// How it reads now.
        text: String,
    },
    /// It began, or got a new id and transcript (`/clear`, `/resume`), or went on (`/compact`).
    SessionStart {
        /// `startup`, `resume`, `clear` or `compact`.
        source: String,
    },
    /// It ended, or gave up its id and transcript.
    SessionEnd {
        /// `clear`, `logout`, `prompt_input_exit`, `other`, …
        reason: String,
    },
    /// It waits for a person.
    Waiting {
        /// For what: the tool that wants a permission, or Claude Code's own words.
        for_what: String,
    },
    /// A turn ended: it waits for nobody's permission any more.
    Stopped,
    /// It was given a prompt: the same.
    Prompt,
}

impl What {
    /// The name of a kind of which only the newest record of a side matters; none for what was said.
    #[must_use]
    pub fn state(&self) -> Option<&'static str> {
        match self {
            What::Reply { .. } | What::Edit { .. } => None,
            What::SessionStart { .. } => Some("session-start"),
            What::SessionEnd { .. } => Some("session-end"),
            What::Waiting { .. } => Some("waiting"),
            What::Stopped => Some("stopped"),
            What::Prompt => Some("prompt"),
        }
    }
}

/// A file that a reply named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    /// Where the session said it is.
    pub named: PathBuf,
    /// The name of the copy in the record's own folder; see [`Entry::copy_of`](crate::inbox::Entry::copy_of).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// The size of the copy.
    #[serde(default)]
    pub bytes: u64,
    /// Why there is no copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Reads what a hook of that side's session got on its standard input. `None`: nothing that concerns the relay, or
/// nothing that could be understood.
#[must_use]
pub fn parse(side: Side, json: &[u8], now: OffsetDateTime) -> Option<Record> {
    let head: Head = read(json)?;
    let about: About = read(json)?;
    let cwd = path(about.cwd);
    let what = match (head.hook_event_name?.0.as_str(), head.tool_name) {
        ("PostToolUse", Some(Text(tool))) if tool == REPLY_TOOL => reply(side, json, cwd.as_deref())?,
        ("PostToolUse", Some(Text(tool))) if tool == EDIT_TOOL && side == Side::Brain => edit(json)?,
        ("SessionStart", _) => What::SessionStart { source: words(read::<Session>(json)?.source) },
        ("SessionEnd", _) => What::SessionEnd { reason: words(read::<Session>(json)?.reason) },
        ("Notification", _) => {
            let session: Session = read(json)?;
            let waits = session.notification_type.is_some_and(|Text(kind)| kind == PERMISSION_PROMPT);
            waits.then(|| What::Waiting { for_what: words(session.message) })?
        }
        ("PermissionRequest", _) => What::Waiting { for_what: words(read::<PermissionRequest>(json)?.tool_name) },
        ("Stop", _) => What::Stopped,
        ("UserPromptSubmit", _) => What::Prompt,
        _ => return None,
    };
    let session_id = about.session_id.map(|Text(id)| id).filter(|id| is_usable(id));
    Some(Record { v: VERSION, side, at: now, session_id, transcript: path(about.transcript_path), what })
}

/// A call of fakechat's `reply`.
fn reply(side: Side, json: &[u8], cwd: Option<&Path>) -> Option<What> {
    let call: ToolUse<ReplyInput> = read(json)?;
    let message = call.tool_response?.sent()?;
    let input = call.tool_input?.0;
    let (text, reply_to) = (input.text.map(|Text(text)| text), input.reply_to.map(|Text(to)| to));
    let mut files: Vec<NamedFile> = Vec::new();
    // An empty name is none to fakechat either.
    let names = input.files.unwrap_or_default().into_iter().filter(|Text(name)| !name.is_empty());
    for Text(name) in names.take(MAX_NAMED) {
        // As the session meant it. What is not absolute by then is not looked for.
        let named = cwd.map_or_else(|| PathBuf::from(&name), |cwd| cwd.join(&name));
        files.push(NamedFile { named, kept: None, bytes: 0, why: None });
    }
    if side == Side::Bot {
        match judge(text.as_deref(), reply_to.as_deref(), !files.is_empty()) {
            Verdict::HandOff(_) => {}
            // They will be refused, and a person told; their files go nowhere.
            Verdict::HasReplyTo | Verdict::Empty | Verdict::NearMiss => files.clear(),
            Verdict::NotForUs => return None,
        }
    }
    Some(What::Reply { message, text, reply_to, files })
}

/// A call of fakechat's `edit_message`.
fn edit(json: &[u8]) -> Option<What> {
    let call: ToolUse<EditInput> = read(json)?;
    let input = call.tool_input?.0;
    let Text(message) = input.message_id.filter(|Text(id)| is_usable(id))?;
    let Text(text) = input.text?;
    call.tool_response?.is_ok().then_some(What::Edit { message, text })
}

/// Words of Claude Code's own, not longer than anybody would read.
fn words(text: Option<Text>) -> String {
    text.unwrap_or_default().0.chars().take(MAX_WORDS).collect()
}

/// An absolute path that the system could take.
fn path(text: Option<Text>) -> Option<PathBuf> {
    let Text(text) = text?;
    (text.len() <= MAX_PATH && text.starts_with('/') && !text.contains('\0')).then(|| PathBuf::from(text))
}

#[cfg(test)]
mod tests;
