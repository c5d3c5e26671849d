//! The control socket: how `anna-relay status` and the other commands talk to a running bridge.

pub mod wire;
