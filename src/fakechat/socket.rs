//! Out of the session: fakechat's websocket, as a client.
//!
//! There is no history: what the session says while no socket is open is not to be had any more. And a text frame
//! that a client sends becomes a prompt, so this one sends pings, pongs and a close, never anything else.

mod watched;

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_codec::Framed;
use actix_http::ws::Item;
use awc::error::{ConnectError as TcpError, SendRequestError, WsClientError};
use awc::ws::{self, Codec, Message};
use bytes::{Bytes, BytesMut};
use futures_util::SinkExt;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use watched::Watched;

use super::address;
use super::connection::{CONNECT_WITHIN, client};
use super::frame::{self, Frame, Malformed};
use crate::beat;

/// The longest frame that is taken, in bytes. One reply is one frame, and a reply of 40 MiB was seen to arrive.
/// Past awc's limit (64 KiB unless told otherwise) a frame is lost and the stream goes on without it; so the limit
/// is far above what a model writes, and reaching it ends the connection.
pub const MAX_FRAME: usize = 128 * 1024 * 1024;

/// The longest time between two pings: they go out at the last beat before. fakechat itself asks after 104 s and closes
/// at 120 s.
pub const PING_EVERY: Duration = beat::BEAT.saturating_mul(6);

/// After this long without a single byte from the other end the connection counts as lost.
pub const READ_DEADLINE: Duration = Duration::from_secs(118);

/// How long a ping may stay unanswered. The deadline is counted from the ping, so that a reader that was itself held
/// up does not take its own silence for the other end's.
const PONG_WITHIN: Duration = READ_DEADLINE.saturating_sub(PING_EVERY);

/// A frame past this many bytes is rare, and its memory is given back.
const LONG: usize = 1024 * 1024;

/// How long [`Socket::close`] may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// What comes out of the socket.
#[derive(Debug)]
pub enum Event {
    /// The session said something.
    Frame(Frame),
    /// A frame came that makes no sense.
    Malformed(Malformed),
    /// The connection is over, and why. Nothing else comes after this.
    Closed(String),
}

