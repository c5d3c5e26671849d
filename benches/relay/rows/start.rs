//! How long it takes to start.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use super::handoffs::{answer, there};
use crate::Run;
use crate::table::Goal;
use crate::times::p50;
use crate::world::{SOON, World};

/// With nothing behind it, and with a long life.
pub fn start(run: &mut Run) {
    let (n, starts) = run.pick((100_000, 25), (500, 3));
    let (mut young, mut old) = (World::new(), World::new());
    let made = Instant::now();
    age(&mut old, n);
    eprintln!("  made {n} hand-offs in {} s", made.elapsed().as_secs());
    let (mut of_young, mut of_old) = (Vec::new(), Vec::new());
    // To warm up.
    ready(&mut young);
    ready(&mut old);
    for at in 0..starts {
        if at % 2 == 0 {
            of_young.push(ready(&mut young));
        }
        of_old.push(ready(&mut old));
        if at % 2 == 1 {
            of_young.push(ready(&mut young));
        }
    }
    let (of_young, of_old) = (p50(&of_young), p50(&of_old));
    run.table.row("start to READY, p50", of_young, None, "ms", Goal::AtMost(20.0));
    let name = format!("start to READY with {n} hand-offs done, over that with none, p50");
    run.table.row(&name, of_old, Some(of_young), "ms", Goal::Ratio(1.2));
}

/// From the start to the word that it is ready.
fn ready(world: &mut World) -> Duration {
    let path = world.dir.path().join("notify.sock");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let mut command = world.command(&["bridge"]);
    command.env("NOTIFY_SOCKET", &path);
    let started = Instant::now();
    world.spawn(command);
    let mut said = [0; 4096];
    loop {
        let n = socket.recv(&mut said).unwrap();
        let now = started.elapsed();
        if String::from_utf8_lossy(&said[..n]).lines().any(|line| line == "READY=1") {
            world.stop();
            std::fs::remove_file(path).unwrap();
            return now;
        }
    }
}

/// Fills `done/` with copies, under other ids, of one that the relay wrote.
fn age(world: &mut World, n: usize) {
    world.start();
    answer(world, &there(world, &"x".repeat(200), 1, &mut Vec::new(), || {}));
    world.stop();
    world.copy("done", n);
}
