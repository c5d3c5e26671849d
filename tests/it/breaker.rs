//! The breaker: too many hand-offs in a short time stop the intake from the bot, and nothing else.

use std::time::{SystemTime, UNIX_EPOCH};

use anna_relay::fakechat::server::Received;

use crate::harness::World;

/// A message id of so many milliseconds ago.
fn said_ago(millis: u128, n: usize) -> String {
    format!("m{}-{n}", SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() - millis)
}

fn count(all: &[Received], part: &str) -> usize {
    all.iter().filter(|one| one.text.contains(part)).count()
}

fn refusals(world: &World) -> usize {
    world.warnings().iter().filter(|line| line.contains("refused by the breaker")).count()
}

/// A world in which a third hand-off trips the breaker, and three were said.
fn tripped() -> World {
    let mut world = World::new().with("breaker_count", "2");
    world.start_online();
    for text in ["RELAY: one", "RELAY: two", "RELAY: three"] {
        world.bot().say(text, None);
    }
    world.wait_queue("failed", 1);
    world.brain_gets(|all| all.len() == 2);
    world
}

#[test]
fn one_hand_off_too_many_trips_it_and_what_it_refuses_is_kept() {
    let world = tripped();
    world.bot().say("RELAY: four", None);
    world.wait_queue("failed", 2);
    let status = world.status();
    let breaker = &status["breaker"];
    assert_eq!((&breaker["tripped"], &breaker["refused"], &breaker["limit"]), (&true.into(), &2.into(), &2.into()));
    let failed = world.documents("failed");
    assert_eq!((&failed[0]["text"], &failed[1]["text"]), (&"three".into(), &"four".into()));
    assert!(failed.iter().all(|one| one["failed"]["reason"] == "breaker"), "{failed:#?}");
    let listed = world.json(&["list", "--state", "failed"]);
    assert!(
        listed[0]["text"] == "four" && listed[0]["stage"] == "failed" && listed[1]["text"] == "three",
        "{listed:#}"
    );
    world.wait_stream("refused by the breaker: four");
    assert_eq!(refusals(&world), 2);
    world.wait_stream("⚠ the breaker tripped");
    let told = world.bot_gets(|all| !all.is_empty());
    assert!(told[0].text.starts_with("[relay] the breaker tripped: more than 2 hand-offs within 120 s"), "{told:#?}");
    assert_eq!(world.run(&["status", "--check"]).status.code(), Some(1), "degraded");
}

#[test]
fn results_queued_work_scripts_and_retries_go_on_and_do_not_count() {
    let world = tripped();
    for text in ["five", "six", "seven"] {
        world.ok(&["send", text]);
    }
    let failed = world.documents("failed")[0]["id"].as_str().unwrap().to_owned();
    world.ok(&["retry", &failed]);
    let asked = world.brain_gets(|all| all.len() == 6);
    let retried = asked.iter().find(|one| one.id == failed).unwrap();
    assert_eq!(retried.text, format!("[relay {failed} from the bot] three"));
    for one in &asked {
        world.brain().say("done", Some(&one.id));
    }
    world.wait_queue("done", 6);
    let told = world.bot().uploads();
    assert_eq!((count(&told, "[relay result for"), count(&told, "the breaker tripped")), (6, 1), "{told:#?}");
    assert_eq!(told.len(), 7, "what it refused is not told one by one");
    assert_eq!(world.status()["breaker"]["refused"], 1);
}

