use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../tests/fixtures/claude-code/hook-", $name, ".json"))
    };
}

const REPLY: &str = recorded!("post-tool-use-reply");
const ALL: [&str; 10] = [
    REPLY,
    recorded!("session-start"),
    recorded!("session-start-clear"),
    recorded!("session-end"),
    recorded!("session-end-clear"),
    recorded!("notification-permission"),
    recorded!("permission-request"),
    recorded!("stop"),
    recorded!("user-prompt-submit"),
    recorded!("pre-compact"),
];
const SESSION: &str = "f2cdf2b6-6f56-4859-a797-13bf0c025814";

fn what(side: Side, json: impl AsRef<[u8]>) -> Option<What> {
    parse(side, json.as_ref(), OffsetDateTime::UNIX_EPOCH).map(|record| record.what)
}

/// The recorded reply with another input and answer.
fn call(tool: &str, input: Value, response: Value) -> String {
    let mut call: Value = serde_json::from_str(REPLY).unwrap();
    call["tool_name"] = json!(tool);
    call["tool_input"] = input;
    call["tool_response"] = response;
    call.to_string()
}

fn reply(input: Value) -> String {
    call(REPLY_TOOL, input, json!([{"type": "text", "text": "sent (m5-1)"}]))
}

fn edit(input: Value) -> String {
    call(EDIT_TOOL, input, json!([{"type": "text", "text": "ok"}]))
}

#[test]
fn a_recorded_reply_is_read_whole() {
    let record = parse(Side::Bot, REPLY.as_bytes(), OffsetDateTime::UNIX_EPOCH).unwrap();
    let session = "d488da11-a7e5-4334-8691-13c1ec87eb37";
    assert_eq!(record.session_id.as_deref(), Some(session));
    let transcript = format!("/home/anna/.claude/projects/-home-anna-bot/{session}.jsonl");
    assert_eq!(record.transcript, Some(transcript.into()));
    assert_eq!((record.v, record.side, record.at), (1, Side::Bot, OffsetDateTime::UNIX_EPOCH));
    let text = Some("RELAY: water the plants".to_owned());
    assert_eq!(
        record.what,
        What::Reply { message: "m1796031734360-1".into(), text, reply_to: None, files: Vec::new() }
    );
}

#[test]
fn recorded_sessions_are_followed() {
    let waiting = |for_what: &str| Some(What::Waiting { for_what: for_what.into() });
    let start = |source: &str| Some(What::SessionStart { source: source.into() });
    let end = |reason: &str| Some(What::SessionEnd { reason: reason.into() });
    let wanted = [
        start("startup"),
        start("clear"),
        end("other"),
        end("clear"),
        waiting("Claude needs your permission"),
        waiting("Bash"),
        Some(What::Stopped),
        Some(What::Prompt),
        None,
    ];
    for (json, wanted) in ALL[1..].iter().zip(wanted) {
        assert_eq!(what(Side::Brain, json), wanted, "{json}");
    }
    let record = parse(Side::Brain, ALL[7].as_bytes(), OffsetDateTime::UNIX_EPOCH).unwrap();
    assert_eq!(record.session_id.as_deref(), Some(SESSION));
    assert!(!serde_json::to_string(&record).unwrap().contains("ok"), "the last words of a turn are not kept");
}

#[test]
fn of_the_bot_only_what_concerns_the_relay_is_kept() {
    let kept = |input: Value| what(Side::Bot, reply(input));
    assert_eq!(kept(json!({"text": "hello"})), None);
    assert_eq!(kept(json!({"text": "the relay: x"})), None);
    assert_eq!(kept(json!({"files": ["/a"]})), None);
    assert!(kept(json!({"text": "RELAY:", "files": ["/a"]})).is_some());
    let refused = kept(json!({"text": "RELAY: x", "reply_to": "", "files": ["/a"]}));
    let Some(What::Reply { reply_to: Some(to), files, .. }) = refused else { panic!("{refused:?}") };
    assert!(to.is_empty() && files.is_empty(), "a person is told of it, but its files go nowhere");
    assert_eq!(what(Side::Bot, edit(json!({"message_id": "m1-1", "text": "RELAY: x"}))), None);
    assert!(what(Side::Brain, reply(json!({"text": "hello"}))).is_some());
}

