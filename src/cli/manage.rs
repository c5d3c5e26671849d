//! `pause`, `resume`, `retry`, `cancel`, `prune`, `reset-breaker`: what a person does with the queue.

use serde_json::json;
use time::OffsetDateTime;

use crate::config::{Config, Side};
use crate::control::client::Client;
use crate::control::wire::Command;
use crate::error::Result;
use crate::handoff::life::State;
use crate::handoff::{HandOff, Id, Origin};
use crate::spool::read::Reader;
use crate::text::{count, on_one_line, one_line};

use super::change::carry_out;
use super::hindrance::{Hindrance, Need};
use super::{out, render, status};

/// Columns of a hand-off's text in a line about it.
const TEXT: usize = 60;

/// Lets hand-offs wait.
///
/// # Errors
/// It is not paused.
pub fn pause(config: &Config, reason: Option<String>) -> Result<()> {
    let before = status::paused(&config.paths.spool())?;
    carry_out(config, &Command::Pause { reason: reason.clone() })?;
    if let Some(before) = before {
        let already = format!("paused already, for {}", render::since(before.since, OffsetDateTime::now_utc()));
        let was = before.reason.as_deref().map_or_else(String::new, |was| format!(": {}", on_one_line(was)));
        out::print_line(&(already + &was))?;
        if let Some(now) = reason.filter(|reason| before.reason.as_ref() != Some(reason)) {
            out::print_line(&format!("the reason is now: {}", on_one_line(&now)))?;
        }
    }
    out::print_line("paused: hand-offs wait until `anna-relay resume`")
}

/// Lets them go on.
///
/// # Errors
/// It is still paused.
pub fn resume(config: &Config) -> Result<()> {
    let word = match status::paused(&config.paths.spool())? {
        Some(_) => "resumed",
        None => "it was not paused",
    };
    let answer = carry_out(config, &Command::Resume)?;
    let hindrance = Hindrance::of(config, Need { work: false, ..Need::WORK });
    let then = if hindrance.is_none() { "; they go to the brain in order" } else { "" };
    match answer["waiting"].as_u64().unwrap_or_default() {
        0 => out::print_line(&format!("{word}: nothing waits")),
        n => out::print_line(&format!("{word}: {n} waiting{then}")),
    }?;
    if let Some(hindrance) = hindrance {
        hindrance.say("nothing goes to the brain yet");
    }
    Ok(())
}

/// Has one tried again.
///
/// # Errors
/// There is none of that name, or it is done already.
pub fn retry(config: &Config, part: &str) -> Result<()> {
    let id = Reader::new(&config.paths.spool()).resolve(part)?;
    carry_out(config, &Command::Retry { id: id.to_string() })?;
    out::print_line(&format!("{} is tried again", id.short()))?;
    if let Some(hindrance) = Hindrance::of(config, Need::WORK) {
        hindrance.say("it is kept, and waits");
    }
    Ok(())
}

/// Gives one up.
///
/// # Errors
/// There is none of that name, or it is done already.
pub fn cancel(config: &Config, part: &str) -> Result<()> {
    let reader = Reader::new(&config.paths.spool());
    let id = reader.resolve(part)?;
    carry_out(config, &Command::Cancel { id: id.to_string() })?;
    let h = reader.load(id)?.map(|(h, _)| h);
    let owes = |side: &Side| {
        h.as_ref().is_some_and(|h| match side {
            Side::Brain => h.owes_take_back(),
            Side::Bot => h.owes_failure(),
        })
    };
    let sides: Vec<Side> = Side::BOTH.into_iter().filter(owes).collect();
    let script = h.as_ref().is_some_and(|h| h.from == Origin::Script);
    if sides.is_empty() {
        let told = script && h.is_some_and(|h| h.failed.is_some_and(|failed| failed.told.is_some()));
        let too = if told { "; the bot was told of it too" } else { "" };
        return out::print_line(&format!("{} is cancelled{too}", id.short()));
    }
    let names = sides.iter().map(|side| format!("the {side}")).collect::<Vec<_>>().join(" and ");
    let verb = if sides.len() == 1 { "has" } else { "have" };
    let too = if script && sides.contains(&Side::Bot) { " (the bot is told of those from a script too)" } else { "" };
    out::print_line(&format!("{} is cancelled; it stays in `out` until {names} {verb} been told{too}", id.short()))?;
    if let Some(hindrance) = Hindrance::of(config, Need { sides: &sides, work: false }) {
        hindrance.say("that may take a while");
    }
    Ok(())
}

/// Deletes old closed hand-offs.
///
/// # Errors
/// One cannot be deleted.
pub fn prune(config: &Config, args: &super::Prune) -> Result<()> {
    let states = if args.states.is_empty() { &[State::Done, State::Failed][..] } else { &args.states };
    let (reader, now) = (Reader::new(&config.paths.spool()), OffsetDateTime::now_utc());
    let mut old: Vec<(HandOff, State)> = Vec::new();
    for id in reader.ids(states)? {
        if let Some((h, state)) = reader.load(id)?
            && states.contains(&state)
            && now - h.created > args.older_than
        {
            old.push((HandOff { results: Vec::new(), ..h }, state));
        }
    }
    if !args.dry_run && !old.is_empty() {
        let ids = old.iter().map(|(h, _)| h.id.to_string()).collect();
        let answer = carry_out(config, &Command::Prune { ids })?;
        // One that was taken up again meanwhile stays.
        let deleted: Vec<Id> = serde_json::from_value(answer["pruned"].clone()).unwrap_or_default();
        old.retain(|(h, _)| deleted.contains(&h.id));
    }
    let ids: Vec<Id> = old.iter().map(|(h, _)| h.id).collect();
    if args.output.json {
        return out::print_json(&json!({ "dry_run": args.dry_run, "pruned": ids }));
    }
    let verb = if args.dry_run { "would be deleted" } else { "deleted" };
    for (h, state) in &old {
        let (state, age) = (state.name(), render::ago(h.created, now));
        out::print_line(&format!("{}  {state:<6}  {age:<11}  {}", h.id.short(), one_line(&h.text, TEXT)))?;
    }
    out::print_line(&format!("{} {verb}", count(ids.len(), "hand-off")))
}

/// Lets the bot's hand-offs in again.
///
/// # Errors
/// The bridge does not answer.
pub fn reset_breaker(config: &Config) -> Result<()> {
    let Some(mut client) = Client::connect(&config.paths.spool())? else {
        return out::print_line("no bridge runs, so no breaker is tripped: the next one starts with a fresh one");
    };
    let answer = client.ask(Command::ResetBreaker)?;
    if answer["was_tripped"] != true {
        return out::print_line("the breaker had not tripped; its window is empty now");
    }
    let refused = answer["refused"].as_u64().unwrap_or_default();
    out::print_line(&format!("the breaker is reset: {refused} had been refused"))?;
    match refused {
        0 => Ok(()),
        _ => out::print_line("`anna-relay list --state failed` shows them, `anna-relay retry ID` brings one back"),
    }
}
