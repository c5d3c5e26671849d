//! `list` and `show`: read the spool, beside whoever writes it.

use serde_json::Value;
use time::OffsetDateTime;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::handoff::life::State;
use crate::handoff::listed::Listed;
use crate::spool::read::Reader;

use super::out;
use super::render::{self, Style};

/// Lists hand-offs, the newest first.
///
/// # Errors
/// The spool cannot be read.
pub fn list(config: &Config, args: &super::List) -> Result<()> {
    let states: Vec<State> = match &args.states[..] {
        [] => State::ALL.into_iter().filter(|state| args.all || *state != State::Done).collect(),
        given => given.to_vec(),
    };
    let reader = Reader::new(&config.paths.spool());
    let mut listed = Vec::new();
    for id in reader.ids(&states)?.into_iter().take(args.limit.unwrap_or(usize::MAX)) {
        match reader.load(id) {
            Ok(Some((handoff, state))) if states.contains(&state) => listed.push(Listed { handoff, state }),
            // It was moved or deleted meanwhile.
            Ok(_) => {}
            Err(error) => out::say(&render::error(&error)),
        }
    }
    listed.sort_by_key(|one| std::cmp::Reverse((one.handoff.created, one.handoff.id)));
    let now = OffsetDateTime::now_utc();
    if args.output.json {
        return out::print_json(&Value::Array(listed.iter().map(|one| one.document(now)).collect()));
    }
    out::print(&render::list(&listed, now, out::width(), &Style::detect(out::is_terminal())))
}

/// Shows one hand-off, whole.
///
/// # Errors
/// There is none, or more than one, of that name.
pub fn show(config: &Config, part: &str, json: bool) -> Result<()> {
    let reader = Reader::new(&config.paths.spool());
    let id = reader.resolve(part)?;
    let Some((handoff, state)) = reader.load(id)? else {
        return Err(Error::failed(format!("showing hand-off {id}: it was deleted just now")));
    };
    let (listed, now) = (Listed { handoff, state }, OffsetDateTime::now_utc());
    if json {
        return out::print_json(&listed.document(now));
    }
    out::print(&render::show(&listed, now, &Style::detect(out::is_terminal())))
}
