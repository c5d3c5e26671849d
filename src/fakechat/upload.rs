//! Into the session: `POST /upload`.
//!
//! A 204 says that fakechat took it, not that the session did. A file of no bytes is dropped by fakechat without
//! a word, and what is longer than [`MAX_BODY`] is refused.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use awc::body::SizedStream;
use awc::error::{ConnectError, SendRequestError};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use rustix::fs::OFlags;
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::connection::{Connection, client};
use super::gate::{self, Pass};
use super::multipart::{Form, form};
use super::{CHUNK, address};

/// What fakechat takes at most, in bytes of the whole body: Bun's limit. Held to here as well, for Bun answers 413
/// and cuts the connection while the body is still being sent, and that answer is easily lost.
pub const MAX_BODY: u64 = 128 * 1024 * 1024;

/// How long a POST may take that carries next to nothing. fakechat answers at once; a body that stalls it cuts off
/// after about 12 s.
const BASE: Duration = Duration::from_secs(30);

/// How much longer it may take for each further MiB. Loopback takes milliseconds; a machine that swaps takes longer.
const PER_MIB: Duration = Duration::from_secs(1);

/// A message to put into the session.
#[derive(Clone, Debug)]
pub struct Upload {
    /// Its id: the `message_id` that an answer names in `reply_to`.
    pub id: String,
    /// What it says.
    pub text: String,
    /// What comes along.
    pub file: Option<UploadFile>,
}

/// A file that goes along.
#[derive(Clone, Debug)]
pub struct UploadFile {
    /// What it is called. fakechat keeps the ending; the whole name only where there is no text.
    pub name: String,
    /// What is in it.
    pub body: Body,
}

/// What is in a file.
#[derive(Clone, Debug)]
pub enum Body {
    /// These bytes.
    Bytes(Bytes),
    /// What this file holds when it is opened; read in pieces.
    Path(PathBuf),
}

/// Why a POST did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostError {
    /// It was answered, but not with a 2xx.
    Refused {
        /// The HTTP status.
        status: u16,
        /// Whether another try is useless: any 4xx but 408 and 429.
        permanent: bool,
    },
    /// No connection, so no byte of it was taken.
    Unreachable(String),
    /// It may or may not have arrived.
    Unknown(String),
    /// The file to go along could not be read; nothing arrived.
    File(String),
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PostError::Refused { status, .. } => write!(f, "refused with HTTP status {status}"),
            PostError::Unreachable(why) => write!(f, "not reachable: {why}"),
            PostError::Unknown(why) => write!(f, "it may or may not have arrived: {why}"),
            PostError::File(why) => write!(f, "reading the file to send: {why}"),
        }
    }
}

impl std::error::Error for PostError {}

/// Refused with that status.
fn refused(status: u16) -> PostError {
    PostError::Refused { status, permanent: (400..500).contains(&status) && status != 408 && status != 429 }
}

/// Puts a message into the session behind this port, on a connection of its own.
///
/// # Errors
/// See [`PostError`]; only after [`PostError::Unknown`] may it have arrived.
pub async fn post(port: u16, upload: &Upload) -> Result<(), PostError> {
    post_on(port, None, upload).await
}

/// [`post`], on a connection that is open already, if there is one.
///
/// # Errors
/// The same.
pub async fn post_on(port: u16, connection: Option<Connection>, upload: &Upload) -> Result<(), PostError> {
    post_within(port, connection, upload, BASE).await
}

/// Does it, with so long for next to nothing.
async fn post_within(
    port: u16,
    connection: Option<Connection>,
    upload: &Upload,
    base: Duration,
) -> Result<(), PostError> {
    let fields = [("id", upload.id.as_str()), ("text", upload.text.as_str())];
    let form = form(&fields, upload.file.as_ref().map(|file| file.name.as_str()));
    let file = match &upload.file {
        None => None,
        Some(file) => Some(open(&file.body).await.map_err(|error| PostError::File(error.to_string()))?),
    };
    let size = file.as_ref().map_or(0, Source::len);
    let len = form.head.len() as u64 + size + form.tail.len() as u64;
    if len > MAX_BODY {
        return Err(refused(413));
    }
    let within = base + PER_MIB * u32::try_from(len >> 20).unwrap_or(u32::MAX);
    match timeout(within, exchange(client(port, connection), port, len, form, file)).await {
        Ok(answer) => answer,
        Err(_) => Err(PostError::Unknown(format!("no answer within {} s", within.as_secs()))),
    }
}

