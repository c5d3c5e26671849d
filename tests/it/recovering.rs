//! `status` while the bridge is still reading a big spool: it says so, and what it says of the spool is true.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};

use crate::harness::{World, wait};

/// A spool with so many hand-offs that wait.
fn full(count: usize) -> World {
    let mut world = World::new();
    world.brain_leaves();
    let id = world.ok(&["send", "water the plants"]).trim().to_owned();
    let new = world.spool().join("new");
    let text = std::fs::read_to_string(new.join(format!("{id}.json"))).unwrap();
    for n in 1..count {
        let other = format!("{}{n:012x}", &id[..24]);
        std::fs::write(new.join(format!("{other}.json")), text.replace(&id, &other)).unwrap();
    }
    world
}

#[test]
fn at_no_moment_of_a_start_is_the_queue_said_to_be_empty() {
    let mut world = full(3_000);
    world.spawn();
    let mut running = false;
    wait("the spool to be read", || {
        let status = world.status();
        running |= status["running"] == true;
        assert_eq!(status["queue"]["new"], 3_000, "{status:#}");
        (running && status["recovering"] == false).then_some(())
    });
}

/// A bridge that is still reading its spool.
fn still_reading(world: &World, times: usize) -> std::thread::JoinHandle<()> {
    let mut status = world.status();
    status["running"] = json!(true);
    status["recovering"] = json!(true);
    status["paused"] = Value::Null;
    status["queue"] = json!({"new": 0, "brain": 0, "out": 0, "done": 0, "failed": 0, "corrupt": 0});
    let listener = UnixListener::bind(world.spool().join("anna-relay.sock")).unwrap();
    std::thread::spawn(move || {
        for _ in 0..times {
            let (mut stream, _) = listener.accept().unwrap();
            BufReader::new(&stream).read_line(&mut String::new()).unwrap();
            writeln!(stream, "{}", json!({"v": 1, "ok": status})).unwrap();
        }
    })
}

#[test]
fn what_the_bridge_has_not_read_yet_is_read_off_the_folders() {
    let world = full(3);
    world.ok(&["pause", "--reason", "night"]);
    let bridge = still_reading(&world, 2);
    let status = world.json(&["status"]);
    assert_eq!((&status["recovering"], &status["queue"]["new"]), (&json!(true), &json!(3)), "{status:#}");
    assert_eq!(status["paused"]["reason"], "night");
    let said = world.ok(&["status"]);
    assert!(said.contains("still being read") && said.contains("new 3"), "{said}");
    bridge.join().unwrap();
}
