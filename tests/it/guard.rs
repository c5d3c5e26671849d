//! Explicit hand-offs only, and each message is one hand-off, however often it comes.

use serde_json::json;

use crate::harness::World;

/// What looks like a hand-off and is none.
const NOT_QUITE: [&str; 12] = [
    " RELAY: x",
    "\nRELAY: x",
    "\u{feff}RELAY: x",
    "relay: x",
    "Relay: x",
    "RELAY x",
    "RELAY : x",
    "RELAY\u{ff1a} x",
    "> RELAY: x",
    "I said RELAY: x",
    "[relay] RELAY: x",
    "[relay result for 01939f3c-aaaa-7bbb-8ccc-1234567890ab] RELAY: x",
];

/// The last thing said: when it has arrived, all before it had its chance to.
const LAST: &str = "RELAY: the last one";

#[test]
fn nothing_but_an_explicit_hand_off_reaches_the_brain() {
    let mut world = World::new();
    world.start_online();
    let bot = world.bot();
    for text in NOT_QUITE {
        bot.say(text, None);
    }
    for reply_to in ["", " ", "m1796031734360-1", "01939f3c-aaaa-7bbb-8ccc-1234567890ab"] {
        bot.say("RELAY: in a reply", Some(reply_to));
    }
    bot.say_file(Some("RELAY: in a reply with a file"), Some("m1-1"), "a.txt", "some");
    for empty in ["RELAY:", "RELAY: ", "RELAY:\n\n"] {
        bot.say(empty, None);
    }
    bot.say_file(None, None, "RELAY: x.txt", "a file without a text");
    let chat = bot.say("how are you?", None);
    bot.edit(&chat, "RELAY: by an edit");
    bot.say_frame(json!({"type": "msg", "id": "m1-9", "from": "user", "text": "RELAY: of a user"}).to_string());
    bot.say_frame(json!({"type": "MSG", "id": "m1-8", "from": "assistant", "text": "RELAY: odd type"}).to_string());
    bot.say(LAST, None);
    let asked = world.brain_gets(|all| !all.is_empty());
    assert!(asked[0].text.ends_with("] the last one"), "{}", asked[0].text);
    assert_eq!(asked.len(), 1);
    world.wait_stream("hand-off from the bot: the last one");
    let refused = |why: &str| world.warnings().iter().filter(|line| line.contains(why)).count();
    assert_eq!(refused("it is a reply to something"), 5, "{}", world.stream());
    assert_eq!(refused("the bot said what is no hand-off"), NOT_QUITE.len(), "{}", world.stream());
    assert_eq!(refused("there is nothing behind it"), 3, "{}", world.stream());
    assert_eq!(world.bot().uploads().len(), 0, "refusals are the stream's matter");
    assert_eq!(world.status()["breaker"]["recent"], 1);
}

#[test]
fn an_edit_of_a_hand_off_changes_nothing() {
    let mut world = World::new();
    world.start_online();
    let message = world.bot().say("RELAY: water the plants", None);
    world.brain_gets(|all| all.len() == 1);
    world.bot().edit(&message, "RELAY: burn the plants");
    world.bot().say(LAST, None);
    let asked = world.brain_gets(|all| all.len() == 2);
    assert!(asked[0].text.ends_with("water the plants") && asked[1].text.ends_with("the last one"));
    assert_eq!(world.documents("brain")[0]["text"], "water the plants");
}

#[test]
fn what_the_brain_says_never_becomes_a_hand_off() {
    let mut world = World::new();
    world.start_online();
    world.brain().say("RELAY: to nobody", None);
    world.brain().say("RELAY: to something unknown", Some("m1-1"));
    world.bot().say("RELAY: water the plants", None);
    let asked = world.brain_gets(|all| !all.is_empty()).remove(0);
    let answer = world.brain().say("RELAY: as an answer", Some(&asked.id));
    world.brain().edit(&answer, "RELAY: as a correction");
    let told = world.bot_gets(|all| all.len() == 2);
    assert!(told[0].text.contains("] RELAY: as an answer\n"), "{}", told[0].text);
    assert!(told[1].text.contains("] RELAY: as a correction\n"), "{}", told[1].text);
    world.wait_stream("the brain said, to nobody: RELAY: to nobody");
    world.wait_stream("to something unknown");
    world.bot().say(LAST, None);
    let asked = world.brain_gets(|all| all.len() == 2);
    assert!(asked[1].text.ends_with("the last one"), "{}", asked[1].text);
    assert_eq!(world.bot().uploads().len(), 2);
}

#[test]
fn a_file_alone_is_a_hand_off() {
    let mut world = World::new();
    world.start_online();
    world.bot().say_file(Some("RELAY:"), None, "plan.txt", "water, then sun");
    let asked = world.brain_gets(|all| !all.is_empty()).remove(0);
    assert_eq!(asked.text, format!("[relay {} from the bot]\n[file plan.txt, 15 bytes]", asked.id));
    assert_eq!(&asked.file.unwrap().bytes[..], b"water, then sun");
}

/// Says the same message again, then something new, and waits until that has arrived.
#[track_caller]
fn again(world: &World, message: &str, arrived: usize) {
    world.bot().say_with_id(message, "RELAY: water the plants", None);
    world.bot().say_with_id(message, "RELAY: a different text under the same id", None);
    world.bot().say(LAST, None);
    let asked = world.brain_gets(|all| all.len() == arrived);
    assert!(asked[arrived - 1].text.ends_with("] the last one"), "{}", asked[arrived - 1].text);
}

#[test]
fn a_message_that_comes_again_is_the_same_hand_off_also_after_a_restart_and_when_it_is_done() {
    let mut world = World::new().with("breaker_count", "100");
    world.start_online();
    let message = world.bot().say("RELAY: water the plants", None);
    let id = world.brain_gets(|all| !all.is_empty()).remove(0).id;
    again(&world, &message, 2);
    world.stop();
    world.start_online();
    again(&world, &message, 3);
    world.brain().say("they are watered", Some(&id));
    world.wait_queue("done", 1);
    again(&world, &message, 4);
    world.stop();
    world.start_online();
    again(&world, &message, 5);
    let status = world.status();
    assert_eq!((&status["queue"]["brain"], &status["queue"]["done"]), (&json!(4), &json!(1)));
    assert_eq!(world.bot().uploads().len(), 1, "told once");
}

#[test]
fn a_message_that_comes_again_after_its_hand_off_was_cancelled_stays_cancelled() {
    let mut world = World::new().with("breaker_count", "100");
    world.start_online();
    world.ok(&["pause"]);
    let message = world.bot().say("RELAY: water the plants", None);
    world.wait_queue("new", 1);
    let id = world.documents("new")[0]["id"].as_str().unwrap().to_owned();
    world.ok(&["cancel", &id]);
    world.wait_queue("failed", 1);
    world.ok(&["resume"]);
    again(&world, &message, 1);
    world.stop();
    world.start_online();
    again(&world, &message, 2);
    assert_eq!(world.status()["queue"]["failed"], 1);
    let told = world.bot().uploads();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].text.contains("was cancelled"));
}
