//! What is measured, a function each. Every floor is taken between the figures that it is held against.

mod ask;
mod binary;
mod durable;
mod files;
mod flood;
mod handoffs;
mod idle;
mod night;
mod rounds;
mod start;

pub use idle::{SLEEPER, sleeper};

use crate::Run;

/// Measures something, and adds its rows.
pub type Measure = fn(&mut Run);

/// All of it, by the names that `--only` knows.
pub const ALL: &[(&str, Measure)] = &[
    ("one_at_a_time", handoffs::one_at_a_time),
    ("stream", handoffs::stream),
    ("round", rounds::rounds),
    ("file", files::files),
    ("night", night::night),
    ("flood_bot", flood::bot_floods),
    ("flood_brain", flood::brain_floods),
    ("start", start::start),
    ("status", ask::status),
    ("list", ask::list),
    ("idle", idle::idle),
    ("binary", binary::binary),
    ("durable", durable::durable),
];