/// Sends the request and judges what is answered.
async fn exchange(client: awc::Client, port: u16, len: u64, form: Form, file: Option<Source>) -> Result<(), PostError> {
    // Held from before the last bytes are sent until after the answer, or until this future is dropped.
    let pass = Rc::new(RefCell::new(None));
    let request = client
        .post(format!("http://{}/upload", address(port)))
        .insert_header(("content-type", form.content_type.clone()))
        .force_close();
    let body = SizedStream::new(len, Box::pin(pieces(form, file, Rc::clone(&pass))));
    let answer = request.send_body(body).await;
    drop(pass.take());
    match answer {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(refused(answer.status().as_u16())),
        Err(SendRequestError::Connect(ConnectError::Disconnected)) => {
            Err(PostError::Unknown("the connection was closed without an answer".into()))
        }
        Err(SendRequestError::Connect(error)) => Err(PostError::Unreachable(error.to_string())),
        Err(SendRequestError::Send(error)) => Err(PostError::Unknown(format!("sending: {error}"))),
        Err(SendRequestError::Body(error)) => Err(PostError::File(error.to_string())),
        Err(SendRequestError::Response(error)) => Err(PostError::Unknown(format!("reading the answer: {error}"))),
        Err(error) => Err(PostError::Unknown(error.to_string())),
    }
}

/// Where a file's bytes come from.
enum Source {
    Bytes(Bytes),
    File(File, u64),
}

impl Source {
    fn len(&self) -> u64 {
        match self {
            Source::Bytes(bytes) => bytes.len() as u64,
            Source::File(_, len) => *len,
        }
    }
}

async fn open(body: &Body) -> io::Result<Source> {
    match body {
        Body::Bytes(bytes) => Ok(Source::Bytes(bytes.clone())),
        Body::Path(path) => {
            // No link is followed, and no pipe waited for.
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
            let file = OpenOptions::new().read(true).custom_flags(flags).open(path).await?;
            let about = file.metadata().await?;
            if !about.is_file() {
                return Err(io::Error::other("not a regular file"));
            }
            Ok(Source::File(file, about.len()))
        }
    }
}

/// What is sent, piece by piece. The end of a body with a file is held back until the [`gate`] is open.
fn pieces(
    form: Form,
    file: Option<Source>,
    pass: Rc<RefCell<Option<Pass>>>,
) -> impl Stream<Item = io::Result<Bytes>> + 'static {
    let Form { head, tail, .. } = form;
    let file = match file {
        None => return sliced(head).boxed_local(),
        Some(Source::Bytes(bytes)) => sliced(bytes).boxed_local(),
        Some(Source::File(file, len)) => read(file, len).boxed_local(),
    };
    let last = stream::once(async move {
        let inside = gate::enter().await;
        *pass.borrow_mut() = Some(inside);
        Ok(tail)
    });
    sliced(head).chain(file).chain(last).boxed_local()
}

/// The bytes in pieces, so that no copy of the whole is made on the way.
fn sliced(bytes: Bytes) -> impl Stream<Item = io::Result<Bytes>> + 'static {
    stream::iter((0..bytes.len()).step_by(CHUNK).map(move |at| Ok(bytes.slice(at..bytes.len().min(at + CHUNK)))))
}

/// Exactly `len` bytes of the file: it may grow meanwhile, and if it shrinks the request is given up.
fn read(file: File, len: u64) -> impl Stream<Item = io::Result<Bytes>> + 'static {
    stream::try_unfold((file, len), |(mut file, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let want = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let mut piece = vec![0; want];
        let got = file.read(&mut piece).await?;
        if got == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter meanwhile"));
        }
        piece.truncate(got);
        Ok(Some((Bytes::from(piece), (file, left - got as u64))))
    })
}

#[cfg(test)]
mod tests;
