//! What a session is doing, from Claude Code's own registry of sessions, `~/.claude/sessions/<pid>.json`.
//!
//! A courtesy, not a contract: Claude Code documents no such file. Whatever is missing, foreign or odd means "not
//! known", and nothing depends on it but what a person is shown.

use std::env;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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

/// File systems tell times apart that lie further apart than this.
const SETTLED: Duration = Duration::from_secs(2);

/// Whether what changed then would show another time if it had changed again since.
#[must_use]
pub fn is_settled(changed: SystemTime) -> bool {
    changed.elapsed().is_ok_and(|age| age > SETTLED)
}

/// What the registry says about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is doing, where that is a word we know.
    pub status: Option<Activity>,
    /// When it began to do that, by the session's own account: tells one wait from the next.
    pub since: Option<u64>,
    /// What it waits for. Text of another program: show it as such.
    pub waiting_for: Option<String>,
    /// Claude's own id of the session, which names its transcript.
    pub session_id: String,
    /// Its working directory.
    pub cwd: PathBuf,
}

/// A session's entry as it lies on disk: while that stays the same, so does what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Inode, length in bytes and time of change; none where there is no entry.
    entry: Option<(u64, u64, SystemTime)>,
}

impl Mark {
    /// The mark of that session's entry; none where it is so new that it may change again at what is the same time to its
    /// file system. One look at the file, which is not opened.
    #[must_use]
    pub fn of(session: SessionKey) -> Option<Mark> {
        Mark::in_folder(&claude_folder()?, session)
    }

    fn in_folder(claude_folder: &Path, session: SessionKey) -> Option<Mark> {
        let Ok(about) = entry_of(claude_folder, session).symlink_metadata() else { return Some(Mark { entry: None }) };
        let changed = about.modified().ok().filter(|at| is_settled(*at))?;
        Some(Mark { entry: Some((about.ino(), about.len(), changed)) })
    }
}

fn in_claude(claude_folder: &Path) -> PathBuf {
    claude_folder.join("sessions")
}

fn entry_of(claude_folder: &Path, session: SessionKey) -> PathBuf {
    in_claude(claude_folder).join(format!("{}.json", session.pid))
}

/// What the registry says about this session; none where it says nothing that is sure to be about it.
#[must_use]
pub fn activity(session: SessionKey) -> Option<Entry> {
    activity_in(&claude_folder()?, session)
}

/// The same, with Claude Code's folder given.
#[must_use]
pub fn activity_in(claude_folder: &Path, session: SessionKey) -> Option<Entry> {
    let raw: Raw = serde_json::from_slice(&read(&entry_of(claude_folder, session))?).ok()?;
    raw.check(session)
}

/// Where the registry is.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    claude_folder().map(|folder| in_claude(&folder))
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
    status_updated_at: Value,
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
        let since = self.status_updated_at.as_u64();
        Some(Entry { status, since, waiting_for, session_id: self.session_id, cwd: self.cwd })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const REAL: &str = include_str!("../../tests/fixtures/claude-code/sessions-20386.json");
    const SESSION: SessionKey = SessionKey { pid: 20386, started: 307_546 };

    fn ask(entry: &[u8]) -> Option<Entry> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sessions")).unwrap();
        fs::write(folder.path().join("sessions/20386.json"), entry).unwrap();
        activity_in(folder.path(), SESSION)
    }

    #[test]
    fn the_recorded_entry_says_what_the_session_waits_for() {
        let entry = ask(REAL.as_bytes()).unwrap();
        assert_eq!(entry.status, Some(Activity::Waiting));
        assert_eq!(entry.waiting_for.as_deref(), Some("permission prompt"));
        assert_eq!(entry.since, Some(1_796_034_282_754));
        assert_eq!(entry.session_id, "f2cdf2b6-6f56-4859-a797-13bf0c025814");
        assert_eq!(entry.cwd, Path::new("/home/anna/brain"));
    }

    #[test]
    fn an_entry_of_another_process_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sessions")).unwrap();
        fs::write(folder.path().join("sessions/20386.json"), REAL).unwrap();
        assert!(activity_in(folder.path(), SESSION).is_some());
        assert_eq!(activity_in(folder.path(), SessionKey { started: 1, ..SESSION }), None);
        assert_eq!(activity_in(folder.path(), SessionKey { pid: 7, ..SESSION }), None);
        assert_eq!(ask(REAL.replace("20386", "20387").as_bytes()), None);
    }

    #[test]
    fn an_entry_that_changed_has_another_mark_and_a_new_one_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions/20386.json");
        let mark = || Mark::in_folder(folder.path(), SESSION);
        let absent = mark();
        assert!(absent.is_some() && absent == mark());
        fs::create_dir(folder.path().join("sessions")).unwrap();
        fs::write(&path, REAL).unwrap();
        assert_eq!(mark(), None);
        let age = |seconds| {
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        };
        age(60);
        let settled = mark();
        assert!(settled.is_some() && settled == mark() && settled != absent);
        age(30);
        assert_ne!(mark(), settled);
    }

    #[test]
    fn a_word_we_do_not_know_is_no_status() {
        let entry = ask(REAL.replace("\"waiting\"", "\"dreaming\"").as_bytes()).unwrap();
        assert_eq!((entry.status, entry.waiting_for), (None, None));
        let entry = ask(REAL.replace("\"waiting\"", "[1]").as_bytes()).unwrap();
        assert_eq!(entry.status, None);
        let entry = ask(REAL.replace("\"waiting\"", "\"busy\"").as_bytes()).unwrap();
        assert_eq!((entry.status, entry.waiting_for), (Some(Activity::Busy), None));
    }

    #[test]
    fn whatever_is_odd_says_nothing() {
        assert_eq!(ask(b""), None);
        assert_eq!(ask(b"null"), None);
        assert_eq!(ask(&REAL.as_bytes()[..200]), None);
        assert_eq!(ask(&[REAL.as_bytes(), &vec![b' '; 70_000]].concat()), None);
        assert_eq!(ask("[".repeat(60_000).as_bytes()), None);
        assert_eq!(ask(REAL.replace("f2cdf2b6", "../../etc").as_bytes()), None);
        assert_eq!(ask(REAL.replace("/home/anna", "home").as_bytes()), None);
        assert_eq!(ask(REAL.replace("\"307546\"", "{}").as_bytes()), None);
    }

    #[test]
    fn what_is_not_a_plain_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let entry = folder.path().join("sessions/20386.json");
        assert_eq!(activity_in(folder.path(), SESSION), None);
        fs::create_dir_all(&entry).unwrap();
        assert_eq!(activity_in(folder.path(), SESSION), None);
        fs::remove_dir(&entry).unwrap();
        fs::write(folder.path().join("real"), REAL).unwrap();
        symlink(folder.path().join("real"), &entry).unwrap();
        assert_eq!(activity_in(folder.path(), SESSION), None);
        fs::remove_file(&entry).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&entry).status().unwrap().success());
        assert_eq!(activity_in(folder.path(), SESSION), None);
    }
}
