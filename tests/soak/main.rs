//! A soak: hand-offs there and back through the real bridge, while its sides fail in all the ways they know and the
//! bridge itself is killed again and again. Nothing may be lost, and nothing said twice without the words for it.
//!
//! ```text
//! SOAK_HAND_OFFS=10000 SOAK_SCORECARD=soak.json cargo test --test soak -- --nocapture
//! ```
//! `SOAK_SEED` repeats what was drawn, though not the moments of the scheduler.

#![allow(clippy::unwrap_used)] // nothing here but tests

mod agenda;
mod faults;
mod ledger;
mod play;
mod reports;
mod scorecard;
mod sessions;

#[allow(dead_code)] // the other tests' world: not all of it is needed here
#[path = "../it/harness.rs"]
mod harness;

/// So many hand-offs where nothing else is said: what every `cargo test` can afford.
const FEW: usize = 100;

/// A number from the environment.
fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: {text:?} is no number")))
}

#[test]
fn nothing_is_lost() {
    let hand_offs = number("SOAK_HAND_OFFS").unwrap_or(FEW);
    let seed = number("SOAK_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("SOAK_HAND_OFFS={hand_offs} SOAK_SEED={seed}");
    let (card, wrong) = play::run(hand_offs, seed);
    println!("{}", card.table());
    if let Ok(path) = std::env::var("SOAK_SCORECARD") {
        std::fs::write(&path, card.json()).unwrap_or_else(|error| panic!("writing {path}: {error}"));
    }
    assert!(wrong.is_empty(), "with seed {seed}:\n{}", wrong.join("\n"));
}
