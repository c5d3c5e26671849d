//! The configuration read again at SIGHUP, and one that forbids the start.

use rustix::process::Signal;

use crate::harness::{World, free_port};

/// Reads it again, and waits until the stream says what came of it.
#[track_caller]
fn reload(world: &World, says: &str) -> String {
    world.signal(Signal::HUP);
    world.wait_stream(says)
}

#[test]
fn a_changed_key_takes_effect() {
    let mut world = World::new();
    world.start_online();
    let id = world.ok(&["send", "water the plants"]).trim().to_owned();
    world.brain_gets(|all| all.len() == 1);
    world.set("breaker_count", "1");
    world.set("alarm_min", "0.001");
    reload(&world, "the configuration was read again");
    world.wait_status("the alarm", |status| status["alarms"] == 1);
    assert_eq!(world.status()["breaker"]["limit"], 1);
    world.bot().say("RELAY: one", None);
    world.bot().say("RELAY: two", None);
    world.wait_queue("failed", 1);
    assert!(world.wait_stream("no result after").contains(&id[28..]));
}

#[test]
fn whoever_was_let_in_unseen_is_believed_nothing_once_holders_are_told_apart() {
    // No look but those that go with it.
    let mut world = World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "3600000");
    world.start_online();
    world.set("holder", "\"session\"");
    reload(&world, "the configuration was read again");
    world.wait_stream("the bot is away: whose fakechat it is has to be told from now on");
    world.bot().say("RELAY: water the plants", None);
    world.brain().say("done", Some("00000000"));
    for side in ["brain", "bot"] {
        world.wait_status("both to be strangers", |status| status[side]["state"] == "foreign");
    }
    assert_eq!((world.bot().sockets(), world.brain().sockets()), (0, 0));
    assert_eq!(world.ok(&["list", "--all", "--json"]).trim(), "[]");
}

#[test]
fn a_changed_port_needs_a_restart_and_the_rest_takes_effect() {
    let mut world = World::new();
    world.start_online();
    let port = world.brain_port;
    world.brain_port = free_port();
    world.set("breaker_count", "7");
    let said = reload(&world, "a restart of the bridge is needed");
    assert!(said.contains('⚠') && said.contains("relay.brain_port") && !said.contains("bot_port"), "{said}");
    world.wait_status("the rest to take effect", |status| status["breaker"]["limit"] == 7);
    assert_eq!(world.status()["brain"]["port"], port);
    world.bot().say("RELAY: water the plants", None);
    world.brain_gets(|all| all.len() == 1);
}

#[test]
fn a_configuration_that_cannot_be_used_changes_nothing() {
    let mut world = World::new();
    world.start_online();
    world.set("breaker_cuont", "7");
    let said = reload(&world, "the configuration cannot be used, the old one stays in force");
    assert!(said.contains('⚠') && said.contains("breaker_cuont"), "{said}");
    std::fs::write(world.config(), "[relay\n").unwrap();
    world.signal(Signal::HUP);
    std::fs::remove_file(world.config()).unwrap();
    world.signal(Signal::HUP);
    world.write_config();
    world.bot().say("RELAY: water the plants", None);
    world.brain_gets(|all| all.len() == 1);
}

#[test]
fn a_bridge_that_is_not_enabled_says_which_file_to_edit() {
    let world = World::new();
    let text = std::fs::read_to_string(world.config()).unwrap();
    let [disabled, silent] = ["enabled = false\n", ""].map(|with| text.replace("enabled = true\n", with));
    for text in [disabled, silent] {
        std::fs::write(world.config(), text).unwrap();
        let output = world.run(&["bridge"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(78), "{said}");
        assert!(said.contains(&*world.config().to_string_lossy()) && said.contains("relay.enabled"), "{said}");
    }
}

#[test]
fn a_pipe_in_place_of_the_file_holds_up_nobody() {
    use rustix::fs::{CWD, FileType, mknodat};
    let mut world = World::new();
    world.start();
    let config = world.config();
    std::fs::remove_file(&config).unwrap();
    mknodat(CWD, &config, FileType::Fifo, 0o600.into(), 0).unwrap();
    let said = reload(&world, "the old one stays in force");
    assert!(said.contains("it is a pipe"), "{said}");
}

/// Whatever writes into a pipe, once.
fn pipe(path: &std::path::Path, text: String) -> std::thread::JoinHandle<()> {
    use rustix::fs::{CWD, FileType, mknodat};
    mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0).unwrap();
    let path = path.to_owned();
    std::thread::spawn(move || std::fs::write(path, text).unwrap())
}

#[test]
fn a_bridge_that_was_given_a_pipe_keeps_what_came_through_it() {
    let mut world = World::new();
    let config = world.config();
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::remove_file(&config).unwrap();
    let writer = pipe(&config, text);
    world.spawn();
    world.wait_stream("the bridge runs");
    writer.join().unwrap();
    let said = reload(&world, "the old one stays in force");
    assert!(said.contains("it is a pipe") && said.contains("name a file"), "{said}");
    std::fs::remove_file(&config).unwrap();
    world.write_config();
    world.wait_online();
}

/// What a command makes of a configuration that comes through a pipe.
fn through_a_pipe(world: &World, command: &[&str], text: &str) -> std::process::Output {
    use std::io::Write;
    use std::process::Stdio;
    let mut command = world.command(&[command, &["--config", "/dev/stdin"]].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Whoever does not want it need not read it.
    drop(child.stdin.take().unwrap().write_all(text.as_bytes()));
    child.wait_with_output().unwrap()
}

#[test]
fn a_command_reads_the_configuration_from_a_pipe() {
    let world = World::new();
    for (text, code) in [("relay.breaker_count = 7", 0), ("relay.breaker_cuont = 7", 78)] {
        let output = through_a_pipe(&world, &["check", "--json"], text);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.contains("\"breaker_count\": 7"), code == 0, "{said}");
    }
}

#[test]
fn what_others_will_have_to_read_again_is_no_pipe() {
    let world = World::new();
    // The session's hooks, and the bridge's unit, are given its name.
    for command in [&["launch", "brain"][..], &["setup", "--dry-run"]] {
        let output = through_a_pipe(&world, command, "relay.enabled = true");
        assert_eq!(output.status.code(), Some(78), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("it is a pipe") && said.contains("name a file"), "{said}");
    }
}

#[test]
fn a_configuration_that_is_gone_from_its_usual_place_changes_nothing() {
    let mut world = World::new().with_env("ANNA_CONFIG", "").with("breaker_count", "7");
    let usual = world.dir.path().join(".config/anna/anna.toml");
    std::fs::create_dir_all(usual.parent().unwrap()).unwrap();
    std::fs::rename(world.config(), &usual).unwrap();
    world.start_online();
    std::fs::rename(&usual, world.config()).unwrap();
    let said = reload(&world, "the old one stays in force");
    assert!(said.contains("it is gone") && said.contains("put it back"), "{said}");
    std::fs::rename(world.config(), &usual).unwrap();
    assert_eq!(world.status()["breaker"]["limit"], 7);
}
