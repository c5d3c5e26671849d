//! The bridge's log: to standard error, in the way of the journal under systemd, and to a file a day.
//!
//! Both are written by threads of their own, and what they cannot take any more is dropped: a log is a help,
//! the truth is in the spool and the stream, and a full disk or a stopped terminal must not hold up the actors.

use std::env;
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::Layer;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::{During, Result};
use crate::text;

/// Log files that are kept, one a day: two weeks.
const KEEP_FILES: usize = 14;
/// Lines that may wait for a writer: seconds of a busy bridge. Their places take 40 bytes each from the start.
const MAX_WAITING: usize = 2_048;

/// Keeps the log going: its drop writes what is left, so it belongs in `main`.
#[must_use]
#[derive(Debug)]
pub struct Guard {
    _writers: Vec<WorkerGuard>,
}

/// Starts the log: to standard error and, where `log_dir` is given, to files there. `$ANNA_LOG` says how much. A
/// folder that cannot be used is said on standard error and stops nothing. `color`: whether standard error is a
/// terminal that wants colours.
pub fn init(log_dir: Option<&Path>, color: bool) -> Guard {
    let (level, level_error) = level(env::var("ANNA_LOG").ok().as_deref());
    // At `debug` and below, our own parts only: the libraries' inner life drowns them.
    let wanted = Targets::new().with_target("anna_relay", level).with_default(level.min(LevelFilter::INFO));

    let (errors, guard) = writer(io::stderr(), "log-stderr");
    let mut writers = vec![guard];
    let journal = env::var_os("JOURNAL_STREAM").is_some_and(|value| !value.is_empty());
    let layer = tracing_subscriber::fmt::layer().fmt_fields(OneLine).with_writer(errors);
    let to_stderr =
        if journal { layer.event_format(Journal).boxed() } else { layer.with_ansi(color).with_target(false).boxed() };

    let mut file_error = None;
    let to_files = log_dir.and_then(|dir| match files(dir) {
        Ok(files) => {
            let (files, guard) = writer(files, "log-files");
            writers.push(guard);
            Some(tracing_subscriber::fmt::layer().fmt_fields(OneLine).with_writer(files).with_ansi(false))
        }
        Err(error) => {
            file_error = Some(error);
            None
        }
    });
    let started = tracing_subscriber::registry().with(to_stderr.and_then(to_files).with_filter(wanted)).try_init();
    let problems =
        [level_error, file_error.map(|error| error.to_string()), started.err().map(|error| error.to_string())];
    for problem in problems.into_iter().flatten() {
        tracing::warn!("starting the log: {problem}");
    }
    Guard { _writers: writers }
}

/// A writer on a thread of its own. Lossy: see the top of this file.
fn writer(to: impl io::Write + Send + 'static, name: &str) -> (NonBlocking, WorkerGuard) {
    NonBlockingBuilder::default().lossy(true).buffered_lines_limit(MAX_WAITING).thread_name(name).finish(to)
}

/// The files `anna-relay.<date>.log` in that folder.
fn files(dir: &Path) -> Result<RollingFileAppender> {
    let doing = || format!("opening the log files in {}", dir.display());
    DirBuilder::new().recursive(true).mode(0o700).create(dir).during(doing())?;
    RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("anna-relay")
        .filename_suffix("log")
        .max_log_files(KEEP_FILES)
        .build(dir)
        .during(doing())
}

/// The level that `$ANNA_LOG` names, and what is wrong with it.
fn level(name: Option<&str>) -> (LevelFilter, Option<String>) {
    let known = |name: &str| match name.to_ascii_lowercase().as_str() {
        "" | "info" => Some(LevelFilter::INFO),
        "error" => Some(LevelFilter::ERROR),
        "warn" => Some(LevelFilter::WARN),
        "debug" => Some(LevelFilter::DEBUG),
        "trace" => Some(LevelFilter::TRACE),
        _ => None,
    };
    match known(name.unwrap_or_default()) {
        Some(level) => (level, None),
        None => {
            let name = name.unwrap_or_default();
            let wrong =
                format!("$ANNA_LOG is {name:?}, which is none of error, warn, info, debug and trace; info it is");
            (LevelFilter::INFO, Some(wrong))
        }
    }
}

/// Message and fields on one line, for a line break in them could pass for another event.
struct OneLine;

impl<'writer> FormatFields<'writer> for OneLine {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut line = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut line), fields)?;
        writer.write_str(&text::on_one_line(&line))
    }
}

/// One line an event for the journal, which has the time itself, with the priority that `sd-daemon(3)` gives it.
struct Journal;

impl<S, N> FormatEvent<S, N> for Journal
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        write!(writer, "<{}>", priority(*event.metadata().level()))?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// The journal's priority of a level.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_journal_gets_one_line_an_event_with_its_priority() {
        let memory = Memory::default();
        let (writer, guard) = writer(memory.clone(), "test");
        let layer = tracing_subscriber::fmt::layer().fmt_fields(OneLine).with_writer(writer).event_format(Journal);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::error!("bad");
            tracing::warn!(side = "brain", "look");
            tracing::info!("two\nlines");
            tracing::debug!("small");
        });
        drop(guard);
        let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "<3>bad\n<4>look side=\"brain\"\n<6>two ⏎ lines\n<7>small\n");
    }

    #[test]
    fn the_level_is_a_simple_word() {
        assert_eq!(level(None), (LevelFilter::INFO, None));
        assert_eq!(level(Some("")), (LevelFilter::INFO, None));
        assert_eq!(level(Some("DEBUG")), (LevelFilter::DEBUG, None));
        let (level, wrong) = level(Some("anna=debug"));
        assert_eq!(level, LevelFilter::INFO);
        assert!(wrong.unwrap().starts_with("$ANNA_LOG is \"anna=debug\""));
    }

    #[test]
    fn log_files_are_named_by_the_day_in_a_folder_for_the_owner() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("log");
        files(&dir).unwrap().write_all(b"x\n").unwrap();
        let name = std::fs::read_dir(&dir).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with("anna-relay.20") && name.ends_with(".log") && name.len() == 25, "{name}");
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(home.path().join("file"), "").unwrap();
        assert!(files(&home.path().join("file")).is_err());
    }
}
