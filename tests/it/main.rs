//! The real program with doubles at its sides, by theme.

mod harness;
mod hooks;
mod round;
