//! What hooks bring: taken once, whatever the websocket brought, whether or not a bridge ran.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use anna_relay::control::client::Client;
use anna_relay::control::wire::Command;
use anna_relay::spool::Store;
use anna_relay::spool::lock::{Lock, Role};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::claude::{edit, inbox_empties, message, nothing_is_left, quick, reply};
use crate::harness::{World, files_below, wait};
use crate::stop::Systemd;

fn world() -> World {
    quick(World::new())
}

/// How many lines of the stream have that.
pub fn lines(world: &World, part: &str) -> usize {
    world.stream().lines().filter(|line| line.contains(part)).count()
}

/// Waits until all that was said before is dealt with: a hand-off said after it is done.
#[track_caller]
fn barrier(world: &World) {
    let id = world.ok(&["send", "barrier"]).trim().to_owned();
    world.brain_gets(|all| all.iter().any(|one| one.id == id));
    world.brain().say(&format!("passed {id}"), Some(&id));
    let done = world.spool().join(format!("done/{id}.json"));
    wait("the barrier to be passed", || done.exists().then_some(()));
}

#[test]
fn a_hand_off_said_while_no_bridge_ran_arrives_once() {
    let mut world = world();
    world.brain_answers("watered");
    let said = message(600, 1);
    reply(&world, "bot", &said, "RELAY: water the plants", None, &[]);
    reply(&world, "bot", &message(600, 2), "good morning", None, &[]);
    world.start_online();
    world.wait_queue("done", 1);
    barrier(&world);
    let asked = world.brain().uploads();
    assert_eq!(asked.iter().filter(|one| one.text.contains("water the plants")).count(), 1);
    let told = world.bot().uploads();
    assert_eq!(told.iter().filter(|one| one.text.contains("[asked: water the plants]")).count(), 1);
    nothing_is_left(&world);
    world.stop();
    // The record may come back after a power cut.
    reply(&world, "bot", &said, "RELAY: water the plants", None, &[]);
    world.start_online();
    inbox_empties(&world);
    barrier(&world);
    assert_eq!(lines(&world, "hand-off from the bot"), 1, "{}", world.stream());
}

#[test]
fn a_hand_off_said_while_the_websocket_was_down_arrives_once() {
    let mut world = world();
    world.start_online();
    world.bot_leaves();
    world.wait_status("the bot to be away", |status| status["bot"]["state"] != "online");
    let said = message(0, 1);
    reply(&world, "bot", &said, "RELAY: water the plants", None, &[]);
    world.brain_gets(|all| all.len() == 1);
    world.bot_comes();
    world.wait_online();
    // And again by the websocket.
    world.bot().sayer().say_with_id(&said, "RELAY: water the plants", None);
    barrier(&world);
    assert_eq!(lines(&world, "hand-off from the bot"), 1, "{}", world.stream());
    assert_eq!(world.status()["breaker"]["recent"], 1);
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_hook_brings_is_taken_when_it_comes_and_not_at_the_next_tick() {
    let mut world = World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "3600000");
    world.start_online();
    world.bot_leaves();
    world.wait_status("the bot to be away", |status| status["bot"]["state"] != "online");
    for n in 1..=2 {
        reply(&world, "bot", &message(0, n), &format!("RELAY: water plant {n}"), None, &[]);
        world.brain_gets(|all| all.len() == n);
    }
}

#[test]
fn an_answer_a_follow_up_and_an_edit_said_while_no_bridge_ran_arrive_once() {
    let mut world = world();
    world.start_online();
    let id = world.ok(&["send", "water the plants"]).trim().to_owned();
    world.brain_gets(|all| all.len() == 1);
    world.wait_stream("is with the brain");
    world.stop();
    let (first, second) = (message(2, 1), message(1, 2));
    for _ in 0..2 {
        reply(&world, "brain", &first, "watered", Some(&id), &[]);
        reply(&world, "brain", &second, "and fed", Some(&id), &[]);
        edit(&world, "brain", &second, "and not fed");
    }
    world.start_online();
    world.bot_gets(|all| all.len() >= 3);
    inbox_empties(&world);
    barrier(&world);
    let heads = ["[relay result for", "[relay follow-up for", "[relay correction for"];
    let told = world.bot().uploads();
    let said: Vec<_> = told.iter().filter(|one| one.text.contains(&id)).collect();
    assert_eq!(said.len(), 3, "{told:#?}");
    assert!(said.iter().zip(heads).all(|(one, head)| one.text.starts_with(head)), "{told:#?}");
    for part in ["result from the brain: watered", "follow-up from the brain", "correction from the brain"] {
        assert_eq!(lines(&world, part), 1, "{part}: {}", world.stream());
    }
    nothing_is_left(&world);
}

