//! The alarm: a hand-off without a result is shown to a person once.

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::harness::{World, wait};

/// An alarm that comes soon.
const SHORT: &str = "0.02";

fn minutes_ago(minutes: i64) -> String {
    (OffsetDateTime::now_utc() - time::Duration::minutes(minutes)).format(&Rfc3339).unwrap()
}

/// A hand-off of so many minutes ago, as it lies in the spool. `n` makes its id.
fn hand_off(n: u32, minutes: i64, pushes: &Value) -> Value {
    let id = format!("01939f3c-aaaa-7bbb-8ccc-1234567890{n:02}");
    json!({"v": 1, "id": id, "from": "script", "text": format!("number {n}"), "created": minutes_ago(minutes),
        "source": null, "files": [], "pushes": pushes, "results": [], "alarmed": null, "failed": null})
}

fn put(world: &World, folder: &str, hand_off: &Value) {
    let name = format!("{}.json", hand_off["id"].as_str().unwrap());
    std::fs::write(world.spool().join(folder).join(name), hand_off.to_string()).unwrap();
}

/// The alarms for this hand-off.
fn alarms(world: &World, id: &str) -> Vec<String> {
    let short = &id[28..];
    world.warnings().into_iter().filter(|line| line.contains(short) && line.contains("no result after")).collect()
}

/// Waits for the one alarm for this hand-off.
#[track_caller]
fn the_alarm(world: &World, id: &str) -> String {
    let found = wait("the alarm", || Some(alarms(world, id)).filter(|all| !all.is_empty()));
    assert_eq!(found.len(), 1, "{}", world.stream());
    found[0].clone()
}

#[track_caller]
fn wait_alarms(world: &World, count: u64) {
    world.wait_status(&format!("{count} alarms"), |status| status["alarms"] == count);
}

#[test]
fn a_hand_off_without_a_result_is_shown_once_also_across_a_restart() {
    let mut world = World::new().with("alarm_min", SHORT);
    world.start_online();
    let first = world.ok(&["send", "one"]).trim().to_owned();
    wait_alarms(&world, 1);
    world.wait_stream("no result after 1 s: pushed and not seen");
    assert_eq!(world.run(&["status", "--check"]).status.code(), Some(1), "degraded");
    world.stop();
    assert_eq!(world.status()["alarms"], 1, "also without a bridge");
    world.start_online();
    let second = world.ok(&["send", "two"]).trim().to_owned();
    wait_alarms(&world, 2);
    the_alarm(&world, &second);
    the_alarm(&world, &first);
    for id in [&first, &second] {
        world.brain().say("done", Some(id));
    }
    wait_alarms(&world, 0);
    assert_eq!(world.run(&["status", "--check"]).status.code(), Some(0));
}

#[test]
fn it_says_which() {
    let mut world = World::new().with("alarm_min", SHORT);
    world.ok(&["pause"]);
    let away = world.ok(&["send", "away"]).trim().to_owned();
    let push = |outcome: &str| json!([{"at": minutes_ago(50), "attempt": 1, "session": null, "outcome": outcome}]);
    let (seen, sent) = (hand_off(1, 50, &push("seen")), hand_off(2, 50, &push("sent")));
    put(&world, "brain", &seen);
    put(&world, "brain", &sent);
    world.brain_leaves();
    world.start();
    wait_alarms(&world, 2);
    let said = |id: &Value| the_alarm(&world, id.as_str().unwrap());
    assert!(said(&seen["id"]).ends_with("seen and unanswered"), "{}", world.stream());
    assert!(said(&sent["id"]).ends_with("pushed and not seen, and the brain is away"), "{}", world.stream());
    world.ok(&["resume"]);
    wait_alarms(&world, 3);
    let said = the_alarm(&world, &away);
    assert!(said.ends_with("not seen: it was not pushed, for the brain is away"), "{said}");
}

#[test]
fn paused_time_does_not_count() {
    let mut world = World::new().with("alarm_min", SHORT);
    world.start_online();
    world.ok(&["pause"]);
    let first = world.ok(&["send", "one"]).trim().to_owned();
    let old = |age: i64| {
        world.wait_status("it to have waited", |status| status["oldest_waiting_s"].as_i64() >= Some(age));
    };
    old(2);
    world.ok(&["send", "two"]);
    world.ok(&["send", "three"]);
    world.wait_stream("hand-off from a script: three");
    assert_eq!((alarms(&world, &first).len(), &world.status()["alarms"]), (0, &json!(0)), "{}", world.stream());
    // Nor does a pause over a restart.
    world.stop();
    world.start_online();
    world.ok(&["send", "four"]);
    world.wait_stream("hand-off from a script: four");
    assert_eq!((alarms(&world, &first).len(), &world.status()["alarms"]), (0, &json!(0)), "{}", world.stream());
    world.ok(&["resume"]);
    wait_alarms(&world, 4);
    the_alarm(&world, &first);
}

#[test]
fn a_pause_that_ended_does_not_count_after_a_restart() {
    let mut world = World::new();
    world.ok(&["pause"]);
    let paused = json!({"since": minutes_ago(30), "reason": null}).to_string();
    std::fs::write(world.spool().join("paused"), paused).unwrap();
    // A bridge that only sees the file go: half an hour of pause is remembered.
    world = world.with_env("ANNA_RELAY_TEST_TICK_MS", "100");
    world.start();
    world.wait_status("the pause to be seen", |status| status["paused"].is_object());
    std::fs::remove_file(world.spool().join("paused")).unwrap();
    world.wait_status("its end to be seen", |status| status["paused"].is_null());
    world.stop();
    let push = json!([{"at": minutes_ago(1), "attempt": 1, "session": null, "outcome": "sent"}]);
    let (early, late) = (hand_off(1, 62, &push), hand_off(2, 50, &push));
    put(&world, "brain", &early);
    put(&world, "brain", &late);
    world.start_online();
    wait_alarms(&world, 1);
    world.ok(&["send", "a later event"]);
    world.wait_stream("a later event");
    the_alarm(&world, early["id"].as_str().unwrap());
    assert_eq!(alarms(&world, late["id"].as_str().unwrap()).len(), 0, "{}", world.stream());
}

#[test]
fn a_retry_starts_a_new_wait() {
    let mut world = World::new().with("alarm_min", SHORT);
    world.start_online();
    let id = world.ok(&["send", "one"]).trim().to_owned();
    wait_alarms(&world, 1);
    world.ok(&["retry", &id]);
    let asked = world.brain_gets(|all| all.len() == 2);
    assert!(asked[1].text.contains("from a script, attempt 2: an earlier try may have done part"), "{}", asked[1].text);
    world.wait_stream("is tried again");
    wait_alarms(&world, 1);
    let found = wait("the second alarm", || Some(alarms(&world, &id)).filter(|all| all.len() == 2));
    assert_eq!(found.len(), 2);
}
