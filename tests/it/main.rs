//! The real program with doubles at its sides, by theme.

#![allow(clippy::unwrap_used)] // nothing here but tests

mod commands;
mod commands_change;
mod control_socket;
mod crash;
mod demo;
mod disk;
mod each_side;
mod giving_up;
mod harness;
mod hooks;
mod hostile_spool;
mod long_text;
mod one_bridge;
mod private;
mod replies;
mod round;