/// Says it by both ways, this one first.
#[track_caller]
fn both_ways(hook_first: bool) {
    let mut world = world().with("breaker_count", "2");
    world.start_online();
    let (bot, brain) = (world.bot().sayer(), world.brain().sayer());
    let by_hook = |side: &str, message: &str, text: &str, to: Option<&str>| {
        reply(&world, side, message, text, to, &[]);
        inbox_empties(&world);
    };
    let say = |side: &str, message: &str, text: &str, to: Option<&str>| {
        let sayer = if side == "bot" { &bot } else { &brain };
        if hook_first {
            by_hook(side, message, text, to);
            sayer.say_with_id(message, text, to);
        } else {
            sayer.say_with_id(message, text, to);
            by_hook(side, message, text, to);
        }
    };
    say("bot", &message(1, 1), "RELAY: water the plants", None);
    let id = world.brain_gets(|all| all.len() == 1)[0].id.clone();
    say("brain", &message(1, 1), "watered", Some(&id));
    world.wait_queue("done", 1);
    say("brain", &message(1, 2), "hello", None);
    say("brain", &message(1, 3), "to nothing", Some("01939f3c-aaaa-7bbb-8ccc-000000000001"));
    say("bot", &message(1, 2), "RELAY: in an answer", Some("m1-1"));
    say("bot", &message(1, 3), "RELAY: ", None);
    // Two more trip the breaker.
    say("bot", &message(1, 4), "RELAY: second", None);
    assert_eq!(world.status()["breaker"]["tripped"], false);
    say("bot", &message(1, 5), "RELAY: third", None);
    let status = world.wait_queue("failed", 1);
    assert_eq!(status["breaker"]["refused"], 1);
    barrier(&world);
    for part in [
        "hand-off from the bot: water the plants",
        "result from the brain: watered",
        "the brain said, to nobody: hello",
        "names no known hand-off",
        "was refused, for it is a reply to something",
        "for there is nothing behind it",
        "hand-off refused by the breaker: third",
    ] {
        assert_eq!(lines(&world, part), 1, "{part}: {}", world.stream());
    }
    let told = world.bot().uploads();
    assert_eq!(told.iter().filter(|one| one.text.contains("] watered")).count(), 1, "{told:#?}");
    nothing_is_left(&world);
}

#[test]
fn by_hook_and_then_by_websocket_is_once() {
    both_ways(true);
}

#[test]
fn by_websocket_and_then_by_hook_is_once() {
    both_ways(false);
}

#[test]
fn what_the_breaker_refused_and_nobody_keeps_is_told_once() {
    let mut world = world().with("breaker_count", "1");
    world.start_online();
    let sayer = world.bot().sayer();
    for n in 1..=103 {
        sayer.say_with_id(&message(0, n), &format!("RELAY: number {n}."), None);
    }
    let file = world.dir.path().join("f.txt");
    std::fs::write(&file, "x").unwrap();
    world.wait_status("the last to be refused", |status| status["breaker"]["refused"] == 102);
    let last = message(0, 200);
    reply(&world, "bot", &last, "RELAY: the very last", None, &[&file]);
    world.wait_stream("the very last");
    inbox_empties(&world);
    sayer.say_with_id(&last, "RELAY: the very last", None);
    reply(&world, "bot", &last, "RELAY: the very last", None, &[&file]);
    inbox_empties(&world);
    barrier(&world);
    assert_eq!(lines(&world, "the very last"), 1, "{}", world.stream());
    assert_eq!(world.status()["breaker"]["refused"], 103);
    assert_eq!(files_below(&world.spool().join("files")), [""; 0], "nobody keeps it");
    nothing_is_left(&world);
}

