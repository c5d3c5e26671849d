//! The actors: thin shells that own a mailbox, a timer and one resource each, call the pure part, and carry out what
//! it decides. `actors.md` has the tables.

pub mod board;
pub mod bot_side;
pub mod brain_side;
pub mod control;
pub mod guard;
pub mod intake;
pub mod orphan_reaper;
pub mod queue;
pub mod side;
pub mod supervisor;
pub mod wires;
pub mod witness;
