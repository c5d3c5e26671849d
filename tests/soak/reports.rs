//! What hooks report: the JSON that Claude Code gives them.

use std::io::Write;
use std::process::Stdio;

use anna_relay::config::Side;
use anna_relay::{hook, inbox};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::harness::World;

const RECORDED: &str = include_str!("../fixtures/claude-code/hook-post-tool-use-reply.json");

/// That of a reply.
pub fn reply(message: &str, text: &str, reply_to: Option<&str>) -> String {
    let mut call: Value = serde_json::from_str(RECORDED).unwrap();
    call["tool_input"] = json!({ "text": text });
    if let Some(reply_to) = reply_to {
        call["tool_input"]["reply_to"] = reply_to.into();
    }
    call["tool_response"][0]["text"] = format!("sent ({message})").into();
    call.to_string()
}

/// That of an edit.
pub fn edit(message: &str, text: &str) -> String {
    let mut call: Value = serde_json::from_str(RECORDED).unwrap();
    call["tool_name"] = hook::EDIT_TOOL.into();
    call["tool_input"] = json!({ "message_id": message, "text": text });
    call["tool_response"][0]["text"] = "ok".into();
    call.to_string()
}

/// What the hook does with it, by the real command or, many times faster, by what that command does.
pub fn bring(world: &World, side: Side, json: &str, really: bool) {
    if really {
        let mut command = world.command(&["hook", side.name()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(json.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    } else if let Some(record) = hook::parse(side, json.as_bytes(), OffsetDateTime::now_utc()) {
        let put = inbox::put(&world.spool(), record).unwrap();
        assert!(matches!(put, inbox::Put::Stored(_)), "{put:?}");
    }
}
