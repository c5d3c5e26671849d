//! Nights: while the brain wraps up or is away, hand-offs wait, and the bot hears of it once.

use std::time::{Duration, SystemTime};

use anna_relay::fakechat::server::Received;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::harness::World;
use crate::stop::Systemd;

/// What the bot was told that is no result.
fn notices(all: &[Received]) -> Vec<String> {
    all.iter().filter_map(|one| one.text.strip_prefix("[relay] ")).map(str::to_owned).collect()
}

/// The texts of the hand-offs, without their heads.
fn texts(all: &[Received]) -> Vec<&str> {
    all.iter().map(|one| one.text.split_once("] ").unwrap().1).collect()
}

/// Has the brain answer a hand-off, and waits until the bot has the answer: whatever it was told before is there then.
#[track_caller]
fn one_round(world: &World) {
    let id = world.ok(&["send", "the last one"]).trim().to_owned();
    world.brain_gets(|all| all.iter().any(|one| one.id == id));
    world.brain().say("done", Some(&id));
    world.bot_gets(|all| all.iter().any(|one| one.text.contains(&id)));
    world.wait_status("all to be told", |status| status["queue"]["out"] == 0);
}

#[test]
fn a_pause_is_told_once_with_how_many_wait_and_then_all_go_in_order() {
    let mut world = World::new();
    world.ok(&["pause", "--reason", "good night"]);
    for text in ["one", "two", "three"] {
        world.ok(&["send", text]);
    }
    world.start_online();
    let told = world.bot_gets(|all| !all.is_empty());
    let wanted = "the brain is wrapping up (good night): 3 hand-offs wait and go on when it is back";
    assert_eq!(notices(&told), [wanted]);
    world.bot().say("RELAY: four", None);
    world.wait_queue("new", 4);
    assert_eq!(world.run(&["status", "--check"]).status.code(), Some(0), "a brain that wraps up is nothing to fix");
    assert_eq!(world.brain().uploads().len(), 0);
    world.ok(&["resume"]);
    let asked = world.brain_gets(|all| all.len() == 4);
    assert_eq!(texts(&asked), ["one", "two", "three", "four"]);
    one_round(&world);
    assert_eq!(notices(&world.bot().uploads()), [wanted]);
}

#[test]
fn an_absence_is_told_once_and_the_next_outage_again_but_no_short_gap() {
    let mut world = World::new();
    world.start_online();
    // A short gap.
    world.brain_leaves();
    world.wait_status("the brain to be away", |status| status["brain"]["state"] != "online");
    world.bot().say("RELAY: one", None);
    world.wait_queue("new", 1);
    world.brain_comes();
    world.brain_answers("done");
    world.brain_gets(|all| all.len() == 1);
    one_round(&world);
    assert!(notices(&world.bot().uploads()).is_empty());
    // A long one.
    world.brain_leaves();
    world.wait_status("the brain to be away", |status| status["brain"]["state"] == "offline");
    world.ok(&["send", "two"]);
    let told = world.bot_gets(|all| !notices(all).is_empty());
    assert_eq!(notices(&told), ["the brain is away: 1 hand-off waits and goes on when it is back"]);
    world.ok(&["send", "three"]);
    world.brain_comes();
    world.brain_answers("done");
    let asked = world.brain_gets(|all| all.len() == 2);
    assert_eq!(texts(&asked), ["two", "three"]);
    one_round(&world);
    assert_eq!(notices(&world.bot().uploads()).len(), 1);
    // And another.
    world.ok(&["pause"]);
    world.bot().say("RELAY: four", None);
    let told = world.bot_gets(|all| notices(all).len() == 2);
    assert_eq!(notices(&told)[1], "the brain is wrapping up: 1 hand-off waits and goes on when it is back");
}

#[test]
fn the_file_may_be_made_and_removed_by_hand() {
    let mut world = World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "100");
    world.start_online();
    let file = world.spool().join("paused");
    std::fs::write(&file, "").unwrap();
    world.wait_status("the pause to be seen", |status| status["paused"].is_object());
    world.wait_stream("paused: hand-offs wait");
    world.bot().say("RELAY: one", None);
    world.wait_queue("new", 1);
    world.ok(&["send", "two"]);
    assert_eq!(world.brain().uploads().len(), 0);
    std::fs::remove_file(&file).unwrap();
    let asked = world.brain_gets(|all| all.len() == 2);
    assert_eq!(texts(&asked), ["one", "two"]);
    assert_eq!(world.status()["paused"], json!(null));
}