/// Why no websocket could be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// Nobody takes connections on the port.
    Unreachable(String),
    /// Somebody answered, but with this HTTP status instead of a websocket.
    Refused(u16),
    /// Somebody answered, or hung up, in a way that is no websocket either.
    Failed(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Unreachable(why) => write!(f, "not reachable: {why}"),
            ConnectError::Refused(status) => write!(f, "refused with HTTP status {status}"),
            ConnectError::Failed(why) => write!(f, "not a websocket: {why}"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// An open websocket.
pub struct Socket {
    /// None once it is over.
    framed: Option<Framed<Watched, Codec>>,
    /// Why it is over.
    why: String,
    /// The fragments of the message that is being received.
    parts: Option<Parts>,
    /// A pong that is owed. Of several only the last is, by RFC 6455, so a flood of pings fills nothing.
    pong: Option<Bytes>,
    /// When the next ping is due.
    ping: Pin<Box<Sleep>>,
    /// Goes off when the oldest ping without an answer has been out for [`PONG_WITHIN`].
    silence: Option<Pin<Box<Sleep>>>,
    /// Whether anything was read since it was last looked at.
    heard: Rc<Cell<bool>>,
}

struct Parts {
    text: bool,
    bytes: BytesMut,
}

/// Opens the websocket of the fakechat on this port.
///
/// # Errors
/// There is none to be had within 5 s.
pub async fn connect(port: u16) -> Result<Socket, ConnectError> {
    let request = client(port, None).ws(format!("ws://{}/ws", address(port))).max_frame_size(MAX_FRAME).connect();
    let framed = match timeout(CONNECT_WITHIN, request).await {
        Ok(Ok((_, framed))) => framed,
        Ok(Err(error)) => return Err(refusal(error)),
        Err(_) => return Err(ConnectError::Failed(format!("no answer within {} s", CONNECT_WITHIN.as_secs()))),
    };
    let heard = Rc::new(Cell::new(false));
    let framed = framed.into_map_io(|io| Watched { io, heard: Rc::clone(&heard) });
    Ok(Socket {
        framed: Some(framed),
        why: String::new(),
        parts: None,
        pong: None,
        ping: Box::pin(sleep_until(beat::within(PING_EVERY))),
        silence: None,
        heard,
    })
}

fn refusal(error: WsClientError) -> ConnectError {
    match error {
        WsClientError::InvalidResponseStatus(status) => ConnectError::Refused(status.as_u16()),
        WsClientError::SendRequest(SendRequestError::Connect(TcpError::Disconnected)) => {
            ConnectError::Failed("the connection was closed without an answer".into())
        }
        WsClientError::SendRequest(SendRequestError::Connect(error)) => ConnectError::Unreachable(error.to_string()),
        WsClientError::SendRequest(SendRequestError::Send(error)) => ConnectError::Failed(error.to_string()),
        WsClientError::SendRequest(SendRequestError::Response(error)) => ConnectError::Failed(error.to_string()),
        // The others may quote headers of whoever answered.
        _ => ConnectError::Failed("the handshake failed".into()),
    }
}

impl Socket {
    /// Waits for what comes next. Nothing is lost if the wait is given up; after [`Event::Closed`] only that comes.
    ///
    /// Pings go out only while somebody waits here.
    pub async fn next(&mut self) -> Event {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Says goodbye, as far as that goes within a second.
    pub async fn close(mut self) {
        if let Some(mut framed) = self.framed.take() {
            // Best effort: whether it arrived changes nothing.
            timeout(CLOSE_WITHIN, framed.send(Message::Close(None))).await.ok();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        loop {
            let Some(framed) = &mut self.framed else { return Poll::Ready(Event::Closed(self.why.clone())) };
            let mut framed = Pin::new(framed);
            if self.ping.as_mut().poll(cx).is_ready() {
                self.ping.as_mut().reset(beat::within(PING_EVERY));
                // With a full buffer the other end is not reading, and a ping more would not tell it anything.
                if !framed.is_write_buf_full() && framed.as_mut().write(Message::Ping(Bytes::new())).is_err() {
                    self.end("sending a ping failed");
                    continue;
                }
                self.silence.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + PONG_WITHIN)));
                continue; // The timer has to be polled again to wake this task.
            }
            if let Err(why) = send_owed(framed.as_mut(), &mut self.pong, cx) {
                self.end(why);
                continue;
            }
            let item = framed.next_item(cx);
            if self.heard.take() {
                self.silence = None;
            }
            match item {
                Poll::Ready(Some(Ok(item))) => {
                    if let Some(event) = self.take(item, cx) {
                        return Poll::Ready(event);
                    }
                }
                Poll::Ready(Some(Err(error))) => self.end(format!("receiving: {error}")),
                Poll::Ready(None) => self.end("the connection was cut"),
                Poll::Pending => {
                    let Some(silence) = &mut self.silence else { return Poll::Pending };
                    ready!(silence.as_mut().poll(cx));
                    self.end(format!("nothing was heard for {} s", READ_DEADLINE.as_secs()));
                }
            }
        }
    }

    /// Deals with one frame of the websocket.
    fn take(&mut self, item: ws::Frame, cx: &mut Context<'_>) -> Option<Event> {
        match item {
            ws::Frame::Text(bytes) => {
                let event = read(&bytes);
                if bytes.len() > LONG {
                    drop(bytes);
                    self.shrink();
                }
                Some(event)
            }
            ws::Frame::Binary(bytes) => Some(Event::Malformed(Malformed::Binary { len: bytes.len() })),
            ws::Frame::Continuation(item) => self.assemble(item),
            ws::Frame::Ping(bytes) => {
                self.pong = Some(bytes);
                None
            }
            ws::Frame::Pong(_) => None,
            ws::Frame::Close(reason) => {
                if let Some(framed) = &mut self.framed {
                    let mut framed = Pin::new(framed);
                    // Best effort: the other end is going away anyhow.
                    if framed.as_mut().write(Message::Close(None)).is_ok() {
                        drop(framed.flush::<Message>(cx));
                    }
                }
                self.end(match reason {
                    Some(reason) => format!("closed by the other end, code {}", u16::from(reason.code)),
                    None => "closed by the other end".to_owned(),
                });
                None
            }
        }
    }

    fn assemble(&mut self, item: Item) -> Option<Event> {
        let (piece, last) = match item {
            Item::FirstText(bytes) => return self.begin(true, &bytes),
            Item::FirstBinary(bytes) => return self.begin(false, &bytes),
            Item::Continue(bytes) => (bytes, false),
            Item::Last(bytes) => (bytes, true),
        };
        let Some(parts) = &mut self.parts else {
            self.end("a fragment without a beginning");
            return None;
        };
        if parts.bytes.len() + piece.len() > MAX_FRAME {
            self.end("a message longer than the limit");
            return None;
        }
        parts.bytes.extend_from_slice(&piece);
        if !last {
            return None;
        }
        let parts = self.parts.take()?;
        let len = parts.bytes.len();
        Some(if parts.text { read(&parts.bytes) } else { Event::Malformed(Malformed::Binary { len }) })
    }

    fn begin(&mut self, text: bool, bytes: &[u8]) -> Option<Event> {
        self.parts = Some(Parts { text, bytes: BytesMut::from(bytes) });
        None
    }

    /// Gives the memory back that a long frame took; the buffer would keep it for as long as the connection lives.
    fn shrink(&mut self) {
        self.framed = self.framed.take().map(|framed| {
            let mut parts = framed.into_parts();
            parts.read_buf = BytesMut::from(&parts.read_buf[..]);
            Framed::from_parts(parts)
        });
    }

    /// Lets go of the connection.
    fn end(&mut self, why: impl Into<String>) {
        self.framed = None;
        self.parts = None;
        self.why = why.into();
    }
}

/// Sends what waits in the buffer, then the pong that is owed, as far as that goes without waiting.
fn send_owed(
    mut framed: Pin<&mut Framed<Watched, Codec>>,
    pong: &mut Option<Bytes>,
    cx: &mut Context<'_>,
) -> Result<(), String> {
    loop {
        if !framed.is_write_buf_empty() {
            match framed.as_mut().flush::<Message>(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Err(format!("sending: {error}")),
                Poll::Pending => return Ok(()),
            }
        }
        let Some(bytes) = pong.take() else { return Ok(()) };
        framed.as_mut().write(Message::Pong(bytes)).map_err(|error| format!("sending a pong: {error}"))?;
    }
}

fn read(bytes: &[u8]) -> Event {
    match frame::parse(bytes) {
        Ok(frame) => Event::Frame(frame),
        Err(malformed) => Event::Malformed(malformed),
    }
}

#[cfg(test)]
mod tests;
