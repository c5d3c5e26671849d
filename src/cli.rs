//! The command line: what can be typed. One file a command; what they print is put together in [`render`].

pub mod change;
pub mod check;
pub mod clear_port;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod external;
pub mod hook;
pub mod launch;
pub mod list;
pub mod man;
pub mod manage;
pub mod out;
pub mod render;
pub mod run;
pub mod send;
pub mod setup;
pub mod status;
pub mod stream;
pub mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::config::Side;
use crate::handoff::life::State;
use values::{age, seconds, side, states};

/// The name of the program.
pub const PROGRAM: &str = "anna-relay";

/// Makes two Claude Code sessions one assistant: brings work from the bot to the brain, and the results back.
#[derive(Clone, Debug, Parser)]
#[command(name = PROGRAM, version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Examples:
  anna-relay status
  anna-relay send \"look whether the backup of last night is whole\" --wait
  anna-relay stream -f

Begin with `anna-relay demo`: it needs neither Claude nor a configuration.")]
pub struct Cli {
    /// The configuration to use [default: $ANNA_CONFIG, else anna/anna.toml in $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, global = true, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run the relay in the foreground, as the systemd unit does
    Bridge,
    /// Show how things stand
    Status(Status),
    /// List hand-offs, the newest first; without --all not the done ones
    List(List),
    /// Show one hand-off, whole, with its history
    Show(Show),
    /// Give the brain something to do; prints the id
    Send(Send),
    /// The brain is wrapping up: hand-offs wait
    Pause(Pause),
    /// The brain is back: what waits goes to it
    Resume,
    /// Give a failed hand-off fresh attempts, push a waiting or unanswered one again
    Retry(Id),
    /// Give a hand-off up; one already pushed is taken back from the brain in words
    Cancel(Id),
    /// Delete old done and failed hand-offs with their files
    Prune(Prune),
    /// Let the bot's hand-offs in again after the breaker has tripped
    ResetBreaker,
    /// Before a launch: end an orphaned fakechat that holds the port of a side
    ClearPort(ClearPort),
    /// Start the Claude Code session of a side, with its channel and its port
    Launch(Launch),
    /// Show the stream, Anna's running record of events
    Stream(Stream),
    /// Check the configuration and print it with the defaults filled in
    Check(Check),
    /// See it work without Claude: one hand-off there and back between two built-in fakechats
    Demo,
    /// Give the two sessions their fakechat and their settings; safe to run twice, and undoable
    Setup(Setup),
    /// Look whether all is well, from the programs to the permissions
    Doctor(Doctor),
    /// Take in what a Claude Code hook tells; the sessions' settings call it
    Hook(Hook),
    /// Print shell completions
    Completions(Completions),
    /// Print the man page, or write one for each command
    Man(Man),
}

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
    /// Exit with 1 when something needs a look: a side is away, the breaker tripped, an alarm is open
    #[arg(long)]
    pub check: bool,
    /// How it is answered.
    #[command(flatten)]
    pub output: Json,
}

/// `list`
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  anna-relay list --state failed
  anna-relay list --all --limit 20 --json")]
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
    /// The hand-off: its id, or 4 or more of the characters it begins or ends with
    #[arg(value_name = "ID")]
    pub id: String,
}

/// `send`
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  anna-relay send \"how full are the disks?\" --wait --timeout 600
  journalctl -b -p err | anna-relay send - --file report.pdf

