//! Nobody else can look in, and a long path does no harm.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::harness::World;

/// Everything below a folder, itself included.
fn all_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    let mut at = 0;
    while at < all.len() {
        if fs::symlink_metadata(&all[at]).unwrap().is_dir() {
            all.extend(fs::read_dir(&all[at]).unwrap().map(|entry| entry.unwrap().path()));
        }
        at += 1;
    }
    all
}

#[test]
fn folders_are_0700_and_files_0600_whatever_the_umask() {
    let mut world = World::new().with("inline_kib", "1");
    // One that is there already is closed too.
    fs::create_dir_all(world.spool().join("files")).unwrap();
    fs::set_permissions(world.spool(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(world.spool().join("files"), fs::Permissions::from_mode(0o777)).unwrap();
    let note = world.dir.path().join("note.txt");
    fs::write(&note, "x").unwrap();
    fs::set_permissions(&note, fs::Permissions::from_mode(0o644)).unwrap();
    let id = world.ok(&["send", "with a file", "--file", note.to_str().unwrap()]).trim().to_owned();
    world.ok(&["pause", "--reason", "night"]);
    world.start();
    world.ok(&["resume"]);
    world.brain_gets(|all| all.len() == 1);
    world.brain().say_file(Some("here"), Some(&id), "a.bin", vec![1, 2, 3]);
    world.wait_queue("done", 1);
    world.ok(&["pause"]);
    let seen = all_below(&world.spool());
    let mut sockets = 0;
    for path in seen.iter().chain([&world.dir.path().join("state/stream.log")]) {
        let about = fs::symlink_metadata(path).unwrap();
        let wanted = if about.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(about.mode() & 0o7777, wanted, "{}", path.display());
        sockets += usize::from(about.file_type().is_socket());
    }
    assert_eq!(sockets, 1);
    for name in ["lock", "paused", "log", "anna-relay.sock", &format!("files/{id}/note.txt")] {
        assert!(seen.contains(&world.spool().join(name)), "{name} is among them");
    }
    assert!(seen.iter().any(|path| path.parent().unwrap().ends_with("log")), "so is a log file");
}

#[test]
fn where_the_path_is_too_long_the_socket_is_in_the_runtime_folder() {
    let mut world = World::new();
    let run = world.dir.path().join("run");
    fs::create_dir(&run).unwrap();
    world = world.with_env("XDG_RUNTIME_DIR", run.to_str().unwrap());
    let state = world.dir.path().join("x".repeat(100));
    let config = fs::read_to_string(world.config()).unwrap();
    let old = format!("{:?}", world.dir.path().join("state"));
    fs::write(world.config(), config.replace(&old, &format!("{state:?}"))).unwrap();
    world.brain_answers("watered");
    world.start_online();
    assert!(UnixStream::connect(run.join("anna-relay.sock")).is_ok());
    assert_eq!(fs::metadata(run.join("anna-relay.sock")).unwrap().mode() & 0o777, 0o600);
    assert!(!state.join("relay/anna-relay.sock").exists());
    let printed = world.ok(&["send", "water", "--wait", "--timeout", "20"]);
    assert!(printed.ends_with("\nwatered\n"), "{printed}");
    assert!(world.stop().success());
    world.ok(&["send", "also without a bridge"]);
}

#[test]
fn a_path_too_long_and_no_runtime_folder_is_said_and_stops_no_command() {
    let world = World::new();
    let state = world.dir.path().join("x".repeat(100));
    let config = fs::read_to_string(world.config()).unwrap();
    let old = format!("{:?}", world.dir.path().join("state"));
    fs::write(world.config(), config.replace(&old, &format!("{state:?}"))).unwrap();
    let mut bridge = world.command(&["bridge"]);
    let output = bridge.env_remove("XDG_RUNTIME_DIR").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("XDG_RUNTIME_DIR"), "{said}");
    let sent = world.command(&["send", "water"]).env_remove("XDG_RUNTIME_DIR").output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    let status = world.command(&["status", "--json"]).env_remove("XDG_RUNTIME_DIR").output().unwrap();
    assert_eq!(status.status.code(), Some(3), "{status:?}");
}

#[test]
fn the_log_says_nothing_of_what_was_said() {
    let mut world = World::new();
    world.start_online();
    let id = crate::crash::hand_off(&world, "the secret of the bot");
    world.brain_gets(|all| all.len() == 1);
    world.brain().say("the secret of the brain", Some(&id));
    world.brain().say("the secret to nobody", None);
    world.brain().say("the secret to a stranger", Some("no such one"));
    world.bot().say("RELAY: the secret echo", Some("some-message"));
    world.bot().say_frame(r#"{"type":"msg","id":"the secret id","text":{"the secret":1}}"#);
    world.ok(&["send", "the secret of a script"]);
    world.bot().say("the secret chat", None);
    world.wait_stream("the secret echo");
    world.wait_stream("the secret to a stranger");
    world.wait_queue("done", 1);
    assert!(world.stop().success());
    let log = world.spool().join("log");
    let mut all = world.log();
    for file in fs::read_dir(log).unwrap() {
        all += &fs::read_to_string(file.unwrap().path()).unwrap();
    }
    assert!(all.contains("bot"), "there is a log: {all}");
    assert!(!all.contains("secret"), "{all}");
}

/// Only root can become another user; for anybody else there is nothing to be tried here.
#[test]
fn another_user_is_turned_away_even_where_the_files_let_him_in() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut world = World::new();
    world.start();
    for folder in [world.dir.path(), &world.dir.path().join("state"), &world.spool()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let socket = world.spool().join("anna-relay.sock");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let mut stranger = world.command(&["status"]);
    let Ok(output) = stranger.uid(65_534).gid(65_534).output() else {
        return; // He may not even start the program.
    };
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert_eq!(world.run(&["status"]).status.code(), Some(0));
    crate::harness::wait("a word of it in the log", || world.log().contains("another user").then_some(()));
}
