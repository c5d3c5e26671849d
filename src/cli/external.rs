//! Other programs that are called: `claude`, `bun`, `systemctl`. No shell, no standard input, and never for ever.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether the program has ended.
const LOOK: Duration = Duration::from_millis(10);
/// How long its output is waited for after its end: what it left running may hold it open for ever.
const DRAIN: Duration = Duration::from_secs(1);
/// The most that is kept of an output, bytes.
const MAX_OUTPUT: u64 = 4 * 1024 * 1024;

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// Whether it succeeded.
    pub ok: bool,
    /// What it printed.
    pub out: String,
    /// Why it failed, on one line, for a person.
    pub why: String,
}

/// Calls a program and waits for it.
///
/// # Errors
/// It cannot be started (of kind `NotFound`: it is not there), or took too long (`TimedOut`).
pub fn call(program: &str, args: &[&str], folder: Option<&Path>, within: Duration) -> io::Result<Called> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A session that starts another one would be told that it runs within itself.
    command.env_remove("CLAUDECODE");
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let mut child = command.spawn()?;
    let out = drain(child.stdout.take());
    let err = drain(child.stderr.take());
    let deadline = Instant::now() + within;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("it took longer than {} s", within.as_secs())));
        }
        thread::sleep(LOOK);
    };
    let (out, err) = (text(&out), text(&err));
    let said = [&err, &out].into_iter().flat_map(|text| text.lines()).map(str::trim).find(|line| !line.is_empty());
    let why = said.map_or_else(|| status.to_string(), |said| format!("{said} ({status})"));
    Ok(Called { ok: status.success(), out, why: crate::text::one_line(&why, 300) })
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What was read before an error is shown all the same.
            pipe.take(MAX_OUTPUT).read_to_end(&mut bytes).unwrap_or_default();
        }
        tell.send(bytes).unwrap_or_default();
    });
    told
}

fn text(told: &mpsc::Receiver<Vec<u8>>) -> String {
    String::from_utf8_lossy(&told.recv_timeout(DRAIN).unwrap_or_default()).into_owned()
}

/// Where the shell would find a program.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
}

/// The first version in a text such as `2.1.197 (Claude Code)`.
#[must_use]
pub fn version(text: &str) -> Option<[u64; 3]> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(|word| {
        let mut parts = word.split('.').map(|part| part.parse::<u64>().ok());
        Some([parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)])
    })
}

/// A command line, for a person.
#[must_use]
pub fn line(program: &str, args: &[&str]) -> String {
    let words = std::iter::once(OsStr::new(program)).chain(args.iter().map(OsStr::new));
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    #[test]
    fn versions_are_found_in_what_programs_print() {
        assert_eq!(version("2.1.197 (Claude Code)\n"), Some([2, 1, 197]));
        assert_eq!(version("bun v1.4\n"), Some([1, 4, 0]));
        assert_eq!(version("no idea"), None);
        assert!(version("2.1.128") >= Some([2, 1, 128]) && version("2.10.0") > Some([2, 1, 128]));
    }

    #[test]
    fn a_call_says_what_came_of_it() {
        let good = call("sh", &["-c", "echo out; echo err >&2"], None, SOON).unwrap();
        assert!(good.ok && good.out == "out\n");
        let bad = call("sh", &["-c", "echo no luck >&2; exit 3"], None, SOON).unwrap();
        assert!(!bad.ok && bad.why == "no luck (exit status: 3)", "{bad:?}");
        let missing = call("anna-no-such-program", &[], None, SOON).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let slow = call("sleep", &["60"], None, Duration::from_millis(50)).unwrap_err();
        assert_eq!(slow.kind(), io::ErrorKind::TimedOut);
    }
}
