//! Pushes that fail, giving up, and what a person can do about it.

use std::time::Duration;

use anna_relay::fakechat::server::Refusal;

use crate::crash::{again, hand_off};
use crate::harness::World;

fn refuse(status: u16, times: Option<usize>) -> Option<Refusal> {
    Some(Refusal { status, times })
}

#[test]
fn given_up_it_stays_out_until_the_bot_was_told() {
    let mut world = World::new().with("max_attempts", "2");
    world.brain().faults(|faults| faults.refuse_uploads = refuse(500, None));
    world.start_online();
    let id = hand_off(&world, "water");
    world.wait_status("the first try", |_| {
        world.documents("brain").first().is_some_and(|h| h["pushes"][0]["why"].is_string())
    });
    world.bot_leaves();
    let given_up = world.wait_stream("given up");
    assert!(given_up.contains("⚠") && given_up.contains("attempts") && given_up.contains("500"), "{given_up}");
    world.wait_queue("out", 1);
    world.kill();
    let document = world.documents("out").remove(0);
    assert_eq!(document["failed"]["reason"], "attempts");
    assert_eq!(document["failed"]["told"], serde_json::Value::Null);
    assert_eq!(document["pushes"].as_array().unwrap().len(), 2);
    world.start();
    world.bot_comes();
    let told = world.bot_gets(|all| all.len() == 1).remove(0);
    assert!(told.text.starts_with(&format!("[relay] hand-off {id} was given up after 2 attempts: ")), "{}", told.text);
    assert!(told.text.ends_with("\n[asked: water]"), "{}", told.text);
    world.wait_queue("failed", 1);
    assert!(world.documents("failed")[0]["failed"]["told"].is_string());
    assert_eq!(world.json(&["show", &id])["stage"], "failed");
}

#[test]
fn an_answer_after_giving_up_is_the_result() {
    let mut world = World::new().with("max_attempts", "1");
    // The brain takes it; only the relay does not learn so.
    world.brain().faults(|faults| faults.lose_answers = true);
    world.start_online();
    let id = hand_off(&world, "water");
    world.wait_queue("failed", 1);
    world.brain().say("watered", Some(&id));
    world.wait_queue("done", 1);
    let told = world.bot_gets(|all| all.len() == 2);
    assert_eq!(told[1].text, format!("[relay result for {id}] watered\n[asked: water]"));
    assert_eq!(world.json(&["show", &id])["stage"], "handed to the bot");
    let late = world.run(&["retry", &id]);
    assert_eq!(late.status.code(), Some(1), "it is done: {late:?}");
}

#[test]
fn retry_gives_fresh_attempts() {
    let mut world = World::new().with("max_attempts", "1");
    world.brain().faults(|faults| faults.refuse_uploads = refuse(503, Some(1)));
    world.start_online();
    let id = hand_off(&world, "water");
    world.wait_queue("failed", 1);
    world.ok(&["retry", &id[28..]]);
    assert_eq!(world.brain_gets(|all| all.len() == 1)[0].text, again(&id, 2, "water"));
    world.wait_queue("brain", 1);
    assert_eq!(world.status()["queue"]["failed"], 0);
    // One that waits for its answer is pushed again too.
    world.ok(&["retry", &id]);
    assert_eq!(world.brain_gets(|all| all.len() == 2)[1].text, again(&id, 3, "water"));
    world.brain().say("watered", Some(&id));
    world.wait_queue("done", 1);
}

#[test]
fn retry_without_a_bridge_is_kept_for_the_next() {
    let mut world = World::new().with("max_attempts", "1");
    world.brain().faults(|faults| faults.refuse_uploads = refuse(400, Some(1)));
    world.start_online();
    let id = hand_off(&world, "water");
    world.wait_queue("failed", 1);
    assert!(world.stop().success());
    world.ok(&["retry", &id]);
    assert_eq!(world.documents("new")[0]["failed"], serde_json::Value::Null);
    world.start();
    assert_eq!(world.brain_gets(|all| all.len() == 1)[0].text, again(&id, 2, "water"));
}

#[test]
fn what_the_brain_refuses_for_good_is_not_tried_again() {
    let mut world = World::new();
    world.brain().faults(|faults| faults.refuse_uploads = refuse(413, Some(1)));
    world.start_online();
    let id = hand_off(&world, "too much");
    let next = hand_off(&world, "less");
    world.wait_queue("failed", 1);
    let failed = world.documents("failed").remove(0);
    assert_eq!((&failed["id"], &failed["failed"]["reason"]), (&id.as_str().into(), &"refused".into()));
    assert_eq!(failed["pushes"].as_array().unwrap().len(), 1);
    assert_eq!(failed["pushes"][0]["outcome"], "refused");
    let told = world.bot_gets(|all| all.len() == 1).remove(0);
    assert!(told.text.starts_with(&format!("[relay] hand-off {id} was given up")), "{}", told.text);
    assert!(told.text.contains("413"), "{}", told.text);
    let warned = world.warnings();
    assert!(warned.iter().any(|line| line.contains(&id[28..]) && line.contains("refused")), "{warned:?}");
    assert_eq!(world.brain_gets(|all| all.len() == 1)[0].id, next, "the next one goes on");
}

