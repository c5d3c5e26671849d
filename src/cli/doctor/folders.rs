//! The folders: private, and with room.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Finding, Scene};
use crate::cli::setup::{USER_SETTINGS, side_settings};
use crate::config::Side;

/// Below this a disk is full for our purposes, bytes: one hand-off may bring files of 50 MiB and more.
const FULL: u64 = 128 * 1024 * 1024;
/// Below this it deserves a look, bytes.
const TIGHT: u64 = 1024 * 1024 * 1024;
/// Below this many files more, a disk that counts them is full.
const FEW_FILES: u64 = 1_000;
const MIB: u64 = 1024 * 1024;

/// Looks at them.
pub fn look(scene: &Scene) -> Vec<Finding> {
    let paths = &scene.config.paths;
    let spool = paths.spool();
    let inside =
        fs::read_dir(&spool).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let private = std::iter::once(spool.clone()).chain(inside);
    let mut findings: Vec<Finding> =
        private.filter_map(|path| open_to_others(&path, 0o077, "it holds your hand-offs in plain text")).collect();
    let settings =
        [USER_SETTINGS, side_settings(Side::Brain), side_settings(Side::Bot)].map(|name| scene.folder.join(name));
    let obeyed = settings.into_iter().chain([scene.folder.clone(), scene.config.file.clone(), paths.state.clone()]);
    findings.extend(
        obeyed.filter_map(|path| open_to_others(&path, 0o022, "who can write it decides what the sessions do")),
    );
    if findings.is_empty() {
        findings.push(Finding::ok("folders", "the folders and settings are yours alone"));
    }
    findings.push(room(&spool));
    findings
}

/// Whether others may do there what they must not. What is not there is not looked at.
fn open_to_others(path: &Path, bits: u32, why: &str) -> Option<Finding> {
    const CHECK: &str = "folders";
    let about = fs::metadata(path).ok()?;
    let name = path.display();
    let own = rustix::process::geteuid().as_raw();
    if about.uid() != own {
        let what = format!("{name} belongs to another user (uid {})", about.uid());
        return Some(Finding::fail(CHECK, what, why, format!("chown -R {own} {name}")));
    }
    let open = about.mode() & bits;
    let fix = if bits == 0o077 { format!("chmod go-rwx {name}") } else { format!("chmod go-w {name}") };
    (open != 0)
        .then(|| Finding::fail(CHECK, format!("{name} is open to others (mode {:o})", about.mode() & 0o777), why, fix))
}

fn room(spool: &Path) -> Finding {
    const CHECK: &str = "disk";
    const WHY: &str = "what cannot be written is not accepted";
    const FIX: &str = "make room there; `anna-relay prune --older-than 30d` deletes old hand-offs";
    let there = spool.ancestors().find(|path| path.is_dir()).unwrap_or(spool);
    let name = there.display();
    let Ok(stat) = rustix::fs::statvfs(there) else {
        return Finding::warn(CHECK, format!("it cannot be told how much room there is at {name}"), WHY, FIX);
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let shown = format!("{} MiB are free at {name}", free / MIB);
    match () {
        () if free < FULL => Finding::fail(CHECK, format!("only {shown}"), WHY, FIX),
        () if stat.f_files > 0 && stat.f_favail < FEW_FILES => {
            Finding::fail(CHECK, format!("only {} more files fit at {name}", stat.f_favail), WHY, FIX)
        }
        () if free < TIGHT => Finding::warn(CHECK, format!("only {shown}"), WHY, FIX),
        () => Finding::ok(CHECK, shown),
    }
}
