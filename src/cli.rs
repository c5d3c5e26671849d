//! The command line: what can be typed. One file a command; what they print is put together in [`render`].

pub mod args;
pub mod change;
pub mod check;
pub mod clear_port;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod external;
pub mod help;
pub mod hindrance;
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
pub mod starter;
pub mod status;
pub mod stream;
pub mod usage;
pub mod values;

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

pub use args::{
    Check, ClearPort, Completions, Doctor, Hook, Id, Json, Launch, List, Man, Pause, Prune, Send, Setup, Show, Status,
    Stream,
};

/// The name of the program.
pub const PROGRAM: &str = "anna-relay";

/// Makes two Claude Code sessions one assistant: brings work from the bot to the brain, and the results back.
#[derive(Clone, Debug, Parser)]
#[command(name = PROGRAM, version, propagate_version = true, arg_required_else_help = true)]
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

/// The whole command line, for completions and man pages.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests;
