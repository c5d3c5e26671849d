//! `anna-day`: the script, with the real program and no bridge.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        let home = Home(tempfile::tempdir().unwrap());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/bin/anna-day");
        fs::create_dir_all(home.at("b in")).unwrap();
        symlink(env!("CARGO_BIN_EXE_anna-relay"), home.at("b in/anna-relay")).unwrap();
        symlink(script, home.at("b in/anna-day")).unwrap();
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join("a home").join(name)
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.at("b in").join(program));
        command.env_clear().env("HOME", self.at("")).env("PATH", "/usr/bin:/bin").args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn day(&self, args: &[&str]) -> (Option<i32>, String, String) {
        texts(&self.command("anna-day", args).output().unwrap())
    }

    /// The file of a hand-off in that state.
    fn hand_off(&self, state: &str, id: &str) -> PathBuf {
        self.at(&format!(".local/state/anna/relay/{state}/{id}.json"))
    }

    fn paused(&self) -> Option<String> {
        fs::read_to_string(self.at(".local/state/anna/relay/paused")).ok()
    }
}

fn texts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_day_is_closed_with_a_reason_and_opened_again() {
    let home = Home::new();
    assert_eq!(home.day(&["close", "off", "to bed"]).0, Some(0));
    assert!(home.paused().unwrap().contains("\"off to bed\""));
    assert_eq!(home.day(&["close"]).0, Some(0));
    let (code, out, err) = home.day(&["open"]);
    assert_eq!((code, &*out), (Some(0), "resumed: nothing waits\n"));
    assert!(err.contains("nothing goes to the brain yet: no bridge runs\nhint: "), "{err}");
    assert_eq!(home.paused(), None);
}

#[test]
fn closing_can_wait_until_nothing_is_in_the_brain() {
    let home = Home::new();
    let (code, out, err) = home.day(&["close", "--wait"]);
    assert_eq!((code, &*err), (Some(0), ""));
    assert!(out.ends_with("\nnothing is in the brain\n"), "{out}");

    let id = texts(&home.command("anna-relay", &["send", "water the plants"]).output().unwrap()).1.trim().to_owned();
    let (new, brain, done) = (home.hand_off("new", &id), home.hand_off("brain", &id), home.hand_off("done", &id));
    fs::create_dir_all(brain.parent().unwrap()).unwrap();
    // As a bridge would have left it.
    let mut pushed: serde_json::Value = serde_json::from_slice(&fs::read(&new).unwrap()).unwrap();
    pushed["pushes"] =
        serde_json::json!([{ "at": pushed["created"], "attempt": 1, "session": null, "outcome": "sent" }]);
    fs::write(&brain, pushed.to_string()).unwrap();
    fs::remove_file(new).unwrap();
    let (code, _, err) = home.day(&["close", "--wait", "1", "night"]);
    assert_eq!(code, Some(124));
    assert!(err.contains("\nno bridge runs, so no answer is heard\nhint: start it"), "{err}");
    assert!(err.contains("the brain still has:\n") && err.contains("water the plants"), "{err}");
    assert!(home.paused().unwrap().contains("\"night\""));

    let waiting = home.command("anna-day", &["close", "--wait=20"]).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    fs::create_dir_all(done.parent().unwrap()).unwrap();
    fs::rename(brain, done).unwrap();
    let (code, out, err) = texts(&waiting.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{err}");
    assert!(out.ends_with("nothing is in the brain\n"), "{out}");
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let home = Home::new();
    for args in [&[][..], &["shut"], &["open", "now"], &["close", "--wait=x"], &["close", "--frob"]] {
        let (code, out, err) = home.day(args);
        assert_eq!((code, &*out), (Some(2), ""), "{args:?}");
        assert!(err.contains("usage: ") || err.contains("\nhint: "), "{args:?}: {err}");
    }
    assert_eq!(home.paused(), None);
    assert!(home.day(&["--help"]).1.starts_with("usage: anna-day close"));
}
