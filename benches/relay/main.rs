//! How fast the relay is, against floors taken in the same run: the real release binary, the doubles as its peers.
//!
//! `cargo bench` prints one table. Behind a `--`:
//! `--json` adds one line of JSON, the last one;
//! `--only TEXT` measures only what has that in its name (see [`rows::ALL`]);
//! `--smoke` does a little of everything, to see that it works, and judges no figure.

#![allow(clippy::unwrap_used)] // it measures, or stops

mod floor;
mod process;
mod rows;
mod table;
mod times;
mod world;

use table::Table;

/// A run of the benchmark.
pub struct Run {
    /// Whether to do only a little.
    pub smoke: bool,
    /// What came of it.
    pub table: Table,
}

impl Run {
    /// How much to do: in full, or to see that it works.
    pub fn pick<T>(&self, full: T, smoke: T) -> T {
        if self.smoke { smoke } else { full }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has(rows::SLEEPER) {
        rows::sleeper();
    }
    let only = args.iter().position(|arg| arg == "--only").map(|at| args.get(at + 1).expect("--only TEXT").as_str());
    let chosen: Vec<_> = rows::ALL.iter().filter(|(name, _)| name.contains(only.unwrap_or_default())).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = rows::ALL.iter().map(|(name, _)| *name).collect();
        eprintln!("nothing has that in its name; there are {}", names.join(", "));
        std::process::exit(2);
    }
    let smoke = has("--smoke") || cfg!(debug_assertions);
    let mut run = Run { smoke, table: Table::new(!smoke) };
    for (name, measure) in chosen {
        eprintln!("{name} …");
        measure(&mut run);
    }
    print!("{}", run.table.text());
    if has("--json") {
        println!("{}", run.table.json());
    }
}
