//! anna-relay: makes two long-running Claude Code sessions one assistant.

pub mod config;
pub mod control;
pub mod error;
pub mod handoff;
pub mod port;

// Moves to `cli` with the other commands.
#[path = "cli/clear_port.rs"]
pub mod clear_port;