#[test]
fn what_the_bot_refuses_for_good_becomes_a_notice_and_the_next_goes_on() {
    let mut world = World::new();
    world.start_online();
    let (first, second) = (hand_off(&world, "one"), hand_off(&world, "two"));
    world.brain_gets(|all| all.len() == 2);
    world.bot().faults(|faults| faults.refuse_uploads = refuse(413, Some(1)));
    world.brain().say("a long answer", Some(&first));
    world.wait_stream("413");
    world.brain().say("a short answer", Some(&second));
    let told = world.bot_gets(|all| all.len() == 2);
    let notice = told.iter().find(|one| one.text.starts_with("[relay] ")).expect("a notice");
    assert!(notice.text.contains(&first) && notice.text.contains("anna-relay show"), "{}", notice.text);
    assert!(!notice.text.contains("a long answer"), "{}", notice.text);
    assert!(told.iter().any(|one| one.text.starts_with(&format!("[relay result for {second}] a short answer"))));
    world.wait_queue("done", 2);
    assert!(world.ok(&["show", &first]).contains("a long answer"));
    assert!(world.warnings().iter().any(|line| line.contains(&first[28..])));
}

#[test]
fn a_websocket_that_drops_after_the_204_takes_the_push_with_it() {
    let mut world = World::new().with("confirm_ms", "5000");
    let drop = Some(Duration::from_millis(10));
    world.brain().faults(|faults| faults.close_after_answer = drop);
    world.start_online();
    let id = hand_off(&world, "water");
    let pushed = world.brain_gets(|all| all.len() == 2);
    assert_eq!(pushed[1].text, again(&id, 2, "water"));
    let first = &world.json(&["show", &id])["pushes"][0];
    assert_eq!(first["outcome"], "unknown");
    assert!(first["why"].as_str().unwrap().contains("websocket"), "{first}");
    world.bot().faults(|faults| faults.close_after_answer = drop);
    world.brain().say("watered", Some(&id));
    let told = world.bot_gets(|all| all.len() == 2);
    assert!(told[1].text.starts_with(&format!("[relay result for {id}, sent again: ")), "{}", told[1].text);
}

#[test]
fn a_server_error_is_tried_again() {
    let mut world = World::new();
    world.brain().faults(|faults| faults.refuse_uploads = refuse(502, Some(1)));
    world.bot().faults(|faults| faults.refuse_uploads = refuse(500, Some(1)));
    world.start_online();
    let id = hand_off(&world, "water");
    assert_eq!(world.brain_gets(|all| all.len() == 1)[0].text, again(&id, 2, "water"));
    world.brain().say("watered", Some(&id));
    assert!(world.bot_gets(|all| all.len() == 1)[0].text.contains("watered"));
    world.wait_queue("done", 1);
}

#[test]
fn cancelled_before_it_was_pushed_it_never_is() {
    let mut world = World::new();
    world.brain_leaves();
    world.start();
    world.wait_status("the bot to be online", |status| status["bot"]["state"] == "online");
    let (id, next) = (hand_off(&world, "water"), hand_off(&world, "mow"));
    world.wait_queue("new", 2);
    world.ok(&["cancel", &id]);
    let told = world.bot_gets(|all| all.len() == 1).remove(0);
    assert!(told.text.starts_with(&format!("[relay] hand-off {id} was cancelled")), "{}", told.text);
    world.wait_queue("failed", 1);
    assert_eq!(world.documents("failed")[0]["failed"]["reason"], "cancelled");
    world.brain_comes();
    assert_eq!(world.brain_gets(|all| all.len() == 1)[0].id, next);
    assert_eq!(world.run(&["cancel", &id]).status.code(), Some(0), "it is as wanted");
}

