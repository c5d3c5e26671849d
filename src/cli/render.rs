//! What people read: text from data, with nothing looked up. What can be wrong comes with the next step.

mod doctor;
mod list;
mod show;
mod status;
pub mod step;

use std::env;

use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use crate::error::Error;
use crate::handoff::listed::{Listed, Stage};
use crate::text;

pub use doctor::doctor;
pub use list::{Line, line, list};
pub use show::show;
pub use status::{alarms, state, status};

/// A time as people read it.
const TIME: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day] [hour]:[minute]:[second] UTC");

/// Columns of the reason why a hand-off was given up: those that this version knows have fewer.
const MAX_REASON: usize = 20;

/// Whether there are colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    color: bool,
}

/// What a colour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ink {
    Good,
    Look,
    Bad,
    Faint,
    Head,
}

impl Style {
    /// No colours.
    pub const PLAIN: Style = Style { color: false };
    /// Colours.
    pub const COLORED: Style = Style { color: true };

    /// Colours on a terminal, unless `$NO_COLOR` is set or `$TERM` is `dumb`.
    #[must_use]
    pub fn detect(is_terminal: bool) -> Style {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        Style { color: is_terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb") }
    }

    /// Whether there are colours.
    #[must_use]
    pub fn has_color(self) -> bool {
        self.color
    }

    fn paint(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            _ if !self.color || text.is_empty() => return text.to_owned(),
            Ink::Good => "32",
            Ink::Look => "33",
            Ink::Bad => "31",
            Ink::Faint => "2",
            Ink::Head => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// A line that says what to do next.
    fn step(self, text: &str) -> String {
        self.paint(Ink::Look, &format!("→ {text}"))
    }
}

/// What a person is told when a command fails, without a line feed at the end.
#[must_use]
pub fn error(error: &Error) -> String {
    let mut out = format!("{}: {}", super::PROGRAM, text::visible(&error.to_string()));
    if let Some(hint) = error.advice() {
        out += "\nhint: ";
        out += &text::visible(hint);
    }
    out
}

/// How long that has been.
#[must_use]
pub fn since(then: OffsetDateTime, now: OffsetDateTime) -> String {
    span(seconds_since(then, now))
}

/// How far a hand-off has come; of one that was given up, why.
fn stage(listed: &Listed) -> String {
    match (listed.stage(), &listed.handoff.failed) {
        (Stage::Failed, Some(failed)) => text::one_line(failed.reason.word(), MAX_REASON),
        (stage, _) => stage.name().to_owned(),
    }
}

/// A length of time in its largest unit.
fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// How long it has been, nothing where the clock has gone back behind it.
fn seconds_since(then: OffsetDateTime, now: OffsetDateTime) -> u64 {
    u64::try_from((now - then).whole_seconds()).unwrap_or(0)
}

/// How long ago that was.
#[must_use]
pub fn ago(then: OffsetDateTime, now: OffsetDateTime) -> String {
    match seconds_since(then, now) {
        0 => "just now".to_owned(),
        seconds => format!("{} ago", span(seconds)),
    }
}

/// A time, and how long ago that was.
fn time_and_ago(then: OffsetDateTime, now: OffsetDateTime) -> String {
    format!("{}, {}", then.to_offset(time::UtcOffset::UTC).format(TIME).unwrap_or_default(), ago(then, now))
}

#[cfg(test)]
pub mod samples;

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn an_error_has_its_hint_on_a_line_of_its_own() {
        let plain = Error::failed("reading /x\x1b: no such file");
        assert_eq!(error(&plain), "anna-relay: reading /x␛: no such file");
        assert_eq!(error(&plain.hint("create it")), "anna-relay: reading /x␛: no such file\nhint: create it");
    }

    #[test]
    fn times_are_relative_in_their_largest_unit() {
        let now = datetime!(2026-11-30 12:00:00 UTC);
        for (then, expected) in [
            (datetime!(2026-11-30 12:00:00 UTC), "just now"),
            (datetime!(2026-11-30 13:00:00 UTC), "just now"),
            (datetime!(2026-11-30 11:59:01 UTC), "59 s ago"),
            (datetime!(2026-11-30 11:57:00 UTC), "3 min ago"),
            (datetime!(2026-11-29 10:00:00 UTC), "26 h ago"),
            (datetime!(2026-11-27 12:00:00 UTC), "3 days ago"),
        ] {
            assert_eq!(ago(then, now), expected);
        }
        assert_eq!(
            time_and_ago(datetime!(2026-11-30 13:59:00 +2), now),
            "2026-11-30 11:59:00 UTC, 60 s ago".replace("60 s", "1 min")
        );
    }

    #[test]
    fn colours_are_there_only_when_wanted() {
        assert_eq!(Style::PLAIN.step("x"), "→ x");
        assert_eq!(Style::COLORED.step("x"), "\x1b[33m→ x\x1b[0m");
        assert_eq!(Style::COLORED.paint(Ink::Bad, ""), "");
        assert_eq!(Style::detect(false), Style::PLAIN);
    }
}
