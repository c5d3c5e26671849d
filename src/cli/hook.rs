//! `anna-relay hook`: Claude Code calls it with a hook's JSON on standard input.
//!
//! A session waits for its hooks and obeys them: exit code 2 of a `Stop` hook keeps a turn going, and what
//! `SessionStart` prints becomes part of the conversation. So whatever happens, this ends soon, with 0, and in
//! silence. Who looks for a fault sets `$ANNA_LOG` to `debug` and gets one line on standard error.

use std::ffi::OsString;
use std::io::{self, Read};
use std::panic;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use time::OffsetDateTime;

use crate::config::{Config, Side};
use crate::error::{Error, Result};
use crate::fakechat::socket::MAX_FRAME;
use crate::inbox::Put;
use crate::within::within;
use crate::{hook, inbox};

use super::{out, usage};

/// The most that is read. A reply of several MiB is legitimate, and what does not fit a frame could not have come
/// by the websocket either.
const MAX_INPUT: u64 = MAX_FRAME as u64;
/// How long the JSON may take to arrive. Claude Code has it at hand.
const READ_WITHIN: Duration = Duration::from_secs(5);
/// How long storing may take: 200 MiB of files and their fsync on a slow disk. Less than the `timeout` in
/// `contrib/claude/`, after which Claude Code ends the hook and says so.
const STORE_WITHIN: Duration = Duration::from_secs(25);

/// Takes in what a hook of that side's session tells. Never fails.
#[must_use]
pub fn run(side: Side, flag: Option<&Path>) -> ExitCode {
    let is_debug = is_debug();
    if !is_debug {
        panic::set_hook(Box::new(|_| {}));
    }
    let flag = flag.map(Path::to_owned);
    let told = within(READ_WITHIN, "reading the hook's JSON", || take(io::stdin().lock())).and_then(|json| {
        within(STORE_WITHIN, "storing what the hook told", move || store(side, &json, flag.as_deref()))
    });
    if is_debug {
        out::say(&match told {
            Ok(done) => format!("hook {side}: {done}"),
            Err(error) => format!("hook {side}: {error}"),
        });
    }
    ExitCode::SUCCESS
}

/// Whether the command line, which makes no sense, was meant for this command: then it is silent, too, and exits
/// with 0, for a usage error's 2 is an order to the session.
#[must_use]
pub fn is_meant(args: impl IntoIterator<Item = OsString>) -> bool {
    usage::command_in(args).as_deref() == Some("hook")
}

/// Says, to whoever looks for a fault, what is wrong with a command line that was meant for this command.
#[must_use]
pub fn misused(error: &clap::Error) -> ExitCode {
    if is_debug() {
        out::say(&error.to_string());
    }
    ExitCode::SUCCESS
}

fn is_debug() -> bool {
    std::env::var_os("ANNA_LOG").is_some_and(|level| {
        let level = level.to_string_lossy();
        ["debug", "trace"].iter().any(|name| level.eq_ignore_ascii_case(name))
    })
}

fn take(from: impl Read) -> Result<Vec<u8>> {
    let mut json = Vec::new();
    match from.take(MAX_INPUT + 1).read_to_end(&mut json) {
        Ok(_) if json.len() as u64 > MAX_INPUT => Err(Error::failed(format!("it is longer than {MAX_INPUT} bytes"))),
        Ok(_) => Ok(json),
        Err(error) => Err(Error::failed(format!("reading standard input: {error}"))),
    }
}

fn store(side: Side, json: &[u8], flag: Option<&Path>) -> Result<String> {
    let Some(record) = hook::parse(side, json, OffsetDateTime::now_utc()) else {
        return Ok("nothing for the relay".into());
    };
    let config = Config::load(flag)?;
    if !config.relay.enabled {
        // Else, whoever turns it on would hand over everything that was ever said.
        return Ok("the relay is not enabled".into());
    }
    Ok(match inbox::put(&config.paths.spool(), record)? {
        Put::Stored(path) => format!("stored {}", path.display()),
        Put::Full => "the inbox is full".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(line: &str) -> bool {
        is_meant(line.split(' ').map(OsString::from))
    }

    #[test]
    fn what_was_meant_for_a_hook_is_known() {
        for line in ["anna-relay hook", "anna-relay hook bran", "anna-relay --config x hook", "anna-relay --x hook y"] {
            assert!(meant(line), "{line}");
        }
        for line in ["anna-relay", "anna-relay send hook", "anna-relay --config hook status", "anna-relay --config"] {
            assert!(!meant(line), "{line}");
        }
    }

    #[test]
    fn no_more_than_the_bound_is_read() {
        assert_eq!(take(&b"{}"[..]).unwrap(), b"{}");
        assert!(take(io::repeat(b' ')).is_err());
    }
}
