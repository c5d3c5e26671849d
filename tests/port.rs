//! Who holds a port, and ending orphans, with real trees of processes.
//!
//! The program runs its own tests (`harness = false`), for it is also every process in the trees: started as
//! `bun server.ts` it listens as fakechat does (see `standin`).

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "port/cases.rs"]
mod cases;
#[path = "port/launch.rs"]
mod launch;
#[path = "port/standin.rs"]
mod standin;
#[path = "port/tree.rs"]
mod tree;

use std::panic::catch_unwind;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = standin::play() {
        return code;
    }
    let mut args = std::env::args().skip(1);
    let mut filters = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--list" => {
                cases::ALL.iter().for_each(|(name, _)| println!("{name}: test"));
                return ExitCode::SUCCESS;
            }
            // None is ignored, none is a bench.
            "--ignored" | "--bench" => return ExitCode::SUCCESS,
            "--test-threads" | "--skip" | "--format" | "--color" | "-Z" => drop(args.next()),
            flag if flag.starts_with('-') => {}
            _ => filters.push(arg),
        }
    }
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    let mut failed = Vec::new();
    for (name, test) in cases::ALL.iter().filter(|(name, _)| chosen(name)) {
        let passed = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(name);
        }
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
