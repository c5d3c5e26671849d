//! The sample configurations under `tests/configs/`, the shipped `config/anna.toml`, and the table of keys.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::keys::KEYS;
use super::{Config, Env, Holder, changed_needing_restart};
use crate::error::Kind;

fn env() -> Env {
    Env { home: Some(PathBuf::from("/home/anna")), ..Env::default() }
}

fn parse(text: &str) -> crate::error::Result<Config> {
    Config::parse(text, Path::new("/etc/anna.toml"), &env())
}

fn samples(kind: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/configs").join(kind);
    let files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty());
    files.into_iter().map(|file| (file.clone(), fs::read_to_string(file).unwrap())).collect()
}

#[test]
fn every_valid_sample_is_taken() {
    for (file, text) in samples("valid") {
        if let Err(error) = parse(&text) {
            panic!("{}: {error}", file.display());
        }
    }
}

/// The first line of an invalid sample is `# <what the error says after the file's name>`.
#[test]
fn every_invalid_sample_is_refused_in_the_expected_words() {
    for (file, text) in samples("invalid") {
        let expected = text.lines().next().unwrap().strip_prefix("# ").unwrap();
        let error = parse(&text).expect_err(&file.display().to_string());
        assert_eq!(error.kind(), Kind::Config);
        let said = error.to_string();
        let said = said.strip_prefix("reading the configuration /etc/anna.toml: ").unwrap();
        let said = format!("{said}; {}", error.advice().unwrap());
        assert!(said.starts_with(expected), "{}:\nwanted {expected}\ngot    {said}", file.display());
    }
}

#[test]
fn the_shipped_file_shows_every_key_with_its_default_and_one_line_why() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/anna.toml");
    let text = fs::read_to_string(file).unwrap();
    let mut rest = text.as_str();
    for key in KEYS {
        let entry = format!("# {}\n{}{} = {}\n", key.why, comment(key.name), key.name, key.default);
        let at = rest.find(&entry).unwrap_or_else(|| panic!("not there, or not in order:\n{entry}"));
        rest = &rest[at + entry.len()..];
    }
    let defaults = parse("").unwrap();
    assert_eq!(parse(&text).unwrap(), defaults);
    let live: String = text
        .lines()
        .map(|line| line.strip_prefix('#').filter(|l| l.contains(" = ")).unwrap_or(line).to_owned() + "\n")
        .collect();
    let live = live.lines().filter(|line| !line.starts_with(' ')).collect::<Vec<_>>().join("\n");
    assert_eq!(live.matches(" = ").count(), KEYS.len(), "{live}");
    assert_eq!(parse(&live).unwrap(), defaults);
}

/// Only the key that has to be set is live in the shipped file.
fn comment(name: &str) -> &'static str {
    if name == "enabled" { "" } else { "#" }
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let config = parse("").unwrap();
    assert_eq!(config.paths.state, Path::new("/home/anna/.local/state/anna"));
    assert_eq!(config.paths.stream, Path::new("/home/anna/.local/state/anna/stream.log"));
    let relay = &config.relay;
    assert!(!relay.enabled);
    assert_eq!((relay.brain_port, relay.bot_port), (8788, 8789));
    assert_eq!((relay.settle, relay.alarm), (Duration::from_secs(5), Duration::from_secs(1800)));
    assert_eq!((relay.breaker_count, relay.breaker_window), (5, Duration::from_secs(120)));
    assert_eq!((relay.holder, relay.confirm), (Holder::Session, Duration::from_millis(500)));
    assert_eq!((relay.max_attempts, relay.inline_kib), (5, 64));
    assert_eq!(relay.brain_channels, ["plugin:fakechat@claude-plugins-official"]);
    assert_eq!(
        relay.bot_channels,
        ["plugin:fakechat@claude-plugins-official", "plugin:telegram@claude-plugins-official"]
    );
}

#[test]
fn every_key_of_the_table_has_a_field() {
    let config = parse("").unwrap();
    for key in KEYS {
        assert!(!config.value(key).is_null(), "{key}");
        assert!(key.default.len() > 1 || key.default.parse::<i64>().is_ok());
    }
}

#[test]
fn fractions_and_folders_are_taken_as_meant() {
    let text = "[relay]\nsettle_s = 0.25\nalarm_min = 0.5\nbreaker_window_s = 1_0.5\n[paths]\nstate = '~'\n";
    let config = parse(text).unwrap();
    assert_eq!(config.relay.settle, Duration::from_millis(250));
    assert_eq!(config.relay.alarm, Duration::from_secs(30));
    assert_eq!(config.relay.breaker_window, Duration::from_millis(10_500));
    assert_eq!(config.paths.state, Path::new("/home/anna"));
    assert_eq!(config.paths.stream, Path::new("/home/anna/stream.log"));
    let xdg = Env { state_home: Some("/var/state".into()), ..env() };
    let config = Config::parse("\u{feff}[paths]\nstream = '~/s'", Path::new("/x"), &xdg).unwrap();
    assert_eq!(config.paths.state, Path::new("/var/state/anna"));
    assert_eq!(config.paths.stream, Path::new("/home/anna/s"));
    let error = Config::parse("", Path::new("/x"), &Env::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
}

#[test]
fn ports_and_paths_need_a_restart() {
    let old = parse("").unwrap();
    let new = parse("[relay]\nbot_port = 1\nsettle_s = 9\n[paths]\nstream = '/x'").unwrap();
    assert_eq!(changed_needing_restart(&old, &new), ["paths.stream", "relay.bot_port"]);
    assert!(changed_needing_restart(&old, &old).is_empty());
}
