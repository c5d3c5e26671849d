//! How long it takes to be told how things stand.

use std::process::Command;
use std::time::{Duration, Instant};

use anna_relay::control::wire;
use serde_json::Value;

use crate::Run;
use crate::table::Goal;
use crate::times::p50;
use crate::world::World;

/// `status` as a command, over a command that does nothing; and as a request.
pub fn status(run: &mut Run) {
    let (times, asks) = run.pick((200, 2_000), (5, 20));
    let world = World::online();
    let (mut nothing, mut something) = (Command::new("true"), world.command(&["status"]));
    world.at_home(&mut nothing);
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..times {
        floor.push(timed(|| assert!(nothing.status().unwrap().success())));
        ours.push(timed(|| assert!(something.status().unwrap().success())));
    }
    run.table.row("`status`, a whole process, over `true`, p50", p50(&ours), Some(p50(&floor)), "ms", Goal::Ratio(3.0));
    let mut client = world.client().unwrap();
    let mut ask = || timed(|| assert_eq!(client.ask(wire::Command::Status).unwrap()["running"], true));
    let asked: Vec<Duration> = (0..asks).map(|_| ask()).collect();
    run.table.row("`status`, a request on an open connection, p50", p50(&asked), None, "ms", Goal::AtMost(1.0));
}

/// `list` of many open hand-offs, beside a running bridge.
pub fn list(run: &mut Run) {
    let (n, times) = run.pick((10_000, 15), (200, 2));
    let mut world = World::online();
    open(&mut world, n);
    for (args, name) in [(&["list"][..], "`list`"), (&["list", "--json"], "`list --json`")] {
        let (mut took, mut printed) = (Vec::new(), Vec::new());
        for _ in 0..times {
            let mut command = world.command(args);
            command.stdout(std::process::Stdio::piped());
            took.push(timed(|| printed = command.output().unwrap().stdout));
        }
        assert_eq!(count(&printed), n, "so many hand-offs were listed");
        run.table.row(&format!("{name} of {n}, a whole process, p50"), p50(&took), None, "ms", Goal::AtMost(150.0));
    }
}

/// How many hand-offs were printed.
fn count(printed: &[u8]) -> usize {
    match serde_json::from_slice(printed) {
        Ok(Value::Array(all)) => all.len(),
        _ => String::from_utf8_lossy(printed).lines().filter(|line| line.contains(TEXT)).count(),
    }
}

const TEXT: &str = "water the plants";

/// Has so many hand-offs wait: copies, under other ids, of one that the relay wrote.
fn open(world: &mut World, n: usize) {
    world.ask(wire::Command::Pause { reason: None });
    world.bot.say(&format!("RELAY: {TEXT}"), None);
    world.until(|status| status["queue"]["new"] == 1);
    world.stop();
    world.copy("new", n);
    world.start();
    world.until(|status| status["queue"]["new"] == n);
}

fn timed(act: impl FnOnce()) -> Duration {
    let started = Instant::now();
    act();
    started.elapsed()
}
