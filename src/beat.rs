//! The beat: instants at which what comes again and again is done together, so that one waking of the machine serves
//! all of it.
//!
//! tokio keeps timers in a wheel, which counts milliseconds from the start of its runtime. A timer that ends on a border
//! of the wheel's coarse slots wakes its thread once. Any other wakes it up to three times: when its coarse slot begins,
//! when the finer one in that does, and when it is due. So the beats are those borders. Were the wheel another one, it
//! would cost some more wakings and nothing else.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

/// The time between two beats: four coarse slots of tokio's wheel, of 64 times 64 ms. Each wakes a machine that may have
/// nothing else to do.
pub const BEAT: Duration = Duration::from_millis(4 * 64 * 64);
/// So many beats apart are those at which is done what can wait so long, the longest first.
const FAR: [u32; 3] = [18, 6, 1];
static START: OnceLock<Instant> = OnceLock::new();

/// Counts the beats from now: the runtime is made next.
pub fn start() {
    START.get_or_init(Instant::now);
}

/// A beat that is at most so far away: of those that are the furthest apart, the last one; where there is none, the very
/// instant.
#[must_use]
pub fn within(most: Duration) -> Instant {
    let now = Instant::now();
    START.get().and_then(|start| last(*start, now, most)).unwrap_or(now + most)
}

fn last(start: Instant, now: Instant, most: Duration) -> Option<Instant> {
    let beats = u32::try_from((now + most).duration_since(start).as_millis() / BEAT.as_millis()).ok()?;
    let mut last = FAR.into_iter().map(|apart| start + BEAT * (beats - beats % apart));
    last.find(|at| *at > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_meet_at_the_last_beat_within_reach() {
        let start = Instant::now();
        let at = |from: u64, most: u64| {
            let found = last(start, start + Duration::from_millis(from), Duration::from_millis(most));
            found.map(|found| (found - start).as_millis())
        };
        let beat = u64::try_from(BEAT.as_millis()).unwrap();
        let nth = |n: u64| Some(u128::from(n * beat));
        assert_eq!(at(0, beat), nth(1));
        assert_eq!(at(beat, beat), nth(2), "a tick leads to the next");
        assert_eq!(at(beat + 8, beat), nth(2), "also a late one");
        assert_eq!((at(beat, 2 * beat - 1), at(2 * beat, 2 * beat - 1)), (nth(2), nth(3)));
        assert_eq!(
            (at(6 * beat, 6 * beat), at(6 * beat + 8, 6 * beat)),
            (nth(12), nth(12)),
            "a long wait leads to the next"
        );
        assert_eq!((at(5 * beat, 3 * beat), at(17 * beat, 7 * beat)), (nth(6), nth(18)), "together with rarer things");
        assert_eq!((at(7 * beat, 3 * beat), at(18 * beat, 18 * beat)), (nth(10), nth(36)));
        assert_eq!((at(0, 50), at(beat - 100, 50)), (None, None), "shorter than a beat, and none in reach");
        assert_eq!(at(beat - 1, 50), nth(1));
    }
}
