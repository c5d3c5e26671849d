//! Every key of `anna.toml` that the relay knows: one table for checking, for `anna-relay check` and for the
//! test that holds `config/anna.toml` to it.

use std::fmt;

/// A key.
#[derive(Debug)]
pub struct Key {
    /// The section it is in.
    pub section: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// What holds without it, as TOML.
    pub default: &'static str,
    /// What it must be.
    pub shape: Shape,
    /// Why one would change it, in a line.
    pub why: &'static str,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.name)
    }
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// A whole number in this range.
    Whole(i64, i64),
    /// A number from 0 to this.
    FromZero(f64),
    /// A number above 0, up to this.
    AboveZero(f64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of one or more words without white space.
    Words,
    /// An absolute path, or one that starts with `~/`.
    Path,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Bool => f.write_str("true or false"),
            Shape::Whole(min, max) => write!(f, "a whole number from {min} to {max}"),
            Shape::FromZero(max) => write!(f, "a number from 0 to {max}"),
            Shape::AboveZero(max) => write!(f, "a number above 0, up to {max}"),
            Shape::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                f.write_str(&words.join(" or "))
            }
            Shape::Words => f.write_str("a list of one or more texts without white space"),
            Shape::Path => f.write_str("an absolute path, or one that starts with ~/"),
        }
    }
}

/// A port that a process can listen on.
const PORT: Shape = Shape::Whole(1, 65_535);
/// A day in seconds: nothing that is waited for in seconds takes longer.
const DAY_S: f64 = 86_400.0;
/// A year in minutes: an alarm that far off is none.
const YEAR_MIN: f64 = 525_600.0;
/// Each push in the breaker's window is remembered: a bound for the memory, far above any use.
const MAX_BREAKER_COUNT: i64 = 10_000;
/// Each attempt is kept in the hand-off's file: a bound for its size, far above any use.
const MAX_ATTEMPTS: i64 = 1_000;
/// A minute in milliseconds: a push is not confirmed for longer, for the next one waits behind it.
const MAX_CONFIRM_MS: i64 = 60_000;
/// 64 MiB in KiB: fakechat refuses more than 128 MiB.
const MAX_INLINE_KIB: i64 = 65_536;

/// Every key, in the order of the file.
pub const KEYS: &[Key] = &[
    Key {
        section: "paths",
        name: "state",
        default: r#""~/.local/state/anna""#,
        shape: Shape::Path,
        why: "Anna's state, the spool among it; $XDG_STATE_HOME/anna where that variable is set",
    },
    Key {
        section: "paths",
        name: "stream",
        default: r#""~/.local/state/anna/stream.log""#,
        shape: Shape::Path,
        why: "the running record of events; stream.log in paths.state unless said otherwise",
    },
    Key {
        section: "relay",
        name: "enabled",
        default: "false",
        shape: Shape::Bool,
        why: "the bridge refuses to start until this is true, so that nothing runs unasked",
    },
    Key {
        section: "relay",
        name: "brain_port",
        default: "8788",
        shape: PORT,
        why: "the port of the brain's fakechat; it must differ from the bot's",
    },
    Key { section: "relay", name: "bot_port", default: "8789", shape: PORT, why: "the port of the bot's fakechat" },
    Key {
        section: "relay",
        name: "settle_s",
        default: "5",
        shape: Shape::FromZero(DAY_S),
        why: "seconds a websocket must be up before it is trusted, since a fakechat is deaf at first",
    },
    Key {
        section: "relay",
        name: "alarm_min",
        default: "30",
        shape: Shape::AboveZero(YEAR_MIN),
        why: "minutes without a result, pauses not counted, before a hand-off gets its warning in the stream",
    },
    Key {
        section: "relay",
        name: "breaker_count",
        default: "5",
        shape: Shape::Whole(1, MAX_BREAKER_COUNT),
        why: "more of the bot's hand-offs than this in the window stop the intake, in case the two talk in circles",
    },
    Key {
        section: "relay",
        name: "breaker_window_s",
        default: "120",
        shape: Shape::AboveZero(DAY_S),
        why: "that window, in seconds",
    },
    Key {
        section: "relay",
        name: "holder",
        default: r#""session""#,
        shape: Shape::Word(&["session", "any"]),
        why: "deal only with a fakechat of a live session of this user; \"any\": with whatever holds the port, for demos and containers",
    },
    Key {
        section: "relay",
        name: "confirm_ms",
        default: "500",
        shape: Shape::Whole(0, MAX_CONFIRM_MS),
        why: "milliseconds the websocket must outlive a push, since a dying fakechat takes one and drops it",
    },
    Key {
        section: "relay",
        name: "max_attempts",
        default: "5",
        shape: Shape::Whole(1, MAX_ATTEMPTS),
        why: "pushes of one hand-off before it is given up",
    },
    Key {
        section: "relay",
        name: "inline_kib",
        default: "64",
        shape: Shape::Whole(1, MAX_INLINE_KIB),
        why: "text longer than this many KiB travels as a file, so that it does not fill a session's context",
    },
    Key {
        section: "relay",
        name: "brain_channels",
        default: r#"["plugin:fakechat@claude-plugins-official"]"#,
        shape: Shape::Words,
        why: "what the launcher passes to the brain's --channels",
    },
    Key {
        section: "relay",
        name: "bot_channels",
        default: r#"["plugin:fakechat@claude-plugins-official", "plugin:telegram@claude-plugins-official"]"#,
        shape: Shape::Words,
        why: "what the launcher passes to the bot's --channels",
    },
];

/// The sections that are the relay's own.
pub const SECTIONS: [&str; 2] = ["paths", "relay"];

/// The key of that name in that section.
#[must_use]
pub fn find(section: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.section == section && key.name == name)
}

/// The name in that section that is most like `name`, where one is.
#[must_use]
pub fn nearest(section: &str, name: &str) -> Option<&'static str> {
    /// Below this likeness (0 to 1) the guess would only confuse.
    const LIKE: f64 = 0.7;
    most_like(name, KEYS.iter().filter(|key| key.section == section).map(|key| key.name), LIKE)
}

/// The section of ours that one of that name was most likely to be.
#[must_use]
pub fn nearest_section(name: &str) -> Option<&'static str> {
    /// Higher than for a key: most sections are another tool's.
    const LIKE: f64 = 0.9;
    most_like(name, SECTIONS.into_iter(), LIKE)
}

fn most_like(name: &str, known: impl Iterator<Item = &'static str>, least: f64) -> Option<&'static str> {
    known
        .map(|known| (strsim::jaro_winkler(known, &name.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness >= least)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}
