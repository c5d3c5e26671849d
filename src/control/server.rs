//! The bridge's end of the control socket: who may ask, and how much.
//!
//! Only the same user is let in (the kernel says who it is). A request that is too long, not complete in time, or no
//! request at all gets an error or a closed connection; none of them holds up anything, for each connection is a task
//! of its own, and there are not more than [`MAX_CLIENTS`].

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::error::{Advise, During, Error, Result};

use super::wire::{Command, Refusal, Reply, Request, Response, VERSION};

/// The longest request in bytes: a hand-off's text may be long, but fakechat takes no more than this.
pub const MAX_REQUEST: u64 = 128 * 1024 * 1024;
/// How long a client may take over a request, from its connection or its last answer on.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);
/// How long a client may take to read an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How many clients are served at a time; for the next one the first of those that ask nothing has to go.
pub const MAX_CLIENTS: usize = 512;

/// What `sun_path` holds on Linux, less its NUL; macOS has 104.
pub(super) const MAX_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// What to do where it cannot be opened.
const MEND: &str = "remove what lies there, or make its folder this user's own";

/// Where the control socket is: in the spool, or, where that path is too long for a socket, in `$XDG_RUNTIME_DIR`.
#[must_use]
pub fn path(spool: &Path) -> PathBuf {
    const NAME: &str = "anna-relay.sock";
    let own = spool.join(NAME);
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(run) if own.as_os_str().len() > MAX_PATH => Path::new(&run).join(NAME),
        _ => own,
    }
}

/// Opens the socket. Whoever holds the spool's lock may take the place of a socket that a dead bridge left.
///
/// # Errors
/// Says where, and why not.
pub fn listen(path: &Path) -> Result<UnixListener> {
    let doing = || format!("opening the control socket {}", path.display());
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).during(doing()).advise(MEND),
        _ => {}
    }
    if path.as_os_str().len() > MAX_PATH {
        return Err(Error::failed(format!("{}: that is longer than {MAX_PATH} bytes", doing())).hint(
            "set XDG_RUNTIME_DIR to a private folder, where the socket then goes, or give paths.state a shorter path",
        ));
    }
    let listener = UnixListener::bind(path).during(doing()).advise(MEND)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).during(doing())?;
    Ok(listener)
}

/// Whether the other end is the same user.
fn is_same_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}

/// Serves one client: each line of it to `answer`, until it goes.
///
/// What `answer` returns beside the reply is dropped once that is written.
pub async fn serve<F, A, G>(stream: UnixStream, answer: F)
where
    F: Fn(Command) -> A,
    A: Future<Output = (Reply, G)>,
{
    if !is_same_user(&stream) {
        tracing::warn!("a client of another user was turned away from the control socket");
        return;
    }
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(MAX_REQUEST);
        let reply = match timeout(REQUEST_WITHIN, limited.read_until(b'\n', &mut line)).await {
            Ok(Ok(0)) | Ok(Err(_)) => return,
            Err(_) if line.is_empty() => return,
            Err(_) => refusal(format!("reading a request: it was not complete within {} s", REQUEST_WITHIN.as_secs())),
            Ok(Ok(_)) if line.last() != Some(&b'\n') => {
                let why = if line.len() as u64 >= MAX_REQUEST { "it is too long" } else { "it ends in the middle" };
                refusal(format!("reading a request: {why}"))
            }
            Ok(Ok(_)) => match read(&line) {
                Ok(command) => {
                    drop(line);
                    let (reply, _until_written) = tokio::select! {
                        reply = answer(command) => reply,
                        // The client need not wait for what it does not want any more.
                        () = gone(&mut reader) => return,
                    };
                    if !write(&mut writer, reply).await {
                        return;
                    }
                    continue;
                }
                Err(refusal) => Reply::Error(refusal),
            },
        };
        write(&mut writer, reply).await;
        return;
    }
}

/// Resolves when the client has gone; not if it only sent its next request early.
async fn gone(reader: &mut (impl tokio::io::AsyncBufRead + Unpin)) {
    match reader.fill_buf().await {
        Ok([]) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}

async fn write(writer: &mut (impl tokio::io::AsyncWrite + Unpin), reply: Reply) -> bool {
    let Ok(mut bytes) = serde_json::to_vec(&Response { v: VERSION, reply }) else { return false };
    bytes.push(b'\n');
    matches!(timeout(ANSWER_WITHIN, writer.write_all(&bytes)).await, Ok(Ok(())))
}

/// Reads a request line.
fn read(line: &[u8]) -> std::result::Result<Command, Refusal> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        v: u32,
    }
    let no_request = |what: &dyn std::fmt::Display| Refusal {
        message: format!("reading a request: {what}"),
        hint: Some(r#"a request is one line of JSON, such as {"v":1,"cmd":"status"}"#.to_owned()),
    };
    let Versioned { v } = serde_json::from_slice(line).map_err(|error| no_request(&error))?;
    if v != VERSION {
        return Err(Refusal {
            message: format!(
                "reading a request: it speaks version {v} of the protocol, and the bridge version {VERSION}"
            ),
            hint: Some(format!(
                "restart the older of the two: {}",
                if v > VERSION { "the bridge" } else { "the program that asks" }
            )),
        });
    }
    serde_json::from_slice::<Request>(line).map(|request| request.command).map_err(|error| no_request(&error))
}

fn refusal(message: String) -> Reply {
    Reply::Error(Refusal { message, hint: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_and_junk_is_told_what_a_request_is() {
        assert_eq!(read(br#"{"v":1,"cmd":"status"}"#), Ok(Command::Status));
        for junk in ["", "x", "[]", "{}", r#"{"v":1}"#, r#"{"v":1,"cmd":"nonsense"}"#, r#"{"v":"1","cmd":"status"}"#] {
            assert!(read(junk.as_bytes()).unwrap_err().hint.unwrap().contains("one line of JSON"), "{junk}");
        }
    }

    #[test]
    fn another_version_is_told_which_of_the_two_to_restart() {
        let hint = |line: &str| read(line.as_bytes()).unwrap_err().hint.unwrap();
        assert!(hint(r#"{"v":2,"cmd":"unheard-of"}"#).contains("restart the older of the two: the bridge"));
        assert!(hint(r#"{"v":0}"#).contains("the program that asks"));
    }

    #[test]
    fn a_path_too_long_for_a_socket_goes_elsewhere() {
        let short = Path::new("/home/anna/.local/state/anna/relay");
        assert_eq!(path(short), short.join("anna-relay.sock"));
    }
}
