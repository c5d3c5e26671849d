//! Values on the command line: from what is typed to what is meant.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::config::Side;
use crate::handoff::life::State;

/// A century in seconds: no length of time is longer, so that adding it to a time or taking it away is safe.
const MAX_S: u64 = 100 * 366 * 86_400;

/// One of these states.
pub(super) fn states(of: &[State]) -> impl TypedValueParser<Value = State> + use<> {
    PossibleValuesParser::new(of.iter().map(|state| state.name())).try_map(|name| name.parse::<State>())
}

/// `brain` or `bot`.
pub(super) fn side() -> impl TypedValueParser<Value = Side> {
    PossibleValuesParser::new(Side::BOTH.map(Side::name)).map(|name| match name.as_str() {
        "brain" => Side::Brain,
        _ => Side::Bot,
    })
}

/// Seconds, with or without a fraction.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok().filter(|number| (0.0..=MAX_S as f64).contains(number));
    number.map(Duration::from_secs_f64).ok_or_else(|| "give it a number of seconds".to_owned())
}

/// How long ago: a whole number and its unit.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    let parse = || {
        let (at, unit) = text.char_indices().next_back()?;
        let seconds: u64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return None,
        };
        let number: u64 = text[..at].parse().ok().filter(|_| text.starts_with(|c: char| c.is_ascii_digit()))?;
        number.checked_mul(seconds).filter(|seconds| *seconds <= MAX_S).map(Duration::from_secs)
    };
    parse().ok_or_else(|| "give it a whole number and a unit: 30d, 12h, 45m or 90s".to_owned())
}
