//! The control socket: how `anna-relay status` and the other commands talk to a running bridge.

pub mod client;
pub mod request;
pub mod room;
pub mod server;
pub mod wire;
