//! Sessions without a channel: one that came up while its predecessor's orphan held the port, or that lost its
//! fakechat. Nothing but a restart of that session mends it, so a person is told.
//!
//! Such a session is found by looking at all processes, so that is done only while the port is free, when it becomes
//! so and then rarely. And a session that is just starting looks the same, so it has to be found twice.

use std::time::Duration;

use actix::prelude::*;

use crate::config::Side;
use crate::handoff::SessionKey;
use crate::port::{Session, without_channel};

use super::OrphanReaper;

/// How long a session may take until its fakechat listens: 14 to 16 s were measured, and over 45 s under load.
const GRACE: Duration = Duration::from_secs(60);
/// How often it is looked for such a session while there was none.
const RARELY: Duration = Duration::from_secs(300);

/// What is known of such sessions on one port.
#[derive(Default)]
pub(super) struct Deaf {
    /// When to look next; none while the port is held.
    next: Option<Duration>,
    /// Those that were found once.
    suspects: Vec<SessionKey>,
    /// Those that were found twice.
    found: Vec<Session>,
    /// Those that were told of.
    told: Vec<SessionKey>,
}

impl Deaf {
    /// Whether it is time to look.
    fn due(&mut self, free: bool, now: Duration) -> bool {
        if !free {
            (self.next, self.suspects, self.found) = (None, Vec::new(), Vec::new());
            return false;
        }
        // The first look is at once: what was up by then, and still is a while later, will not get a channel.
        let due = self.next.is_none_or(|next| next <= now);
        if due {
            self.next = Some(now + grace());
        }
        due
    }

    /// Takes in what was found. Returns those to be told of.
    fn looked(&mut self, sessions: Vec<Session>, now: Duration) -> Vec<Session> {
        if self.next.is_none() {
            return Vec::new();
        }
        if sessions.is_empty() {
            self.next = Some(now + RARELY);
        }
        let suspects = std::mem::replace(&mut self.suspects, sessions.iter().map(Session::key).collect());
        self.found = sessions.into_iter().filter(|session| suspects.contains(&session.key())).collect();
        self.told.retain(|key| self.suspects.contains(key));
        let news: Vec<Session> =
            self.found.iter().filter(|session| !self.told.contains(&session.key())).cloned().collect();
        self.told.extend(news.iter().map(Session::key));
        news
    }

    /// Their process ids, for `status`.
    pub(super) fn shown(&self) -> Vec<u32> {
        self.found.iter().map(|session| session.pid).collect()
    }
}

impl OrphanReaper {
    /// Looks for sessions without a channel, if it is time to.
    pub(super) fn look_for_deaf(&mut self, side: Side, free: bool, ctx: &mut Context<Self>) {
        let now = self.wires.now().mono;
        if !self.port(side).deaf.due(free, now) {
            return;
        }
        let port = self.wires.config().relay.port(side);
        let looking = tokio::task::spawn_blocking(move || without_channel(port));
        ctx.spawn(looking.into_actor(self).map(move |found, act, ctx| {
            let sessions = match found {
                Ok(Ok(sessions)) => sessions,
                Ok(Err(error)) => return tracing::warn!(%error, "looking for sessions without a channel"),
                Err(_) => return,
            };
            let now = act.wires.now().mono;
            let news = act.port(side).deaf.looked(sessions, now);
            for session in &news {
                act.wires.stream.warn(&format!(
                    "a session that was started for the {side}'s port has no channel (pid {}, {}): its fakechat found the \
                     port taken, or ended; only a restart of that session mends it",
                    session.pid, session.command
                ));
            }
            if !news.is_empty() {
                act.sweep(side, ctx);
            }
        }));
    }
}

/// The grace; in test builds another can be given, so that no test waits for a minute.
fn grace() -> Duration {
    #[cfg(debug_assertions)]
    if let Some(millis) = std::env::var("ANNA_RELAY_TEST_GRACE_MS").ok().and_then(|millis| millis.parse().ok()) {
        return Duration::from_millis(millis);
    }
    GRACE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(pid: u32) -> Session {
        Session { pid, started: 1, command: "claude".to_owned() }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_session_that_is_still_there_after_the_grace_is_told_of_once() {
        let mut deaf = Deaf::default();
        assert!(deaf.due(true, at(10)));
        assert!(deaf.looked(vec![session(7)], at(10)).is_empty() && deaf.shown().is_empty());
        assert!(!deaf.due(true, at(69)) && deaf.due(true, at(70)));
        assert_eq!(deaf.looked(vec![session(7), session(8)], at(70)), [session(7)]);
        assert_eq!(deaf.shown(), [7]);
        assert!(deaf.due(true, at(130)));
        assert_eq!(deaf.looked(vec![session(7), session(8)], at(130)), [session(8)]);
        assert!(deaf.due(true, at(190)) && deaf.looked(vec![], at(190)).is_empty() && deaf.shown().is_empty());
        assert!(!deaf.due(true, at(489)) && deaf.due(true, at(490)), "while there is none, it is looked rarely");
    }

    #[test]
    fn one_whose_fakechat_came_up_meanwhile_is_not() {
        let mut deaf = Deaf::default();
        assert!(deaf.due(true, at(0)) && deaf.looked(vec![session(7)], at(0)).is_empty());
        assert!(!deaf.due(false, at(20)));
        assert!(deaf.looked(vec![session(7)], at(20)).is_empty(), "a look that was under way");
        assert!(deaf.due(true, at(100)) && deaf.looked(vec![session(7)], at(100)).is_empty());
    }
}
