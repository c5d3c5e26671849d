//! What hooks brought outlives a kill, and falls of those it goes through.

use std::path::Path;

use anna_relay::control::client::Client;
use anna_relay::control::wire::Command;

use crate::claude::{inbox_empties, message, nothing_is_left, quick, reply};
use crate::harness::{World, wait};
use crate::supervision::{fault, wait_restarts};
use crate::witness::lines;

fn world() -> World {
    quick(World::new())
}

#[test]
fn records_outlive_a_kill() {
    let mut world = world();
    world.brain_answers("done");
    let file = world.dir.path().join("f.txt");
    for n in 0..6_u8 {
        std::fs::write(&file, [n; 3]).unwrap();
        let files: &[&Path] = &[&file];
        reply(&world, "bot", &message(6000 - 600 * i64::from(n), n.into()), &format!("RELAY: {n}"), None, files);
        world.spawn();
        wait("it to begin", || world.spool().join("anna-relay.sock").exists().then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(u64::from(n) * 15));
        world.kill();
    }
    world.start_online();
    world.wait_queue("done", 6);
    // An empty folder of a record whose removal was cut short goes later.
    inbox_empties(&world);
    for n in 0..6_u8 {
        let asked = world.brain().uploads();
        let one = asked.iter().find(|one| one.text.contains(&format!("] {n}\n[file f.txt, 3 bytes]")));
        let got = one.and_then(|one| one.file.as_ref()).map(|file| file.bytes.to_vec());
        assert_eq!(got, Some(vec![n; 3]), "{asked:#?}\n{}", world.stream());
    }
}

/// Many records, some with files, and this actor falls while they are taken.
#[track_caller]
fn outlive(actor: &str) {
    let mut world = world().with("breaker_count", "1000");
    world.brain_answers("done");
    let file = world.dir.path().join("f.txt");
    std::fs::write(&file, "x").unwrap();
    let said: Vec<String> = (0..12).map(|n| message(60, n)).collect();
    world.start_online();
    for (n, message) in said.iter().enumerate() {
        reply(&world, "bot", message, &format!("RELAY: number {n}."), None, &[&file]);
        if n % 4 == 3 {
            fault(&world, actor, "panic");
        }
    }
    // It may not have been there to fall.
    wait_restarts(&world, actor, 1);
    world.wait_queue("done", said.len());
    nothing_is_left(&world);
    for n in 0..said.len() {
        // A line that was not written before the Queue fell is not written after it.
        assert!(lines(&world, &format!("hand-off from the bot: number {n}.")) <= 1, "{}", world.stream());
    }
    let asked = world.brain().uploads();
    assert!(asked.iter().all(|one| one.file.as_ref().is_some_and(|file| &file.bytes[..] == b"x")), "{asked:#?}");
    let recent = world.status()["breaker"]["recent"].as_u64();
    assert_eq!(recent, Some(12), "each counts once");
}

#[test]
fn records_outlive_falls_of_the_queue() {
    outlive("queue");
}

#[test]
fn records_outlive_falls_of_the_guard() {
    outlive("guard");
}

#[test]
fn records_outlive_falls_of_the_witness() {
    outlive("witness");
}

/// How many of its open files are watches.
#[cfg(target_os = "linux")]
fn watches(world: &World) -> usize {
    let open = std::fs::read_dir(format!("/proc/{}/fd", world.pid())).unwrap();
    let names = open.filter_map(|one| std::fs::read_link(one.unwrap().path()).ok());
    names.filter(|name| name.to_string_lossy().contains("inotify")).count()
}

#[cfg(target_os = "linux")]
#[test]
fn watches_that_could_not_be_had_are_had_later() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let mut world = world();
    world.start_online();
    wait("the watches", || (watches(&world) == 2).then_some(()));
    let mut client = Client::connect(&world.spool()).unwrap().unwrap();
    client.ask(Command::Status).unwrap();
    // No more files may be opened.
    let pid = Pid::from_raw(world.pid().try_into().unwrap());
    let before = rustix::process::getrlimit(Resource::Nofile);
    prlimit(pid, Resource::Nofile, Rlimit { current: Some(3), ..before }).unwrap();
    client.ask(Command::Fault { actor: "witness".into(), how: "panic".into() }).unwrap();
    wait("the Witness to be started again", || {
        let status = client.ask(Command::Status).unwrap();
        let actors = status["actors"].as_array().unwrap();
        let one = actors.iter().find(|actor| actor["name"] == "witness").unwrap();
        (one["restarts"] == 1 && one["state"] == "running").then_some(())
    });
    assert_eq!(watches(&world), 0);
    prlimit(pid, Resource::Nofile, before).unwrap();
    wait("the watches", || (watches(&world) == 2).then_some(()));
    reply(&world, "bot", &message(0, 1), "RELAY: water the plants", None, &[]);
    world.brain_gets(|all| all.len() == 1);
}
