//! The exact words that go to the two sessions (`spec.md`, "Messages").

use crate::text::head;

use super::{Attachment, HandOff, Id, Origin, Outcome};

/// How much of a text that travels as a file is said in the message too.
const CUT_CHARS: usize = 2_000;
/// How much of the hand-off an answer repeats, since the bot never learnt the id.
const ASKED_CHARS: usize = 80;

/// One upload of a push: a push has room for one file, so one with several is made of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What is said.
    pub text: String,
    /// What goes along.
    pub file: Option<PartFile>,
}

/// The file of a [`Part`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartFile {
    /// A text too long to be said.
    Text {
        /// `<id>.txt`
        name: String,
        /// The whole of it.
        text: String,
    },
    /// A file of the spool.
    Stored {
        /// The name the other side is told.
        name: String,
        /// Relative to the spool.
        path: String,
        /// The size that the other side is told.
        bytes: u64,
    },
}

/// A hand-off, as the brain is told of it the `attempt`th time.
#[must_use]
pub fn hand_off(h: &HandOff, attempt: usize, inline_bytes: usize) -> Vec<Part> {
    let from = match h.from {
        Origin::Bot => "the bot",
        Origin::Script => "a script",
    };
    let again = match attempt {
        0 | 1 => String::new(),
        n => format!(
            ", attempt {n}: an earlier try may have done part of this; check before acting, and if it is done only answer"
        ),
    };
    parts(&format!("[relay {} from {from}{again}]", h.id), h.id, &h.text, &h.files, None, inline_bytes)
}

/// That the brain is to stop work on a hand-off.
#[must_use]
pub fn take_back(id: Id) -> String {
    format!("[relay {id} cancelled: stop work on it]")
}

/// A result, follow-up or correction, as the bot is told of it; `again`: an earlier push may have arrived.
#[must_use]
pub fn outcome(h: &HandOff, outcome: &Outcome, again: bool, inline_bytes: usize) -> Vec<Part> {
    let again = if again { ", sent again: if already told, say nothing" } else { "" };
    let head = format!("[relay {} for {}{again}]", outcome.kind.word(), h.id);
    parts(&head, h.id, &outcome.text, &outcome.files, Some(&asked(&h.text)), inline_bytes)
}

/// The last line of what the bot is told: what it had asked for.
#[must_use]
pub fn asked(text: &str) -> String {
    // A line break has two characters at most.
    let line = head(text, 2 * ASKED_CHARS).replace("\r\n", " ").replace(['\n', '\r'], " ");
    format!("[asked: {}]", head(&line, ASKED_CHARS))
}

/// A notice to the bot.
#[must_use]
pub fn notice(text: &str) -> String {
    format!("[relay] {text}")
}

/// A push in parts: the text with its first file, then each further file on its own.
fn parts(head: &str, id: Id, text: &str, files: &[Attachment], asked: Option<&str>, inline_bytes: usize) -> Vec<Part> {
    let (said, mut slot) = said(id, text, inline_bytes);
    let mut first = if said.is_empty() { head.to_owned() } else { format!("{head} {said}") };
    let mut further = Vec::new();
    if let Some(PartFile::Text { name, text }) = &slot {
        first.push_str(&format!("\n{}", file_line(name, text.len() as u64)));
    }
    for file in files {
        let line = match &file.path {
            Some(_) if file.bytes > 0 => file_line(&file.name, file.bytes),
            Some(_) => format!("[file {}, 0 bytes: empty, so it does not come along]", file.name),
            None => lost_line(&file.name, file.bytes),
        };
        let stored = match &file.path {
            Some(path) if file.bytes > 0 => {
                PartFile::Stored { name: file.name.clone(), path: path.clone(), bytes: file.bytes }
            }
            _ => {
                first.push_str(&format!("\n{line}"));
                continue;
            }
        };
        if slot.is_none() {
            first.push_str(&format!("\n{line}"));
            slot = Some(stored);
        } else {
            further.push(Part { text: format!("{head} {line}"), file: Some(stored) });
        }
    }
    if let Some(asked) = asked {
        first.push_str(&format!("\n{asked}"));
    }
    let mut all = vec![Part { text: first, file: slot }];
    all.append(&mut further);
    all
}

/// What of a text is said, and the file it travels as when it is too long for that.
fn said(id: Id, text: &str, inline_bytes: usize) -> (String, Option<PartFile>) {
    if text.len() <= inline_bytes {
        return (text.to_owned(), None);
    }
    let file = PartFile::Text { name: format!("{id}.txt"), text: text.to_owned() };
    (head(text, CUT_CHARS).to_owned(), Some(file))
}

fn file_line(name: &str, bytes: u64) -> String {
    format!("[file {name}, {bytes} bytes]")
}

fn lost_line(name: &str, bytes: u64) -> String {
    format!("[file {name}, {bytes} bytes: it could not be had]")
}

