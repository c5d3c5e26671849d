//! The frames that a side has taken and that nobody has dealt with yet. It outlives the side's actor, and those that
//! frames go to: what was in their mailboxes when they fell is sent again.

use std::collections::VecDeque;

use crate::fakechat::frame::Frame;
use crate::queue::Incoming;

/// How many bytes of frames are held at most, while the disk does not take them: several of the largest frames. What
/// comes on top is dropped, with a `⚠`: fakechat would drop it too, past 16 MiB.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// A frame, until it was dealt with.
#[derive(Debug)]
pub struct Taken {
    /// Its number.
    pub seq: u64,
    /// It.
    pub frame: Frame,
    /// Its file; none while it is being fetched.
    pub files: Option<Vec<Incoming>>,
    sent: bool,
}

/// What a side has taken.
#[derive(Debug, Default)]
pub struct Intake {
    next: u64,
    bytes: usize,
    frames: VecDeque<Taken>,
}

impl Intake {
    /// Takes a frame. `None`: there is no room for it. `fetching`: its file is on the way.
    pub fn take(&mut self, frame: Frame, fetching: bool) -> Option<u64> {
        let bytes = size(&frame);
        if self.bytes + bytes > MAX_BYTES {
            return None;
        }
        self.bytes += bytes;
        self.next += 1;
        let files = (!fetching).then(Vec::new);
        self.frames.push_back(Taken { seq: self.next, frame, files, sent: false });
        Some(self.next)
    }

    /// A frame's files are there, or lost.
    pub fn fetched(&mut self, seq: u64, files: Vec<Incoming>) {
        if let Some(taken) = self.frames.iter_mut().find(|taken| taken.seq == seq) {
            taken.files = Some(files);
        }
    }

    /// The frames to be sent on now, in order: one that waits for its file holds up those behind it.
    pub fn ready(&mut self) -> impl Iterator<Item = &mut Taken> {
        let ready = self.frames.iter_mut().take_while(|taken| taken.files.is_some());
        ready.filter_map(|taken| (!std::mem::replace(&mut taken.sent, true)).then_some(taken))
    }

    /// A frame was dealt with.
    pub fn done(&mut self, seq: u64) {
        if let Ok(at) = self.frames.binary_search_by_key(&seq, |taken| taken.seq)
            && let Some(taken) = self.frames.remove(at)
        {
            self.bytes -= size(&taken.frame);
        }
    }

    /// All has to be sent on again.
    pub fn resend(&mut self) {
        self.frames.iter_mut().for_each(|taken| taken.sent = false);
    }

    /// A side that starts has no fetch under way: what waits for its file waits in vain.
    pub fn give_up_fetches(&mut self) {
        for taken in self.frames.iter_mut().filter(|taken| taken.files.is_none()) {
            if let Frame::Message { file: Some(file), .. } = &taken.frame {
                taken.files = Some(vec![Incoming::Lost { name: file.name.clone() }]);
            }
        }
    }

    /// Whether all was dealt with.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// How many were not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }
}

fn size(frame: &Frame) -> usize {
    // What a frame costs beside its text: the structs around it.
    const OVERHEAD: usize = 256;
    OVERHEAD
        + match frame {
            Frame::Message { text, .. } => text.as_ref().map_or(0, String::len),
            Frame::Edit { text, .. } => text.len(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Frame {
        Frame::Edit { id: "m1-1".into(), text: text.into() }
    }

    fn ready(intake: &mut Intake) -> Vec<u64> {
        intake.ready().map(|taken| taken.seq).collect()
    }

    #[test]
    fn frames_are_sent_once_in_order_and_again_after_a_fall() {
        let mut intake = Intake::default();
        let first = intake.take(frame("a"), false).unwrap();
        let second = intake.take(frame("b"), true).unwrap();
        let third = intake.take(frame("c"), false).unwrap();
        assert_eq!(ready(&mut intake), [first], "the second waits for its file");
        intake.fetched(second, vec![Incoming::Lost { name: "x".into() }]);
        assert_eq!(ready(&mut intake), [second, third]);
        intake.done(second);
        intake.resend();
        assert_eq!(ready(&mut intake), [first, third]);
        intake.done(first);
        intake.done(third);
        intake.done(third);
        assert!(intake.is_empty() && intake.bytes == 0);
    }

    #[test]
    fn it_is_bounded() {
        let mut intake = Intake::default();
        let big = "x".repeat(MAX_BYTES / 2);
        assert!(intake.take(frame(&big), false).is_some());
        assert!(intake.take(frame(&big), false).is_none());
        assert!(intake.take(frame("small"), false).is_some());
    }
}
