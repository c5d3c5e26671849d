//! What can be typed, and what not.

use std::time::Duration;

use super::usage::read;
use super::*;
use crate::config::Side;
use crate::handoff::life::State;

fn parse(line: &str) -> Result<Command, clap::Error> {
    read(line.split(' ')).map(|cli| cli.command)
}

#[test]
fn the_command_line_is_well_formed() {
    command().debug_assert();
}

#[test]
fn what_the_contract_names_is_taken() {
    for line in [
        "anna-relay bridge --config x",
        "anna-relay --config x status --check --json",
        "anna-relay list --state new --state failed --limit 3 --all --json",
        "anna-relay show 90ab --json",
        "anna-relay send - --file a --file b --wait --timeout 1.5 --json",
        "anna-relay send x --timeout 0",
        "anna-relay send -- -5",
        "anna-relay send --file a",
        "anna-relay pause --reason night",
        "anna-relay pause",
        "anna-relay resume",
        "anna-relay retry 90ab",
        "anna-relay cancel 90ab",
        "anna-relay prune --older-than 30d --state done --dry-run --json",
        "anna-relay reset-breaker",
        "anna-relay clear-port brain --dry-run --json",
        "anna-relay clear-port bot",
        "anna-relay launch brain",
        "anna-relay launch bot --dry-run --model haiku",
        "anna-relay stream -n 3 -f",
        "anna-relay stream -n0",
        "anna-relay check --json",
        "anna-relay demo",
        "anna-relay setup",
        "anna-relay setup --dry-run --bot-commands",
        "anna-relay setup --undo --dry-run",
        "anna-relay doctor --json --settings a --settings b",
        "anna-relay hook brain",
        "anna-relay hook bot",
        "anna-relay completions fish",
        "anna-relay man",
        "anna-relay man dir",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    for line in [
        "anna-relay",
        "anna-relay frobnicate",
        "anna-relay show",
        "anna-relay list --state corrupt",
        "anna-relay prune",
        "anna-relay prune --older-than 30",
        "anna-relay prune --older-than -1d",
        "anna-relay prune --older-than +1d",
        "anna-relay prune --older-than 30µ",
        "anna-relay prune --older-than 999999999999999999d",
        "anna-relay prune --older-than 1d --state new",
        "anna-relay clear-port both",
        "anna-relay launch",
        "anna-relay send x --wait --timeout nan",
        "anna-relay send x --wait --timeout -1",
        "anna-relay send x --wait --timeout 1e18",
        "anna-relay prune --older-than 40000d",
        "anna-relay stream -n x",
        "anna-relay setup --undo --bot-commands",
    ] {
        assert_eq!(parse(line).expect_err(line).exit_code(), 2, "{line}");
    }
}

#[test]
fn values_are_taken_as_meant() {
    let Ok(Command::Prune(prune)) = parse("anna-relay prune --older-than 12h --state failed") else { panic!() };
    assert_eq!((prune.older_than, prune.states), (Duration::from_secs(43_200), vec![State::Failed]));
    let Ok(Command::ClearPort(clear)) = parse("anna-relay clear-port brain") else { panic!() };
    assert_eq!(clear.side, Side::Brain);
    for (line, dry_run, args) in [
        ("launch bot --dry-run --model haiku --dry-run", true, "--model haiku --dry-run"),
        ("launch bot hello -c", false, "hello -c"),
        ("launch bot -- --dry-run", false, "--dry-run"),
        ("launch bot -c -- hello", false, "-c -- hello"),
    ] {
        let Ok(Command::Launch(launch)) = parse(&format!("anna-relay {line}")) else { panic!("{line}") };
        let given: Vec<_> = launch.args.iter().map(|arg| arg.to_string_lossy()).collect();
        assert_eq!((launch.dry_run, given.join(" ")), (dry_run, args.to_owned()), "{line}");
    }
    let Ok(Command::Send(send)) = parse("anna-relay send x --wait --timeout 0.5") else { panic!() };
    assert_eq!(send.timeout, Some(Duration::from_millis(500)));
}