#[test]
fn a_backlog_of_old_messages_does_not_trip_the_breaker_and_a_burst_in_it_does() {
    let mut world = world();
    for n in 0..10 {
        reply(&world, "bot", &message(6000 - 600 * i64::try_from(n).unwrap(), n), &format!("RELAY: {n}"), None, &[]);
    }
    world.start_online();
    world.brain_gets(|all| all.len() == 10);
    assert_eq!(world.status()["breaker"]["tripped"], false);
    world.stop();
    for n in 20..27 {
        reply(&world, "bot", &message(50_000, n), &format!("RELAY: burst {n}"), None, &[]);
    }
    world.start_online();
    inbox_empties(&world);
    let status = world.wait_queue("failed", 2);
    assert_eq!(status["breaker"]["tripped"], true);
    nothing_is_left(&world);
}

#[test]
fn three_hundred_records_are_taken_at_a_start() {
    let mut world = quick(World::new()).with("breaker_count", "1000");
    reply(&world, "bot", &message(9, 0), "RELAY: number 0.", None, &[]);
    let inbox = world.spool().join("inbox");
    let record = std::fs::read_to_string(inbox.join(&files_below(&inbox)[0])).unwrap();
    let first = message(9, 0);
    for n in 1..300 {
        let record = record.replace(&first, &message(9, n)).replace("number 0.", &format!("number {n}."));
        std::fs::write(inbox.join(format!("1-{n:03}.json")), record).unwrap();
    }
    world.start_online();
    world.wait_status("all to be accepted", |status| {
        let queue = &status["queue"];
        queue["new"].as_u64().unwrap() + queue["brain"].as_u64().unwrap() == 300
    });
    nothing_is_left(&world);
}

#[test]
fn a_full_inbox_is_told_once_and_a_record_that_makes_no_sense_is_put_aside() {
    let mut world = world();
    reply(&world, "bot", &message(9, 0), "RELAY: fine", None, &[]);
    let inbox = world.spool().join("inbox");
    std::fs::write(inbox.join(".overflow"), "2026-11-30T10:00:00Z").unwrap();
    std::fs::write(inbox.join("0-x.json"), "{").unwrap();
    world.start_online();
    world.brain_gets(|all| all.len() == 1);
    world.wait_stream("the inbox was full");
    nothing_is_left(&world);
    std::fs::write(inbox.join("0-y.json"), "{").unwrap();
    world.wait_stream("0-y.json");
    barrier(&world);
    let warnings = world.warnings();
    assert_eq!(warnings.iter().filter(|line| line.contains("the inbox was full")).count(), 1);
    for name in ["0-x.json", "0-y.json"] {
        assert_eq!(warnings.iter().filter(|line| line.contains(name)).count(), 1, "{warnings:?}");
        assert!(world.spool().join("corrupt").join(name).is_file());
    }
    assert_eq!(warnings.len(), 3, "{warnings:?}");
}

#[test]
fn odd_things_in_the_inbox_are_told_once_and_keep_nothing_up() {
    let mut world = world();
    world.start_online();
    let inbox = world.spool().join("inbox");
    std::fs::write(inbox.join("0-a.json"), "{").unwrap();
    let _socket = UnixListener::bind(inbox.join("0-socket.json")).unwrap();
    std::fs::write(inbox.join("0".repeat(250) + ".json"), "{").unwrap();
    reply(&world, "bot", &message(0, 1), "RELAY: first", None, &[]);
    world.brain_gets(|all| all.len() == 1);
    nothing_is_left(&world);
    // The stream is written by a thread of its own.
    wait("all three to be told", || (lines(&world, "put aside as") >= 3).then_some(()));
    assert_eq!(lines(&world, "put aside as"), 3, "{}", world.stream());
    // No more can be put aside.
    let corrupt = world.spool().join("corrupt");
    std::fs::remove_dir_all(&corrupt).unwrap();
    std::fs::write(&corrupt, "").unwrap();
    std::fs::write(inbox.join("0-b.json"), "{").unwrap();
    for n in 2..=4 {
        reply(&world, "bot", &message(0, n), &format!("RELAY: again {n}"), None, &[]);
        world.brain_gets(|all| all.len() == n);
    }
    assert_eq!(lines(&world, "0-b.json stays where it is"), 1, "{}", world.stream());
}

