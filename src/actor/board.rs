//! What `status` shows, kept up to date by the actors: a query reads it and waits for nobody.

use time::OffsetDateTime;

use crate::config::{Config, Side};
use crate::control::wire::{ActorStatus, BreakerStatus, HolderStatus, SessionStatus, SideState, SideStatus, Status};
use crate::queue::Now;
use crate::spooler::Snapshot;

/// The board.
#[derive(Debug, Default)]
pub struct Board {
    /// The sides.
    pub sides: [SideBoard; 2],
    /// The queue.
    pub queue: Snapshot,
    /// When `queue` was put up.
    pub queue_at: std::time::Duration,
    /// The actors.
    pub actors: Vec<ActorStatus>,
}

/// A side on the board.
#[derive(Debug)]
pub struct SideBoard {
    /// Where the connection stands.
    pub state: SideState,
    /// Why it is not online.
    pub why: Option<String>,
    /// Since when it is in this state.
    pub since: Option<OffsetDateTime>,
    /// Who listens on the port.
    pub holder: Option<HolderStatus>,
    /// Whose fakechat it is.
    pub session: Option<SessionStatus>,
    /// How many frames made no sense.
    pub malformed: u64,
    /// How many frames were no concern of the relay's.
    pub passed_over: u64,
}

impl Default for SideBoard {
    fn default() -> Self {
        SideBoard {
            state: SideState::Offline,
            why: None,
            since: None,
            holder: None,
            session: None,
            malformed: 0,
            passed_over: 0,
        }
    }
}

impl Board {
    /// A side on it.
    pub fn side(&mut self, side: Side) -> &mut SideBoard {
        &mut self.sides[side as usize]
    }

    /// The document of `status`.
    #[must_use]
    pub fn status(&self, config: &Config, breaker: BreakerStatus, now: Now) -> Status {
        let since = now.mono.saturating_sub(self.queue_at);
        Status {
            running: true,
            pid: Some(std::process::id()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: Some(now.mono.as_secs()),
            paused: self.queue.paused.clone(),
            breaker,
            brain: self.side_status(config, Side::Brain),
            bot: self.side_status(config, Side::Bot),
            queue: self.queue.counts,
            recovering: !self.queue.counted,
            oldest_waiting_s: self.queue.oldest_waiting.map(|waited| (waited + since).as_secs()),
            alarms: self.queue.alarms,
            actors: self.actors.clone(),
        }
    }

    fn side_status(&self, config: &Config, side: Side) -> SideStatus {
        let shown = &self.sides[side as usize];
        SideStatus {
            port: config.relay.port(side),
            state: shown.state,
            why: shown.why.clone(),
            since: shown.since,
            holder: shown.holder.clone(),
            session: shown.session.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_all_is_counted_it_says_that_it_is_not() {
        let env = crate::config::Env { home: Some("/home/anna".into()), ..Default::default() };
        let config = Config::parse("", std::path::Path::new("anna.toml"), &env).unwrap();
        let now = Now { mono: std::time::Duration::ZERO, wall: OffsetDateTime::UNIX_EPOCH };
        let recovering = |board: &Board| board.status(&config, BreakerStatus::default(), now).recovering;
        let mut board = Board::default();
        assert!(recovering(&board));
        board.queue.counted = true;
        assert!(!recovering(&board));
    }
}
