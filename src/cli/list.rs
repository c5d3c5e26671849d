//! `list` and `show`: read the spool, beside whoever writes it.

use std::panic::resume_unwind;

use serde_json::Value;
use time::OffsetDateTime;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::handoff::life::State;
use crate::handoff::listed::Listed;
use crate::spool::read::Reader;

use super::out;
use super::render::{self, Style};

/// A thread more is worth its start for so many hand-offs.
const ENOUGH: usize = 200;
/// More threads than this wait for each other's memory and the disk.
const MAX_THREADS: usize = 4;

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
    let mut places = reader.places(&states)?;
    places.truncate(args.limit.unwrap_or(usize::MAX));
    let mut listed = Vec::with_capacity(places.len());
    for loaded in shared_out(&places, |(id, state)| reader.load_at(*id, *state)) {
        match loaded {
            Ok(Some((handoff, state))) if states.contains(&state) => listed.push(Listed { handoff, state }),
            // It was moved or deleted meanwhile.
            Ok(_) => {}
            Err(error) => out::say(&render::error(&error)),
        }
    }
    listed.sort_by_key(|one| std::cmp::Reverse((one.handoff.created, one.handoff.id)));
    let now = OffsetDateTime::now_utc();
    if args.output.json {
        return out::print_line(&array(&shared_out(&listed, |one| element(one.document(now)))));
    }
    out::print(&render::list(&listed, now, out::width(), &Style::detect(out::is_terminal())))
}

/// Does it to each, by some threads where there are many. In the order given.
fn shared_out<T: Sync, R: Send>(all: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (all.len() / ENOUGH).clamp(1, processors.min(MAX_THREADS));
    if threads == 1 {
        return all.iter().map(each).collect();
    }
    let parts = all.chunks(all.len().div_ceil(threads));
    std::thread::scope(|scope| {
        let working: Vec<_> = parts.map(|part| scope.spawn(|| part.iter().map(&each).collect::<Vec<R>>())).collect();
        let done = working.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)));
        done.flatten().collect()
    })
}

/// A document as it stands in an array of several.
fn element(document: Value) -> String {
    let alone = format!("{:#}", Value::Array(vec![document]));
    alone.trim_start_matches("[\n").trim_end_matches("\n]").to_owned()
}

/// An array of such elements.
fn array(elements: &[String]) -> String {
    if elements.is_empty() { "[]".to_owned() } else { format!("[\n{}\n]", elements.join(",\n")) }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn work_that_is_shared_out_comes_back_in_its_order() {
        for n in [0, 1, ENOUGH, 3 * ENOUGH + 1] {
            let all: Vec<usize> = (0..n).collect();
            assert_eq!(shared_out(&all, |one| one * 2), all.iter().map(|one| one * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn documents_put_together_are_the_array_of_them() {
        for documents in [vec![], vec![json!({"a": [], "b": {"c": "[\n"}})], vec![json!({"a": "\n]"}), json!({})]] {
            let elements: Vec<String> = documents.iter().cloned().map(element).collect();
            assert_eq!(array(&elements), format!("{:#}", Value::Array(documents)));
        }
    }
}
