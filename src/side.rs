//! The connection to a side, as a state machine: pure, both sides use it.
//!
//! | state | event | next state | to do |
//! |---|---|---|---|
//! | waiting | its time has come | connecting | connect |
//! | connecting | connected | settling | – |
//! | connecting | failed | waiting, longer each time | – |
//! | settling | up for `settle` | online; the next wait is short again | – |
//! | settling, online | lost | waiting | – |
//!
//! Settling is counted anew for each websocket, so flapping never adds up (`spec.md`, "Settling").

use std::time::Duration;

use crate::control::wire::SideState;

/// The wait before a first try to connect again.
const MIN_WAIT: Duration = Duration::from_millis(250);
/// The longest wait.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Where the connection stands. Times are by a clock that neither jumps nor counts sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Waiting { until: Duration },
    Connecting,
    Settling { since: Duration },
    Online,
}

/// What happened to the connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// The websocket is up.
    Connected,
    /// It did not come up, or is down again, and why.
    Lost(String),
}

/// The connection to a side.
#[derive(Clone, Debug)]
pub struct Connection {
    phase: Phase,
    settle: Duration,
    /// How often in a row it did not last until it was settled.
    failures: u32,
    why: Option<String>,
}

impl Connection {
    /// A connection that is to be made at once.
    #[must_use]
    pub fn new(settle: Duration) -> Self {
        Connection { phase: Phase::Waiting { until: Duration::ZERO }, settle, failures: 0, why: None }
    }

    /// The configuration was read again.
    pub fn set_settle(&mut self, settle: Duration) {
        self.settle = settle;
    }

    /// Takes an event. `chance` in 0..1 spreads the waits, so that not all come back at one moment. Returns whether
    /// the websocket is to be opened now.
    #[must_use]
    pub fn step(&mut self, input: Input, now: Duration, chance: f64) -> bool {
        match (input, self.phase) {
            (Input::Tick, Phase::Waiting { until }) if until <= now => {
                self.phase = Phase::Connecting;
                return true;
            }
            (Input::Tick, Phase::Settling { since }) if now.saturating_sub(since) >= self.settle => {
                self.phase = Phase::Online;
                self.failures = 0;
            }
            (Input::Connected, Phase::Connecting) => {
                self.phase = Phase::Settling { since: now };
                // Nothing stands in its way any more but time.
                self.why = None;
            }
            (Input::Lost(why), Phase::Connecting | Phase::Settling { .. } | Phase::Online) => {
                self.why = Some(why);
                self.failures += 1;
                self.phase = Phase::Waiting { until: now + wait(self.failures, chance) };
            }
            _ => {}
        }
        false
    }

    /// When time alone changes something.
    #[must_use]
    pub fn wake_at(&self) -> Option<Duration> {
        match self.phase {
            Phase::Waiting { until } => Some(until),
            Phase::Settling { since } => Some(since + self.settle),
            Phase::Connecting | Phase::Online => None,
        }
    }

    /// Whether it may be pushed to.
    #[must_use]
    pub fn is_online(&self) -> bool {
        self.phase == Phase::Online
    }

    /// Whether the websocket is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Settling { .. } | Phase::Online)
    }

    /// The word for it in `status`.
    #[must_use]
    pub fn state(&self) -> SideState {
        match self.phase {
            Phase::Waiting { .. } => SideState::Offline,
            Phase::Connecting => SideState::Connecting,
            Phase::Settling { .. } => SideState::Settling,
            Phase::Online => SideState::Online,
        }
    }

    /// Why it is not online.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

