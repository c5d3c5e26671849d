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
    let (mut json, mut smoke, mut only) = (false, cfg!(debug_assertions), String::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            // cargo's own.
            "--bench" => {}
            "--json" => json = true,
            "--smoke" => smoke = true,
            "--only" => only = args.next().expect("--only TEXT"),
            rows::SLEEPER => rows::sleeper(),
            other => {
                eprintln!("{other}: there is --json, --smoke, and --only with a part of a name");
                std::process::exit(2);
            }
        }
    }
    let chosen: Vec<_> = rows::ALL.iter().filter(|(name, _)| name.contains(&only)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = rows::ALL.iter().map(|(name, _)| *name).collect();
        eprintln!("nothing has that in its name; there are {}", names.join(", "));
        std::process::exit(2);
    }
    let mut run = Run { smoke, table: Table::new(!smoke) };
    for (name, measure) in chosen {
        eprintln!("{name} …");
        measure(&mut run);
    }
    print!("{}", run.table.text());
    if json {
        println!("{}", run.table.json());
    }
}
