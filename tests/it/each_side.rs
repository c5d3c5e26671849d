//! Each side on its own: whatever one of them does, the other, the queue and `status` go on.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::crash::{again, hand_off};
use crate::harness::World;

const FLOOD: usize = 10_000;

#[test]
fn a_brain_that_hangs_holds_up_nobody_else() {
    let mut world = World::new();
    world.start_online();
    let first = hand_off(&world, "first");
    world.brain_gets(|all| all.len() == 1);
    world.brain().faults(|faults| faults.hang = true);
    let stuck = hand_off(&world, "stuck");
    world.wait_status("the push that hangs", |_| world.documents("brain").len() == 2);
    // The result of the first comes and goes on, and what is handed off meanwhile is kept in order.
    world.brain().say("done", Some(&first));
    assert!(world.bot_gets(|all| all.len() == 1)[0].text.starts_with(&format!("[relay result for {first}] done")));
    let waiting: Vec<String> = (0..3).map(|n| hand_off(&world, &format!("waits {n}"))).collect();
    world.wait_queue("new", 3);
    assert_eq!(world.status()["oldest_waiting_s"], 0);
    // The brain lets go.
    world.brain().faults(|faults| faults.hang = false);
    world.brain().drop_sockets();
    let pushed = world.brain_gets(|all| all.len() == 5);
    let ids: Vec<&String> = pushed[1..].iter().map(|one| &one.id).collect();
    assert_eq!(ids, [&stuck, &waiting[0], &waiting[1], &waiting[2]]);
}

#[test]
fn a_bot_that_hangs_does_not_hold_up_the_brain() {
    let mut world = World::new().with("breaker_count", "100");
    world.brain_answers("done");
    world.bot().faults(|faults| faults.hang = true);
    world.start_online();
    let ids: Vec<String> = (0..10).map(|n| hand_off(&world, &format!("task {n}"))).collect();
    let pushed = world.brain_gets(|all| all.len() == 10);
    assert!(pushed.iter().map(|one| &one.id).eq(ids.iter()), "in order");
    world.wait_queue("out", 10);
    world.bot().faults(|faults| faults.hang = false);
    world.bot().drop_sockets();
    let told = world.bot_gets(|all| all.len() == 10);
    for n in 0..10 {
        assert_eq!(told.iter().filter(|one| one.text.ends_with(&format!("\n[asked: task {n}]"))).count(), 1, "{n}");
    }
    // Only the one that was under way may have arrived before.
    assert_eq!(told.iter().filter(|one| one.text.contains("sent again")).count(), 1, "{told:#?}");
    world.wait_queue("done", 10);
}

#[test]
fn a_brain_that_floods_loses_nothing_that_matters() {
    let mut world = World::new().with("breaker_count", "100");
    world.start_online();
    let ids: Vec<String> = (0..5).map(|n| hand_off(&world, &format!("task {n}"))).collect();
    world.brain_gets(|all| all.len() == 5);
    for (n, id) in ids.iter().enumerate() {
        for frame in 0..FLOOD / 5 {
            world.brain().say(&format!("thinking {frame}"), None);
        }
        world.brain().say(&format!("done {n}"), Some(id));
        assert_eq!(world.status()["running"], true);
    }
    let told = world.bot_gets(|all| all.len() == 5);
    for (one, n) in told.iter().zip(0..) {
        assert!(one.text.contains(&format!("] done {n}\n")), "in order: {n} {}", one.text);
    }
    world.wait_queue("done", 5);
    let stream = world.stream();
    assert_eq!(stream.matches("to nobody: thinking").count(), FLOOD, "each is in the stream");
}

#[test]
fn a_brain_that_floods_with_replies_to_nothing_holds_up_nobody() {
    let mut world = World::new();
    let old = world.ok(&["send", "an old one"]).trim().to_owned();
    world.start_online();
    world.brain_gets(|all| all.len() == 1);
    world.brain().say("done", Some(&old));
    world.wait_queue("done", 1);
    // As many closed ones as a busy year leaves: what is said of nothing known is looked for among them.
    let document = world.documents("done").remove(0);
    for n in 0..1_000 {
        let id = format!("01939f3c-aaaa-7bbb-8ccc-{n:012}");
        let mut copy = document.clone();
        copy["id"] = json!(id);
        copy["results"][0]["message"] = json!(format!("m1-{n}"));
        std::fs::write(world.spool().join(format!("done/{id}.json")), copy.to_string()).unwrap();
    }
    let id = hand_off(&world, "water");
    world.brain_gets(|all| all.len() == 2);
    for n in 0..200 {
        world.brain().edit(&format!("m2-{n}"), "an edit of nothing");
        world.brain().say("a reply to nothing", Some("no such hand-off"));
    }
    world.brain().say("watered", Some(&id));
    assert!(world.bot_gets(|all| all.len() == 2)[1].text.contains("watered"));
    // An edit of one that was told long ago is still found.
    world.brain().edit("m1-999", "corrected");
    let corrected = world.bot_gets(|all| all.len() == 3).remove(2);
    assert!(corrected.text.starts_with("[relay correction for 01939f3c-aaaa-7bbb-8ccc-000000000999]"), "{corrected:?}");
}

