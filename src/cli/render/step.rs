//! What to do where something is wrong, in the same words wherever it is said.

use crate::cli::starter::Starter;
use crate::config::{Config, Side};
use crate::control::wire::{Activity, SideState, SideStatus};
use crate::text::on_one_line;

/// What to do where the relay is paused.
pub const RESUME: &str = "when the brain is back: anna-relay resume";

/// What to do where no bridge runs, one after the other.
#[must_use]
pub fn start(config: &Config, starter: Starter) -> Vec<String> {
    let file = config.file.display().to_string();
    let enable = format!("first set relay.enabled = true in {}", on_one_line(&file));
    let start = format!("start it: {}", starter.start());
    if config.relay.enabled { vec![start] } else { vec![enable, start] }
}

/// What to do about a side, where there is something.
#[must_use]
pub fn side(name: Side, side: &SideStatus) -> Option<String> {
    match side.state {
        // Where a session is there, starting another one is no help.
        SideState::Offline if side.why.as_deref().is_some_and(says_what_to_do) => None,
        SideState::Offline if side.why.as_deref().is_some_and(says_it_is_none) => Some(end_or_move(name, side)),
        SideState::Offline => Some(format!(
            "start the {name}'s session, with its fakechat on port {}: anna-relay launch {name}",
            side.port
        )),
        SideState::Orphan => Some(format!("the bridge ends it; should that fail: anna-relay clear-port {name}")),
        SideState::Foreign if side.holder.is_none() && side.why.as_deref().is_some_and(says_what_to_do) => None,
        SideState::Foreign => Some(end_or_move(name, side)),
        SideState::Connecting | SideState::Settling => None,
        SideState::Online => waits(side).then(|| format!("answer it in the {name}'s own window")),
    }
}

/// What to do about one that is no fakechat, or nobody's.
fn end_or_move(name: Side, side: &SideStatus) -> String {
    let holder = side.holder.as_ref();
    let who = holder.map(|holder| format!("pid {} ({})", holder.pid, on_one_line(&holder.command)));
    format!("end {}, or give relay.{name}_port another port", who.unwrap_or_else(|| "what holds it".to_owned()))
}

/// Why it is not online, without what [`side`](fn@side) says better.
#[must_use]
pub fn why(side: &SideStatus) -> Option<&str> {
    let why = side.why.as_deref()?;
    match side.state {
        // Why it was not connected before is of no concern now.
        SideState::Online | SideState::Settling => None,
        SideState::Foreign if side.holder.is_some() && says_what_to_do(why) => {
            Some(why.rsplit_once(": end ").map_or(why, |(why, _)| why))
        }
        _ => Some(why),
    }
}

/// Whether its session waits for a person.
#[must_use]
pub fn waits(side: &SideStatus) -> bool {
    side.session.as_ref().is_some_and(|session| session.status == Some(Activity::Waiting))
}

/// Whether the reason is that what answers at the port is no fakechat.
fn says_it_is_none(why: &str) -> bool {
    why.starts_with("refused with HTTP status") || why.starts_with("not a websocket")
}

/// Whether the reason ends with what to do about it.
fn says_what_to_do(why: &str) -> bool {
    why.contains("restart it") || why.contains("relay.holder") || why.ends_with("to another port")
}
