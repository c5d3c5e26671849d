//! Strings in JSON that JavaScript wrote: they may hold lone surrogates, which are legal there and not in Rust.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};

/// A JSON string in which lone surrogates have become U+FFFD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As bytes, for as a string serde_json refuses a lone surrogate, and the whole document would be lost.
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text, E> {
        Ok(Text(repair(bytes)))
    }
}

/// The text of bytes that are UTF-8 but for surrogates, each of which becomes U+FFFD.
#[must_use]
pub fn repair(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        // A surrogate is three bytes, ED A0..BF 80..BF, and the decoder gives up on each of them by itself.
        if chunk.invalid().first().is_some_and(|first| !(0x80..0xc0).contains(first)) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lone_surrogate_becomes_one_replacement_character() {
        for (json, text) in [
            (r#""a\ud83d\udc00é\ud83db\udc00""#, "a\u{1f400}é\u{fffd}b\u{fffd}"),
            (r#""\ud83d\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""""#, ""),
        ] {
            assert_eq!(serde_json::from_str::<Text>(json).unwrap(), Text(text.to_owned()), "{json}");
        }
        for json in ["5", "null", "{}", "[97]", "\"\\ud8\""] {
            assert!(serde_json::from_str::<Text>(json).is_err(), "{json}");
        }
    }
}
