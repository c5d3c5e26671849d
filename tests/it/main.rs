//! The real program with doubles at its sides, by theme.

#![allow(clippy::unwrap_used)] // nothing here but tests

mod alarm;
mod breaker;
mod guard;
mod harness;
mod hooks;
mod nights;
mod reload;
mod round;
mod settling;
mod stop;
// The command that makes an actor fail is in test builds only.
#[cfg(debug_assertions)]
mod supervision;
