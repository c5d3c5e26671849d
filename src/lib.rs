//! anna-relay: makes two long-running Claude Code sessions one assistant.

pub mod actor;
pub mod cli;
pub mod config;
pub mod control;
pub mod daemon;
pub mod error;
pub mod fakechat;
pub mod guard;
pub mod handoff;
pub mod message;
pub mod port;
pub mod queue;
pub mod side;
pub mod spool;
pub mod spooler;
pub mod stream;
pub mod telemetry;
pub mod text;