#[test]
fn edits_of_the_brain_are_kept() {
    let input = json!({"message_id": "m1-1", "text": "new\u{1f400}"});
    let wanted = What::Edit { message: "m1-1".into(), text: "new\u{1f400}".into() };
    assert_eq!(what(Side::Brain, edit(input.clone())), Some(wanted));
    for input in [json!({"text": "x"}), json!({"message_id": "m1-1"}), json!({"message_id": "", "text": "x"})] {
        assert_eq!(what(Side::Brain, edit(input)), None);
    }
    assert_eq!(what(Side::Brain, call(EDIT_TOOL, input, json!("edit_message: no such thing"))), None);
}

#[test]
fn files_are_all_named_and_lie_where_the_session_meant() {
    let many: Vec<String> = (0..100).map(|n| format!("/f{n}")).collect();
    let Some(What::Reply { files, .. }) = what(Side::Brain, reply(json!({"files": many}))) else { panic!() };
    assert_eq!(files.len(), MAX_NAMED);
    let Some(What::Reply { files, text, .. }) = what(Side::Brain, reply(json!({"files": ["a", "", "../b", "/c"]})))
    else {
        panic!()
    };
    let named: Vec<_> = files.iter().map(|file| file.named.to_str().unwrap()).collect();
    assert_eq!(named, ["/home/anna/bot/a", "/home/anna/bot/../b", "/c"]);
    assert_eq!(text, None);
}

#[test]
fn only_what_was_sent_counts() {
    let sent = |response: Value| match what(Side::Brain, call(REPLY_TOOL, json!({"text": "x"}), response)) {
        Some(What::Reply { message, .. }) => Some(message),
        _ => None,
    };
    for response in [
        json!("sent (m5-1)"),
        json!(" sent (m5-1)\n"),
        json!("sent (m5-1, m5-2)"),
        json!({"type": "text", "text": "sent (m5-1)"}),
        json!({"content": [{"type": "text", "text": "sent (m5-1)"}], "isError": false, "more": 5}),
        json!([{"type": "image"}, null, 1, -1, 1.5, true, {"type": "text", "text": "sent (m5-1)"}]),
    ] {
        assert_eq!(sent(response.clone()).as_deref(), Some("m5-1"), "{response}");
    }
    for response in [
        json!(null),
        json!(5),
        json!([]),
        json!("sent"),
        json!("sent ()"),
        json!("sent (m5-1"),
        json!("sent (m5 1)"),
        json!("reply: file too large: sent (m5-1)"),
        json!({"content": [{"type": "text", "text": "sent (m5-1)"}], "isError": true}),
        json!({"other": "sent (m5-1)"}),
    ] {
        assert_eq!(sent(response.clone()), None, "{response}");
    }
}

