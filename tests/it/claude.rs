//! What a session of Claude Code does around its fakechat: it calls the hooks, and writes its transcript.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::harness::{World, files_below};
use crate::hooks::told;

const TOOL: &str = "mcp__plugin_fakechat_fakechat__";

/// The quick tick that makes the Witness look often.
pub fn quick(world: World) -> World {
    world.with_env("ANNA_RELAY_TEST_TICK_MS", "50")
}

/// The hook that tells of a reply.
#[track_caller]
pub fn reply(world: &World, side: &str, message: &str, text: &str, reply_to: Option<&str>, files: &[&Path]) {
    let mut input = json!({"text": text, "files": files});
    if let Some(to) = reply_to {
        input["reply_to"] = to.into();
    }
    call(world, side, "reply", &input, &format!("sent ({message})"));
}

/// The hook that tells of an edit.
#[track_caller]
pub fn edit(world: &World, side: &str, message: &str, text: &str) {
    call(world, side, "edit_message", &json!({"message_id": message, "text": text}), "ok");
}

#[track_caller]
fn call(world: &World, side: &str, tool: &str, input: &Value, answer: &str) {
    let call = json!({"session_id": "s0", "cwd": world.dir.path(), "hook_event_name": "PostToolUse",
        "tool_name": format!("{TOOL}{tool}"), "tool_input": input, "tool_response": [{"type": "text", "text": answer}]});
    told(world, side, call.to_string());
}

/// A message id of so many seconds ago.
pub fn message(seconds: i64, n: usize) -> String {
    format!("m{}-{n}", (OffsetDateTime::now_utc().unix_timestamp() - seconds) * 1000)
}

/// A session's transcript.
pub struct Session<'a> {
    pub world: &'a World,
    pub side: &'static str,
    pub name: &'static str,
    pub transcript: PathBuf,
}

impl<'a> Session<'a> {
    /// A session that has not said yet that it began.
    pub fn new(world: &'a World, side: &'static str, name: &'static str) -> Self {
        let transcript = world.dir.path().join(format!("{name}.jsonl"));
        Session { world, side, name, transcript }
    }

    /// It begins, and the bridge knows.
    #[track_caller]
    pub fn begins(self) -> Self {
        self.tells("SessionStart", &json!({"source": "startup"}));
        self
    }

    /// Its hook tells this, and the bridge, which has to run, takes it.
    #[track_caller]
    pub fn tells(&self, event: &str, more: &Value) {
        let mut told_ = json!({"session_id": self.name, "cwd": self.world.dir.path(), "hook_event_name": event,
            "transcript_path": self.transcript});
        for (key, value) in more.as_object().unwrap() {
            told_[key] = value.clone();
        }
        told(self.world, self.side, told_.to_string());
        inbox_empties(self.world);
    }

    /// The model has a message with that id, as of so many seconds ago.
    pub fn had(&self, id: &str, seconds: f64) {
        let at = OffsetDateTime::now_utc() - time::Duration::seconds_f64(seconds);
        let at = at.format(&Rfc3339).unwrap();
        let tag = format!(
            "<channel source=\"plugin:fakechat:fakechat\" chat_id=\"web\" message_id=\"{id}\" user=\"web\" ts=\"{at}\">\nx\n</channel>"
        );
        let line = json!({"isSidechain": false, "type": "user", "message": {"role": "user", "content": tag}, "isMeta": true,
            "origin": {"kind": "channel", "server": "plugin:fakechat:fakechat"}, "timestamp": at, "sessionId": self.name});
        let mut file = std::fs::File::options().append(true).create(true).open(&self.transcript).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The model has it now.
    pub fn has(&self, id: &str) {
        self.had(id, 0.0);
    }
}

/// Waits until the inbox is empty.
#[track_caller]
pub fn inbox_empties(world: &World) {
    let left = || files_below(&world.spool().join("inbox"));
    crate::harness::wait("the inbox to be empty", || left().is_empty().then_some(()));
}

/// Nothing is left of what came in.
#[track_caller]
pub fn nothing_is_left(world: &World) {
    inbox_empties(world);
    crate::harness::wait("tmp/ to be empty", || files_below(&world.spool().join("tmp")).is_empty().then_some(()));
    let folders = || std::fs::read_dir(world.spool().join("inbox")).unwrap().count();
    crate::harness::wait("the folders of copies to go", || (folders() == 0).then_some(()));
}
