//! Bytes in, lines out, in bounded memory: whole lines only, and of most not more than their start. Pure.

use memchr::memchr;
use memchr::memmem::Finder;

use super::line::{self, Sighting, TAG};

/// Where in a line a channel tag must start, bytes from its beginning. Before it stand a line's own fields, some 500
/// bytes of them. So the huge lines, results of tools, are dropped as they come.
const HEAD: usize = 64 * 1024;
/// The longest line that is held and looked at, bytes. A message that fits a model's context has under a half.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// How much memory is kept for the next line, bytes.
const KEEP: usize = 256 * 1024;

/// Takes a file's bytes as they come.
#[derive(Debug)]
pub(super) struct Lines {
    tag: Finder<'static>,
    /// How far the bytes came.
    read_to: u64,
    /// Where the line starts that is being read, if that was seen.
    starts: Option<u64>,
    /// The line so far; nothing of one that is dropped.
    line: Vec<u8>,
    /// The line that is being read is dropped.
    dropping: bool,
}

impl Lines {
    /// From the start of a line on.
    pub fn starting_at(offset: u64) -> Self {
        let line = Vec::new();
        Lines { tag: Finder::new(TAG), read_to: offset, starts: Some(offset), line, dropping: false }
    }

    /// From somewhere within a line on, or its end: the first whole line is the one after it.
    pub fn starting_within(offset: u64) -> Self {
        Lines { starts: None, dropping: true, ..Lines::starting_at(offset) }
    }

    /// How far the bytes came.
    pub fn read_to(&self) -> u64 {
        self.read_to
    }

    /// Where the line starts that is not read whole; none before a line's start was seen.
    pub fn boundary(&self) -> Option<u64> {
        self.starts
    }

    /// Takes the next bytes. Says how many lines there were that passed for ours but were too long.
    pub fn take(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Sighting)) -> u64 {
        let (mut rest, mut too_long) = (bytes, 0);
        while let Some(end) = memchr(b'\n', rest) {
            let part = &rest[..end];
            if self.dropping {
                self.dropping = false;
            } else if self.line.is_empty() {
                look(&self.tag, part, sink);
            } else if self.line.len() + part.len() > MAX_LINE {
                too_long += 1;
            } else {
                self.line.extend_from_slice(part);
                look(&self.tag, &self.line, sink);
            }
            self.line.clear();
            self.line.shrink_to(KEEP);
            rest = &rest[end + 1..];
            self.read_to += end as u64 + 1;
            self.starts = Some(self.read_to);
        }
        self.read_to += rest.len() as u64;
        too_long + u64::from(self.begin(rest))
    }

    /// Holds on to the start of a line. True if it has become too long.
    fn begin(&mut self, part: &[u8]) -> bool {
        if self.dropping || part.is_empty() {
            return false;
        }
        let before = self.line.len();
        let too_long = before + part.len() > MAX_LINE;
        if !too_long {
            self.line.extend_from_slice(part);
        }
        let foreign = before < HEAD && self.line.len() >= HEAD && self.tag.find(&self.line[..HEAD]).is_none();
        if too_long || foreign {
            self.dropping = true;
            self.line = Vec::new();
        }
        too_long
    }
}

fn look(tag: &Finder<'_>, line: &[u8], sink: &mut dyn FnMut(Sighting)) {
    if tag.find(&line[..line.len().min(HEAD)]).is_some() {
        line::read(line).into_iter().for_each(sink);
    }
}
