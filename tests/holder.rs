//! The real bridge with `relay.holder = "session"`, and at its sides real trees of processes: sessions with their
//! fakechats, orphans, strangers.
//!
//! The program runs its own tests (`harness = false`), for it is also every process in the trees (see `standin`).

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "holder/around.rs"]
mod around;
#[path = "holder/ends.rs"]
mod ends;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "it/harness.rs"]
mod harness;
#[path = "holder/house.rs"]
mod house;
#[path = "fakechat_contract/mcp.rs"]
mod mcp;
#[path = "holder/real.rs"]
mod real;
#[path = "holder/rogue.rs"]
mod rogue;
#[path = "holder/standin.rs"]
mod standin;
#[path = "holder/strangers.rs"]
mod strangers;
#[path = "holder/tree.rs"]
mod tree;

use std::panic::catch_unwind;
use std::process::ExitCode;

/// A test and its name.
type Case = (&'static str, fn());

/// Names the tests of a file.
#[macro_export]
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        /// Every test with its name.
        pub const ALL: &[(&str, fn())] = &[$((stringify!($name), $name)),*];
    };
}

fn main() -> ExitCode {
    if let Some(code) = standin::play() {
        return code;
    }
    let all: Vec<Case> = [around::ALL, ends::ALL, strangers::ALL, real::ALL].concat();
    let mut args = std::env::args().skip(1);
    let mut filters = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--list" => {
                all.iter().for_each(|(name, _)| println!("{name}: test"));
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
    let mut failed = false;
    for (name, test) in all.iter().filter(|(name, _)| chosen(name)) {
        let passed = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed |= !passed;
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
