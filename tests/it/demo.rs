//! The demo: shows the round, leaves nothing behind, needs nothing but the program.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::wait;

fn demo(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anna-relay"));
    command.arg("demo").env_clear().env("TMPDIR", dir).env("HOME", dir).stdin(Stdio::null());
    command
}

fn left_in(dir: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_demo_shows_the_round_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let output = demo(dir.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    for part in ["relay → brain  [relay ", "relay → bot    [relay result for ", "[asked: ", "refused", "1 done"] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    assert_eq!(left_in(dir.path()), [""; 0].map(std::path::PathBuf::from));
}

#[test]
fn an_interrupt_leaves_nothing_behind_either() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = demo(dir.path()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let running = lines.map(Result::unwrap).find(|line| line.contains("the bridge runs (pid ")).unwrap();
        let bridge: i32 = running.split(['(', ')', ' ']).rev().find_map(|word| word.parse().ok()).unwrap();
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let status = wait("the demo to end", || child.try_wait().unwrap());
        assert!(!status.success(), "{signal:?}: it did not show all");
        assert_eq!(left_in(dir.path()), [""; 0].map(std::path::PathBuf::from), "{signal:?}");
        let bridge = rustix::process::Pid::from_raw(bridge).unwrap();
        wait("the bridge to be gone", || rustix::process::test_kill_process(bridge).err());
    }
}