#[test]
fn cancelled_after_it_was_pushed_it_is_taken_back() {
    let mut world = World::new();
    world.start_online();
    let id = hand_off(&world, "water");
    world.brain_gets(|all| all.len() == 1);
    world.ok(&["cancel", &id[28..]]);
    let taken_back = world.brain_gets(|all| all.len() == 2).remove(1);
    assert_eq!(taken_back.text, format!("[relay {id} cancelled: stop work on it]"));
    assert!(world.bot_gets(|all| all.len() == 1)[0].text.starts_with("[relay] hand-off "));
    world.wait_queue("failed", 1);
    // What the brain still says about it is for the stream alone.
    world.brain().say("half watered", Some(&id));
    assert!(world.wait_stream("half watered").contains("cancelled"));
    let other = hand_off(&world, "mow");
    world.brain_gets(|all| all.len() == 3);
    world.brain().say("mown", Some(&other));
    assert!(world.bot_gets(|all| all.len() == 2)[1].text.contains("mown"));
    assert_eq!(world.documents("failed")[0]["results"].as_array().unwrap().len(), 0);
}

#[test]
fn cancelled_without_a_bridge_both_are_told_by_the_next() {
    let mut world = World::new();
    world.start_online();
    let id = hand_off(&world, "water");
    world.wait_status("it to be confirmed", |_| {
        world.documents("brain").first().is_some_and(|h| h["pushes"][0]["outcome"] == "sent")
    });
    assert!(world.stop().success());
    let output = world.run(&["cancel", &id]);
    let (follows, missing) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(follows.contains("it stays in `out` until the brain and the bot have been told"), "{follows}");
    assert!(missing.contains(": no bridge runs\nhint: "), "{missing}");
    assert_eq!(world.documents("out")[0]["failed"]["reason"], "cancelled");
    world.start();
    assert_eq!(world.brain_gets(|all| all.len() == 2)[1].text, format!("[relay {id} cancelled: stop work on it]"));
    world.bot_gets(|all| all.len() == 1);
    world.wait_queue("failed", 1);
}

#[test]
fn what_is_done_can_be_neither_cancelled_nor_retried() {
    let mut world = World::new();
    world.brain_answers("watered");
    world.start_online();
    let id = hand_off(&world, "water");
    world.wait_queue("done", 1);
    let refused = |world: &World, running: bool| {
        for command in ["cancel", "retry"] {
            let output = world.run(&[command, &id]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{running} {said}");
            assert!(said.contains("result already") && said.contains("\nhint: "), "{said}");
            let unknown = world.run(&[command, "01939f3c-aaaa-7bbb-8ccc-1234567890ab"]);
            assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
        }
    };
    refused(&world, true);
    assert!(world.stop().success());
    refused(&world, false);
    assert_eq!(world.documents("done").len(), 1);
}

#[test]
fn a_bridge_that_stood_still_does_not_take_a_dropped_push_for_delivered() {
    let mut world = World::new().with("confirm_ms", "1000");
    world.start_online();
    world.bot().say("RELAY: water", None);
    let asked = world.brain_gets(|all| all.len() == 1).remove(0);
    // It stops as soon as the result has its 204, and goes on when `confirm_ms` is long over and the bot gone.
    let pid = rustix::process::Pid::from_raw(world.pid().cast_signed()).unwrap();
    world.brain().say("watered", Some(&asked.id));
    world.bot_gets(|all| all.len() == 1);
    crate::harness::wait("the 204 to be on disk", || {
        let told = world.documents("out").pop()?;
        (!told["results"][0]["pushes"].as_array()?.is_empty()).then_some(())
    });
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let since = std::time::Instant::now();
    world.bot_leaves();
    crate::harness::wait("confirm_ms to be over", || (since.elapsed() > Duration::from_millis(1_500)).then_some(()));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    world.bot_comes();
    let told = world.bot_gets(|all| all.len() == 1).remove(0);
    assert!(told.text.starts_with(&format!("[relay result for {}, sent again: ", asked.id)), "{}", told.text);
}

#[test]
fn what_follows_a_push_that_fails_stays_behind_it() {
    const ALL: usize = 40;
    let mut world = World::new().with("breaker_count", "1000");
    world.start_online();
    world.ok(&["pause"]);
    for n in 0..ALL {
        world.ok(&["send", &format!("number {n}")]);
    }
    world.ok(&["resume"]);
    // Now and then one is refused, while the one after the next is being written.
    for refused in 1..=6 {
        let before = world.brain().uploads().len();
        world.brain_gets(|all| all.len() >= (before + 3).min(ALL));
        world.brain().faults(|faults| faults.refuse_uploads = refuse(500, Some(1)));
        world.wait_status("one to be refused", |_| world.stream().matches("it is tried again").count() >= refused);
    }
    let came = world.brain_gets(|all| all.len() == ALL);
    let order: Vec<&str> = came.iter().map(|one| one.text.rsplit("] ").next().unwrap()).collect();
    let wanted: Vec<String> = (0..ALL).map(|n| format!("number {n}")).collect();
    assert_eq!(order, wanted);
}
