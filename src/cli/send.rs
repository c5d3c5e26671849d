//! `send`: a hand-off from a script.

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::config::Config;
use crate::control::client::Client;
use crate::control::wire::Command;
use crate::error::{Advise, During, Error, Kind, Result};
use crate::fakechat::upload::MAX_BODY;
use crate::handoff::listed::Listed;
use crate::handoff::{HandOff, Id};
use crate::spool::read::Reader;
use crate::text::visible;

use super::change::carry_out;
use super::hindrance::{Hindrance, Need};
use super::out;

/// How often the spool is looked at while no bridge runs that could say when there is a result.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What comes of a hindrance.
const WAITS: &str = "it is kept, and waits";
/// Who hears of it, for a person who sent it.
const TO_THE_BOT: &str = "accepted; the bot is told its result too";

/// Has a hand-off accepted, prints its id, and, if asked to, waits for its result.
///
/// # Errors
/// It was not accepted; it was given up; (kind `TimedOut`) there was no result in time.
pub fn run(config: &Config, args: &super::Send) -> Result<()> {
    let text = match args.text.as_deref().unwrap_or_default() {
        "-" => from_stdin()?,
        text => text.to_owned(),
    };
    let text = text.trim().to_owned();
    if text.is_empty() && args.files.is_empty() {
        return Err(Error::failed("sending a hand-off: there is nothing in it").hint("give a text, a --file, or both"));
    }
    let files = args.files.iter().map(absolute).collect::<Result<_>>()?;
    let id = Id::now();
    if let Err(error) = carry_out(config, &Command::Send { text, files, id: Some(id.to_string()) }) {
        // The bridge may have accepted it and gone before it could say so. What the spool has is the truth.
        if Reader::new(&config.paths.spool()).load(id).ok().flatten().is_none() {
            return Err(error);
        }
    }
    let waits = args.wait || args.timeout.is_some();
    if !args.output.json {
        out::print_line(&id.to_string())?;
        if out::is_terminal() {
            // A script takes the id alone.
            out::say(TO_THE_BOT);
        }
    } else if !waits {
        out::print_json(&json!({ "id": id }))?;
    }
    if !waits {
        if let Some(hindrance) = Hindrance::of(config, Need::WORK) {
            hindrance.say(WAITS);
        }
        return Ok(());
    }
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    let done = wait(config, id, deadline);
    if args.output.json && done.as_ref().is_err_and(|error| error.kind() == Kind::TimedOut) {
        out::print_json(&so_far(config, id))?;
    }
    report(&done?, args.output.json)
}

/// The document of one that has no result yet, with the keys of one that has.
fn so_far(config: &Config, id: Id) -> Value {
    match Reader::new(&config.paths.spool()).load(id) {
        Ok(Some((handoff, state))) => Listed { handoff, state }.document(OffsetDateTime::now_utc()),
        _ => json!({ "id": id, "results": [] }),
    }
}

fn from_stdin() -> Result<String> {
    const DOING: &str = "reading the hand-off from standard input";
    let mut text = Vec::new();
    io::stdin().take(MAX_BODY + 1).read_to_end(&mut text).during(DOING).advise("give it a file or a pipe")?;
    if text.len() as u64 > MAX_BODY {
        return Err(Error::failed(format!("{DOING}: it is longer than the {MAX_BODY} bytes that fakechat takes"))
            .hint("send where it lies instead"));
    }
    String::from_utf8(text).during(DOING).advise("what is no text in UTF-8 goes along as a --file")
}

fn absolute(path: &PathBuf) -> Result<PathBuf> {
    let doing = format!("taking the file {}", path.display());
    let file = std::fs::canonicalize(path).during(&doing).advise("give the path of a file that this user can read")?;
    if file.is_dir() {
        return Err(Error::failed(format!("{doing}: it is a folder"))
            .hint("give a file: pack the folder into one (tar), or send where it lies instead"));
    }
    Ok(file)
}

/// Waits until it has a result or is given up: told by the bridge, or, while none runs, by a look now and then.
fn wait(config: &Config, id: Id, deadline: Option<Instant>) -> Result<Listed> {
    let root = config.paths.spool();
    let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let (mut said, mut looked) = (None, false);
    loop {
        if let Some((handoff, state)) = Reader::new(&root).load(id)?
            && !handoff.waits_for_result()
        {
            return Ok(Listed { handoff, state });
        }
        let late = left().is_some_and(|left| left.is_zero());
        if !late || !looked {
            let hindrance = Hindrance::of(config, Need::WORK);
            if let Some(new) = hindrance.as_ref().filter(|_| hindrance != said) {
                new.say(WAITS);
            }
            (said, looked) = (hindrance, true);
        }
        if late {
            return Err(Error::new(Kind::TimedOut, format!("waiting for hand-off {id}: no result in time"))
                .hint(format!("it stays; `anna-relay show {}` shows how it stands", id.short())));
        }
        match Client::connect(&root) {
            Ok(Some(mut client)) => {
                // Whatever it says, the spool is looked at next.
                let told = client.ask_within(Command::Wait { id: id.to_string() }, left());
                if told.is_err() {
                    std::thread::sleep(left().map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
                }
            }
            _ => std::thread::sleep(left().map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY))),
        }
    }
}

fn report(done: &Listed, json: bool) -> Result<()> {
    if json {
        let document: Value = done.document(OffsetDateTime::now_utc());
        out::print_json(&document)?;
    }
    let HandOff { id, results, failed, .. } = &done.handoff;
    match (results.first(), failed) {
        (Some(result), _) if !json => {
            // On a terminal, text from a session is untrusted.
            let text = if out::is_terminal() { visible(&result.text) } else { result.text.as_str().into() };
            out::print_line(&text)?;
            for file in &result.files {
                let lies = file.path.as_deref().unwrap_or("it could not be had");
                out::print_line(&format!("[file {}: {lies}]", visible(&file.name)))?;
            }
            Ok(())
        }
        (Some(_), _) => Ok(()),
        (None, failed) => {
            let why = failed.as_ref().map_or("", |failed| failed.reason.word());
            Err(Error::failed(format!("waiting for hand-off {id}: it was given up ({why})"))
                .hint(format!("`anna-relay show {}` says more", id.short())))
        }
    }
}
