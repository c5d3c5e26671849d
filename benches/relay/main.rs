//! How fast the relay is, against floors taken in the same run: the real release binary, the doubles as its peers.
//!
//! `cargo bench` prints one table; `-- --json` adds one line of JSON; `-- --smoke` does a little of everything, to see
//! that it works.

#![allow(clippy::unwrap_used)] // it measures, or stops

mod floor;
mod rows;
mod table;
mod world;

use table::Table;

fn main() {
    let has = |flag: &str| std::env::args().any(|arg| arg == flag);
    let smoke = has("--smoke") || cfg!(debug_assertions);
    let mut table = Table::default();
    rows::all(&mut table, smoke);
    print!("{}", table.text());
    if has("--json") {
        println!("{}", table.json());
    }
}
