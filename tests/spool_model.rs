//! The spool and the queue against a disk that stops, fails and forgets what was not synced.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that failed")]

#[path = "spool_model/check.rs"]
mod check;
#[path = "spool_model/crash_points.rs"]
mod crash_points;
#[path = "spool_model/faults.rs"]
mod faults;
#[path = "spool_model/ledger.rs"]
mod ledger;
#[path = "spool_model/model.rs"]
mod model;
#[path = "spool_model/sim.rs"]
mod sim;
#[path = "spool_model/transitions.rs"]
mod transitions;
#[path = "spool_model/world.rs"]
mod world;
