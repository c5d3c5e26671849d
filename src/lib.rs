//! anna-relay: makes two long-running Claude Code sessions one assistant.

pub mod cli;
pub mod config;
pub mod control;
pub mod error;
pub mod handoff;
pub mod stream;
pub mod telemetry;
pub mod text;
