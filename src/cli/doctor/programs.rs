//! bun and claude: there, and recent enough.

use std::time::Duration;

use super::Finding;
use crate::cli::external;
use crate::cli::setup::plugin::{INSTALL_CLAUDE, reason};

/// How long they may take to say their version.
const WITHIN: Duration = Duration::from_secs(20);
/// The first Claude Code with channels.
const CLAUDE: [u64; 3] = [2, 1, 128];
/// The first bun that has `--shell=bun`, with which Claude Code starts fakechat.
const BUN: [u64; 3] = [1, 1, 0];

/// Looks at both.
pub fn look() -> Vec<Finding> {
    vec![
        one(
            "claude",
            CLAUDE,
            "the two sessions are its own, and their channels came with version 2.1.128",
            INSTALL_CLAUDE,
        ),
        one("bun", BUN, "fakechat runs on it", "npm install -g bun"),
    ]
}

fn one(name: &'static str, least: [u64; 3], why: &str, fix: &str) -> Finding {
    let called = match external::call(name, &["--version"], None, WITHIN) {
        Ok(called) if called.ok => called,
        Ok(called) => return Finding::fail(name, format!("{name} does not run: {}", called.why), why, fix),
        Err(error) => return Finding::fail(name, format!("{name} does not run: {}", reason(name, &error)), why, fix),
    };
    let shown = |version: [u64; 3]| version.map(|part| part.to_string()).join(".");
    match external::version(&called.out) {
        Some(version) if version >= least => Finding::ok(name, format!("{name} {}", shown(version))),
        Some(version) => Finding::fail(
            name,
            format!("{name} is {}, and {} or later is needed", shown(version), shown(least)),
            why,
            fix,
        ),
        None => Finding::warn(
            name,
            format!("{name} does not say its version"),
            format!("{} or later is needed", shown(least)),
            format!("look at `{name} --version`"),
        ),
    }
}
