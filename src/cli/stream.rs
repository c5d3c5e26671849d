//! `anna-relay stream`: shows and follows the stream.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::hindrance::{Hindrance, Need};
use super::out;
use crate::config::Config;
use crate::error::{Advise, During, Error, Result};
use crate::text;

/// How often a followed stream is looked at: soon enough for a person.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes that are read at once.
const BLOCK: usize = 64 * 1024;
/// Lines of the past that `-f` begins with, as `tail` and `journalctl` do.
const FOLLOW_LINES: usize = 10;
/// What to do where it cannot be read.
const ELSEWHERE: &str = "make it a file that this user can read, or correct paths.stream; `anna-relay check` shows it";
/// A line without an end is shown from this many bytes on.
const MAX_LINE: usize = 1024 * 1024;

/// Shows the last `lines` lines of the stream (`None`: all, or a few with `follow`), then, with `follow`, new ones
/// until the reader goes away. A terminal gets everything made visible, another reader what is in the file.
///
/// # Errors
/// Where the stream cannot be read, or standard output not written.
pub fn run(config: &Config, lines: Option<usize>, follow: bool) -> Result<()> {
    let path = &config.paths.stream;
    if follow && let Some(hindrance) = Hindrance::of(config, Need::BRIDGE) {
        hindrance.say("the sessions are not heard");
    }
    let lines = lines.or(follow.then_some(FOLLOW_LINES));
    let mut shown = Shown { out: io::stdout().lock(), pending: Vec::new(), visible: out::is_terminal() };
    let Some(mut from) = From::open(path, lines)? else {
        if !follow {
            // Nothing to show is no failure, but a person should not wonder.
            out::say(&format!("{}: nothing in the stream yet: {} is not there", super::PROGRAM, path.display()));
            return Ok(());
        }
        return out::quiet(Tail { path, from: None }.follow(&mut shown)).map(|_| ());
    };
    let copied = from.copy(&mut shown);
    let shown_all = copied.and_then(|()| match follow {
        true => Tail { path, from: Some(from) }.follow(&mut shown),
        false => shown.end(),
    });
    out::quiet(shown_all).map(|_| ())
}

/// Where the text goes.
struct Shown<W> {
    out: W,
    /// What of a line has come so far.
    pending: Vec<u8>,
    visible: bool,
}

impl<W: Write> Shown<W> {
    /// Takes the next bytes and shows the lines that are whole.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(bytes);
        let whole = self.pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole = if self.pending.len() - whole > MAX_LINE { self.pending.len() } else { whole };
        let rest = self.pending.split_off(whole);
        let lines = std::mem::replace(&mut self.pending, rest);
        self.show(&lines)
    }

    /// Shows what is left: a line without an end.
    fn end(&mut self) -> io::Result<()> {
        let mut last = std::mem::take(&mut self.pending);
        if !last.is_empty() {
            last.push(b'\n');
        }
        self.show(&last)
    }

    fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.visible {
            self.out.write_all(text::visible(&String::from_utf8_lossy(bytes)).as_bytes())?;
        } else {
            self.out.write_all(bytes)?;
        }
        self.out.flush()
    }
}

/// An open stream file and how far it was read.
struct From {
    file: File,
    /// Device and inode.
    place: (u64, u64),
    at: u64,
}

impl From {
    /// Opens the file at the beginning of its last `lines` lines; `None` where it is not there.
    fn open(path: &Path, lines: Option<usize>) -> Result<Option<From>> {
        let doing = || format!("reading the stream {}", path.display());
        let about = match fs::metadata(path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            about => about.during(doing()).advise(ELSEWHERE)?,
        };
        if !about.is_file() {
            return Err(Error::failed(format!("{}: it is not a regular file", doing())).hint(ELSEWHERE));
        }
        let mut file = match File::open(path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.during(doing()).advise(ELSEWHERE)?,
        };
        let about = file.metadata().during(doing()).advise(ELSEWHERE)?;
        let at = lines.map_or(Ok(0), |lines| start_of(&mut file, about.len(), lines));
        let at = at.and_then(|at| file.seek(SeekFrom::Start(at))).during(doing()).advise(ELSEWHERE)?;
        Ok(Some(From { file, place: place(&about), at }))
    }

    /// Shows what there is from here on.
    fn copy<W: Write>(&mut self, shown: &mut Shown<W>) -> io::Result<()> {
        let mut block = vec![0; BLOCK];
        loop {
            match self.file.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(read) => {
                    self.at += read as u64;
                    shown.take(&block[..read])?;
                }
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
    }
}

/// Where the last `lines` lines begin.
fn start_of(file: &mut File, len: u64, lines: usize) -> io::Result<u64> {
    let mut left = lines;
    let mut end = if left == 0 { 0 } else { len };
    let mut block = vec![0; BLOCK];
    while end > 0 {
        let start = end.saturating_sub(BLOCK as u64);
        let block = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(block)?;
        for (at, _) in block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let next = start + at as u64 + 1;
            // The line feed at the very end closes the last line, and no line begins after it.
            if next < len {
                left -= 1;
            }
            if left == 0 {
                return Ok(next);
            }
        }
        end = start;
    }
    Ok(if left == 0 { len } else { 0 })
}

