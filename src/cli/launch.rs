//! `launch`: starts one of the two sessions, so that its channel works.
//!
//! What it sees to is what fails without a word otherwise: a port that an orphan holds, an environment that switches
//! channels off, a plugin that is off, two first starts at once ([`turn`]).

pub mod turn;

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, Mode};

use crate::config::{Config, Side};
use crate::error::{Error, Kind, Result};
use crate::port::{Judge, Verdict};

use super::setup::wants::PLUGIN;
use super::setup::{self, plugin};
use super::{clear_port, out, render};
use turn::Turn;

/// The program of a session.
const CLAUDE: &str = "claude";
/// Where fakechat reads its port.
const PORT: &str = "FAKECHAT_PORT";
/// Variables that switch channels off, and nothing says so (`DISABLE_TELEMETRY=1`: no events ever arrive).
pub const SWITCH_OFF: [&str; 4] =
    ["DISABLE_TELEMETRY", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DO_NOT_TRACK", "DISABLE_GROWTHBOOK"];
/// What only the launcher passes, and where it is said instead.
const OWN: [&str; 3] = ["--settings", "--channels", "--dry-run"];

/// Becomes the session; a dry run prints how.
///
/// `flag` is what `--config` named, `umask` what the person's own was.
///
/// # Errors
/// The session cannot be started, or its port is not free: [`Kind::LiveSession`], [`Kind::Stranger`].
pub fn run(config: &Config, flag: Option<&Path>, args: &super::Launch, umask: Mode) -> Result<()> {
    let (side, port) = (args.side, config.relay.port(args.side));
    let plan = Plan::new(config, flag, args)?;
    for name in &plan.scrubbed {
        out::say(&format!("taking {name} out of the session's environment: it switches channels off"));
    }
    if args.dry_run {
        out::print_line(&plan.shown())?;
        plan.say_doubts();
        plan.check()?;
        return clear_port::run(side, port, true, false);
    }
    plan.check()?;
    let mut judge = Judge::of_this_user();
    let turn = Turn::wait(&config.paths.spool(), |port| judge.judge(port) == Verdict::Free)?;
    if let Some(done) = clear_port::before_launch(side, port)? {
        out::say(&done);
    }
    plan.say_doubts();
    let turn = turn.take(side, port)?;
    rustix::process::umask(umask);
    let cause = plan.command().exec();
    turn.give_back();
    Err(Error::failed(format!("starting {}: {cause}", plan.program_shown()))
        .hint("see whether `claude` starts by itself"))
}

/// What will be started, and how.
struct Plan {
    side: Side,
    /// Where `claude` was found.
    program: Option<PathBuf>,
    args: Vec<OsString>,
    settings: PathBuf,
    /// Variables to set.
    set: Vec<(&'static str, OsString)>,
    /// Variables to take away: those that are there.
    scrubbed: Vec<&'static str>,
}

impl Plan {
    fn new(config: &Config, flag: Option<&Path>, launch: &super::Launch) -> Result<Plan> {
        let side = launch.side;
        let settings = setup::folder()?.join(setup::side_settings(side));
        let channels = match side {
            Side::Brain => &config.relay.brain_channels,
            Side::Bot => &config.relay.bot_channels,
        };
        let mut set = vec![(PORT, OsString::from(config.relay.port(side).to_string()))];
        if let Some(flag) = flag {
            // The session's own calls of anna-relay, its hooks among them, then mean the same relay.
            set.push(("ANNA_CONFIG", absolute(flag).into()));
        }
        Ok(Plan {
            side,
            program: find(CLAUDE),
            args: arguments(&launch.args, &settings, channels).map_err(|own| not_here(side, own))?,
            settings,
            set,
            scrubbed: SWITCH_OFF.into_iter().filter(|name| env::var_os(name).is_some()).collect(),
        })
    }

    /// Says what Claude Code would not: that the session comes up without its fakechat. Another version of Claude Code
    /// may note elsewhere what is installed, so this is no reason not to start.
    fn say_doubts(&self) {
        let is_fakechat = |arg: &OsString| arg.to_str().and_then(|arg| arg.strip_prefix("plugin:")) == Some(PLUGIN);
        let is_there = |folder: &Path| plugin::on_disk(folder).is_some() || plugin::directory(folder, None).is_some();
        if self.args.iter().any(is_fakechat) && self.settings.parent().is_some_and(|folder| !is_there(folder)) {
            let doubt = format!("launching the {}: {PLUGIN} does not seem to be installed", self.side);
            out::say(&render::error(&Error::failed(doubt).hint("run `anna-relay setup`, which installs it")));
        }
    }

    /// Whether all is there that a start needs. Says everything that is not.
    fn check(&self) -> Result<()> {
        let side = self.side;
        let program = self.program.is_none().then(|| {
            Error::failed(format!("launching the {side}: there is no program `{CLAUDE}` on the PATH"))
                .hint("install Claude Code, or add the folder it is in to the PATH")
        });
        let settings = (!self.settings.is_file()).then(|| {
            Error::failed(format!("launching the {side}: there is no {}", self.settings.display()))
                .hint("run `anna-relay setup`, which writes it")
        });
        match (program, settings) {
            (Some(program), Some(settings)) => {
                out::say(&render::error(&program));
                Err(settings)
            }
            (Some(error), None) | (None, Some(error)) => Err(error),
            (None, None) => Ok(()),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program.as_deref().unwrap_or(Path::new(CLAUDE)));
        // As the shell would have called it.
        command.arg0(CLAUDE).args(&self.args);
        command.envs(self.set.iter().map(|(name, value)| (name, value)));
        for name in &self.scrubbed {
            command.env_remove(name);
        }
        command
    }

    fn program_shown(&self) -> String {
        self.program.as_deref().unwrap_or(Path::new(CLAUDE)).display().to_string()
    }

    /// The command line, to be typed into a shell.
    fn shown(&self) -> String {
        let mut words = vec!["env".to_owned()];
        words.extend(self.scrubbed.iter().flat_map(|name| ["-u".to_owned(), (*name).to_owned()]));
        words.extend(self.set.iter().map(|(name, value)| format!("{name}={}", quoted(value))));
        words.push(CLAUDE.to_owned());
        words.extend(self.args.iter().map(|arg| quoted(arg)));
        words.join(" ")
    }
}

/// The session's command line. `--channels` takes every word up to the next flag, so what the person adds, a prompt
/// perhaps, goes before it; what follows a `--` of their own goes last, as they meant it.
fn arguments(given: &[OsString], settings: &Path, channels: &[String]) -> Result<Vec<OsString>, &'static str> {
    let end = given.iter().position(|arg| arg == "--").unwrap_or(given.len());
    let (flags, last) = given.split_at(end);
    for arg in flags {
        let arg = arg.to_string_lossy();
        let name = arg.split_once('=').map_or(&*arg, |(name, _)| name);
        if let Some(own) = OWN.into_iter().find(|own| *own == name) {
            return Err(own);
        }
    }
    let mut args = flags.to_vec();
    args.extend(["--settings".into(), settings.into(), "--channels".into()]);
    args.extend(channels.iter().map(OsString::from));
    args.extend_from_slice(last);
    Ok(args)
}

fn not_here(side: Side, own: &str) -> Error {
    let error = Error::new(Kind::Usage, format!("launching the {side}: {own} is what the launcher passes itself"));
    match own {
        "--dry-run" => Error::new(Kind::Usage, format!("launching the {side}: Claude Code knows no --dry-run"))
            .hint("give it first, before what is for Claude Code"),
        "--channels" => error.hint(format!("name the channels in anna.toml, relay.{side}_channels")),
        _ => error.hint(format!("put what it shall say into anna-{side}-settings.json")),
    }
}

/// Where the shell would find that program.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let can_run = |file: &PathBuf| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok();
    env::split_paths(&path).map(|folder| absolute(&folder.join(name))).find(can_run)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A word as a shell takes it.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(given: &[&str]) -> Result<String, &'static str> {
        let given: Vec<OsString> = given.iter().map(OsString::from).collect();
        let args = arguments(&given, Path::new("/c/s.json"), &["plugin:a".to_owned(), "plugin:b".to_owned()])?;
        Ok(args.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_is_added_never_ends_up_among_the_channels() {
        let own = "--settings /c/s.json --channels plugin:a plugin:b";
        assert_eq!(line(&[]).unwrap(), own);
        assert_eq!(line(&["good morning"]).unwrap(), format!("'good morning' {own}"));
        assert_eq!(line(&["--resume"]).unwrap(), format!("--resume {own}"));
        assert_eq!(line(&["--model", "opus", "--", "-x"]).unwrap(), format!("--model opus {own} -- -x"));
    }

    #[test]
    fn what_the_launcher_passes_is_not_passed_twice() {
        assert_eq!(line(&["--channels", "x"]).unwrap_err(), "--channels");
        assert_eq!(line(&["-c", "--settings=x"]).unwrap_err(), "--settings");
        assert!(line(&["--", "--settings"]).is_ok());
        assert!(line(&["--setting-sources", "user"]).is_ok());
    }

    #[test]
    fn a_word_stays_one_word() {
        assert_eq!(quoted(OsStr::new("a/b-c_1:2@3")), "a/b-c_1:2@3");
        assert_eq!(quoted(OsStr::new("")), "''");
        assert_eq!(quoted(OsStr::new("it's $HOME")), "'it'\\''s $HOME'");
    }
}
