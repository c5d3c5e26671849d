//! What a session's own transcript proves: that the model has a message which was pushed to it.
//!
//! fakechat acknowledges nothing, but Claude Code writes each message that the model has into the session's transcript,
//! a file of JSON lines that only grows. [`mod@line`] reads one line, [`follow`] the file as it grows, [`locate`] finds it,
//! and [`issued`] tells the ids of this relay's own pushes from anybody else's.
//!
//! Everything here is a courtesy of Claude Code's, not a contract: what is missing, foreign or odd means "nothing
//! known". A message that shows was seen; silence proves nothing. All of it blocks (on a disk, never on a pipe or a
//! device), so call it where that is allowed.

pub mod follow;
pub mod issued;
pub mod line;
mod lines;
pub mod locate;
mod tag;

pub use follow::{Follower, Polled, Position};
pub use issued::Issuer;
pub use line::{Sighting, Way, read};