#[test]
fn an_inbox_that_is_no_folder_is_told_once() {
    let mut world = world();
    world.start_online();
    let inbox = world.spool().join("inbox");
    std::fs::remove_dir(&inbox).unwrap();
    // The bridge may be making it anew.
    wait("a file to be in its place", || {
        std::fs::remove_dir(&inbox).unwrap_or_default();
        std::fs::File::create_new(&inbox).ok()
    });
    world.wait_stream("what hooks bring is not taken");
    barrier(&world);
    std::fs::remove_file(&inbox).unwrap();
    reply(&world, "bot", &message(0, 1), "RELAY: water the plants", None, &[]);
    world.brain_gets(|all| all.iter().any(|one| one.text.contains("water the plants")));
    assert_eq!(lines(&world, "what hooks bring is not taken"), 1, "{}", world.stream());
}

/// All that lies there, with its content.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    files_below(dir).into_iter().map(|name| (name.clone(), std::fs::read(dir.join(name)).unwrap())).collect()
}

#[test]
fn another_spool_in_place_of_ours_is_left_alone_until_ours_is_back() {
    let mut world = world();
    world.start_online();
    let [away, theirs] = ["away", "theirs"].map(|name| world.dir.path().join(name));
    let other = Store::open(&theirs).unwrap();
    let _lock = Lock::spool(other.root(), Role::Bridge).unwrap();
    std::fs::rename(world.spool(), &away).unwrap();
    std::fs::rename(&theirs, world.spool()).unwrap();
    reply(&world, "bot", &message(0, 1), "RELAY: theirs", None, &[]);
    reply(&world, "brain", &message(0, 2), "theirs too", None, &[]);
    std::fs::write(world.spool().join("inbox/0-junk.json"), "junk").unwrap();
    let before = contents(&world.spool());
    // The next one does not take it for its own either.
    for n in 1..=2 {
        let ask = |command| Client::connect(&away).unwrap().unwrap().ask(command).unwrap();
        ask(Command::Fault { actor: "witness".into(), how: "panic".into() });
        wait("the Witness to be started again", || {
            let status = ask(Command::Status);
            let actors = status["actors"].as_array().unwrap();
            let one = actors.iter().find(|actor| actor["name"] == "witness").unwrap();
            (one["restarts"] == n && one["state"] == "running").then_some(())
        });
    }
    assert_eq!(contents(&world.spool()), before);
    std::fs::rename(world.spool(), &theirs).unwrap();
    std::fs::rename(&away, world.spool()).unwrap();
    reply(&world, "bot", &message(0, 3), "RELAY: ours", None, &[]);
    world.brain_gets(|all| all.iter().any(|one| one.text.contains("ours")));
    nothing_is_left(&world);
    assert_eq!(contents(&theirs), before);
    assert_eq!(lines(&world, "theirs"), 0, "{}", world.stream());
}

#[cfg(target_os = "linux")]
#[test]
fn an_inbox_made_anew_is_watched() {
    let mut world = World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "3600000");
    world.start_online();
    let inbox = world.spool().join("inbox");
    let is_private = || std::fs::metadata(&inbox).is_ok_and(|meta| meta.permissions().mode() & 0o777 == 0o700);
    std::fs::remove_dir(&inbox).unwrap();
    wait("the inbox to be made again", || is_private().then_some(()));
    reply(&world, "bot", &message(0, 1), "RELAY: water plant 1", None, &[]);
    world.brain_gets(|all| all.len() == 1);
    inbox_empties(&world);
    std::fs::rename(&inbox, world.dir.path().join("moved")).unwrap();
    for n in 2..=3 {
        reply(&world, "bot", &message(0, n), &format!("RELAY: water plant {n}"), None, &[]);
        world.brain_gets(|all| all.len() == n);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_look_that_came_to_nothing_is_made_again_soon_in_quiet_times_too() {
    // Where nothing happened since the last of these, the next, but for that, comes after half a minute.
    let (mut world, systemd) = Systemd::new(World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "2500"));
    world.start_online();
    systemd.wait_ticks(1);
    // Which takes longer than the look that goes with it.
    world.ok(&["check"]);
    let (pid, before) = (Pid::from_raw(world.pid().cast_signed()), getrlimit(Resource::Nofile));
    prlimit(pid, Resource::Nofile, Rlimit { current: Some(5), ..before }).unwrap();
    reply(&world, "bot", &message(0, 1), "RELAY: water the plants", None, &[]);
    world.wait_stream("what hooks bring is not taken");
    prlimit(pid, Resource::Nofile, before).unwrap();
    world.brain_gets(|all| all.len() == 1);
}
