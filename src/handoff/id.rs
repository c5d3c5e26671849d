//! The name of a hand-off: a UUIDv7, so that names sort by age.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::config::Side;

/// The largest Unix time in milliseconds that a UUIDv7 can hold (48 bits).
const MAX_MILLIS: u64 = (1 << 48) - 1;

/// The name of a hand-off.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(Uuid);

impl Id {
    /// A new name for something that starts now.
    #[must_use]
    pub fn now() -> Self {
        Id(Uuid::now_v7())
    }

    /// The name of the hand-off that `side` makes with its message `message`: always the same for the same
    /// message, so that a message that arrives twice, or by two ways, is one hand-off (`spec.md`, "Messages").
    ///
    /// Time: that in the message's id (`m<epoch ms>-<n>`), or 0 where it has none. The rest: SHA-256 of the
    /// side's name, a NUL and the message's id.
    #[must_use]
    pub fn derive(side: Side, message: &str) -> Self {
        let millis = message_millis(message).unwrap_or(0);
        let digest = Sha256::new().chain_update(side.name()).chain_update([0]).chain_update(message).finalize();
        let mut random = [0; 10];
        random.copy_from_slice(&digest[..10]);
        Id(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// The name with these bytes, in the order they are written in.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Id(Uuid::from_bytes(bytes))
    }

    /// Its bytes, in the order they are written in.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Whether `part`, as a person or a model typed it, is this whole id (case does not matter).
    #[must_use]
    pub fn is(&self, part: &str) -> bool {
        Uuid::parse_str(part) == Ok(self.0)
    }

    /// Whether this id starts or ends with `part` (of 4 or more characters): how people name hand-offs.
    #[must_use]
    pub fn has_end(&self, part: &str) -> bool {
        let (own, part) = (self.to_string(), part.to_ascii_lowercase());
        part.len() >= 4 && (own.starts_with(&part) || own.ends_with(&part))
    }

    /// Whether `part` (of 8 or more characters) is anywhere in this id: how the brain's `reply_to` names them.
    #[must_use]
    pub fn has_part(&self, part: &str) -> bool {
        part.len() >= 8 && self.to_string().contains(&part.to_ascii_lowercase())
    }

    /// The last 8 characters: what people see in lists, since the first ones are the same for a minute.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string().split_off(28)
    }
}

/// The Unix time in milliseconds that is in a fakechat message id (`m<epoch ms>-<n>`).
#[must_use]
pub fn message_millis(message: &str) -> Option<u64> {
    let (millis, n) = message.strip_prefix('m')?.split_once('-')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    (digits(millis) && digits(n)).then(|| millis.parse().ok()).flatten().filter(|ms| *ms <= MAX_MILLIS)
}

impl FromStr for Id {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_message_always_makes_the_same_id_with_its_own_time() {
        let id = Id::derive(Side::Bot, "m1796031734360-1");
        assert_eq!(id, Id::derive(Side::Bot, "m1796031734360-1"));
        assert_eq!(id.0.get_version_num(), 7);
        assert_eq!(id.0.get_timestamp().unwrap().to_unix(), (1_796_031_734, 360_000_000));
        assert_ne!(id, Id::derive(Side::Bot, "m1796031734360-2"));
        assert_ne!(id, Id::derive(Side::Brain, "m1796031734360-1"));
    }

    #[test]
    fn a_message_id_of_another_shape_still_makes_one_id() {
        for odd in ["", "m", "m-", "m12", "mx-1", "m99999999999999999999-1", "m281474976710656-1", "m+1-1"] {
            assert_eq!(message_millis(odd), None, "{odd}");
            assert_eq!(Id::derive(Side::Bot, odd), Id::derive(Side::Bot, odd));
        }
    }

    #[test]
    fn people_name_an_id_by_its_ends_and_the_brain_by_any_part() {
        let id: Id = "01939f3c-aaaa-7bbb-8ccc-1234567890ab".parse().unwrap();
        assert!(id.is("01939F3C-AAAA-7BBB-8CCC-1234567890AB"));
        assert!(id.has_end("0193") && id.has_end("90AB") && !id.has_end("0ab") && !id.has_end("aaaa"));
        assert!(id.has_part("aaaa-7bbb") && !id.has_part("aaaa-7b"));
        assert_eq!(id.short(), "567890ab");
    }
}
