//! From the text of `anna.toml` to a validated [`Config`].

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::keys::{self, KEYS, SECTIONS};
use super::value::{Value, check};
use super::{Config, Env, Holder, Paths, Relay, SECONDS_PER_MINUTE};
use crate::error::{Error, Kind, Result};

/// What some editors put before the text of a UTF-8 file; it means nothing.
const BOM: char = '\u{feff}';

/// The text and where it comes from: what an error has to say.
struct Source<'a> {
    text: &'a str,
    file: &'a Path,
}

impl Source<'_> {
    /// The number of the line in which `at` begins, from 1.
    fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    fn error(&self, at: usize, what: impl std::fmt::Display) -> Error {
        let line = self.line(at);
        Error::new(Kind::Config, format!("reading the configuration {}: line {line}: {what}", self.file.display()))
    }
}

/// The values that were checked, by their keys' full names.
struct Values<'a> {
    source: Source<'a>,
    home: Option<&'a Path>,
    checked: HashMap<String, (Value, Range<usize>)>,
}

impl Config {
    /// Checks the text of a configuration and fills in the defaults.
    ///
    /// # Errors
    /// Of kind [`Kind::Config`], with file, line, key, what is wrong and what to do about it: the first thing
    /// in the file that is wrong.
    pub fn parse(text: &str, file: &Path, env: &Env) -> Result<Config> {
        let source = Source { text: text.strip_prefix(BOM).unwrap_or(text), file };
        let root = DeTable::parse(source.text).map_err(|error| {
            let cause = error.message().lines().collect::<Vec<_>>().join(", ");
            source
                .error(error.span().map_or(0, |span| span.start), format!("it is not TOML: {cause}"))
                .hint("correct that line; config/anna.toml shows how the file is written")
        })?;
        let mut values = Values { source, home: env.home.as_deref(), checked: HashMap::new() };
        for section in SECTIONS {
            if let Some((name, value)) = root.get_ref().get_key_value(section) {
                values.section(section, name.span().start, value.get_ref())?;
            }
        }
        values.ports_differ()?;
        let passed_over = passed_over(&values.source, root.get_ref());
        let (paths, relay) = (values.paths(env)?, values.relay()?);
        Ok(Config { file: file.to_owned(), found: true, paths, relay, passed_over })
    }
}

