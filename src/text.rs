//! Text that came from a session.

/// Whether a terminal would hide it or be led astray by it.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{061c}')
}