It works without a running bridge too: the hand-off waits for it. The result goes to the bot like any other.
Exit status 124: --timeout passed; the hand-off stays.")]
pub struct Send {
    /// What is to be done; - reads it from standard input
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// A file to send along; may be given more than once
    #[arg(long = "file", value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Wait for the result and print it too
    #[arg(long)]
    pub wait: bool,
    /// Wait this many seconds at most
    #[arg(long, value_name = "S", requires = "wait", value_parser = seconds)]
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
#[command(after_help = "Examples:
  anna-relay prune --older-than 30d --dry-run
  anna-relay prune --older-than 12h --state failed")]
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
#[command(after_help = "Exit status: 0 the port is free, or was cleared; 4 a live session holds it;
5 something that is not fakechat holds it; 1 it could not be cleared.")]
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
#[command(after_help = "It reads the hook's JSON from standard input, prints nothing, and always exits with 0;
with ANNA_LOG=debug it says on standard error what it did. The settings that call it are in contrib/claude.")]
pub struct Hook {
    /// Whose session it is
    #[arg(value_name = "SIDE", value_parser = side())]
    pub side: Side,
}

/// `launch`
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  anna-relay launch brain
  anna-relay launch bot -- --model haiku --continue
  anna-relay launch bot --dry-run

It ends an orphaned fakechat that holds the side's port, sets FAKECHAT_PORT, takes variables that
switch channels off out of the environment, and becomes `claude`, with the settings that
`anna-relay setup` wrote. Of two launches at once the second waits for the first.
Exit status: 4 a live session holds the port; 5 something that is not fakechat holds it.")]
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
#[command(after_help = "Examples:
  anna-relay setup --dry-run
  anna-relay setup --bot-commands
  anna-relay setup --undo

It works in $CLAUDE_CONFIG_DIR, else ~/.claude. A file that is not valid JSON is left alone.")]
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
#[command(after_help = "Examples:
  anna-relay doctor
  anna-relay doctor --settings ~/other-bot/settings.json --json

Exit status: 1 when something is broken or unsafe; a mere warning leaves it 0.")]
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
#[command(after_help = "Examples:
  anna-relay completions bash > ~/.local/share/bash-completion/completions/anna-relay")]
pub struct Completions {
    /// For which shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// `man`
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  anna-relay man | man -l -
  anna-relay man ~/.local/share/man/man1")]
pub struct Man {
    /// The folder to write the pages to, one for each command
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// The whole command line, for completions and man pages.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        Cli::try_parse_from(line.split(' ')).map(|cli| cli.command)
    }

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn what_the_contract_names_is_taken() {
        for line in [
            "anna-relay bridge --config x",
            "anna-relay --config x status --check --json",
            "anna-relay list --state new --state failed --limit 3 --all --json",
            "anna-relay show 90ab --json",
            "anna-relay send - --file a --file b --wait --timeout 1.5 --json",
            "anna-relay send -- -5",
            "anna-relay pause --reason night",
            "anna-relay pause",
            "anna-relay resume",
            "anna-relay retry 90ab",
            "anna-relay cancel 90ab",
            "anna-relay prune --older-than 30d --state done --dry-run --json",
            "anna-relay reset-breaker",
            "anna-relay clear-port brain --dry-run --json",
            "anna-relay clear-port bot",
            "anna-relay launch brain",
            "anna-relay launch bot --dry-run --model haiku",
            "anna-relay stream -n 3 -f",
            "anna-relay stream -n0",
            "anna-relay check --json",
            "anna-relay demo",
            "anna-relay setup",
            "anna-relay setup --dry-run --bot-commands",
            "anna-relay setup --undo --dry-run",
            "anna-relay doctor --json --settings a --settings b",
            "anna-relay hook brain",
            "anna-relay hook bot",
            "anna-relay completions fish",
            "anna-relay man",
            "anna-relay man dir",
        ] {
            if let Err(error) = parse(line) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error() {
        for line in [
            "anna-relay",
            "anna-relay frobnicate",
            "anna-relay show",
            "anna-relay list --state corrupt",
            "anna-relay prune",
            "anna-relay prune --older-than 30",
            "anna-relay prune --older-than -1d",
            "anna-relay prune --older-than +1d",
            "anna-relay prune --older-than 30µ",
            "anna-relay prune --older-than 999999999999999999d",
            "anna-relay prune --older-than 1d --state new",
            "anna-relay clear-port both",
            "anna-relay launch",
            "anna-relay send x --timeout 5",
            "anna-relay send x --wait --timeout nan",
            "anna-relay send x --wait --timeout -1",
            "anna-relay send x --wait --timeout 1e18",
            "anna-relay prune --older-than 40000d",
            "anna-relay stream -n x",
            "anna-relay setup --undo --bot-commands",
        ] {
            assert_eq!(parse(line).expect_err(line).exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn values_are_taken_as_meant() {
        let Ok(Command::Prune(prune)) = parse("anna-relay prune --older-than 12h --state failed") else { panic!() };
        assert_eq!((prune.older_than, prune.states), (Duration::from_secs(43_200), vec![State::Failed]));
        let Ok(Command::ClearPort(clear)) = parse("anna-relay clear-port brain") else { panic!() };
        assert_eq!(clear.side, Side::Brain);
        for (line, dry_run, args) in [
            ("launch bot --dry-run --model haiku --dry-run", true, "--model haiku --dry-run"),
            ("launch bot hello -c", false, "hello -c"),
            ("launch bot -- --dry-run", false, "--dry-run"),
            ("launch bot -c -- hello", false, "-c -- hello"),
        ] {
            let Ok(Command::Launch(launch)) = parse(&format!("anna-relay {line}")) else { panic!("{line}") };
            let given: Vec<_> = launch.args.iter().map(|arg| arg.to_string_lossy()).collect();
            assert_eq!((launch.dry_run, given.join(" ")), (dry_run, args.to_owned()), "{line}");
        }
        let Ok(Command::Send(send)) = parse("anna-relay send x --wait --timeout 0.5") else { panic!() };
        assert_eq!(send.timeout, Some(Duration::from_millis(500)));
    }
}
