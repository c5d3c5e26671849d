//! `launch` where a fakechat holds the port already.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use anna_relay::port::Judge;

use crate::tree::Tree;

/// `launch brain` of the real program, with a `claude` that only says so.
fn launch(port: u16) -> Output {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("claude")).unwrap();
    fs::write(at("claude/anna-brain-settings.json"), "{}").unwrap();
    fs::write(at("claude/claude"), "#!/bin/sh\necho started\n").unwrap();
    fs::set_permissions(at("claude/claude"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at("anna.toml"), format!("[paths]\nstate = {:?}\n[relay]\nbrain_port = {port}\n", at("state"))).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_anna-relay"));
    command.args(["launch", "brain"]).env("ANNA_CONFIG", at("anna.toml")).env("CLAUDE_CONFIG_DIR", at("claude"));
    command.env("PATH", format!("{}:/usr/bin:/bin", at("claude").display())).output().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

pub fn a_launch_leaves_a_live_session_alone() {
    let mut tree = Tree::start("claude wrapped");
    let session = tree.pid("session");
    tree.pid("server");
    let output = launch(tree.port);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(4), "{err}");
    assert!(err.contains(&format!("a live session holds it: pid {session}")), "{err}");
    assert!(out.is_empty() && tree.answers());
}

pub fn a_launch_ends_an_orphan_and_goes_on() {
    let mut tree = Tree::start("claude wrapped");
    tree.pid("server");
    tree.kill("session");
    tree.reap();
    tree.orphan(&mut Judge::of_this_user());
    let output = launch(tree.port);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{err}");
    assert!(err.starts_with("ended an orphaned fakechat"), "{err}");
    assert_eq!(out, "started\n");
    assert!(!tree.answers());
}