#[test]
fn what_is_foreign_or_of_the_wrong_kind_is_nothing() {
    let ok = json!("sent (m5-1)");
    for json in [
        call("mcp__fakechat__reply", json!({"text": "x"}), ok.clone()),
        call("Bash", json!({"text": "x"}), ok.clone()),
        call(REPLY_TOOL, json!({"text": 5}), ok.clone()),
        call(REPLY_TOOL, json!({"text": "x", "reply_to": 5}), ok.clone()),
        call(REPLY_TOOL, json!({"text": "x", "files": "/a"}), ok.clone()),
        call(REPLY_TOOL, json!(["x", "y"]), ok.clone()),
        call(REPLY_TOOL, json!(null), ok),
        REPLY.replace("PostToolUse", "PreToolUse"),
        REPLY.replace("PostToolUse", "PostToolUseFailure"),
        ALL[5].replace("permission_prompt", "idle_prompt"),
        r#"["Stop"]"#.into(),
        r#"{"hook_event_name":["Stop"]}"#.into(),
        r#"{"hook_event_name":"Stop","session_id":5}"#.into(),
        r#"{"hook_event_name":"Stop"}{}"#.into(),
        String::new(),
        "null".into(),
    ] {
        assert_eq!(what(Side::Brain, &json), None, "{json}");
    }
    let deep = format!(r#"{{"hook_event_name":"Stop","x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    what(Side::Brain, &deep);
    let deep = reply(json!({})).replace(r#"{"text":"sent (m5-1)","type":"text"}"#, &"[".repeat(100_000));
    assert_eq!(what(Side::Brain, deep), None);
}

#[test]
fn ids_and_paths_that_cannot_be_kept_are_left_out() {
    let odd = json!({"hook_event_name": "SessionEnd", "session_id": "\u{1b}[2J", "transcript_path": "relative",
        "reason": "r".repeat(9000)});
    let record = parse(Side::Bot, odd.to_string().as_bytes(), OffsetDateTime::UNIX_EPOCH).unwrap();
    assert_eq!((record.session_id, record.transcript), (None, None));
    assert_eq!(record.what, What::SessionEnd { reason: "r".repeat(MAX_WORDS) });
    assert_eq!(what(Side::Bot, r#"{"hook_event_name":"Stop"}"#), Some(What::Stopped));
}

#[test]
fn lone_surrogates_are_mended_wherever_they_are() {
    let json = r#"{"hook_event_name":"PostToolUse","tool_name":"mcp__plugin_fakechat_fakechat__reply","\ud83d":"\ud83d",
        "tool_input":{"text":"a\ud83d","reply_to":"\udc00","files":["/\ud83d"]},"tool_response":["sent (m5-1)"]}"#;
    // serde_json has no way to read such a key.
    assert_eq!(what(Side::Brain, json), None);
    let Some(What::Reply { text, reply_to, files, .. }) = what(Side::Brain, json.replace(r#""\ud83d":"#, r#""x":"#))
    else {
        panic!()
    };
    assert_eq!((text.as_deref(), reply_to.as_deref()), (Some("a\u{fffd}"), Some("\u{fffd}")));
    assert_eq!(files[0].named, Path::new("/\u{fffd}"));
}

#[test]
fn a_truncated_recording_is_nothing_at_any_length() {
    for json in ALL {
        for side in Side::BOTH {
            for len in 0..json.trim_end().len() {
                assert_eq!(what(side, &json.as_bytes()[..len]), None);
            }
        }
    }
}

#[test]
fn a_record_comes_back_from_its_json() {
    for json in ALL {
        let Some(record) = parse(Side::Bot, json.as_bytes(), OffsetDateTime::now_utc()) else { continue };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record, "{text}");
    }
    let files = vec![NamedFile { named: "/a".into(), kept: Some("1-a".into()), bytes: 3, why: None }];
    let what = What::Reply { message: "m1-1".into(), text: None, reply_to: None, files };
    let record =
        Record { v: 1, side: Side::Brain, at: OffsetDateTime::UNIX_EPOCH, session_id: None, transcript: None, what };
    assert_eq!(
        serde_json::to_string(&record).unwrap(),
        r#"{"v":1,"side":"brain","at":"1970-01-01T00:00:00Z","session_id":null,"transcript":null,"what":{"reply":{"message":"m1-1","text":null,"reply_to":null,"files":[{"named":"/a","kept":"1-a","bytes":3}]}}}"#
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        what(Side::Bot, &bytes);
    }

    #[test]
    fn no_change_of_a_recording_makes_it_panic(which in 0..ALL.len(), at in any::<prop::sample::Index>(), with in any::<Vec<u8>>()) {
        let mut bytes = ALL[which].as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes.splice(at..(at + with.len()).min(ALL[which].len()), with);
        what(Side::Brain, &bytes);
    }

    #[test]
    fn any_words_come_out_as_they_went_in(text in any::<String>(), to in any::<Option<String>>()) {
        let found = what(Side::Brain, reply(json!({"text": text, "reply_to": to})));
        let wanted = What::Reply { message: "m5-1".into(), text: Some(text), reply_to: to, files: Vec::new() };
        prop_assert_eq!(found, Some(wanted));
    }
}
