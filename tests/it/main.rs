//! The real program with doubles at its sides, by theme.

#![allow(clippy::unwrap_used)] // nothing here but tests

mod harness;
mod hooks;
mod round;
