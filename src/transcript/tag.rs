//! The `<channel …>` tag that Claude Code puts before a channel message. Pure.

use std::borrow::Cow;

/// How long a tag may be, bytes: its values are ids, a time and a file's path.
const MAX_TAG: usize = 16 * 1024;
/// The longest entity, `&#x10FFFF;`, with room.
const MAX_ENTITY: usize = 12;

/// A tag and the text that it introduces.
pub(super) struct Tag<'a> {
    attributes: Vec<(&'a str, Cow<'a, str>)>,
    /// What stands between it and the last closing tag, without the line breaks that Claude Code adds.
    pub text: &'a str,
}

impl<'a> Tag<'a> {
    /// The tag that `block` starts with, after white space at most.
    pub fn at_start(block: &'a str) -> Option<Self> {
        let block = block.trim_start();
        let rest = block.strip_prefix("<channel")?;
        let limit = rest.floor_char_boundary(MAX_TAG);
        let (mut head, mut attributes) = (&rest[..limit], Vec::new());
        loop {
            let next = head.trim_start();
            if let Some(after) = next.strip_prefix('>') {
                let text = &rest[limit - after.len()..];
                return Some(Tag { attributes, text: inner(text) });
            }
            // Between the name, and each value, and the next name there is white space.
            if next.len() == head.len() {
                return None;
            }
            let (name, value) = next.split_once('=')?;
            let quote = value.chars().next().filter(|one| ['"', '\''].contains(one))?;
            let (value, after) = value[1..].split_once(quote)?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b)) {
                return None;
            }
            attributes.push((name, unescaped(value)));
            head = after;
        }
    }

    /// The value of that attribute; none where it is missing or there twice, for then one of them may be forged.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.attributes.iter().filter(|(own, _)| *own == name);
        let (_, value) = all.next()?;
        all.next().is_none().then_some(value)
    }
}

fn inner(text: &str) -> &str {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let text = text.rfind("</channel>").map_or(text, |end| &text[..end]);
    text.strip_suffix('\n').unwrap_or(text)
}

/// With XML's five entities and numbered ones resolved; any other `&` stays as it is.
fn unescaped(value: &str) -> Cow<'_, str> {
    if !value.contains('&') {
        return Cow::Borrowed(value);
    }
    let (mut plain, mut rest) = (String::with_capacity(value.len()), value);
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(MAX_ENTITY).position(|b| b == b';');
        if let Some((end, one)) = end.and_then(|end| Some((end, entity(&rest[1..end])?))) {
            plain.push(one);
            rest = &rest[end + 1..];
        } else {
            plain.push('&');
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

fn entity(name: &str) -> Option<char> {
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let digits = name.strip_prefix('#')?;
            match digits.strip_prefix(['x', 'X']) {
                Some(hex) => number(hex, 16),
                None => number(digits, 10),
            }
        }
    }
}
