//! What can go wrong with a fakechat, as knobs.

use std::time::Duration;

/// How often the real one asks a silent client whether it is still there.
const PING_EVERY: Duration = Duration::from_secs(104);

/// What a [`Double`](super::Double) does wrong. All off at first; each holds until it is turned off.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Answer 204 and forget the message. Real: the port is open before the session is connected, and a POST in that
    /// window is lost with a success code.
    pub lose_uploads: bool,
    /// Take the message and hang up without an answer. Real: the process dies, or is killed, between the two.
    pub lose_answers: bool,
    /// Wait this long before each answer. Real: a machine under load.
    pub answer_after: Duration,
    /// Never answer an upload. Real: the process is stopped (SIGSTOP) or stuck.
    pub hang: bool,
    /// Wait this long before each piece of a body is read. Real: a machine that swaps; a peer that reads slowly.
    pub read_slowly: Duration,
    /// Answer uploads with an error. Real: Bun's 413 for too much, its 500 for an exception in the handler.
    pub refuse_uploads: Option<Refusal>,
    /// Close the websockets this long after the next 204, once. Real: the session takes a message and its plugin
    /// goes away with it.
    pub close_after_answer: Option<Duration>,
    /// Go away as a whole 0.1 s after the next 204. Real: what an orphan does with its first message.
    pub die_after_answer: bool,
    /// Answer the opening of a websocket with this HTTP status. Real: a process on the port that is no fakechat.
    pub refuse_sockets: Option<u16>,
    /// Send each frame twice. Real: not seen yet; a retransmission somewhere on the way.
    pub duplicate_frames: bool,
    /// Send each frame in fragments of this many bytes. Real: not Bun, but RFC 6455 allows it at any time.
    pub fragment: Option<usize>,
    /// Send neither pings nor pongs. Real: a stopped process, whose kernel keeps the connection open.
    pub mute: bool,
    /// Neither answer a close frame nor let go of the connection. Real: a stuck process.
    pub ignore_close: bool,
    /// Ping a silent client this often. Real: 104 s, and cut 16 s later without an answer.
    pub ping_every: Duration,
}

/// With which HTTP status uploads are refused, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// How many more times; none for always.
    pub times: Option<usize>,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            lose_uploads: false,
            lose_answers: false,
            answer_after: Duration::ZERO,
            hang: false,
            read_slowly: Duration::ZERO,
            refuse_uploads: None,
            close_after_answer: None,
            die_after_answer: false,
            refuse_sockets: None,
            duplicate_frames: false,
            fragment: None,
            mute: false,
            ignore_close: false,
            ping_every: PING_EVERY,
        }
    }
}

impl Faults {
    /// The status to refuse this upload with; counts it.
    pub(super) fn refuse(&mut self) -> Option<u16> {
        let refusal = self.refuse_uploads.as_mut()?;
        match &mut refusal.times {
            None => Some(refusal.status),
            Some(0) => {
                self.refuse_uploads = None;
                None
            }
            Some(left) => {
                *left -= 1;
                Some(refusal.status)
            }
        }
    }
}
