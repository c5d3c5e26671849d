//! What of the configuration decides what the queue does.

use std::time::Duration;

use crate::config::Config;

/// What of the configuration decides what the queue does.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// A wait for a result longer than this is shown to a person.
    pub alarm: Duration,
    /// Failed pushes of one hand-off before it is given up.
    pub max_attempts: usize,
    /// A gap of the brain no longer than this is not worth a word.
    pub gap: Duration,
    /// Text with more bytes than this travels as a file.
    pub inline_bytes: usize,
}

/// What a gap may be longer than `settle_s`, before the bot hears of it (`spec.md`, "Nights").
const GAP_PAST_SETTLING: Duration = Duration::from_secs(5);

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Settings {
            alarm: config.relay.alarm,
            max_attempts: config.relay.max_attempts,
            gap: config.relay.settle + GAP_PAST_SETTLING,
            inline_bytes: config.relay.inline_kib * 1024,
        }
    }
}
