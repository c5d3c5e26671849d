//! What each command takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{age, seconds, side, states};
use crate::config::Side;
use crate::handoff::life::State;

/// That a query is answered with one JSON document.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Json {
    /// Print one JSON document instead
    #[arg(long)]
    pub json: bool,
}

/// `status`
#[derive(Clone, Debug, Args)]
pub struct Status {
    /// Exit with 1 when something needs a look, and say what: a side is away (the brain may be while paused), the
    /// breaker tripped, an alarm is open. A pause alone does not count
    #[arg(long)]
    pub check: bool,
    /// How it is answered.
    #[command(flatten)]
    pub output: Json,
}

/// `list`
#[derive(Clone, Debug, Args)]
pub struct List {
    /// Only those in this state; may be given more than once
    #[arg(long = "state", value_name = "STATE", value_parser = states(&State::ALL))]
    pub states: Vec<State>,
    /// At most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// The done ones too
    #[arg(long)]
    pub all: bool,
    /// How it is answered.
    #[command(flatten)]
    pub output: Json,
}

/// `show`
#[derive(Clone, Debug, Args)]
pub struct Show {
    /// Which one.
    #[command(flatten)]
    pub which: Id,
    /// How it is answered.
    #[command(flatten)]
    pub output: Json,
}

/// A hand-off, as a person names it.
#[derive(Clone, Debug, Args)]
pub struct Id {
    /// The hand-off: its id, or 4 or more characters that only this one begins or ends with (`list` shows the last 8)
    #[arg(value_name = "ID")]
    pub id: String,
}

/// `send`
#[derive(Clone, Debug, Args)]
pub struct Send {
    /// What is to be done, in quotes; - reads it from standard input. It may be missing where there is a --file
    #[arg(value_name = "TEXT", required_unless_present = "files")]
    pub text: Option<String>,
    /// A file to send along; may be given more than once
    #[arg(long = "file", value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Wait for the result and print it too
    #[arg(long)]
    pub wait: bool,
    /// Wait this many seconds at most; it means --wait too
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// How it is answered.
    #[command(flatten)]
    pub output: Json,
}

/// `pause`
#[derive(Clone, Debug, Args)]
pub struct Pause {
    /// Why, for whoever looks
    #[arg(long, value_name = "T")]
    pub reason: Option<String>,
}

/// `prune`
#[derive(Clone, Debug, Args)]
pub struct Prune {
    /// Only those made longer ago than this: 30d, 12h, 45m or 90s
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub older_than: Duration,
    /// Only those in this state; may be given more than once [default: both]
    #[arg(long = "state", value_name = "STATE", value_parser = states(&[State::Done, State::Failed]))]
    pub states: Vec<State>,
    /// Only say what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    /// How it is answered.
    #[command(flatten)]
    pub output: Json,
}

/// `clear-port`
#[derive(Clone, Debug, Args)]
pub struct ClearPort {
    /// Whose port
    #[arg(value_name = "SIDE", value_parser = side())]
    pub side: Side,
    /// Only say who holds it
    #[arg(long)]
    pub dry_run: bool,
    /// How it is answered.
    #[command(flatten)]
    pub output: Json,
}

/// `hook`
#[derive(Clone, Debug, Args)]
pub struct Hook {
    /// Whose session it is
    #[arg(value_name = "SIDE", value_parser = side())]
    pub side: Side,
}

/// `launch`
#[derive(Clone, Debug, Args)]
pub struct Launch {
    /// Which one
    #[arg(value_name = "SIDE", value_parser = side())]
    pub side: Side,
    /// Only print the command line, and say what stands in its way
    #[arg(long)]
    pub dry_run: bool,
    /// What `claude` gets besides, before the launcher's own; a prompt perhaps
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

/// `stream`
#[derive(Clone, Debug, Args)]
pub struct Stream {
    /// Only the last N lines [default: all of them, with -f the last 10]
    #[arg(short = 'n', long = "lines", value_name = "N")]
    pub lines: Option<usize>,
    /// Go on with new lines as they come, until interrupted
    #[arg(short = 'f', long)]
    pub follow: bool,
}

/// `check`
#[derive(Clone, Debug, Args)]
pub struct Check {
    /// How it is answered.
    #[command(flatten)]
    pub output: Json,
}

/// `setup`
#[derive(Clone, Copy, Debug, Args)]
pub struct Setup {
    /// Only show what would be done and changed
    #[arg(long)]
    pub dry_run: bool,
    /// Let the bot run anna-relay's status, list, show and cancel unasked; it stays so until --undo
    #[arg(long, conflicts_with = "undo")]
    pub bot_commands: bool,
    /// Take back what setup did
    #[arg(long)]
    pub undo: bool,
}

/// `doctor`
#[derive(Clone, Debug, Args)]
pub struct Doctor {
    /// Hold the permissions in this settings file too against the rules for the bot; may be given more than once
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub settings: Vec<PathBuf>,
    /// How it is answered.
    #[command(flatten)]
    pub output: Json,
}

/// `completions`
#[derive(Clone, Debug, Args)]
pub struct Completions {
    /// For which shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// `man`
#[derive(Clone, Debug, Args)]
pub struct Man {
    /// The folder to write the pages to, one for each command
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}
