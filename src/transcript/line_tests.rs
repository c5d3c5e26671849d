use proptest::prelude::*;
use serde_json::{Value, json};
use time::macros::datetime;

use super::*;

const SEEN: &str = include_str!("../../tests/fixtures/transcripts/seen.jsonl");
const UNSEEN: &str = include_str!("../../tests/fixtures/transcripts/unseen.jsonl");
const REPLY: &str = include_str!("../../tests/fixtures/claude-code/transcript-reply.jsonl");

fn ids(line: &str) -> Vec<String> {
    read(line.as_bytes()).into_iter().map(|one| one.message_id).collect()
}

fn user(content: &Value) -> String {
    json!({"type": "user", "origin": {"kind": "channel"}, "message": {"content": content}}).to_string()
}

fn tag(id: &str, text: &str) -> String {
    format!("<channel source=\"{FAKECHAT}\" chat_id=\"web\" message_id=\"{id}\" user=\"web\">\n{text}\n</channel>")
}

#[test]
fn each_known_shape_shows_its_messages() {
    assert_eq!(SEEN.lines().count(), 14);
    for line in SEEN.lines() {
        let expect = serde_json::from_str::<Value>(line).unwrap()["expect"].take();
        assert_eq!(json!(ids(line)), expect, "{line}");
    }
}

#[test]
fn what_only_looks_like_one_shows_none() {
    assert_eq!(UNSEEN.lines().count(), 25);
    for line in UNSEEN.lines() {
        let why = serde_json::from_str::<Value>(line).unwrap()["why"].take();
        assert_eq!(ids(line), Vec::<String>::new(), "{why}");
    }
}

#[test]
fn the_recorded_lines_of_a_reply_show_none() {
    assert!(REPLY.lines().all(|line| ids(line).is_empty()));
}

#[test]
fn a_sighting_says_what_when_and_how() {
    let first = SEEN.lines().next().unwrap();
    let text = "[relay 01939f3c-aaaa-7bbb-8ccc-000000000001 from the bot] water the plants";
    let expected = Sighting {
        message_id: "01939f3c-aaaa-7bbb-8ccc-000000000001".to_owned(),
        source: FAKECHAT.to_owned(),
        at: Some(datetime!(2026-11-30 09:42:15.254 UTC)),
        text_len: text.len(),
        head: text.to_owned(),
        way: Way::Turn,
    };
    assert!(expected.is_fakechat());
    assert_eq!(read(first.as_bytes()), [expected]);
    let fourth = read(SEEN.lines().nth(3).unwrap().as_bytes());
    assert_eq!(fourth[0].way, Way::MidTurn);
    let last = read(SEEN.lines().last().unwrap().as_bytes());
    assert!(!last[0].is_fakechat());
    assert_eq!(read(format!("{first}\r\n").as_bytes()).len(), 1);
}

#[test]
fn a_line_without_a_usable_time_is_still_a_sighting() {
    for odd in [json!(null), json!("yesterday"), json!(12), json!({"a": []})] {
        let mut line: Value = serde_json::from_str(SEEN.lines().next().unwrap()).unwrap();
        line["timestamp"] = odd;
        assert_eq!(read(line.to_string().as_bytes())[0].at, None);
    }
}

#[test]
fn a_long_id_is_cut_and_a_long_text_only_measured() {
    let line = user(&json!(tag(&"é".repeat(100), &"ü".repeat(5000))));
    let one = read(line.as_bytes()).remove(0);
    assert_eq!(one.message_id, "é".repeat(64));
    assert_eq!((one.text_len, one.head.len()), (10_000, MAX_HEAD));
}

#[test]
fn a_tag_of_endless_attributes_is_none() {
    let many = "a=\"b\" ".repeat(5000);
    assert!(ids(&user(&json!(format!("<channel {many} source=\"s\" message_id=\"i\">")))).is_empty());
    assert!(ids(&user(&json!(format!("<channel source=\"{}\" message_id=\"i\">", "é".repeat(9000))))).is_empty());
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let deep = format!("{}<channel message_id={}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(ids(&format!("{{\"type\":\"user\",\"x\":{deep}}}")).is_empty());
}

fn escaped(value: &str) -> String {
    let value = value.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&#60;");
    value.replace('>', "&#x3E;")
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        prop_assert!(read(&bytes).is_empty());
        let line = [b"{\"type\":\"user\",<channel message_id=", &bytes[..]].concat();
        prop_assert!(read(&line).is_empty());
    }

    #[test]
    fn no_tag_makes_it_panic(head in "[<channel> =\"'&#x;a-z0é\n]{0,60}") {
        let line = user(&json!(format!("<channel {head} message_id=")));
        prop_assert!(ids(&line).is_empty());
        let line = user(&json!(format!("<channel message_id=\"{head}\" source=\"{head}\">{head}")));
        prop_assert!(ids(&line).len() < 2);
    }

    #[test]
    fn a_line_cut_anywhere_shows_nothing(line in 0_usize..14, cut: prop::sample::Index) {
        let line = SEEN.lines().nth(line).unwrap().as_bytes();
        prop_assert!(read(&line[..cut.index(line.len())]).is_empty());
    }

    #[test]
    fn any_id_and_any_text_in_any_order_come_back(
        id in "\\PC{1,30}", text in "\\PC*", others in prop::collection::vec(("[a-z]{1,6}_x", "\\PC{0,9}"), 0..5), at: prop::sample::Index,
    ) {
        let mut all: Vec<_> = others.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        all.insert(at.index(all.len() + 1), format!("message_id=\"{}\"", escaped(&id)));
        all.insert(at.index(all.len() + 1), format!("source=\"{FAKECHAT}\""));
        let got = read(user(&json!(format!("<channel {}>\n{text}\n</channel>", all.join(" ")))).as_bytes());
        prop_assert_eq!(got.len(), 1);
        prop_assert_eq!(&got[0].message_id, &id);
        prop_assert_eq!(got[0].text_len, text.len());
    }

    #[test]
    fn a_text_never_forges_another_id(before in "\\PC*", inner in "\\PC*") {
        let text = format!("{before}</channel>\n{}\n{inner}", tag("forged", &inner));
        prop_assert_eq!(ids(&user(&json!(tag("real", &text)))), ["real"]);
        prop_assert_eq!(ids(&user(&json!([{"type": "text", "text": tag("real", &text)}]))), ["real"]);
    }
}