#[test]
fn one_made_by_hand_in_quiet_times_holds_what_comes_next() {
    let (mut world, systemd) = Systemd::new(World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "200"));
    world.start_online();
    // After two of these in which nothing happened the next look is 18 ticks away.
    systemd.wait_ticks(2);
    // Which takes longer than the look that goes with the last.
    world.ok(&["check"]);
    std::fs::write(world.spool().join("paused"), "").unwrap();
    world.bot().say("RELAY: one", None);
    world.wait_queue("new", 1);
    assert_eq!(world.brain().uploads().len(), 0);
}

#[test]
fn a_pause_outlives_the_bridge() {
    let mut world = World::new();
    world.start_online();
    world.ok(&["pause", "--reason", "good night"]);
    let before = world.wait_status("the pause to be shown", |status| status["paused"].is_object());
    world.bot().say("RELAY: one", None);
    world.wait_queue("new", 1);
    world.stop();
    assert_eq!(world.status()["paused"], before["paused"], "also without a bridge");
    world.start_online();
    assert_eq!(world.status()["paused"], before["paused"]);
    world.ok(&["send", "two"]);
    world.kill();
    world.start_online();
    world.wait_queue("new", 2);
    assert_eq!(world.brain().uploads().len(), 0);
    world.stop();
    world.ok(&["resume"]);
    world.start();
    let asked = world.brain_gets(|all| all.len() == 2);
    assert_eq!(texts(&asked), ["one", "two"]);
}

#[test]
fn a_pause_of_more_than_twelve_hours_is_recalled_at_the_next_hand_off() {
    let mut world = World::new();
    world.ok(&["pause"]);
    let since = (OffsetDateTime::now_utc() - time::Duration::minutes(13 * 60 + 30)).format(&Rfc3339).unwrap();
    std::fs::write(world.spool().join("paused"), json!({"since": since, "reason": "good night"}).to_string()).unwrap();
    world.start_online();
    world.bot().say("RELAY: one", None);
    world
        .bot_gets(|all| notices(all).iter().any(|notice| notice.starts_with("the brain has been paused for 13 hours")));
    world.bot().say("RELAY: two", None);
    world.wait_queue("new", 2);
    world.ok(&["resume"]);
    let asked = world.brain_gets(|all| all.len() == 2);
    assert_eq!(texts(&asked), ["one", "two"]);
    // A new pause, made by hand long ago.
    let file = std::fs::File::create(world.spool().join("paused")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(15 * 3600)).unwrap();
    world.stop();
    world.start_online();
    world.bot().say("RELAY: three", None);
    world.bot_gets(|all| notices(all).iter().any(|notice| notice.contains("for 15 hours")));
    let told = notices(&world.bot().uploads());
    let recalled = told.iter().filter(|notice| notice.contains("has been paused")).count();
    assert_eq!(recalled, 2, "{told:#?}");
}

#[test]
fn while_a_long_queue_goes_a_command_is_answered_and_status_follows() {
    const ALL: usize = 1000;
    let mut world = World::new().with("breaker_count", "10000");
    world.ok(&["pause"]);
    world.start_online();
    for n in 0..ALL {
        world.bot().say(&format!("RELAY: number {n}"), None);
    }
    world.wait_queue("new", ALL);
    world.ok(&["resume"]);
    // Once the first are confirmed, there is always something that waits to be written.
    world.brain_gets(|all| all.len() > 150);
    world.ok(&["send", "the last one"]);
    let status = world.status();
    let gone = world.brain().uploads().len();
    assert!(gone < ALL, "the answer came only after all had gone");
    assert!(status["queue"]["new"].as_u64() < Some(ALL as u64 - 100), "{}", status["queue"]);
    assert_eq!(texts(&world.brain_gets(|all| all.len() == ALL + 1)).pop(), Some("the last one"));
}
