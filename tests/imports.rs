//! Which room may use which: the rules in `src/lib.rs`.

#![allow(clippy::unwrap_used)] // nothing here but tests

use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            all.push(path);
        }
    }
    all
}

/// The room of a file: the first part of its path below `src/`.
fn room(path: &Path) -> String {
    let below = path.strip_prefix(src()).unwrap();
    let first = below.components().next().unwrap().as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// How far up a room is: it may use those below it and beside it.
fn floor(room: &str) -> u8 {
    match room {
        "main" => 5,
        "cli" => 4,
        "daemon" => 3,
        "actor" | "message" => 2,
        "queue" | "spooler" | "guard" | "side" | "spool" | "port" | "fakechat" | "control" | "stream" | "telemetry"
        | "hook" | "inbox" | "receipts" | "transcript" => 1,
        "handoff" | "config" | "error" | "text" | "beat" | "watch" | "watchdog" | "within" | "lib" => 0,
        other => panic!("src/{other} is a room that this test does not know: put it on its floor"),
    }
}

#[test]
fn imports_run_one_way() {
    for path in sources(&src()) {
        let own = room(&path);
        if own == "lib" {
            continue;
        }
        for (n, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let line = line.trim();
            if line.starts_with("//") {
                continue;
            }
            for used in line.split("crate::").skip(1) {
                let used: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let known = src().join(format!("{used}.rs")).exists();
                assert!(
                    !known || floor(&used) <= floor(&own),
                    "{}:{}: {own} uses {used}, which is above it",
                    path.display(),
                    n + 1
                );
            }
        }
    }
}

#[test]
fn each_library_stays_in_its_rooms() {
    let rules: [(&str, &[&str]); 4] = [
        ("actix", &["actor", "daemon", "message"]),
        ("awc", &["fakechat"]),
        ("sysinfo", &["port"]),
        ("listeners", &["port"]),
    ];
    for path in sources(&src()) {
        let own = room(&path);
        let text = fs::read_to_string(&path).unwrap();
        let code = text.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        for line in code {
            for (library, rooms) in rules {
                let uses = [format!("use {library}::"), format!("{library}::")].iter().any(|use_| {
                    line.starts_with(use_) || line.contains(&format!(" {use_}")) || line.contains(&format!("<{use_}"))
                });
                assert!(!uses || rooms.contains(&own.as_str()), "{}: {own} uses {library}: {line}", path.display());
            }
        }
    }
}

#[test]
fn actors_do_not_import_each_other() {
    let actors = ["bot_side", "brain_side", "control", "guard", "orphan_reaper", "queue", "witness"];
    for actor in actors {
        let text = fs::read_to_string(src().join(format!("actor/{actor}.rs"))).unwrap();
        for other in actors.iter().filter(|other| **other != actor) {
            assert!(!text.contains(&format!("super::{other}::")), "actor/{actor}.rs imports {other}");
        }
    }
}
