//! Durations to figures.

use std::time::Duration;

/// In milliseconds.
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The time that so many percent are not above, in milliseconds.
pub fn percentile(times: &[Duration], percent: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    millis(times[(times.len() * percent / 100).min(times.len() - 1)])
}

/// The middle one, in milliseconds.
pub fn p50(times: &[Duration]) -> f64 {
    percentile(times, 50)
}

/// What they come to each, in milliseconds.
pub fn mean(times: &[Duration]) -> f64 {
    millis(times.iter().sum()) / times.len() as f64
}
