//! Systemd's protocol, and a stop that loses nothing.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{SOON, World};
use crate::supervision::fault;

/// What systemd is told, read one message after the other.
pub struct Systemd(UnixDatagram);

impl Systemd {
    pub fn new(world: World) -> (World, Systemd) {
        let path = world.dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        (world.with_env("NOTIFY_SOCKET", &path.to_string_lossy()), Systemd(socket))
    }

    /// Passes over what it was told until now.
    fn pass_over(&self) {
        self.0.set_nonblocking(true).unwrap();
        while self.0.recv(&mut [0; 4096]).is_ok() {}
        self.0.set_nonblocking(false).unwrap();
    }

    /// Waits for so many further times that all is well, from now on.
    #[track_caller]
    pub fn wait_ticks(&self, count: usize) {
        self.pass_over();
        for _ in 0..count {
            self.wait(|line| line == "WATCHDOG=1");
        }
    }

    /// Waits for a message with that line; returns it and all before it.
    #[track_caller]
    pub fn wait(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        loop {
            let mut buffer = [0; 4096];
            let read = self.0.recv(&mut buffer).unwrap_or_else(|error| panic!("{error}; until then {all:?}"));
            all.push(String::from_utf8(buffer[..read].to_vec()).unwrap());
            if all.last().is_some_and(|last| last.lines().any(&wanted)) {
                return all;
            }
        }
    }
}

#[test]
fn systemd_is_told_of_the_start_the_stop_and_in_between_that_all_is_well() {
    let (mut world, systemd) = Systemd::new(World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "100"));
    world.spawn();
    systemd.wait(|line| line == "READY=1");
    let all = systemd.wait(|line| line.starts_with("STATUS=brain online, bot online"));
    assert!(all.last().unwrap().lines().any(|line| line == "WATCHDOG=1"), "{all:?}");
    world.ok(&["pause"]);
    world.ok(&["send", "water the plants"]);
    systemd.wait(|line| line.starts_with("STATUS=") && line.contains("1 waiting") && line.contains("paused"));
    world.signal(Signal::TERM);
    systemd.wait(|line| line == "STOPPING=1");
    assert_eq!(world.wait_exit().code(), Some(0));
    world.wait_stream("the bridge stopped");
    assert_eq!(world.run(&["status"]).status.code(), Some(3));
}

#[test]
fn a_stop_right_after_the_start_is_a_stop() {
    let (mut world, systemd) = Systemd::new(World::new());
    world.spawn();
    systemd.wait(|line| line == "READY=1");
    world.signal(Signal::HUP);
    assert_eq!(world.stop().code(), Some(0));
}

#[test]
fn an_interrupt_stops_it_too() {
    let mut world = World::new();
    world.start_online();
    world.signal(Signal::INT);
    assert_eq!(world.wait_exit().code(), Some(0));
}

#[test]
fn a_push_under_way_is_finished_and_confirmed() {
    let mut world = World::new().with("confirm_ms", "1000");
    world.start_online();
    let id = world.ok(&["send", "water the plants"]).trim().to_owned();
    world.brain_gets(|all| all.len() == 1);
    assert_eq!(world.stop().code(), Some(0));
    assert_eq!(world.documents("brain")[0]["pushes"][0]["outcome"], "sent");
    world.start_online();
    // And one to the bot, while its fakechat is slow to answer.
    world.bot().faults(|faults| faults.answer_after = Duration::from_millis(700));
    world.brain().say("they are watered", Some(&id));
    world.bot_gets(|all| all.len() == 1);
    assert_eq!(world.stop().code(), Some(0));
    assert_eq!(world.documents("done")[0]["results"][0]["pushes"][0]["outcome"], "sent");
    world.bot().faults(|faults| faults.answer_after = Duration::ZERO);
    world.start_online();
    world.ok(&["send", "the last one"]);
    let asked = world.brain_gets(|all| all.len() == 2);
    assert!(asked[1].text.ends_with("] the last one"), "{asked:#?}");
    assert_eq!(world.bot().uploads().len(), 1);
}

#[test]
fn a_side_that_hangs_does_not_hold_up_a_stop_and_that_push_counts_as_no_attempt() {
    let mut world = World::new().with("max_attempts", "1");
    world.start_online();
    world.brain().faults(|faults| faults.hang = true);
    let id = world.ok(&["send", "water the plants"]).trim().to_owned();
    world.wait_queue("brain", 1);
    assert_eq!(world.stop().code(), Some(0));
    let push = world.documents("brain")[0]["pushes"][0].clone();
    assert_eq!(push["outcome"], "unknown", "{push}");
    let before = world.brain().uploads().len();
    world.brain().faults(|faults| faults.hang = false);
    world.start_online();
    let asked = world.brain_gets(|all| all.len() > before);
    let wanted = format!(
        "[relay {id} from a script, attempt 2: an earlier try may have done part of this; check before acting, and if it is \
         done only answer] water the plants"
    );
    assert_eq!(asked[before].text, wanted);
    world.brain().say("done", Some(&id));
    world.wait_queue("done", 1);
}

#[test]
fn what_is_said_right_before_a_stop_is_accepted_or_was_never_taken() {
    let mut world = World::new().with("breaker_count", "1000");
    world.start_online();
    let messages: Vec<String> = (0..20).map(|n| world.bot().say(&format!("RELAY: number {n}"), None)).collect();
    world.bot().say("RELAY: refused", Some("m1-1"));
    assert_eq!(world.stop().code(), Some(0));
    assert!(!world.log().contains("did not finish"), "{}", world.log());
    world.start_online();
    // fakechat has no replay; the hooks bring what was missed, under the same ids.
    for (n, message) in messages.iter().enumerate() {
        world.bot().say_with_id(message, &format!("RELAY: number {n}"), None);
    }
    let asked =
        world.brain_gets(|all| (0..20).all(|n| all.iter().any(|one| one.text.ends_with(&format!("] number {n}")))));
    world.wait_queue("brain", 20);
    let plain = asked.iter().filter(|one| one.text.contains(" from the bot] ")).count();
    assert_eq!(plain, 20, "each is a first attempt once: {asked:#?}");
}

#[test]
fn a_queue_that_falls_while_the_bridge_stops_does_not_hold_up_the_stop() {
    let (mut world, systemd) = Systemd::new(World::new().with("confirm_ms", "60000"));
    world.start_online();
    world.ok(&["send", "water the plants"]);
    world.brain_gets(|all| all.len() == 1);
    world.signal(Signal::TERM);
    systemd.wait(|line| line == "STOPPING=1");
    fault(&world, "queue", "panic");
    assert_eq!(world.wait_exit().code(), Some(0));
    assert!(!world.log().contains("did not finish"), "{}", world.log());
}
