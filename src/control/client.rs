//! The commands' end of the control socket.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::error::{Error, Kind, Result};

use super::server::{MAX_PATH, path};
use super::wire::{Command, Reply, Request, Response, VERSION};

/// How long an answer is waited for, where nothing else is asked: the bridge answers within milliseconds, unless its
/// disk hangs.
const ANSWER_WITHIN: Duration = Duration::from_secs(35);

/// A connection to the bridge that has this spool.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects. `None`: no bridge runs.
    ///
    /// # Errors
    /// Something is there, but cannot be talked to.
    pub fn connect(spool: &Path) -> Result<Option<Client>> {
        let path = path(spool);
        if path.as_os_str().len() > MAX_PATH {
            // No bridge can have a socket there.
            return Ok(None);
        }
        match UnixStream::connect(&path) {
            Ok(stream) => Ok(Some(Client { stream: BufReader::new(stream) })),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                Ok(None)
            }
            Err(error) => {
                let hint = match error.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "the control socket is open to the user that runs the bridge alone"
                    }
                    _ => "look at what lies there; `anna-relay check` says where `paths.state` is",
                };
                Err(Error::failed(format!("connecting to {}: {error}", path.display())).hint(hint))
            }
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The bridge's, or that it went away.
    pub fn ask(&mut self, command: Command) -> Result<Value> {
        let answer = self.ask_within(command, Some(ANSWER_WITHIN));
        answer.map_err(|error| match error.kind() {
            Kind::TimedOut => Error::failed(error.to_string()).hint("`anna-relay status` shows what holds it up"),
            _ => error,
        })
    }

    /// Asks, and waits for the answer so long; `None`: for ever.
    ///
    /// # Errors
    /// The bridge's, or that it went away, or (kind `TimedOut`) that it took too long.
    pub fn ask_within(&mut self, command: Command, within: Option<Duration>) -> Result<Value> {
        let request = Request { v: VERSION, command };
        let mut line =
            serde_json::to_vec(&request).map_err(|error| Error::failed(format!("asking the bridge: {error}")))?;
        line.push(b'\n');
        let asked = self.exchange(&line, within);
        let answer = asked.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Error::new(Kind::TimedOut, "asking the bridge: no answer in time")
            }
            _ => Error::failed(format!("asking the bridge: {error}"))
                .hint("it may just have stopped, or be asked by too many at once; do it again"),
        })?;
        let response: Response = serde_json::from_slice(&answer).map_err(|error| {
            Error::failed(format!("asking the bridge: its answer is not understood: {error}"))
                .hint("if the bridge is of another version, restart the older of the two")
        })?;
        match response.reply {
            Reply::Ok(value) => Ok(value),
            Reply::Error(refusal) => Err(refusal.into()),
        }
    }

    fn exchange(&mut self, line: &[u8], within: Option<Duration>) -> io::Result<Vec<u8>> {
        let stream = self.stream.get_mut();
        stream.set_read_timeout(within)?;
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        let sent = stream.write_all(line);
        let closed = |kind| matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset);
        match sent {
            Err(error) if !closed(error.kind()) => return Err(error),
            // A bridge that did not read to the end has said why not.
            _ => {}
        }
        let mut answer = Vec::new();
        match self.stream.read_until(b'\n', &mut answer) {
            Err(error) if !closed(error.kind()) => return Err(error),
            _ if !answer.ends_with(b"\n") => {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
            }
            _ => {}
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// What a client is told by a bridge that reads a few bytes, says this, and closes the connection.
    fn told(says: &'static str) -> Error {
        let spool = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(path(spool.path())).unwrap();
        let bridge = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 8]).unwrap();
            stream.write_all(says.as_bytes()).unwrap();
        });
        let mut client = Client::connect(spool.path()).unwrap().unwrap();
        // More than a socket holds: it cannot be written to the end.
        let error = client.ask(Command::Pause { reason: Some("x".repeat(8 << 20)) }).unwrap_err();
        bridge.join().unwrap();
        error
    }

    #[test]
    fn a_refusal_in_the_middle_of_the_request_is_heard() {
        let error = told("{\"v\":1,\"error\":{\"message\":\"it is too long\",\"hint\":\"a file\"}}\n");
        assert_eq!((error.to_string().as_str(), error.advice()), ("it is too long", Some("a file")));
    }

    #[test]
    fn a_bridge_that_goes_away_is_said_to_have() {
        for says in ["", "{\"v\":1,\"er"] {
            assert!(told(says).to_string().ends_with("it closed the connection"), "{says}");
        }
    }
}
