//! What Claude Code's hooks bring: the real command, as a session calls it.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anna_relay::config::Side;
use anna_relay::hook::{self, What};
use anna_relay::inbox::{self, Entry};
use anna_relay::spool::{RealFs, Store};
use serde_json::{Value, json};

use crate::harness::{World, files_below};

const REPLY: &str = include_str!("../fixtures/claude-code/hook-post-tool-use-reply.json");

fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs it with that on its standard input.
fn feed(mut command: Command, json: &[u8]) -> Output {
    let mut child = start(&mut command);
    // It may have ended without reading all of it.
    child.stdin.take().unwrap().write_all(json).unwrap_or_default();
    child.wait_with_output().unwrap()
}

/// A session's hook, which has to be silent and exit with 0.
#[track_caller]
pub fn told(world: &World, side: &str, json: impl AsRef<[u8]>) {
    silent(feed(world.command(&["hook", side]), json.as_ref()));
}

#[track_caller]
fn silent(output: Output) {
    assert!(output.status.code() == Some(0) && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

fn listed(world: &World) -> Vec<Entry> {
    let listing = inbox::list(&Store::on(&world.spool(), RealFs));
    assert!(listing.put_aside.is_empty() && listing.failed.is_none(), "{listing:?}");
    listing.entries
}

fn with_files(files: &[&Path]) -> String {
    let mut call: Value = serde_json::from_str(REPLY).unwrap();
    call["tool_input"]["files"] = json!(files);
    call.to_string()
}

fn recordings() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/claude-code");
    let names = files_below(&dir).into_iter().filter(|name| name.starts_with("hook-"));
    let all: Vec<_> = names.map(|name| (std::fs::read_to_string(dir.join(&name)).unwrap(), name)).collect();
    assert!(all.len() >= 10);
    all.into_iter().map(|(json, name)| (name, json)).collect()
}

#[test]
fn every_recording_is_taken_in_without_a_bridge() {
    let world = World::new();
    for (name, json) in recordings() {
        told(&world, "bot", &json);
        assert!(!json.contains("PreCompact") || name.contains("pre-compact"), "{name}");
    }
    let mut kinds: Vec<_> =
        listed(&world).iter().map(|entry| entry.record.what.state().unwrap_or("said").to_owned()).collect();
    kinds.sort();
    assert_eq!(kinds, ["prompt", "said", "session-end", "session-start", "stopped", "waiting"]);
}

#[test]
fn a_reply_keeps_its_id_and_its_files() {
    let world = World::new();
    let file = world.dir.path().join("report.txt");
    std::fs::write(&file, "all is well").unwrap();
    told(&world, "bot", with_files(&[&file]));
    std::fs::remove_file(&file).unwrap();
    let entry = listed(&world).remove(0);
    let What::Reply { message, files, .. } = &entry.record.what else { panic!("{entry:?}") };
    assert_eq!(message, "m1796031734360-1");
    assert_eq!(std::fs::read_to_string(entry.copy_of(&files[0]).unwrap()).unwrap(), "all is well");
}

#[test]
fn nothing_that_goes_wrong_reaches_the_session() {
    let world = World::new();
    for json in ["", "{", "null", "[]", "\0\0", &REPLY[..200], &"[".repeat(1 << 20)] {
        told(&world, "brain", json);
    }
    // Command lines that make no sense: exit code 2 would be an order to the session.
    for args in [&["hook"][..], &["hook", "both"], &["hook", "brain", "--frobnicate"], &["--frobnicate", "hook", "bot"]]
    {
        silent(feed(world.command(args), REPLY.as_bytes()));
    }
    let mut closed = world.command(&["hook", "bot"]);
    silent(closed.stdin(Stdio::null()).output().unwrap());
    // A session that has gone.
    let mut deaf = world.command(&["hook", "bot"]);
    let mut child = start(&mut deaf);
    drop((child.stdout.take(), child.stderr.take(), child.stdin.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!world.spool().exists());

    std::fs::write(world.config(), "[relay]\nenabled = maybe\n").unwrap();
    told(&world, "bot", REPLY);
    std::fs::remove_file(world.config()).unwrap();
    told(&world, "bot", REPLY);
    silent(feed(world.command(&["hook", "bot", "--config", "/dev/null/x"]), REPLY.as_bytes()));
    assert!(!world.spool().exists());
}

#[test]
fn a_disk_that_takes_nothing_reaches_the_session_neither() {
    let world = World::new();
    std::fs::create_dir_all(world.spool()).unwrap();
    let inbox = world.spool().join("inbox");
    symlink(world.dir.path(), &inbox).unwrap();
    told(&world, "bot", REPLY);
    std::fs::remove_file(&inbox).unwrap();
    std::fs::write(&inbox, "").unwrap();
    told(&world, "bot", REPLY);
    std::fs::remove_file(&inbox).unwrap();
    std::fs::create_dir(&inbox).unwrap();
    std::fs::set_permissions(&inbox, PermissionsExt::from_mode(0o500)).unwrap();
    told(&world, "bot", REPLY);
    let stored = listed(&world).len();
    assert_eq!(stored, usize::from(rustix::process::geteuid().is_root()), "root may write anywhere");
    // No file may grow past nothing: as on a full disk.
    std::fs::set_permissions(&inbox, PermissionsExt::from_mode(0o700)).unwrap();
    let mut full = Command::new("sh");
    full.args(["-c", "ulimit -f 0; trap '' XFSZ; exec \"$0\" hook bot", env!("CARGO_BIN_EXE_anna-relay")]);
    full.env("ANNA_CONFIG", world.config());
    silent(feed(full, REPLY.as_bytes()));
    assert_eq!(listed(&world).len(), stored);
    assert_eq!(files_below(&inbox).len(), stored, "and nothing half is left");
}

#[test]
fn who_looks_for_a_fault_is_told() {
    let world = World::new().with_env("ANNA_LOG", "debug");
    let output = feed(world.command(&["hook", "bot"]), REPLY.as_bytes());
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("hook bot: stored /"), "{output:?}");
    let output = feed(world.command(&["hook", "bot"]), b"{}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "hook bot: nothing for the relay\n");
    let output = feed(world.command(&["hook", "both"]), b"{}");
    assert!(output.status.success() && !output.stderr.is_empty());
}

#[test]
fn nothing_is_kept_while_the_relay_is_not_enabled() {
    let world = World::new().with("enabled", "false");
    let text = std::fs::read_to_string(world.config()).unwrap().replacen("enabled = true\n", "", 1);
    std::fs::write(world.config(), text).unwrap();
    told(&world, "bot", REPLY);
    assert!(!world.spool().exists());
}

#[test]
fn a_reader_that_never_ends_does_not_hold_up_the_session() {
    let world = World::new();
    let begun = Instant::now();
    let mut command = world.command(&["hook", "bot"]);
    let mut child = start(&mut command);
    // Waiting for the child would close it.
    let mut open = child.stdin.take().unwrap();
    open.write_all(REPLY.as_bytes()).unwrap();
    silent(child.wait_with_output().unwrap());
    drop(open);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(!world.spool().exists());
}

#[test]
fn hooks_at_once_do_not_get_in_each_others_way() {
    let world = World::new();
    let file = world.dir.path().join("f");
    std::fs::write(&file, "x").unwrap();
    let json = with_files(&[&file]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                told(&world, "bot", &json);
                told(&world, "brain", include_str!("../fixtures/claude-code/hook-stop.json"));
            });
        }
    });
    let entries = listed(&world);
    let said = entries.iter().filter(|entry| entry.record.what.state().is_none()).count();
    assert_eq!(said, 8);
    assert!((1..=8).contains(&(entries.len() - said)));
}

