//! Commands that change the spool: through the bridge that runs, else by its lock.

use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;

use crate::config::Config;
use crate::control::client::Client;
use crate::control::wire::Command;
use crate::error::{Error, Kind, Result};
use crate::queue::{Effect, Now, Receipt, Settings};
use crate::spool::Store;
use crate::spool::lock::{Lock, Role};
use crate::spooler::{Spooler, request};
use crate::stream::Stream;

use super::starter::Starter;

/// How often it is looked for a bridge that holds the lock and does not answer yet: it is just starting.
const TRIES: usize = 50;
/// How long between two looks.
const BETWEEN: Duration = Duration::from_millis(100);
/// How long the stream may take.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// Has a request carried out.
///
/// # Errors
/// Those of carrying it out.
pub fn carry_out(config: &Config, command: &Command) -> Result<Value> {
    let mut tries = 0;
    loop {
        if let Some(mut client) = Client::connect(&config.paths.spool())? {
            return client.ask(command.clone());
        }
        tries += 1;
        match by_ourselves(config, command.clone()) {
            Err(error) if error.kind() == Kind::Busy && tries < TRIES => std::thread::sleep(BETWEEN),
            Err(error) if error.kind() == Kind::Busy => {
                return Err(Error::failed(error.to_string())
                    .hint(format!("it does not answer; to have it start anew: {}", Starter::here().restart())));
            }
            result => return result,
        }
    }
}

/// Carries it out on the spool itself.
fn by_ourselves(config: &Config, command: Command) -> Result<Value> {
    let root = config.paths.spool();
    let store = Store::open(&root)?;
    let _lock = Lock::spool(&root, Role::Command)?;
    store.sweep()?;
    let now = Now { mono: Duration::ZERO, wall: OffsetDateTime::now_utc() };
    let mut spooler = Spooler::open(store, Settings::from(config), 0, now)?;
    let event = request::event(command, Receipt::Request(0))?;
    let stream = Stream::open(&config.paths.stream)?;
    let outcome = spooler.process(event, now);
    let mut answer = Err(Error::failed("carrying out the request: it has no answer"));
    for effect in outcome.effects {
        match effect {
            Effect::Answer(_, result) => answer = result,
            other => stream.record(&other),
        }
    }
    if !stream.flush(FLUSH_WITHIN) {
        super::out::say("anna-relay: the stream could not be written; what was asked for is done all the same");
    }
    answer
}
