//! The bridge's end of the control socket: who may ask, and how much.
//!
//! Only the same user is let in (the kernel says who it is). A request that is too long, not complete in time, or no
//! request at all gets an error or a closed connection; none of them holds up anything, for each connection is a task
//! of its own, and how many there may be is bounded (`room`).

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::error::{Advise, During, Error, Result};

use super::request::{self, Came};
use super::wire::{Command, Reply, Response, VERSION};

/// How long a client may take to read an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked whether a client is still there that sent more than it was answered, or has no more to ask.
const LOOK_EVERY: Duration = Duration::from_secs(5);

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
        let (command, _until_answered) = match request::next(&mut reader, &request::LONG).await {
            Came::Request(command, long) => (command, long),
            Came::Refused(refusal) => {
                write(&mut writer, Reply::Error(refusal)).await;
                return;
            }
            Came::Nothing => return,
        };
        let (reply, _until_written) = tokio::select! {
            biased;
            reply = answer(command) => reply,
            // The client need not wait for what it does not want any more.
            () = gone(&mut reader) => return,
        };
        if !write(&mut writer, reply).await {
            return;
        }
        // However much one asks at once, the others have their turn in between.
        tokio::task::yield_now().await;
    }
}

/// Resolves when the client has gone; not if it only sent its next request early, or has no more to ask.
async fn gone(reader: &mut BufReader<OwnedReadHalf>) {
    // Mostly what comes next is its end.
    if reader.fill_buf().await.is_err() {
        return;
    }
    while !has_hung_up(reader.get_ref().as_ref()) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Whether nobody is there any more to read an answer.
fn has_hung_up(stream: &UnixStream) -> bool {
    let mut looked = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut looked, Some(&now)).is_ok() && looked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

async fn write(writer: &mut (impl tokio::io::AsyncWrite + Unpin), reply: Reply) -> bool {
    let Ok(mut bytes) = serde_json::to_vec(&Response { v: VERSION, reply }) else { return false };
    bytes.push(b'\n');
    matches!(timeout(ANSWER_WITHIN, writer.write_all(&bytes)).await, Ok(Ok(())))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::io::AsyncReadExt;

    use super::*;

    const LINE: &[u8] = b"{\"v\":1,\"cmd\":\"status\"}\n";

    async fn never(_: Command) -> (Reply, ()) {
        std::future::pending().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_goes_while_it_waits_is_let_go_of_also_if_it_had_asked_more() {
        for lines in [1, 2] {
            let (mut client, served) = UnixStream::pair().unwrap();
            client.write_all(&LINE.repeat(lines)).await.unwrap();
            drop(client);
            serve(served, never).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_no_more_to_ask_is_answered() {
        // At once, and after a wait.
        for wait in [0, 60] {
            let (mut client, served) = UnixStream::pair().unwrap();
            client.write_all(LINE).await.unwrap();
            client.shutdown().await.unwrap();
            let answer = |_| async move {
                tokio::time::sleep(Duration::from_secs(wait)).await;
                (Reply::Ok(wait.into()), ())
            };
            serve(served, answer).await;
            let mut said = String::new();
            client.read_to_string(&mut said).await.unwrap();
            assert_eq!(said, format!("{{\"v\":1,\"ok\":{wait}}}\n"));
        }
    }

    #[tokio::test]
    async fn however_much_one_asks_at_once_the_next_one_has_its_turn() {
        let answered = RefCell::new(Vec::new());
        let asks = async |name: char| {
            let (mut client, served) = UnixStream::pair().unwrap();
            client.write_all(&LINE.repeat(30)).await.unwrap();
            client.shutdown().await.unwrap();
            let answer = |_| async {
                answered.borrow_mut().push(name);
                (Reply::Ok(0.into()), ())
            };
            serve(served, answer).await;
        };
        tokio::join!(asks('a'), asks('b'));
        let answered = answered.into_inner();
        assert_eq!(answered.len(), 60);
        // But for a turn before the other one was there, they take turns.
        assert!(answered.chunks(10).all(|some| some.contains(&'a') && some.contains(&'b')), "{answered:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_reads_is_cut_off() {
        let (mut client, served) = UnixStream::pair().unwrap();
        let answer = |_| async { (Reply::Ok("x".repeat(8 << 20).into()), ()) };
        client.write_all(LINE).await.unwrap();
        serve(served, answer).await;
    }

    #[test]
    fn a_path_too_long_for_a_socket_goes_elsewhere() {
        let short = Path::new("/home/anna/.local/state/anna/relay");
        assert_eq!(path(short), short.join("anna-relay.sock"));
    }
}
