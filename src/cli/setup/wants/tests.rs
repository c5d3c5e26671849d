use serde_json::json;

use super::*;
use crate::cli::setup::json::parse;

fn put(text: &str, wants: &[Want]) -> String {
    let document = Document::open(text).unwrap();
    for want in wants {
        want.put(&document).unwrap();
    }
    document.text()
}

fn take_back(text: &str, original: &str, wants: &[Want]) -> String {
    let (document, original) = (Document::open(text).unwrap(), Document::open(original).unwrap());
    for want in wants {
        want.take_back(&document, &original).unwrap();
    }
    document.text()
}

fn wants_of(one: Side, program: &str) -> Vec<Want> {
    side(one, &hook_command(Path::new(program), one, None), false)
}

#[test]
fn what_setup_writes_is_what_the_examples_show() {
    for (side, example) in [
        (Side::Brain, include_str!("../../../../contrib/claude/brain-settings.json")),
        (Side::Bot, include_str!("../../../../contrib/claude/bot-settings.json")),
    ] {
        let written = put("", &wants_of(side, "anna-relay"));
        assert_eq!(parse(&written).unwrap(), parse(example).unwrap(), "{side}");
    }
}

#[test]
fn the_bot_is_allowed_to_look_but_not_to_speak() {
    let text = put("", &side(Side::Bot, "anna-relay hook bot", true));
    let allow = parse(&text).unwrap()["permissions"]["allow"].clone();
    let rules = ["status", "list", "show", "cancel"].map(|name| format!("Bash(anna-relay {name}:*)"));
    assert_eq!(allow, json!([REPLY, rules[0], rules[1], rules[2], rules[3]]));
    assert!(
        allow.as_array().unwrap().iter().all(|rule| crate::cli::doctor::audit::audit(rule.as_str().unwrap()).is_none())
    );
}

#[test]
fn a_second_time_changes_nothing_and_a_new_place_replaces_the_old() {
    let first = put("{}", &wants_of(Side::Bot, "/old/anna-relay"));
    assert_eq!(put(&first, &wants_of(Side::Bot, "/old/anna-relay")), first);
    let moved = put(&first, &wants_of(Side::Bot, "/new place/anna-relay"));
    assert_eq!(moved, first.replace("/old/anna-relay", "'/new place/anna-relay'"));
    assert_eq!(take_back(&moved, "{}", &wants_of(Side::Bot, "")).trim(), "{}");
}

const MINE: &str = r#"{
    "hooks": {
        "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }],
        "PostToolUse": [
            { "matcher": "Bash", "hooks": [
                { "type": "command", "command": "log it" },
                { "type": "command", "command": "/old/anna-relay hook brain" }
            ] }
        ]
    },
    "permissions": { "allow": ["Read"], "deny": ["WebFetch"] },
    "env": { "MINE": "1", "ENABLE_TOOL_SEARCH": "true" }
}"#;

#[test]
fn a_persons_own_hooks_and_keys_stay() {
    let text = put(MINE, &wants_of(Side::Brain, "/new/anna-relay"));
    let value = parse(&text).unwrap();
    assert_eq!(value["hooks"]["Stop"][0]["hooks"][0]["command"], "say done");
    assert_eq!(value["hooks"]["Stop"].as_array().unwrap().len(), 2);
    let mixed = &value["hooks"]["PostToolUse"];
    assert_eq!(mixed.as_array().unwrap().len(), 1, "the hook that was there is brought up to date");
    assert_eq!(mixed[0]["matcher"], "Bash", "in the person's own group");
    assert_eq!(mixed[0]["hooks"][0]["command"], "log it");
    assert_eq!(mixed[0]["hooks"][1]["command"], "/new/anna-relay hook brain");
    assert_eq!(value["permissions"], json!({"allow": ["Read", REPLY, EDIT], "deny": ["WebFetch"]}));
    assert_eq!(put(&text, &wants_of(Side::Brain, "/new/anna-relay")), text);
    let back = parse(&take_back(&text, MINE, &wants_of(Side::Brain, ""))).unwrap();
    let mut expected = parse(MINE).unwrap();
    expected["hooks"]["PostToolUse"] = mixed.clone();
    assert_eq!(back, expected, "what was there before setup is not taken");
}

#[test]
fn a_hook_is_known_by_its_program_and_no_other() {
    for (command, ours) in [
        ("anna-relay hook brain", true),
        ("/a/b/anna-relay hook brain --config /x/y", true),
        ("'/a b/anna-relay' hook brain --config '/x y'", true),
        (r"'/a'\''b/anna-relay' hook brain", true),
        ("anna-relay hook bot", false),
        ("anna-relay hook brains", false),
        ("my-anna-relay hook brain", false),
        ("log; anna-relay hook brain", false),
        ("anna-relay hook brain; log", false),
        ("echo 'anna-relay hook brain'", false),
    ] {
        assert_eq!(is_ours(command, Side::Brain), ours, "{command}");
    }
    let odd = hook_command(Path::new("/a b'c/$HOME/anna-relay"), Side::Bot, Some(Path::new("/x;y")));
    assert_eq!(odd, r"'/a b'\''c/$HOME/anna-relay' hook bot --config '/x;y'");
    assert_eq!(program(&odd, Side::Bot).as_deref(), Some("/a b'c/$HOME/anna-relay"));
}

#[test]
fn changes_of_another_program_are_merged_into_the_old_form() {
    let before = "{\n    \"b\": 1,\n    \"a\": {\"x\": [1,2]},\n    \"gone\": true\n}";
    let after = r#"{"a": {"x": [1, 2], "y": 2}, "b": 3, "new": {"k": null}}"#;
    let merged = merge(before, after).unwrap();
    assert_eq!(parse(&merged).unwrap(), parse(after).unwrap());
    assert!(merged.starts_with("{\n    \"b\": 3,\n    \"a\": {"), "{merged}");
    assert!(merged.contains("\"x\": [1,2]"), "{merged}");
}
