//! The double's HTTP: connections, routes, uploads and files.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_codec::Framed;
use actix_http::body::BodySize;
use actix_http::h1::{Codec, Message, MessageType};
use actix_http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use actix_http::{HttpMessage, Method, Request, Response, ServiceConfig, StatusCode, ws};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use futures_util::{SinkExt, future};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::say::{ending, epoch_ms};
use super::state::Shared;
use super::websocket::Client;
use super::{Faults, Out, Received, ReceivedFile, Sayer};

/// The longest body, in bytes: Bun's limit.
const MAX_BODY: usize = 128 * 1024 * 1024;

/// How long an orphan lives on after it has answered.
const DIES_AFTER: Duration = Duration::from_millis(100);

type Http = Framed<TcpStream, Codec>;

/// The connection is over, for whatever reason.
struct Over;

/// Takes connections until it is told to stop.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, sayer: Sayer) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = shared.stop.notified() => return,
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    let connection = Connection { shared: Arc::clone(&shared), sayer: sayer.clone() };
                    connections.spawn_local(connection.serve(stream));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One connection.
struct Connection {
    shared: Arc<Shared>,
    sayer: Sayer,
}

impl Connection {
    async fn serve(self, stream: TcpStream) {
        let mut http = Framed::new(stream, Codec::new(ServiceConfig::default()));
        while let Some(Ok(Message::Item(request))) = http.next().await {
            match (request.method(), request.path()) {
                (_, "/ws") => {
                    if let Some(answer) = self.upgrade(&request) {
                        let client = Client::register(&self.shared);
                        if answer_with(&mut http, answer, None).await.is_ok() {
                            client.serve(http).await;
                        }
                        return;
                    }
                    if answer(&mut http, self.refusal(), "upgrade failed").await.is_err() {
                        return;
                    }
                }
                (&Method::POST, "/upload") => {
                    if self.upload(&mut http, &request).await.is_err() {
                        return;
                    }
                }
                (_, path) => {
                    let file = path.strip_prefix("/files/").map(str::to_owned);
                    if body(&mut http, Duration::ZERO).await.is_err() || self.get(&mut http, file).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// The answer that makes a websocket of the connection.
    fn upgrade(&self, request: &Request) -> Option<Response<()>> {
        if self.shared.look(|state| state.faults.refuse_sockets).is_some() {
            return None;
        }
        Some(ws::handshake(request.head()).ok()?.finish().drop_body())
    }

    fn refusal(&self) -> StatusCode {
        let wanted = self.shared.look(|state| state.faults.refuse_sockets);
        wanted.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::BAD_REQUEST)
    }

    async fn get(&self, http: &mut Http, file: Option<String>) -> Result<(), Over> {
        let found = file.and_then(|name| self.shared.look(|state| state.files.get(&name).cloned()));
        match found {
            Some(bytes) => answer_with(http, Response::new(StatusCode::OK).drop_body(), Some(bytes)).await,
            None => answer(http, StatusCode::NOT_FOUND, "404").await,
        }
    }

    async fn upload(&self, http: &mut Http, request: &Request) -> Result<(), Over> {
        let faults = self.shared.look(|state| state.faults.clone());
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let too_long = header(CONTENT_LENGTH).parse().is_ok_and(|length: usize| length > MAX_BODY);
        let body = if too_long { None } else { body(http, faults.read_slowly).await? };
        let Some(body) = body else {
            // And hangs up at once, as the real one does: whoever still writes may never see this.
            answer(http, StatusCode::PAYLOAD_TOO_LARGE, "").await?;
            return Err(Over);
        };
        let received = parse(header(CONTENT_TYPE), body).await;
        if faults.hang {
            return future::pending().await;
        }
        if !faults.answer_after.is_zero() {
            // Even of no time at all a sleep is one of a millisecond.
            sleep(faults.answer_after).await;
        }
        if let Some(status) = self.shared.change(|state| state.faults.refuse()) {
            return answer(http, StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), "").await;
        }
        let received = match received {
            Ok(received) => received,
            Err((status, words)) => return answer(http, status, words).await,
        };
        if !faults.lose_uploads {
            self.shared.change(|state| state.uploads.push(received.clone()));
        }
        if faults.lose_answers {
            return Err(Over);
        }
        answer_with(http, Response::new(StatusCode::NO_CONTENT).drop_body(), None).await?;
        self.after_answer(&faults, &received);
        Ok(())
    }

    fn after_answer(&self, faults: &Faults, received: &Received) {
        if let Some(after) = self.shared.change(|state| state.faults.close_after_answer.take()) {
            let shared = Arc::clone(&self.shared);
            actix_rt::spawn(async move {
                sleep(after).await;
                shared.broadcast(&Out::Cut);
            });
        }
        if faults.die_after_answer {
            let shared = Arc::clone(&self.shared);
            actix_rt::spawn(async move {
                sleep(DIES_AFTER).await;
                shared.stop.notify_one();
            });
        }
        let hook = self.shared.look(|state| state.hook.clone());
        if let Some(hook) = hook.filter(|_| !faults.lose_uploads) {
            let hook = hook.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            hook(&self.sayer, received);
        }
    }
}

/// The whole body of a request; none if it is too long.
async fn body(http: &mut Http, pause: Duration) -> Result<Option<Bytes>, Over> {
    let mut body = Vec::new();
    if matches!(http.codec_ref().message_type(), MessageType::None) {
        return Ok(Some(Bytes::new()));
    }
    loop {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        match http.next().await {
            Some(Ok(Message::Chunk(Some(piece)))) if body.len() + piece.len() > MAX_BODY => {
                drop(piece);
                return Ok(None);
            }
            Some(Ok(Message::Chunk(Some(piece)))) => body.extend_from_slice(&piece),
            Some(Ok(Message::Chunk(None))) => return Ok(Some(body.into())),
            _ => return Err(Over),
        }
    }
}

/// Reads the form, as the real one does.
async fn parse(content_type: &str, body: Bytes) -> Result<Received, (StatusCode, &'static str)> {
    const NO_FORM: (StatusCode, &str) = (StatusCode::INTERNAL_SERVER_ERROR, "no form");
    let at = Instant::now();
    let boundary = multer::parse_boundary(content_type).map_err(|_| NO_FORM)?;
    let once = stream::once(future::ready(Ok::<_, std::convert::Infallible>(body)));
    let mut form = multer::Multipart::new(once, boundary);
    let mut received = Received { id: String::new(), text: String::new(), file: None, at };
    while let Some(field) = form.next_field().await.map_err(|_| NO_FORM)? {
        let (name, file) = (field.name().map(str::to_owned), field.file_name().map(str::to_owned));
        let bytes = field.bytes().await.map_err(|_| NO_FORM)?;
        match name.as_deref() {
            Some("id") => received.id = String::from_utf8_lossy(&bytes).into_owned(),
            Some("text") => received.text = String::from_utf8_lossy(&bytes).into_owned(),
            Some("file") => {
                let name = file.unwrap_or_default();
                let ending = Some(ending(&name)).filter(|ending| !ending.is_empty()).unwrap_or(".bin".into());
                let saved_as = format!("{}{ending}", epoch_ms());
                received.file = (!bytes.is_empty()).then_some(ReceivedFile { name, bytes, saved_as });
            }
            _ => {}
        }
    }
    if received.id.is_empty() { Err((StatusCode::BAD_REQUEST, "missing id")) } else { Ok(received) }
}

async fn answer(http: &mut Http, status: StatusCode, words: &'static str) -> Result<(), Over> {
    answer_with(http, Response::new(status).drop_body(), Some(Bytes::from_static(words.as_bytes()))).await
}

async fn answer_with(http: &mut Http, response: Response<()>, body: Option<Bytes>) -> Result<(), Over> {
    let size = body.as_ref().map_or(BodySize::None, |body| BodySize::Sized(body.len() as u64));
    http.send(Message::Item((response, size))).await.map_err(|_| Over)?;
    if let Some(body) = body {
        http.send(Message::Chunk(Some(body))).await.map_err(|_| Over)?;
    }
    Ok(())
}