#[test]
fn a_bot_that_chatters_is_passed_over() {
    let mut world = World::new();
    world.start_online();
    for n in 0..FLOOD {
        world.bot().say(&format!("good morning {n}"), (n % 2 == 0).then_some("some-message"));
    }
    let id = hand_off(&world, "water");
    assert_eq!(world.brain_gets(|all| !all.is_empty())[0].id, id);
    assert_eq!(world.brain().uploads().len(), 1);
    assert!(!world.stream().contains("good morning"));
}

#[test]
fn a_brain_that_never_pongs_and_says_nonsense_is_still_heard() {
    let mut world = World::new();
    world.brain().faults(|faults| faults.mute = true);
    world.start_online();
    let id = hand_off(&world, "water");
    world.brain_gets(|all| all.len() == 1);
    let brain = world.brain();
    for nonsense in [
        "",
        "x",
        "[]",
        "null",
        "{",
        r#"{"type":"msg"}"#,
        r#"{"type":"msg","id":1,"text":"x"}"#,
        r#"{"type":"typing","id":"m1-1"}"#,
        r#"{"type":"edit","id":"m1-1"}"#,
        r#"{"type":"msg","id":"m1-1","from":"user","text":"x","replyTo":"y"}"#,
    ] {
        brain.say_frame(nonsense);
    }
    brain.say_frame(format!(r#"{{"deep":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000)));
    brain.say_binary(vec![0, 159, 146, 150]);
    brain.say_binary(vec![7; 1 << 20]);
    brain.faults(|faults| faults.fragment = Some(3));
    brain.say("water\u{1f9ed} in pieces", Some(&id));
    let told = world.bot_gets(|all| !all.is_empty()).remove(0);
    assert_eq!(told.text, format!("[relay result for {id}] water\u{1f9ed} in pieces\n[asked: water]"));
    brain.faults(|faults| faults.fragment = None);
    // Text that is none breaks the rules of the websocket: at worst it costs the connection.
    brain.say_frame(vec![0xff, 0xfe]);
    world.wait_online();
    let next = hand_off(&world, "mow");
    world.brain_gets(|all| all.len() == 2);
    world.brain().say("mown", Some(&next));
    world.wait_queue("done", 2);
    assert!(!world.log().contains("replyTo"), "the log says nothing of what was in them");
}

#[test]
fn frames_without_text_are_a_result_and_no_hand_off() {
    let mut world = World::new();
    world.start_online();
    let id = hand_off(&world, "water");
    world.brain_gets(|all| all.len() == 1);
    world.bot().say_frame(json!({"type": "msg", "id": "m1-1", "from": "assistant"}).to_string());
    world.bot().say_frame(json!({"type": "msg", "id": "m1-2", "from": "assistant", "text": null}).to_string());
    world.brain().say_frame(json!({"type": "msg", "id": "m1-3", "from": "assistant", "replyTo": id}).to_string());
    let told = world.bot_gets(|all| !all.is_empty()).remove(0);
    assert_eq!(told.text, format!("[relay result for {id}]\n[asked: water]"));
    world.wait_queue("done", 1);
    assert_eq!(world.brain().uploads().len(), 1);
}

#[test]
fn a_reply_of_40_mib_goes_the_whole_way_while_the_rest_goes_on() {
    const LONG: usize = 40 << 20;
    let mut world = World::new();
    world.start_online();
    let (long, short) = (hand_off(&world, "much"), hand_off(&world, "little"));
    world.brain_gets(|all| all.len() == 2);
    world.brain().say(&"x".repeat(LONG), Some(&long));
    world.brain().say("done", Some(&short));
    assert_eq!(world.status()["running"], true);
    let told = world.bot_gets(|all| all.len() == 2);
    let of = |id: &str| told.iter().find(|one| one.text.contains(&format!("result for {id}"))).unwrap();
    let file = of(&long).file.as_ref().expect("the whole of it as a file");
    assert_eq!((file.name.as_str(), file.bytes.len()), (format!("{long}.txt").as_str(), LONG));
    assert!(of(&short).text.contains("] done\n"));
    world.wait_queue("done", 2);
}

#[test]
fn a_stop_does_not_wait_for_a_side_that_hangs() {
    let mut world = World::new();
    world.brain().faults(|faults| faults.hang = true);
    world.start_online();
    let id = hand_off(&world, "water");
    world.wait_queue("brain", 1);
    let start = Instant::now();
    assert!(world.stop().success());
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    world.brain().faults(|faults| faults.hang = false);
    world.start();
    assert_eq!(world.brain_gets(|all| all.len() == 1)[0].text, again(&id, 2, "water"));
}
