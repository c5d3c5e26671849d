//! A start on a spool with much in it.

use std::fs;
use std::time::Instant;

use anna_relay::control::client::Client;
use anna_relay::control::wire::Command;
use anna_relay::handoff::Id;

use crate::harness::{SOON, World};

/// So many that they are not listed before somebody asks.
const MANY: usize = 5_000;

#[test]
fn until_what_is_closed_is_counted_status_says_so() {
    let mut world = World::new();
    let waiting = world.ok(&["send", "water the plants"]).trim().to_owned();
    for _ in 0..MANY {
        fs::write(world.spool().join("done").join(format!("{}.json", Id::now())), "{}").unwrap();
    }
    world.spawn();
    // As soon as it can be asked.
    let deadline = Instant::now() + SOON;
    let mut client = loop {
        match Client::connect(&world.spool()).unwrap() {
            Some(client) => break client,
            None => assert!(Instant::now() < deadline, "{}", world.log()),
        }
    };
    let first = client.ask(Command::Status).unwrap();
    assert!(first["recovering"] == true || first["queue"]["done"] == MANY, "{first:#}");
    world.wait_queue("done", MANY);
    assert_eq!(world.brain_gets(|all| !all.is_empty())[0].id, waiting);
}
