//! The stream: Anna's running record of events, one line each, that she and her person read.
//!
//! A thread of its own writes, so that a slow or full disk never holds up whoever notes something. What
//! cannot be written is kept, in order, and tried again. Nothing here runs while there is nothing to write.

mod writer;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::error::{During, Error, Result};
use crate::queue::Effect;
use crate::text::{self, EVENT_CHARS};
use writer::{Queue, Shared, Writer};

/// What marks an event that needs a look.
const WARNING: &str = "⚠ ";
/// Lines that are kept while they cannot be written: some MiB, and hours of a busy day.
const MAX_BACKLOG: usize = 10_000;

/// A handle on the stream, cheap to clone. The last one to go has the writer finish.
#[derive(Clone, Debug)]
pub struct Stream(Arc<Handle>);

#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Stream {
    /// Opens the stream at `path`, which is created with its folder where it is missing.
    ///
    /// # Errors
    /// Where it is not a regular file (a link to one will do), or may not be written.
    pub fn open(path: &Path) -> Result<Stream> {
        let file = match writer::open(path) {
            Ok(file) => Some(file),
            // It may be freed, and the relay is of use without a stream: tried again with the first line.
            Err(cause) if matches!(cause.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => None,
            Err(cause) => {
                return Err(Error::failed(format!("opening the stream {}: {cause}", path.display()))
                    .hint("make it a regular file that this user may write, or set paths.stream to another place"));
            }
        };
        let queue = Mutex::new(Queue::default());
        let shared = Arc::new(Shared { queue, work: Condvar::new(), tried: Condvar::new() });
        let mut writer = Writer { path: path.to_owned(), file, shared: Arc::clone(&shared) };
        thread::Builder::new()
            .name("stream".to_owned())
            .spawn(move || writer.run())
            .during("starting the writer of the stream")?;
        Ok(Stream(Arc::new(Handle(shared))))
    }

    /// Adds an event.
    pub fn note(&self, text: &str) {
        self.add(&line(OffsetDateTime::now_utc(), "", text, None));
    }

    /// Adds an event that needs a look.
    pub fn warn(&self, text: &str) {
        self.add(&line(OffsetDateTime::now_utc(), WARNING, text, None));
    }

    /// Adds what the queue has to say, if that is anything; what is about a hand-off names it.
    pub fn record(&self, effect: &Effect) {
        let (Effect::Note { text, of } | Effect::Warn { text, of }) = effect else { return };
        let short = of.map(|id| id.short());
        let text = short.as_ref().map_or_else(|| text.clone(), |short| format!("{short}: {text}"));
        let rest = short.map(|short| format!("anna-relay show {short}"));
        let mark = if matches!(effect, Effect::Warn { .. }) { WARNING } else { "" };
        self.add(&line(OffsetDateTime::now_utc(), mark, &text, rest.as_deref()));
    }

    /// Waits until everything is written, at most this long. Says whether it is.
    #[must_use]
    pub fn flush(&self, at_most: Duration) -> bool {
        let shared = &self.0.0;
        let mut queue = shared.queue();
        queue.hurry = true;
        shared.work.notify_one();
        let waited = shared.tried.wait_timeout_while(queue, at_most, |queue| !queue.lines.is_empty());
        let (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.lines.is_empty()
    }

    fn add(&self, line: &str) {
        let mut queue = self.0.0.queue();
        if queue.lines.len() >= MAX_BACKLOG {
            queue.lost += 1;
            return;
        }
        queue.lines.push_back(line.to_owned());
        // With more than that it is at work, or waits to try again.
        if queue.lines.len() == 1 {
            self.0.0.work.notify_one();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.queue().closed = true;
        self.0.work.notify_one();
    }
}

/// The line of an event, its line feed included.
fn line(at: OffsetDateTime, mark: &str, text: &str, rest: Option<&str>) -> String {
    let at = at.replace_nanosecond(0).unwrap_or(at).format(&Rfc3339).unwrap_or_default();
    let text = text.trim();
    let head = text::head(text, EVENT_CHARS);
    let end = match (head.len() < text.len(), rest) {
        (false, _) => String::new(),
        (true, None) => "… [cut]".to_owned(),
        (true, Some(rest)) => format!("… [cut; all of it: {rest}]"),
    };
    format!("{at} relay: {mark}{}{end}\n", text::on_one_line(head))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Instant;

    use time::macros::datetime;

    use super::writer::RETRY;
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    /// The lines without their times.
    fn lines(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'));
        text.lines().map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest).to_owned()).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn an_event_is_one_line() {
        let at = datetime!(2026-11-30 12:00:00.5 UTC);
        assert_eq!(line(at, "", "a\nb\x1b[2J ", None), "2026-11-30T12:00:00Z relay: a ⏎ b␛[2J\n");
        assert_eq!(line(at, "⚠ ", "a", Some("x")), "2026-11-30T12:00:00Z relay: ⚠ a\n");
        let long = "é".repeat(2_001);
        let cut = line(at, "", &long, Some("anna-relay show 567890ab"));
        let expected = format!("relay: {}… [cut; all of it: anna-relay show 567890ab]\n", "é".repeat(2_000));
        assert_eq!(cut.split_once(' ').unwrap().1, expected);
        assert!(line(at, "", &long, None).ends_with("é… [cut]\n"));
        assert!(line(at, "", &long[2..], None).ends_with("é\n"));
    }

    #[test]
    fn it_is_created_for_its_owner_only_and_written_in_order() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/stream.log");
        let stream = Stream::open(&path).unwrap();
        assert!(stream.flush(SOON));
        let other = stream.clone();
        for n in 0..500 {
            stream.note(&n.to_string());
        }
        other.warn("look");
        assert!(other.flush(SOON));
        let found = lines(&path);
        assert_eq!(found.len(), 501);
        assert_eq!((found[7].as_str(), found[500].as_str()), ("relay: 7", "relay: ⚠ look"));
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn it_follows_a_rotated_and_a_removed_file_and_starts_on_a_fresh_line() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("stream.log");
        fs::write(&path, "old whole\nold torn").unwrap();
        let stream = Stream::open(&path).unwrap();
        stream.note("one");
        assert!(stream.flush(SOON));
        assert_eq!(lines(&path), ["whole", "torn", "relay: one"]);
        fs::rename(&path, home.path().join("stream.log.1")).unwrap();
        stream.note("two");
        assert!(stream.flush(SOON));
        assert_eq!(lines(&path), ["relay: two"]);
        fs::remove_file(&path).unwrap();
        stream.note("three");
        assert!(stream.flush(SOON));
        assert_eq!(lines(&path), ["relay: three"]);
    }

    #[test]
    fn what_cannot_be_written_is_kept_and_the_rest_counted() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("stream.log");
        let stream = Stream::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        stream.note("first");
        assert!(!stream.flush(Duration::from_millis(100)));
        for _ in 0..MAX_BACKLOG + 6 {
            stream.note("more");
        }
        fs::remove_dir(&path).unwrap();
        let start = Instant::now();
        assert!(stream.flush(SOON));
        assert!(start.elapsed() < RETRY, "a flush does not wait for the next try");
        let found = lines(&path);
        assert_eq!(found.len(), MAX_BACKLOG + 1);
        assert_eq!(found[0], "relay: first");
        assert_eq!(found[MAX_BACKLOG], "relay: ⚠ 7 events could not be written here and are lost");
    }

    #[test]
    fn the_last_handle_has_the_rest_written() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("stream.log");
        Stream::open(&path).unwrap().note("last words");
        let end = Instant::now() + SOON;
        while fs::read_to_string(&path).unwrap().is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(lines(&path), ["relay: last words"]);
    }

    #[test]
    fn only_a_regular_file_will_do_also_behind_a_link() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("real"), "").unwrap();
        symlink("real", at("link")).unwrap();
        Stream::open(&at("link")).unwrap();
        symlink("/dev/null", at("device")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        fs::create_dir(at("folder")).unwrap();
        for name in ["device", "pipe", "folder"] {
            let error = Stream::open(&at(name)).unwrap_err();
            assert!(error.to_string().ends_with(": it is not a regular file"), "{error}");
        }
    }
}
