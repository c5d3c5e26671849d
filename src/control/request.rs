//! Reading a request: how long it may be, how long it may take, and what it says.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::wire::{Command, Refusal, Request, VERSION};

/// The longest request in bytes: a hand-off's text may be long, but fakechat takes no more than this.
const MAX_REQUEST: u64 = 128 * 1024 * 1024;
/// A request longer than this is a long one: each client may have so much in memory.
const SHORT: u64 = 64 * 1024;
/// So many long requests are in memory at a time, from here to their answer.
const LONG_ONES: usize = 2;
/// How long a client may take over a request, from its connection or its last answer on.
const WITHIN: Duration = Duration::from_secs(10);

/// The room for long requests.
pub static LONG: Semaphore = Semaphore::const_new(LONG_ONES);

/// What came of a client.
#[derive(Debug)]
pub enum Came<'a> {
    /// A request; a long one holds its room until it is answered.
    Request(Command, Option<SemaphorePermit<'a>>),
    /// Something else, which is answered by this.
    Refused(Refusal),
    /// Nothing: it has gone, or asks nothing.
    Nothing,
}

/// Reads the next request; for a long one there has to be room.
pub async fn next<'a>(reader: &mut (impl AsyncBufRead + Unpin), room: &'a Semaphore) -> Came<'a> {
    let (mut line, mut long) = (Vec::new(), None);
    let read = timeout(WITHIN, async {
        (&mut *reader).take(SHORT).read_until(b'\n', &mut line).await?;
        if line.len() as u64 == SHORT && !line.ends_with(b"\n") {
            long = room.acquire().await.ok();
            reader.take(MAX_REQUEST - SHORT).read_until(b'\n', &mut line).await?;
        }
        Ok::<_, io::Error>(())
    });
    let read = read.await;
    let waits = line.len() as u64 >= SHORT && long.is_none();
    let (why, hint) = match read {
        Ok(Err(_)) => return Came::Nothing,
        _ if line.is_empty() => return Came::Nothing,
        Ok(Ok(())) if line.ends_with(b"\n") => {
            return match parse(&line) {
                Ok(command) => Came::Request(command, long),
                Err(refusal) => Came::Refused(refusal),
            };
        }
        Ok(Ok(())) if line.len() as u64 >= MAX_REQUEST => {
            (format!("it is longer than {} MiB", MAX_REQUEST >> 20), "give what is long as a file")
        }
        Ok(Ok(())) => ("it ends in the middle".to_owned(), "end it with a line break"),
        Err(_) if waits => (
            format!("it is a long one, and {LONG_ONES} others were not done within {} s", WITHIN.as_secs()),
            "ask again, or give what is long as a file",
        ),
        Err(_) => (format!("it was not complete within {} s", WITHIN.as_secs()), "send all of it, with a line break"),
    };
    Came::Refused(Refusal { message: format!("reading a request: {why}"), hint: Some(hint.to_owned()) })
}

/// What a line says.
fn parse(line: &[u8]) -> Result<Command, Refusal> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        v: u64,
    }
    let no_request = |what: &dyn std::fmt::Display| Refusal {
        message: format!("reading a request: {what}"),
        hint: Some(r#"a request is one line of JSON, such as {"v":1,"cmd":"status"}"#.to_owned()),
    };
    let Versioned { v } = serde_json::from_slice(line).map_err(|error| no_request(&error))?;
    if v != u64::from(VERSION) {
        return Err(Refusal {
            message: format!(
                "reading a request: it speaks version {v} of the protocol, and the bridge version {VERSION}"
            ),
            hint: Some(format!(
                "restart the older of the two: {}",
                if v > u64::from(VERSION) { "the bridge" } else { "the program that asks" }
            )),
        });
    }
    serde_json::from_slice::<Request>(line).map(|request| request.command).map_err(|error| no_request(&error))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, BufReader, duplex, repeat};

    use super::*;

    fn refused(came: Came<'_>) -> String {
        match came {
            Came::Refused(Refusal { message, hint: Some(_) }) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_is_read_and_junk_is_told_what_a_request_is() {
        assert_eq!(parse(br#"{"v":1,"cmd":"status"}"#), Ok(Command::Status));
        for junk in ["", "x", "[]", "{}", r#"{"v":1}"#, r#"{"v":1,"cmd":"nonsense"}"#, r#"{"v":"1","cmd":"status"}"#] {
            assert!(parse(junk.as_bytes()).unwrap_err().hint.unwrap().contains("one line of JSON"), "{junk}");
        }
    }

    #[test]
    fn another_version_is_told_which_of_the_two_to_restart() {
        let hint = |line: &str| parse(line.as_bytes()).unwrap_err().hint.unwrap();
        for line in [r#"{"v":2,"cmd":"unheard-of"}"#, r#"{"v":4294967297,"cmd":"status"}"#] {
            assert!(hint(line).contains("restart the older of the two: the bridge"), "{line}");
        }
        assert!(hint(r#"{"v":0}"#).contains("the program that asks"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_too_long_half_sent_or_slow_is_told_so() {
        let room = Semaphore::new(1);
        assert!(refused(next(&mut BufReader::new(repeat(b'x')), &room).await).contains("longer than 128 MiB"));
        assert!(refused(next(&mut &b"{\"v\":1"[..], &room).await).contains("ends in the middle"));
        assert!(matches!(next(&mut &b""[..], &room).await, Came::Nothing));
        let (mut slow, there) = duplex(64);
        let mut there = BufReader::new(there);
        assert!(matches!(next(&mut there, &room).await, Came::Nothing), "it asks nothing");
        slow.write_all(b"{").await.unwrap();
        assert!(refused(next(&mut there, &room).await).contains("not complete within 10 s"));
        // Byte by byte it does not get longer.
        let drip = async {
            while slow.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            () = drip => panic!("it was not cut"),
            came = next(&mut there, &room) => assert!(refused(came).contains("not complete within 10 s")),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_long_ones_are_in_memory_and_short_ones_go_on() {
        let line = format!("{{\"v\":1,\"cmd\":\"send\",\"text\":\"{}\"}}\n", "x".repeat(1 << 20));
        let (room, mut held) = (Semaphore::new(LONG_ONES), Vec::new());
        for _ in 0..LONG_ONES {
            let Came::Request(_, long) = next(&mut line.as_bytes(), &room).await else { panic!("a request") };
            held.push(long.unwrap());
        }
        assert!(refused(next(&mut line.as_bytes(), &room).await).contains("2 others were not done within 10 s"));
        assert!(matches!(next(&mut &b"{\"v\":1,\"cmd\":\"status\"}\n"[..], &room).await, Came::Request(_, None)));
        held.pop();
        assert!(matches!(next(&mut line.as_bytes(), &room).await, Came::Request(_, Some(_))));
    }
}
