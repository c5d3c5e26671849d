//! The protocol of fakechat, Claude Code's chat plugin: what goes in, what comes out, and a double of it.
//!
//! A side is one fakechat on one port of this machine. What the relay sends goes in by [`upload`] (HTTP POST);
//! what the session says comes out of the [`socket`] (a websocket) as a [`frame`], and a file with it is had by
//! [`download`]. [`server`] is a fakechat without a session, for tests and `demo`, with knobs for every fault
//! that the real one has shown.
//!
//! Four sentences to remember: a 204 is not delivery. An open websocket, even one that answers pings, is not a
//! live session. "sent" is not receipt. There is no replay.
//!
//! Nothing in here puts the text of a message into an error or a log.

pub mod connection;
pub mod download;
pub mod frame;
mod gate;
mod multipart;
#[cfg(test)]
mod peer;
pub mod server;
pub mod socket;
pub mod upload;

use std::net::{Ipv4Addr, SocketAddr};

/// Files pass in pieces of this many bytes, so that memory does not grow with the file.
const CHUNK: usize = 64 * 1024;

/// Where a fakechat on this port listens: on loopback only.
fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