impl Values<'_> {
    fn section(&mut self, section: &str, at: usize, value: &DeValue<'_>) -> Result<()> {
        let DeValue::Table(table) = value else {
            let hint = format!("begin the section with a line [{section}]");
            return Err(self.source.error(at, format!("{section} must be a section")).hint(hint));
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            let Some(key) = keys::find(section, name.get_ref()) else {
                return Err(self.unknown(section, name.get_ref(), name.span().start));
            };
            let checked = check(key, value.get_ref(), self.home).map_err(|wrong| {
                let hint = format!("give it {}; the default is {}", key.shape, key.default);
                self.source.error(name.span().start, format!("{key} {wrong}")).hint(hint)
            })?;
            self.checked.insert(key.to_string(), (checked, name.span()));
        }
        Ok(())
    }

    fn unknown(&self, section: &str, name: &str, at: usize) -> Error {
        let error = self.source.error(at, format!("unknown key {section}.{}", name.escape_debug()));
        match keys::nearest(section, name) {
            Some(nearest) => error.hint(format!("did you mean {nearest}?")),
            None => {
                let known: Vec<&str> = KEYS.iter().filter(|key| key.section == section).map(|key| key.name).collect();
                error.hint(format!("the keys of [{section}] are {}", known.join(", ")))
            }
        }
    }

    fn ports_differ(&self) -> Result<()> {
        let port = |name: &str| match self.checked.get(name) {
            Some((Value::Whole(port), span)) => (*port, span.start),
            _ => (default_whole(name), 0),
        };
        let (brain, bot) = (port("relay.brain_port"), port("relay.bot_port"));
        if brain.0 != bot.0 {
            return Ok(());
        }
        let what = format!("relay.brain_port and relay.bot_port are both {}", brain.0);
        Err(self.source.error(brain.1.max(bot.1), what).hint("give each fakechat a port of its own"))
    }

    /// The value of that key: the file's, else the table's default.
    fn take(&mut self, name: &str) -> Result<Value> {
        if let Some((value, _)) = self.checked.remove(name) {
            return Ok(value);
        }
        let broken = || Error::new(Kind::Config, format!("filling in the default of {name}: it cannot be used"));
        let (section, name) = name.split_once('.').ok_or_else(broken)?;
        let key = keys::find(section, name).ok_or_else(broken)?;
        let value = DeValue::parse(key.default).map_err(|_| broken())?;
        check(key, value.get_ref(), self.home)
            .map_err(|wrong| Error::new(Kind::Config, format!("filling in the default of {key}: it {wrong}")))
    }

    fn paths(&mut self, env: &Env) -> Result<Paths> {
        let state = match (&env.state_home, self.checked.contains_key("paths.state")) {
            (Some(folder), false) => folder.join("anna"),
            _ => self.path("paths.state")?,
        };
        let stream = match self.checked.contains_key("paths.stream") {
            true => self.path("paths.stream")?,
            false => state.join("stream.log"),
        };
        Ok(Paths { state, stream })
    }

    fn relay(&mut self) -> Result<Relay> {
        Ok(Relay {
            enabled: matches!(self.take("relay.enabled")?, Value::Bool(true)),
            brain_port: self.whole("relay.brain_port")?,
            bot_port: self.whole("relay.bot_port")?,
            settle: self.seconds("relay.settle_s", 1.0)?,
            alarm: self.seconds("relay.alarm_min", SECONDS_PER_MINUTE)?,
            breaker_count: self.whole("relay.breaker_count")?,
            breaker_window: self.seconds("relay.breaker_window_s", 1.0)?,
            holder: match self.take("relay.holder")? {
                Value::Text(word) if word == Holder::Any.name() => Holder::Any,
                _ => Holder::Session,
            },
            confirm: Duration::from_millis(self.whole("relay.confirm_ms")?),
            max_attempts: self.whole("relay.max_attempts")?,
            inline_kib: self.whole("relay.inline_kib")?,
            brain_channels: self.texts("relay.brain_channels")?,
            bot_channels: self.texts("relay.bot_channels")?,
        })
    }

    fn whole<T: TryFrom<i64>>(&mut self, name: &str) -> Result<T> {
        match self.take(name)? {
            Value::Whole(number) => T::try_from(number).map_err(|_| mismatch(name)),
            _ => Err(mismatch(name)),
        }
    }

    fn seconds(&mut self, name: &str, unit: f64) -> Result<Duration> {
        match self.take(name)? {
            Value::Number(number) => Duration::try_from_secs_f64(number * unit).map_err(|_| mismatch(name)),
            _ => Err(mismatch(name)),
        }
    }

    fn path(&mut self, name: &str) -> Result<PathBuf> {
        match self.take(name)? {
            Value::Path(path) => Ok(path),
            _ => Err(mismatch(name)),
        }
    }

    fn texts(&mut self, name: &str) -> Result<Vec<String>> {
        match self.take(name)? {
            Value::Texts(texts) => Ok(texts),
            _ => Err(mismatch(name)),
        }
    }
}

/// What is not ours as it stands, and was most likely meant to be.
fn passed_over(source: &Source<'_>, root: &DeTable<'_>) -> Vec<String> {
    let mut all: Vec<(usize, String)> = root
        .iter()
        .filter(|(name, _)| !SECTIONS.contains(&name.get_ref().as_ref()))
        .filter_map(|(name, value)| {
            let (name, at) = (name.get_ref(), name.span().start);
            let what = match value.get_ref() {
                DeValue::Table(_) => {
                    let section = keys::nearest_section(name)?;
                    format!("[{}] is not read: did you mean [{section}]?", name.escape_debug())
                }
                _ => {
                    let section = SECTIONS.into_iter().find(|section| keys::find(section, name).is_some())?;
                    format!("{name} stands in no section and is not read: put it under [{section}]")
                }
            };
            Some((at, format!("line {}: {what}", source.line(at))))
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, what)| what).collect()
}

/// The table of keys and the fields of [`Config`] do not fit; the tests see to it that this never happens.
fn mismatch(name: &str) -> Error {
    Error::new(Kind::Config, format!("reading the key {name}: its shape is not the one of its field"))
}

fn default_whole(name: &str) -> i64 {
    let key = KEYS.iter().find(|key| key.to_string() == name);
    key.and_then(|key| key.default.parse().ok()).unwrap_or_default()
}
