//! One bridge: it answers, and is of this version.

use std::fs::{File, TryLockError};
use std::time::Duration;

use super::{Finding, Scene};
use crate::cli::starter::Starter;
use crate::control::client::Client;
use crate::control::wire::Command;

/// How long the bridge may take: it answers within a millisecond.
const WITHIN: Duration = Duration::from_secs(5);
const CHECK: &str = "bridge";

/// Looks for it.
pub fn look(scene: &Scene) -> Vec<Finding> {
    let spool = scene.config.paths.spool();
    let answer = match Client::connect(&spool) {
        Ok(Some(mut client)) => client.ask_within(Command::Status, Some(WITHIN)),
        Ok(None) => return vec![absent(&spool)],
        Err(error) => Err(error),
    };
    let status = match answer {
        Ok(status) => status,
        Err(error) => {
            let fix = error.advice().unwrap_or(Starter::here().restart()).to_owned();
            let what = format!("the bridge does not answer: {error}");
            return vec![Finding::fail(CHECK, what, "nothing is carried until it does", fix)];
        }
    };
    let text = |key: &str| status.get(key).map_or_else(String::new, |value| value.to_string().replace('"', ""));
    let (pid, version) = (text("pid"), text("version"));
    let own = env!("CARGO_PKG_VERSION");
    vec![if version == own {
        Finding::ok(CHECK, format!("one bridge runs, pid {pid}"))
    } else {
        Finding::warn(
            CHECK,
            format!("the bridge, pid {pid}, is of version {version}, and this program of version {own}"),
            "an update holds only once the bridge has been started again",
            Starter::here().restart(),
        )
    }]
}

/// Nobody is at the socket: does anybody have the lock?
fn absent(spool: &std::path::Path) -> Finding {
    let held = File::open(spool.join("lock"))
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)));
    if held {
        return Finding::fail(
            CHECK,
            format!("a process has the lock of {}, and no bridge answers there", spool.display()),
            "no other bridge can start while it does",
            format!("look who it is: cat {}", spool.join("lock").display()),
        );
    }
    Finding::warn(
        CHECK,
        "no bridge runs",
        "hand-offs from scripts wait, and what the bot says meanwhile is not heard",
        format!("start it: {}", Starter::here().start()),
    )
}
