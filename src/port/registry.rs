//! What a session is doing, from Claude Code's own registry of sessions, `~/.claude/sessions/<pid>.json`.
//!
//! A courtesy, not a contract: Claude Code documents no such file. Whatever is missing, foreign or odd means "not
//! known", and nothing depends on it but what a person is shown.

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use serde_json::Value;

use crate::control::wire::Activity;
use crate::handoff::SessionKey;

/// The most that is read of an entry, bytes. Real ones have under 1,000.
const MAX_ENTRY: u64 = 64 * 1024;
/// The longest session id that is believed, characters: a UUID has 36, and it names files.
const MAX_SESSION_ID: usize = 64;
/// The longest reason for waiting that is shown, characters: Claude Code's have under 20.
const MAX_WAITING_FOR: usize = 200;

/// What the registry says about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is doing, where that is a word we know.
    pub status: Option<Activity>,
    /// What it waits for. Text of another program: show it as such.
    pub waiting_for: Option<String>,
    /// Claude's own id of the session, which names its transcript.
    pub session_id: String,
    /// Its working directory.
    pub cwd: PathBuf,
}

/// What the registry says about this session; none where it says nothing that is sure to be about it.
#[must_use]
pub fn activity(session: SessionKey) -> Option<Entry> {
    activity_in(&claude_folder()?, session)
}

/// The same, with Claude Code's folder given.
#[must_use]
pub fn activity_in(claude_folder: &Path, session: SessionKey) -> Option<Entry> {
    let path = claude_folder.join("sessions").join(format!("{}.json", session.pid));
    let raw: Raw = serde_json::from_slice(&read(&path)?).ok()?;
    raw.check(session)
}

/// Where Claude Code keeps its things: `$CLAUDE_CONFIG_DIR`, else `~/.claude`.
#[must_use]
pub fn claude_folder() -> Option<PathBuf> {
    let named = env::var_os("CLAUDE_CONFIG_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    named.or_else(|| env::home_dir().map(|home| home.join(".claude")))
}

/// A regular file of bounded size. A link is not followed, and a pipe does not hold us up.
fn read(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > MAX_ENTRY {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_ENTRY + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_ENTRY).then_some(bytes)
}

/// The file, as far as it concerns us.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    pid: u32,
    session_id: String,
    cwd: PathBuf,
    proc_start: Value,
    #[serde(default)]
    status: Value,
    #[serde(default)]
    waiting_for: Value,
}

impl Raw {
    fn check(self, session: SessionKey) -> Option<Entry> {
        let started = match &self.proc_start {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        };
        let names_a_file = self.session_id.chars().all(|one| one.is_ascii_alphanumeric() || one == '-');
        let sane_id = names_a_file && (1..=MAX_SESSION_ID).contains(&self.session_id.len());
        if self.pid != session.pid || started != Some(session.started) || !sane_id || !self.cwd.is_absolute() {
            return None;
        }
        let status = Activity::deserialize(self.status).ok();
        let waiting_for = self.waiting_for.as_str().filter(|_| status == Some(Activity::Waiting));
        let waiting_for = waiting_for.map(|text| text.chars().take(MAX_WAITING_FOR).collect());
        Some(Entry { status, waiting_for, session_id: self.session_id, cwd: self.cwd })
    }
}
