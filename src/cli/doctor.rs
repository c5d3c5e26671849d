//! `doctor`: looks whether all is well, from the programs to the permissions, and says what to do where it is not.

pub mod audit;
mod bridge;
mod folders;
mod plugin;
mod programs;
mod service;
mod sessions;
pub mod table;
mod trust;

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::render::{self, Style};
use super::{Doctor, out, setup};
use crate::config::{Config, Env};
use crate::error::{During, Error, Kind, Result};
use sessions::Live;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, or would; have a look.
    Warn,
    /// Something is broken or unsafe.
    Fail,
}

/// What one look found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at: a stable word.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub what: String,
    /// Why it matters, where something is to be done.
    pub why: Option<String>,
    /// What to do.
    pub fix: Option<String>,
}

impl Finding {
    /// All is well.
    #[must_use]
    pub fn ok(check: &'static str, what: impl Into<String>) -> Finding {
        Finding { check, level: Level::Ok, what: what.into(), why: None, fix: None }
    }

    /// Have a look.
    #[must_use]
    pub fn warn(
        check: &'static str,
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding { check, level: Level::Warn, what: what.into(), why: Some(why.into()), fix: Some(fix.into()) }
    }

    /// Something is broken.
    #[must_use]
    pub fn fail(
        check: &'static str,
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding { level: Level::Fail, ..Finding::warn(check, what, why, fix) }
    }
}

/// What the looks have in common.
struct Scene<'a> {
    config: &'a Config,
    /// Claude Code's folder.
    folder: PathBuf,
    /// The settings files that were named.
    named: &'a [PathBuf],
    /// The sessions that hold the ports.
    live: Vec<Live>,
}

/// Looks at everything and says what was found.
///
/// # Errors
/// Of kind `Failed`, with nothing more to say, if something is broken or unsafe.
pub fn run(args: &Doctor, config: Option<&Path>) -> Result<()> {
    let (config, mut findings) = configuration(config)?;
    let (ports, live) = sessions::ports(&config);
    let scene = Scene { config: &config, folder: setup::folder()?, named: &args.settings, live };
    findings.extend(programs::look());
    findings.extend(plugin::look(&scene));
    findings.extend(ports);
    findings.extend(sessions::look(&scene));
    findings.extend(bridge::look(&scene));
    findings.extend(service::look());
    findings.extend(folders::look(&scene));
    findings.extend(trust::look(&scene));
    if args.output.json {
        out::print_json(&serde_json::to_value(&findings).during("putting the findings together")?)?;
    } else {
        out::print(&render::doctor(&findings, Style::detect(out::is_terminal())))?;
    }
    if findings.iter().any(|finding| finding.level == Level::Fail) {
        return Err(Error::silent(Kind::Failed));
    }
    Ok(())
}

/// The configuration, or the defaults where it is not good: the other looks are worth something all the same.
fn configuration(flag: Option<&Path>) -> Result<(Config, Vec<Finding>)> {
    const CHECK: &str = "config";
    let config = match Config::load(flag) {
        Ok(config) => config,
        Err(error) => {
            let fix = error.advice().unwrap_or("correct the file").to_owned();
            let why = "nothing of the relay starts with it; the other checks here take the defaults";
            let defaults = Config::parse("", Path::new("anna.toml"), &Env::current())?;
            return Ok((defaults, vec![Finding::fail(CHECK, error.to_string(), why, fix)]));
        }
    };
    let file = config.file.display().to_string();
    let finding = match (config.found, config.relay.enabled) {
        (_, true) => Finding::ok(CHECK, format!("{file} is good, and the relay is enabled")),
        (true, false) => Finding::warn(
            CHECK,
            format!("{file} does not enable the relay"),
            "the bridge refuses to start",
            format!("set enabled = true under [relay] in {file}"),
        ),
        (false, false) => Finding::warn(
            CHECK,
            format!("there is no {file}"),
            "the defaults hold, and with them the bridge refuses to start",
            format!("create {file} with enabled = true under [relay]"),
        ),
    };
    Ok((config, vec![finding]))
}