#[test]
fn a_reset_lets_in_again_with_an_empty_window_and_tells_how_many_were_refused() {
    let world = tripped();
    world.bot().say("RELAY: four", None);
    world.wait_queue("failed", 2);
    assert!(world.ok(&["reset-breaker"]).contains("2 had been refused"));
    let told = world.bot_gets(|all| count(all, "the breaker was reset") == 1);
    assert!(told[1].text.contains("2 were refused"), "{told:#?}");
    let breaker = world.status()["breaker"].clone();
    assert_eq!((&breaker["tripped"], &breaker["recent"], &breaker["refused"]), (&false.into(), &0.into(), &0.into()));
    for text in ["RELAY: five", "RELAY: six"] {
        world.bot().say(text, None);
    }
    world.brain_gets(|all| all.len() == 4);
    world.bot().say("RELAY: seven", None);
    world.wait_queue("failed", 3);
    let told = world.bot_gets(|all| all.len() == 3);
    assert_eq!(count(&told, "the breaker tripped"), 2, "told again, for it tripped again");
    // Nothing to reset is nothing to tell of.
    world.ok(&["reset-breaker"]);
    assert!(world.ok(&["reset-breaker"]).contains("had not tripped"));
    world.ok(&["send", "the last one"]);
    let last = world.brain_gets(|all| all.len() == 5).remove(4);
    world.brain().say("done", Some(&last.id));
    let told = world.bot_gets(|all| count(all, "[relay result for") == 1);
    assert_eq!(told.len(), 5, "{told:#?}");
}

#[test]
fn the_time_of_saying_counts_not_that_of_arrival() {
    let mut world = World::new().with("breaker_count", "2").with("breaker_window_s", "60");
    world.start_online();
    // Brought late, all at once, but said minutes apart.
    for n in 0..6 {
        world.bot().say_with_id(&said_ago(3_600_000 + 61_000 * n, 1), &format!("RELAY: slow {n}"), None);
    }
    world.brain_gets(|all| all.len() == 6);
    assert_eq!(world.status()["breaker"]["tripped"], false);
    // Said in one go, long ago.
    let together = said_ago(7_200_000, 0);
    for n in 0..3 {
        world.bot().say_with_id(&format!("{together}{n}"), &format!("RELAY: fast {n}"), None);
    }
    world.wait_queue("failed", 1);
    assert_eq!(world.documents("failed")[0]["text"], "fast 2");
    assert_eq!(world.status()["breaker"]["tripped"], true);
}

#[test]
fn the_same_message_again_is_no_further_hand_off() {
    let mut world = World::new().with("breaker_count", "2");
    world.start_online();
    for _ in 0..5 {
        world.bot().say_with_id("m1796031734360-1", "RELAY: one", None);
    }
    world.bot().say("RELAY: two", None);
    world.brain_gets(|all| all.len() == 2);
    assert_eq!(world.status()["breaker"]["tripped"], false);
}

#[test]
fn the_first_hundred_are_kept_and_the_rest_is_counted() {
    let mut world = World::new().with("breaker_count", "1");
    world.start_online();
    for n in 0..106 {
        world.bot().say(&format!("RELAY: number {n}"), None);
    }
    world.wait_stream("refused by the breaker: number 105");
    let status = world.wait_queue("failed", 100);
    assert_eq!(status["breaker"]["refused"], 105);
    assert_eq!(refusals(&world), 105);
    assert!(world.ok(&["reset-breaker"]).contains("105 had been refused"));
    let told = world.bot_gets(|all| count(all, "the breaker was reset") == 1);
    assert!(told.len() == 2 && told[1].text.contains("105 were refused"), "{told:#?}");
    let kept = world.documents("failed");
    assert!(kept.iter().any(|one| one["text"] == "number 1") && kept.iter().any(|one| one["text"] == "number 100"));
}

#[test]
fn a_restart_of_the_bridge_resets_it_and_what_was_refused_stays_refused() {
    let mut world = tripped();
    let refused = world.documents("failed")[0]["source"]["message"].as_str().unwrap().to_owned();
    world.stop();
    world.start_online();
    assert_eq!(world.status()["breaker"]["tripped"], false);
    world.bot().say_with_id(&refused, "RELAY: three", None);
    world.bot().say("RELAY: four", None);
    let asked = world.brain_gets(|all| all.len() == 3);
    assert!(asked[2].text.ends_with("] four"), "{asked:#?}");
    assert_eq!(world.status()["queue"]["failed"], 1);
}
