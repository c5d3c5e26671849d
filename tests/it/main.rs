//! The real program with doubles at its sides, by theme.

#![allow(clippy::unwrap_used)] // nothing here but tests

mod alarm;
mod breaker;
mod claude;
mod commands;
mod commands_change;
mod control_socket;
mod crash;
mod demo;
mod disk;
mod each_side;
mod files;
mod giving_up;
mod guard;
mod harness;
mod hooks;
mod hostile_spool;
mod long_text;
mod nights;
mod one_bridge;
mod private;
mod receipts;
mod recovering;
mod reload;
mod replies;
mod round;
mod settling;
mod start;
mod stop;
mod supervision;
mod witness;
mod witness_falls;