/// A stream that is followed, through rotation, truncation, and when it is not there yet.
struct Tail<'a> {
    path: &'a Path,
    from: Option<From>,
}

impl Tail<'_> {
    fn follow<W: Write>(&mut self, shown: &mut Shown<W>) -> io::Result<()> {
        loop {
            self.look(shown)?;
            thread::sleep(LOOK);
        }
    }

    /// Shows what came since the last look.
    fn look<W: Write>(&mut self, shown: &mut Shown<W>) -> io::Result<()> {
        let now = fs::metadata(self.path).ok();
        if let Some(from) = &mut self.from {
            if from.file.metadata()?.len() < from.at {
                // It was emptied: what it holds is new.
                from.at = from.file.seek(SeekFrom::Start(0))?;
                shown.end()?;
            }
            from.copy(shown)?;
        }
        let moved = |from: &From| now.as_ref().is_some_and(|now| place(now) != from.place);
        if self.from.as_ref().is_none_or(moved) && now.is_some() {
            // A file that cannot be opened now may be at the next look.
            if let Ok(Some(mut from)) = From::open(self.path, None) {
                shown.end()?;
                from.copy(shown)?;
                self.from = Some(from);
            }
        }
        Ok(())
    }
}

fn place(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(visible: bool) -> Shown<Vec<u8>> {
        Shown { out: Vec::new(), pending: Vec::new(), visible }
    }

    fn taken(shown: &mut Shown<Vec<u8>>) -> String {
        String::from_utf8(std::mem::take(&mut shown.out)).unwrap()
    }

    #[test]
    fn the_last_lines_are_found_across_blocks() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("stream.log");
        let long = "x".repeat(BLOCK - 1);
        for (text, lines, expected) in [
            ("a\nb\nc\n".to_owned(), Some(2), "b\nc\n".to_owned()),
            ("a\nb\nc".to_owned(), Some(2), "b\nc\n".to_owned()),
            ("a\nb\nc\n".to_owned(), Some(0), String::new()),
            ("a\nb\nc\n".to_owned(), Some(3), "a\nb\nc\n".to_owned()),
            ("a\nb\nc\n".to_owned(), Some(9), "a\nb\nc\n".to_owned()),
            ("a\nb\nc\n".to_owned(), None, "a\nb\nc\n".to_owned()),
            ("\n\n".to_owned(), Some(1), "\n".to_owned()),
            (String::new(), Some(5), String::new()),
            (format!("a\n{long}\n{long}\nz\n"), Some(2), format!("{long}\nz\n")),
            (format!("{long}\nz\n"), Some(1), "z\n".to_owned()),
        ] {
            fs::write(&path, &text).unwrap();
            let mut shown = shown(false);
            From::open(&path, lines).unwrap().unwrap().copy(&mut shown).unwrap();
            shown.end().unwrap();
            assert!(taken(&mut shown) == expected, "{lines:?} of {:?}", &text[..text.len().min(20)]);
        }
        assert!(From::open(&home.path().join("none"), None).unwrap().is_none());
        assert!(From::open(home.path(), None).is_err());
    }

    #[test]
    fn it_follows_through_everything_that_happens_to_a_log() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("stream.log");
        let append = |text: &str| {
            let mut file = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        let mut tail = Tail { path: &path, from: None };
        let mut shown = shown(false);
        let mut look = || {
            tail.look(&mut shown).unwrap();
            taken(&mut shown)
        };
        assert_eq!(look(), "");
        append("one\ntw");
        assert_eq!(look(), "one\n");
        append("o\n");
        assert_eq!(look(), "two\n");
        append("last of the old\n");
        fs::rename(&path, home.path().join("stream.log.1")).unwrap();
        assert_eq!(look(), "last of the old\n");
        append("first of the new\n");
        assert_eq!(look(), "first of the new\n");
        File::create(&path).unwrap();
        append("after\n");
        assert_eq!(look(), "after\n");
        fs::remove_file(&path).unwrap();
        assert_eq!(look(), "");
        append("again\n");
        assert_eq!(look(), "again\n");
    }

    #[test]
    fn a_terminal_gets_it_made_visible() {
        let mut shown = shown(true);
        shown.take(b"a\x1b[2J\xff\nb").unwrap();
        assert_eq!(taken(&mut shown), "a␛[2J\u{fffd}\n");
        shown.end().unwrap();
        assert_eq!(taken(&mut shown), "b\n");
    }
}