/// The wait after so many failures in a row: doubling, between three quarters of it and the whole.
fn wait(failures: u32, chance: f64) -> Duration {
    let whole = (MIN_WAIT * 2_u32.pow(failures.saturating_sub(1).min(8))).min(MAX_WAIT);
    whole.mul_f64(0.75 + 0.25 * chance.clamp(0.0, 1.0)).max(MIN_WAIT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SETTLE: Duration = Duration::from_secs(5);

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn lost() -> Input {
        Input::Lost("gone".into())
    }

    #[test]
    fn it_is_online_only_after_settling() {
        let mut c = Connection::new(SETTLE);
        assert!(c.step(Input::Tick, at(0), 0.5));
        assert_eq!(c.state(), SideState::Connecting);
        assert!(!c.step(Input::Connected, at(10), 0.5));
        assert!(!c.step(Input::Tick, at(5_009), 0.5));
        assert_eq!((c.state(), c.is_up(), c.is_online()), (SideState::Settling, true, false));
        assert_eq!(c.wake_at(), Some(at(5_010)));
        assert!(!c.step(Input::Tick, at(5_010), 0.5));
        assert_eq!((c.state(), c.is_online(), c.wake_at()), (SideState::Online, true, None));
    }

    #[test]
    fn flapping_never_adds_up() {
        let mut c = Connection::new(SETTLE);
        let mut now = Duration::ZERO;
        for _ in 0..50 {
            now = c.wake_at().unwrap().max(now);
            assert!(c.step(Input::Tick, now, 1.0));
            assert!(!c.step(Input::Connected, now, 1.0));
            now += at(4_900);
            assert!(!c.step(Input::Tick, now, 1.0));
            assert!(!c.is_online());
            assert!(!c.step(lost(), now, 1.0));
        }
    }

    #[test]
    fn waits_grow_to_five_seconds_and_are_short_again_once_settled() {
        let mut c = Connection::new(SETTLE);
        let mut waits = Vec::new();
        let mut now = Duration::ZERO;
        for _ in 0..8 {
            assert!(c.step(Input::Tick, now, 1.0));
            assert!(!c.step(lost(), now, 1.0));
            let next = c.wake_at().unwrap();
            waits.push((next - now).as_millis());
            now = next;
        }
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
        assert_eq!(c.why(), Some("gone"));
        assert!(c.step(Input::Tick, now, 1.0) && !c.step(Input::Connected, now, 1.0));
        assert_eq!(c.why(), None, "it settles");
        now += SETTLE;
        assert!(!c.step(Input::Tick, now, 1.0) && c.is_online());
        assert!(!c.step(lost(), now, 1.0));
        assert_eq!(c.wake_at(), Some(now + at(250)));
    }

    #[test]
    fn no_settling_time_means_online_at_the_next_tick() {
        let mut c = Connection::new(Duration::ZERO);
        assert!(c.step(Input::Tick, at(0), 0.5) && !c.step(Input::Connected, at(0), 0.5));
        assert!(!c.step(Input::Tick, at(0), 0.5) && c.is_online());
    }

    proptest! {
        #[test]
        fn never_online_before_the_websocket_was_up_for_settle(
            steps in proptest::collection::vec((0_u8..3, 0_u64..4_000, 0.0..1.0), 0..200)
        ) {
            let mut c = Connection::new(SETTLE);
            let (mut now, mut up_since) = (Duration::ZERO, None);
            for (kind, gap, chance) in steps {
                now += at(gap);
                let input = match kind { 0 => Input::Tick, 1 => Input::Connected, _ => lost() };
                let was_connecting = c.state() == SideState::Connecting;
                let connect = c.step(input.clone(), now, chance);
                match input {
                    Input::Connected if was_connecting => up_since = Some(now),
                    Input::Lost(_) => up_since = None,
                    _ => {}
                }
                prop_assert!(!c.is_online() || up_since.is_some_and(|since| now - since >= SETTLE));
                prop_assert!(!connect || c.state() == SideState::Connecting);
                if let (SideState::Offline, Some(wake)) = (c.state(), c.wake_at()) {
                    prop_assert!(wake.saturating_sub(now) <= MAX_WAIT);
                }
            }
        }
    }
}
