//! Text from a session is untrusted: what a terminal would obey or hide is made visible here.

pub mod json;

use std::borrow::Cow;
use std::fmt::Write;

/// How much of a text the stream shows of an event, in characters (`spec.md`, "Commands").
pub const EVENT_CHARS: usize = 2_000;

/// What stands for a line break where everything has to be on one line.
const BREAK: &str = " ⏎ ";

/// The text with everything made visible that a terminal would obey or hide, line feeds aside: control
/// characters, bidirectional overrides, zero-width and other invisible formatting, odd line separators.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.contains(|c| c != '\n' && is_hidden(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => out.push('\n'),
            '\r' if rest.peek() == Some(&'\n') => {}
            c => push_visible(&mut out, c),
        }
    }
    Cow::Owned(out)
}

/// Whether it is letters, digits and the like, as most text is: told without a look at each character by itself.
fn is_plain(text: &str) -> bool {
    text.bytes().fold(true, |plain, byte| plain & (matches!(byte, b' '..=b'~') | (byte == b'\n')))
}

/// The text on one line: [`visible`], its line breaks shown too.
#[must_use]
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    match visible(text) {
        text if text.contains('\n') => Cow::Owned(text.replace('\n', BREAK)),
        text => text,
    }
}

/// The text on one line of at most `max_chars` columns, cut with `…` where it is longer.
#[must_use]
pub fn one_line(text: &str, max_chars: usize) -> String {
    let text = text.trim();
    // Nothing gets shorter by being made visible but for CRLF, so twice as much is always enough.
    let enough = head(text, max_chars.saturating_mul(2));
    let line = on_one_line(enough);
    if enough.len() == text.len() && columns(&line) <= max_chars {
        return line.into_owned();
    }
    let mut out = String::new();
    let mut left = max_chars.saturating_sub(1);
    for c in line.chars() {
        let Some(after) = left.checked_sub(char_columns(c)) else { break };
        left = after;
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    if max_chars > 0 {
        out.push('…');
    }
    out
}

/// So many characters of a text, or all of it.
#[must_use]
pub fn head(text: &str, chars: usize) -> &str {
    if text.len() <= chars {
        return text;
    }
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

/// As much of a text as an event needs that quotes it: so that it still shows that there is more.
#[must_use]
pub fn for_event(text: &str) -> &str {
    head(text.trim(), EVENT_CHARS + 1)
}

/// `1 hand-off`, `2 hand-offs`.
#[must_use]
pub fn count(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// How many columns a terminal gives the text.
#[must_use]
pub fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char_columns).sum() }
}

/// Close enough: the blocks that terminals draw two columns wide, and the marks that they draw on the
/// character before.
fn char_columns(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{fe0e}' | '\u{fe0f}' => 0,
        '\u{1100}'..='\u{115e}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff01}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

fn push_visible(out: &mut String, c: char) {
    match c {
        // The pictures of the C0 control characters and of DEL.
        '\0'..='\x1f' => out.extend(char::from_u32(0x2400 + u32::from(c))),
        '\x7f' => out.push('␡'),
        c if is_hidden(c) => {
            // Writing to a string does not fail.
            write!(out, "<U+{:04X}>", u32::from(c)).unwrap_or_default();
        }
        c => out.push(c),
    }
}

/// Whether a terminal would obey the character or show nothing for it.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            // zero-width characters, marks of direction, separators of lines and paragraphs, overrides
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            // word joiner, invisible operators, isolates, deprecated formatting
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // tags and the supplement of variation selectors, with which text is smuggled
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_left_alone() {
        for text in ["", "naïve 日本 🎉 ❤️\nsecond line", "a\u{301}"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn what_a_terminal_would_obey_or_hide_is_shown() {
        assert_eq!(visible("\x1b[2Jx\x07\0\t\x7f"), "␛[2Jx␇␀␉␡");
        assert_eq!(visible("\u{9b}31m\u{85}"), "<U+009B>31m<U+0085>");
        assert_eq!(
            visible("a\u{202e}b\u{2066}c\u{200b}\u{feff}\u{2028}\u{2029}"),
            "a<U+202E>b<U+2066>c<U+200B><U+FEFF><U+2028><U+2029>"
        );
        assert_eq!(visible("x\u{e0041}\u{e0101}"), "x<U+E0041><U+E0101>");
        assert_eq!(visible("one\r\ntwo\rthree\n"), "one\ntwo␍three\n");
    }

    #[test]
    fn one_line_is_one_line_and_no_longer_than_asked() {
        assert_eq!(on_one_line("a\nb\r\nc"), "a ⏎ b ⏎ c");
        assert_eq!(one_line("  a\nb  ", 10), "a ⏎ b");
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdefg", 6), "abcde…");
        assert_eq!(one_line("abcd  efg", 6), "abcd…");
        assert_eq!(one_line("日本語", 5), "日本…");
        assert_eq!(one_line("日本語", 6), "日本語");
        assert_eq!(one_line("x", 0), "");
        assert_eq!(one_line(&"\r\n".repeat(9000), 3), "");
        assert_eq!(one_line(&format!("a{}b", "\n".repeat(9000)), 3), "a…");
        assert_eq!(one_line("\x1b[0m", 3), "␛[…");
    }
}