#[test]
fn a_hook_that_is_killed_leaves_no_half_record() {
    let world = World::new();
    let file = world.dir.path().join("large");
    std::fs::write(&file, vec![7; 8 << 20]).unwrap();
    let mut call: Value = serde_json::from_str(&with_files(&[&file, &file])).unwrap();
    call["tool_input"]["text"] = json!(format!("RELAY: {}", "long ".repeat(200_000)));
    let json = call.to_string();
    let begun = Instant::now();
    told(&world, "bot", &json);
    // From before it begins until after it is done.
    let step = begun.elapsed() / 30;
    let mut whole = 0;
    for n in 0..40 {
        let mut command = world.command(&["hook", "bot"]);
        let mut child = start(&mut command);
        child.stdin.take().unwrap().write_all(json.as_bytes()).unwrap_or_default();
        std::thread::sleep(step * n);
        child.kill().unwrap();
        child.wait().unwrap();
        for entry in listed(&world) {
            let What::Reply { files, .. } = &entry.record.what else { panic!("{entry:?}") };
            for file in files {
                assert_eq!(std::fs::metadata(entry.copy_of(file).unwrap()).unwrap().len(), 8 << 20);
            }
            inbox::remove(&Store::on(&world.spool(), RealFs), &entry).unwrap();
            whole += 1;
        }
    }
    println!("{whole} of 41 had been stored before they were killed");
}

#[test]
fn a_reply_of_many_mib_is_kept_and_one_past_all_bounds_is_not() {
    let world = World::new();
    let long = |bytes: usize| REPLY.replace("water the plants", &"w".repeat(bytes));
    told(&world, "bot", long(40 << 20));
    told(&world, "bot", long(128 << 20));
    let entries = listed(&world);
    assert_eq!(entries.len(), 1);
    let What::Reply { text: Some(text), .. } = &entries[0].record.what else { panic!() };
    assert_eq!(text.len(), (40 << 20) + "RELAY: ".len());
}

#[test]
fn the_settings_name_every_hook_and_tool_that_is_understood() {
    for side in Side::BOTH {
        let path = format!("{}/contrib/claude/{side}-settings.json", env!("CARGO_MANIFEST_DIR"));
        let settings: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let hooks = settings["hooks"].as_object().unwrap();
        let mut wanted = hook::EVENTS.to_vec();
        wanted.sort_unstable();
        assert!(hooks.keys().map(String::as_str).eq(wanted), "{side}: {hooks:?}");
        for (event, groups) in hooks {
            let command = &groups[0]["hooks"][0];
            assert_eq!(command["command"], format!("anna-relay hook {side}"), "{event}");
            assert_eq!((&command["type"], &command["timeout"]), (&json!("command"), &json!(30)), "{event}");
        }
        let tools: &[&str] =
            if side == Side::Brain { &[hook::REPLY_TOOL, hook::EDIT_TOOL] } else { &[hook::REPLY_TOOL] };
        assert_eq!(hooks["PostToolUse"][0]["matcher"], tools.join("|"));
        assert_eq!(settings["permissions"]["allow"], json!(tools));
        assert_eq!(settings["enabledPlugins"]["fakechat@claude-plugins-official"], true);
        assert_eq!(settings["env"]["ENABLE_TOOL_SEARCH"], "false");
    }
}
