//! `list` and `show`: read the spool, beside whoever writes it.

use std::cmp::Reverse;
use std::panic::resume_unwind;

use serde_json::Value;
use time::OffsetDateTime;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::handoff::Id;
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
    let load = |(id, seen): &(Id, State)| match reader.load_at(*id, *seen) {
        Ok(Some((handoff, state))) if states.contains(&state) => Some(Listed { handoff, state }),
        // It was moved or deleted meanwhile.
        Ok(_) => None,
        Err(error) => {
            out::say(&render::error(&error));
            None
        }
    };
    let age = |one: &Listed| Reverse((one.handoff.created, one.handoff.id));
    let now = OffsetDateTime::now_utc();
    if args.output.json {
        let write = |place: &_| load(place).map(|one| (age(&one), element(one.document(now))));
        let elements = in_order(shared_out(&places, write));
        return out::print_all(array(elements.iter().map(String::as_str)).chain(["\n"]));
    }
    let width = out::width();
    let show = |place: &_| load(place).map(|one| (age(&one), render::line(&one, now, width)));
    let lines = in_order(shared_out(&places, show));
    out::print(&render::list(&lines, width, &Style::detect(out::is_terminal())))?;
    if args.states.is_empty() && !args.all {
        let done = reader.ids(&[State::Done])?.len();
        if done > 0 {
            out::say(&format!("not shown: {done} done (all: anna-relay list --all)"));
        }
    }
    Ok(())
}

/// The newest first.
fn in_order<A: Ord + Copy, T>(found: Vec<Option<(A, T)>>) -> Vec<T> {
    let mut found: Vec<(A, T)> = found.into_iter().flatten().collect();
    found.sort_unstable_by_key(|(age, _)| *age);
    found.into_iter().map(|(_, what)| what).collect()
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
    // A document has text for its keys, so it can be written.
    let alone = serde_json::to_string_pretty(&[document]).unwrap_or_default();
    alone.trim_start_matches("[\n").trim_end_matches("\n]").to_owned()
}

/// The pieces of an array of such elements.
fn array<'a>(elements: impl ExactSizeIterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let end = if elements.len() == 0 { "[]" } else { "\n]" };
    let pieces = elements.enumerate().flat_map(|(n, element)| [if n == 0 { "[\n" } else { ",\n" }, element]);
    pieces.chain([end])
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
            let pieces = array(elements.iter().map(String::as_str));
            assert_eq!(pieces.collect::<String>(), format!("{:#}", Value::Array(documents)));
        }
    }
}
