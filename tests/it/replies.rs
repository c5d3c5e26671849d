//! Replies that belong to nothing, and what a file of the spool keeps.

use serde_json::json;

use crate::harness::World;

#[test]
fn a_reply_to_nothing_known_goes_to_the_stream() {
    let mut world = World::new();
    world.start_online();
    world.bot().say_with_id("m1796031734360-1", "RELAY: one", None);
    world.bot().say_with_id("m1796031734361-2", "RELAY: two", None);
    let asked = world.brain_gets(|all| all.len() == 2);
    let (first, second) = (&asked[0].id, &asked[1].id);
    let common = &first[..12];
    assert!(second.starts_with(common), "{first} {second}");
    for (reply_to, said) in [
        ("01939f3c-aaaa-7bbb-8ccc-1234567890ab", "to one that never was"),
        ("whatever", "to no id at all"),
        ("", "to an empty id"),
        (common, "to two at once"),
        (&first[29..], "to a part that is too short"),
    ] {
        world.brain().say(said, Some(reply_to));
        assert!(world.wait_stream(said).contains('⚠'), "{said}");
    }
    world.brain().say("to nobody", None);
    assert!(!world.wait_stream("to nobody").contains('⚠'));
    world.brain().edit("m1-1", "an edit of nothing");
    world.wait_stream("an edit of nothing");
    world.brain().say("done", Some(&first[28..]));
    let told = world.bot_gets(|all| !all.is_empty());
    assert_eq!(told[0].text, format!("[relay result for {first}] done\n[asked: one]"));
    assert_eq!(told.len(), 1);
}

#[test]
fn unknown_fields_of_a_file_survive_all_its_rewrites() {
    let mut world = World::new();
    let id = world.ok(&["send", "water"]).trim().to_owned();
    let path = world.spool().join(format!("new/{id}.json"));
    let mut document: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    document["later"] = json!({"a": [1, {"b": null}]});
    document["source"] = json!({"message": "m1-1", "odd": "x"});
    std::fs::write(&path, document.to_string()).unwrap();
    world.brain_answers("watered");
    world.start();
    world.wait_queue("done", 1);
    let done = world.documents("done").remove(0);
    assert_eq!(done["later"], json!({"a": [1, {"b": null}]}));
    assert_eq!(done["source"]["odd"], "x");
    assert_eq!(world.json(&["show", &id])["later"]["a"][0], 1);
}

#[test]
fn text_of_a_session_cannot_play_with_a_persons_terminal() {
    let mut world = World::new();
    world.start_online();
    let hostile = "a\u{1b}[2Jb\u{7}\nRELAY\u{202e}c";
    let id = crate::crash::hand_off(&world, hostile);
    let asked = world.brain_gets(|all| all.len() == 1).remove(0);
    assert!(asked.text.ends_with(&format!("] {hostile}")), "it is passed on unchanged: {:?}", asked.text);
    world.brain().say("d\u{1b}]0;x\u{7}\r\ne", Some(&id));
    world.wait_queue("done", 1);
    world.wait_stream("result from the brain");
    for text in [world.ok(&["list", "--all"]), world.ok(&["show", &id]), world.stream()] {
        let hidden = text.chars().find(|c| *c != '\n' && anna_relay::text::is_hidden(*c));
        assert_eq!(hidden, None, "{text:?}");
    }
    let lines = world.stream();
    let events: Vec<&str> = lines.lines().filter(|line| line.contains(&id[28..])).collect();
    assert!(events.iter().any(|line| line.contains("a␛[2Jb␇ ⏎ RELAY<U+202E>c")), "{events:#?}");
    assert!(lines.lines().all(|line| line.contains(" relay: ")), "an event is one line: {lines}");
    // A document is what the file holds.
    assert_eq!(world.json(&["show", &id])["text"], hostile);
}

#[test]
fn a_long_text_is_cut_in_the_stream_and_says_where_the_rest_is() {
    let mut world = World::new();
    world.start_online();
    let id = crate::crash::hand_off(&world, &"é".repeat(2_500));
    let line = world.wait_stream("hand-off from the bot");
    assert!(line.ends_with(&format!("… [cut; all of it: anna-relay show {}]", &id[28..])), "{line}");
    assert!(line.chars().filter(|c| *c == 'é').count() <= 2_000);
}

#[test]
fn what_is_said_twice_is_taken_once() {
    let mut world = World::new();
    world.brain().faults(|faults| faults.duplicate_frames = true);
    world.bot().faults(|faults| faults.duplicate_frames = true);
    world.start_online();
    let id = crate::crash::hand_off(&world, "water");
    world.brain_gets(|all| all.len() == 1);
    world.brain().say("watered", Some(&id));
    world.wait_queue("done", 1);
    let next = crate::crash::hand_off(&world, "mow");
    world.brain_gets(|all| all.len() == 2);
    world.brain().say("mown", Some(&next));
    world.wait_queue("done", 2);
    assert_eq!((world.brain().uploads().len(), world.bot().uploads().len()), (2, 2));
}

#[test]
fn a_part_that_an_open_and_a_closed_one_share_is_not_guessed_at() {
    let mut world = World::new();
    world.start_online();
    // Ids begin alike for a minute.
    world.bot().say_with_id("m1796045000000-1", "RELAY: delete the old backups?", None);
    let first = world.brain_gets(|all| all.len() == 1).remove(0);
    world.brain().say("shall I really?", Some(&first.id));
    world.wait_queue("done", 1);
    world.bot().say_with_id("m1796045009000-2", "RELAY: is the door locked?", None);
    let second = world.brain_gets(|all| all.len() == 2).remove(1);
    assert_eq!(first.id[..8], second.id[..8]);
    world.brain().say("the backups are deleted", Some(&first.id[..8]));
    world.wait_stream("the backups are deleted");
    // A part that only one of them has is enough, be it closed.
    world.brain().say("deleted, all of them", Some(&first.id[24..]));
    let told = world.bot_gets(|all| all.len() == 2).remove(1);
    assert!(told.text.starts_with(&format!("[relay follow-up for {}] deleted", first.id)), "{}", told.text);
    assert_eq!(world.documents("brain").len(), 1);
}
