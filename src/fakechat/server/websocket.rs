//! The double's end of a websocket.

use std::sync::PoisonError;
use std::time::{Duration, Instant as Moment};

use actix_codec::Framed;
use actix_http::ws::{Codec, Frame, Item, Message, ProtocolError};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, sleep_until};

use super::state::{Out, Shared};
use super::{Faults, Prompt};

/// The longest frame of a client, in bytes: Bun's limit.
const MAX_FRAME: usize = 16 * 1024 * 1024;

/// How long a client may leave a ping unanswered before it is cut.
const PONG_WITHIN: Duration = Duration::from_secs(16);

type Socket = Framed<TcpStream, Codec>;

/// An open websocket, known to [`Shared`] for as long as it lives.
pub struct Client<'a> {
    shared: &'a Shared,
    number: u64,
    out: UnboundedReceiver<Out>,
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.shared.change(|state| state.clients.remove(&self.number));
    }
}

impl Client<'_> {
    /// Makes it known: from now on it hears what is said.
    pub fn register(shared: &Shared) -> Client<'_> {
        let (sender, out) = mpsc::unbounded_channel();
        let number = shared.change(|state| {
            state.opened += 1;
            state.clients.insert(state.opened, sender);
            state.opened
        });
        Client { shared, number, out }
    }

    /// Serves it until it is over.
    pub async fn serve<T>(mut self, framed: Framed<TcpStream, T>) {
        let mut socket: Socket = framed.replace_codec(Codec::new().max_size(MAX_FRAME));
        // Whatever goes wrong with a connection ends it, and nothing else.
        self.run(&mut socket).await.ok();
    }

    fn faults(&self) -> Faults {
        self.shared.look(|state| state.faults.clone())
    }

    async fn run(&mut self, socket: &mut Socket) -> Result<(), ProtocolError> {
        let mut heard = Instant::now();
        let mut asked = false;
        loop {
            let faults = self.faults();
            let due = heard + faults.ping_every + if asked { PONG_WITHIN } else { Duration::ZERO };
            tokio::select! {
                out = self.out.recv() => match out {
                    Some(Out::Text(text)) => {
                        *self.shared.sent.lock().unwrap_or_else(PoisonError::into_inner) = Some(Moment::now());
                        send(socket, &text, &self.faults()).await?;
                    }
                    Some(Out::Binary(bytes)) => socket.send(Message::Binary(bytes)).await?,
                    Some(Out::Close) => socket.send(Message::Close(None)).await?,
                    Some(Out::Cut) | None => return Ok(()),
                },
                frame = socket.next() => {
                    let Some(frame) = frame else { return Ok(()) };
                    (heard, asked) = (Instant::now(), false);
                    let close = matches!(frame, Ok(Frame::Close(_)));
                    if let Some(answer) = self.react(frame?) {
                        socket.send(answer).await?;
                    }
                    if close && !self.faults().ignore_close {
                        return Ok(());
                    }
                },
                () = sleep_until(due), if !faults.mute => {
                    if asked {
                        return Ok(());
                    }
                    socket.send(Message::Ping(Bytes::new())).await?;
                    asked = true;
                },
            }
        }
    }

    /// What to answer.
    fn react(&self, frame: Frame) -> Option<Message> {
        let faults = self.faults();
        match frame {
            Frame::Ping(bytes) if !faults.mute => Some(Message::Pong(bytes)),
            Frame::Close(reason) if !faults.ignore_close => Some(Message::Close(reason)),
            Frame::Text(bytes) => {
                self.take(&bytes);
                None
            }
            _ => None,
        }
    }

    /// A text frame that is JSON with an id and a text that is not blank becomes a prompt.
    fn take(&self, bytes: &[u8]) {
        #[derive(Deserialize)]
        struct Raw {
            id: String,
            text: String,
        }
        let Ok(Raw { id, text }) = serde_json::from_slice(bytes) else { return };
        if !id.is_empty() && !text.trim().is_empty() {
            self.shared.change(|state| state.prompts.push(Prompt { id, text: text.trim().to_owned() }));
        }
    }
}

/// Sends a text frame, as the faults will have it.
async fn send(socket: &mut Socket, text: &Bytes, faults: &Faults) -> Result<(), ProtocolError> {
    for _ in 0..if faults.duplicate_frames { 2 } else { 1 } {
        match faults.fragment {
            Some(size) if size > 0 && text.len() > size => fragments(socket, text, size).await?,
            _ => {
                // The codec wants to know that it is UTF-8. What is not goes out as it is, in two fragments.
                match bytestring(text) {
                    Some(text) => socket.send(text).await?,
                    None => fragments(socket, text, text.len()).await?,
                }
            }
        }
    }
    Ok(())
}

fn bytestring(text: &Bytes) -> Option<Message> {
    Some(Message::Text(text.clone().try_into().ok()?))
}

async fn fragments(socket: &mut Socket, text: &Bytes, size: usize) -> Result<(), ProtocolError> {
    let mut rest = text.clone();
    socket.send(Message::Continuation(Item::FirstText(rest.split_to(size.min(rest.len()))))).await?;
    while rest.len() > size {
        socket.send(Message::Continuation(Item::Continue(rest.split_to(size)))).await?;
    }
    socket.send(Message::Continuation(Item::Last(rest))).await
}