impl Part {
    /// The same without its stored file, which is gone: the line that names it says so.
    pub fn lose_file(&mut self) {
        let Some(PartFile::Stored { name, bytes, .. }) = &self.file else { return };
        let (line, lost) = (file_line(name, *bytes), lost_line(name, *bytes));
        // As a line of its own if it is one: what was asked, behind it, may say the same.
        let at = self.text.rfind(&format!("\n{line}")).map(|at| at + 1).or_else(|| self.text.rfind(&line));
        if let Some(at) = at {
            self.text.replace_range(at..at + line.len(), &lost);
        }
        self.file = None;
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::handoff::OutcomeKind;

    const INLINE: usize = 64 * 1024;

    fn fixed() -> HandOff {
        let id = "01939f3c-aaaa-7bbb-8ccc-1234567890ab".parse().unwrap();
        HandOff::new(id, Origin::Bot, "water\r\nthe plants".into(), datetime!(2026-11-30 10:00 UTC))
    }

    fn attachment(name: &str, bytes: u64) -> Attachment {
        let path = (bytes != 7).then(|| format!("files/x/{name}"));
        Attachment { name: name.into(), path, bytes, unknown: Default::default() }
    }

    #[test]
    fn a_hand_off_in_the_exact_words() {
        let mut h = fixed();
        let text = |h: &HandOff, n| hand_off(h, n, INLINE).remove(0).text;
        assert_eq!(text(&h, 1), "[relay 01939f3c-aaaa-7bbb-8ccc-1234567890ab from the bot] water\r\nthe plants");
        assert_eq!(
            text(&h, 2),
            "[relay 01939f3c-aaaa-7bbb-8ccc-1234567890ab from the bot, attempt 2: an earlier try may have done part of \
             this; check before acting, and if it is done only answer] water\r\nthe plants"
        );
        h.from = Origin::Script;
        assert_eq!(text(&h, 1), "[relay 01939f3c-aaaa-7bbb-8ccc-1234567890ab from a script] water\r\nthe plants");
        assert_eq!(take_back(h.id), "[relay 01939f3c-aaaa-7bbb-8ccc-1234567890ab cancelled: stop work on it]");
    }

    #[test]
    fn a_result_in_the_exact_words() {
        let mut h = fixed();
        h.record_reply("m1-1", "done\n".into(), vec![], h.created);
        h.record_reply("m1-2", "more".into(), vec![], h.created);
        h.record_edit("m1-2", "less".into(), h.created);
        let text = |i: usize, again| outcome(&h, &h.results[i], again, INLINE).remove(0).text;
        let id = h.id;
        assert_eq!(text(0, false), format!("[relay result for {id}] done\n\n[asked: water the plants]"));
        assert_eq!(
            text(0, true),
            format!(
                "[relay result for {id}, sent again: if already told, say nothing] done\n\n[asked: water the plants]"
            )
        );
        assert_eq!(text(1, false), format!("[relay follow-up for {id}] more\n[asked: water the plants]"));
        assert_eq!(text(2, false), format!("[relay correction for {id}] less\n[asked: water the plants]"));
        assert_eq!(h.results[2].kind, OutcomeKind::Correction);
    }

    #[test]
    fn eighty_characters_of_what_was_asked() {
        assert_eq!(asked(&"é".repeat(100)), format!("[asked: {}]", "é".repeat(80)));
    }

    #[test]
    fn a_long_text_is_cut_and_goes_along_whole() {
        let mut h = fixed();
        h.text = "ä".repeat(INLINE);
        h.files = vec![attachment("a.png", 3)];
        let parts = hand_off(&h, 1, INLINE);
        let head = format!("[relay {} from the bot]", h.id);
        assert_eq!(parts[0].text, format!("{head} {}\n[file {}.txt, {} bytes]", "ä".repeat(2000), h.id, 2 * INLINE));
        assert_eq!(parts[0].file, Some(PartFile::Text { name: format!("{}.txt", h.id), text: h.text.clone() }));
        assert_eq!(parts[1].text, format!("{head} [file a.png, 3 bytes]"));
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn files_stand_before_what_was_asked_and_go_one_a_push() {
        let mut h = fixed();
        h.record_reply("m1-1", String::new(), vec![], h.created);
        h.results[0].files =
            vec![attachment("gone", 7), attachment("empty", 0), attachment("a", 1), attachment("b", 2)];
        let parts = outcome(&h, &h.results[0], false, INLINE);
        let head = format!("[relay result for {}]", h.id);
        assert_eq!(
            parts[0].text,
            format!(
                "{head}\n[file gone, 7 bytes: it could not be had]\n[file empty, 0 bytes: empty, so it does not come along]\
                 \n[file a, 1 bytes]\n[asked: water the plants]"
            )
        );
        assert_eq!(parts[0].file, Some(PartFile::Stored { name: "a".into(), path: "files/x/a".into(), bytes: 1 }));
        assert_eq!(parts[1].text, format!("{head} [file b, 2 bytes]"));
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn a_file_that_is_gone_is_said_to_be_whatever_was_asked() {
        let mut h = fixed();
        h.text = "what is [file a, 1 bytes]".into();
        h.record_reply("m1-1", "this".into(), vec![], h.created);
        h.results[0].files = vec![attachment("a", 1), attachment("b", 2)];
        let mut parts = outcome(&h, &h.results[0], false, INLINE);
        parts.iter_mut().for_each(Part::lose_file);
        let head = format!("[relay result for {}]", h.id);
        let first = format!("{head} this\n[file a, 1 bytes: it could not be had]\n[asked: what is [file a, 1 bytes]]");
        assert_eq!(parts[0], Part { text: first, file: None });
        assert_eq!(parts[1], Part { text: format!("{head} [file b, 2 bytes: it could not be had]"), file: None });
    }
}
