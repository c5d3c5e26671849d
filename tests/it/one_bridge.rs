//! One bridge a spool, and one a port; a stale lock blocks nobody.

use std::fs::File;
use std::io::Write;
use std::process::{Output, Stdio};

use anna_relay::spool::lock::{Lock, Role};

use crate::harness::{World, free_port, wait};

#[track_caller]
fn is_busy(output: &Output, pid: u32) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    assert!(said.contains(&format!("pid {pid}")), "{said}");
    assert!(said.contains("\nhint: "), "{said}");
}

#[test]
fn a_second_bridge_of_the_same_spool_says_who_has_it() {
    let mut world = World::new();
    world.start();
    is_busy(&world.run(&["bridge"]), world.pid());
    // The first one is none the worse for it.
    world.wait_online();
    assert!(world.stop().success());
}

#[test]
fn two_spools_do_not_share_a_port_whichever_side_it_is() {
    let mut first = World::new();
    first.start();
    for crossed in [false, true] {
        let mut second = World::new();
        let port = first.brain_port;
        if crossed {
            second.bot_port = port;
        } else {
            second.brain_port = port;
        }
        second.write_config();
        let output = second.run(&["bridge"]);
        is_busy(&output, first.pid());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!("port {port}")) && said.contains("that bridge has another spool"), "{said}");
        // What it took before it failed is free again: a command has the spool at once.
        second.ok(&["pause"]);
    }
}

#[test]
fn commands_at_once_and_a_start_in_the_middle_of_them_lose_nothing() {
    const COUNT: usize = 12;
    let mut world = World::new();
    let send = |n: usize| world.command(&["send", &format!("task {n}")]).stdout(Stdio::piped()).spawn().unwrap();
    let sending: Vec<_> = (0..COUNT).map(send).collect();
    world.spawn();
    for child in sending {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let pushed = world.brain_gets(|all| all.len() == COUNT);
    for n in 0..COUNT {
        let mine: Vec<_> = pushed.iter().filter(|one| one.text.ends_with(&format!("] task {n}"))).collect();
        assert_eq!(mine.len(), 1, "{n} in {pushed:#?}");
    }
}

#[test]
fn a_bridge_with_nobody_at_its_sides_runs_and_keeps_what_comes() {
    let mut world = World::new();
    (world.brain_port, world.bot_port) = (free_port(), free_port());
    world.write_config();
    world.start();
    world.ok(&["send", "water"]);
    let status = world.wait_status("both to have been tried", |status| {
        status["brain"]["why"].is_string() && status["bot"]["why"].is_string()
    });
    assert_eq!(status["queue"]["new"], 1);
    assert!(world.stop().success());
}

#[test]
fn the_lock_of_a_killed_bridge_blocks_neither_a_bridge_nor_a_command() {
    let mut world = World::new();
    world.start();
    world.kill();
    assert!(world.spool().join("lock").exists());
    world.ok(&["send", "first"]);
    world.start_online();
    world.kill();
    world.start_online();
}

/// Waits until the bridge has the lock's file open: it is at the point where it needs it.
#[cfg(target_os = "linux")]
fn wait_for_its_try(world: &World) {
    let lock = world.spool().join("lock");
    let fds = format!("/proc/{}/fd", world.pid());
    wait("the bridge to try the lock", || {
        let open = std::fs::read_dir(&fds).ok()?.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        open.into_iter().any(|path| path == lock).then_some(())
    });
}

#[cfg(not(target_os = "linux"))]
fn wait_for_its_try(_: &World) {}

#[test]
fn a_bridge_waits_for_a_command_that_has_the_lock() {
    let mut world = World::new();
    world.ok(&["send", "first"]);
    let held = Lock::spool(&world.spool(), Role::Command).unwrap();
    world.spawn();
    wait_for_its_try(&world);
    drop(held);
    world.wait_status("the bridge to run", |status| status["running"] == true);
}

#[test]
fn a_lock_that_still_names_a_dead_bridge_is_a_command_that_has_only_just_taken_it() {
    let mut world = World::new();
    world.start();
    let dead = world.pid();
    world.kill();
    let mut held = File::options().read(true).write(true).open(world.spool().join("lock")).unwrap();
    held.lock().unwrap();
    held.set_len(0).unwrap();
    write!(held, r#"{{"pid":{dead},"role":"bridge"}}"#).unwrap();
    world.spawn();
    wait_for_its_try(&world);
    drop(held);
    world.wait_status("the bridge to run", |status| status["running"] == true);
}
