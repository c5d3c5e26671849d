//! `setup`: gives the two sessions their fakechat and their settings, and takes all of that back.
//!
//! The settings are edited as text ([`json`], [`wants`]) and written in one step ([`file`](mod@file)); the plugin comes from Claude
//! Code's own commands ([`plugin`]); what was done is noted ([`record`]) for [`undo`].

pub mod diff;
pub mod file;
pub mod json;
pub mod plugin;
pub mod record;
pub mod undo;
pub mod wants;

use std::path::{Path, PathBuf};

use super::{Setup, external, out};
use crate::config::{Config, Side};
use crate::error::{Error, Result};
use crate::port::registry::claude_folder;
use file::Settings;
use plugin::Steps;
use record::Record;
use wants::{PLUGIN, Want};

/// The settings of all of the person's sessions.
pub const USER_SETTINGS: &str = "settings.json";

/// The name of a side's settings file in Claude Code's folder.
#[must_use]
pub fn side_settings(side: Side) -> &'static str {
    match side {
        Side::Brain => "anna-brain-settings.json",
        Side::Bot => "anna-bot-settings.json",
    }
}

/// Claude Code's folder.
///
/// # Errors
/// There is no home folder, or what is named is not a folder.
pub fn folder() -> Result<PathBuf> {
    let folder = claude_folder().ok_or_else(|| {
        Error::failed("looking for Claude Code's folder: there is no home folder")
            .hint("set $HOME or $CLAUDE_CONFIG_DIR")
    })?;
    if folder.exists() && !folder.is_dir() {
        let what = format!("looking for Claude Code's folder: {} is not a folder", folder.display());
        return Err(Error::failed(what).hint("correct $CLAUDE_CONFIG_DIR, or move away what lies there"));
    }
    Ok(std::path::absolute(&folder).unwrap_or(folder))
}

/// A file and what is to be in it.
struct Job {
    file: Settings,
    wants: Vec<Want>,
}

impl Job {
    fn text(&self) -> Result<String> {
        let document = self.file.document()?;
        for want in &self.wants {
            want.put(&document).map_err(|refusal| self.file.refused(&refusal))?;
        }
        Ok(document.text())
    }
}

/// Sets things up, or, with `--undo`, takes them back.
///
/// # Errors
/// A file cannot be edited (then nothing was begun), or a step failed (then the others were done).
pub fn run(args: &Setup, config: Option<&Path>) -> Result<()> {
    let folder = folder()?;
    if args.undo {
        return undo::run(&folder, args.dry_run);
    }
    Config::load(config)?;
    let jobs = jobs(&folder, args.bot_commands, config)?;
    // Whatever cannot be edited is found before anything is begun.
    for job in &jobs {
        if job.file.text.as_deref() != Some(job.text()?.as_str()) {
            job.file.check_writable()?;
        }
    }
    let mut record = Record::load(&folder)?.unwrap_or_default();
    let mut steps = Steps::new(args.dry_run);
    if !args.dry_run {
        record.folder |= file::make_folder(&folder)?;
    }
    let installed = install(&folder, &mut steps, &mut record)?;
    let mut changed = false;
    for job in jobs {
        changed |= settle(job, &folder, args.dry_run, &mut record)?;
    }
    warm(&folder, installed.as_ref(), &mut steps, &mut record)?;
    if !args.dry_run && record != Record::default() {
        record.save(&folder)?;
    }
    let changed = changed || steps.any;
    finish(&steps, changed)
}

fn jobs(folder: &Path, bot_commands: bool, config: Option<&Path>) -> Result<Vec<Job>> {
    let program = own_path()?;
    let config = config.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let mut jobs = vec![Job { file: Settings::read(&folder.join(USER_SETTINGS))?, wants: wants::user() }];
    for side in Side::BOTH {
        let command = wants::hook_command(&program, side, config.as_deref());
        let file = Settings::read(&folder.join(side_settings(side)))?;
        jobs.push(Job { file, wants: wants::side(side, &command, bot_commands) });
    }
    Ok(jobs)
}

/// Where the hooks find this program: by the name under which the shell finds it, if that is this one, for that name
/// stays when the program behind it is replaced.
fn own_path() -> Result<PathBuf> {
    let own = std::env::current_exe()
        .map_err(|error| Error::failed(format!("looking up where this program lies: {error}")))?;
    let same = |found: &PathBuf| found.is_absolute() && found.canonicalize().ok() == own.canonicalize().ok();
    Ok(external::find(super::PROGRAM).filter(same).unwrap_or(own))
}

/// Makes sure that the plugin is there, and off where it has not been asked for.
fn install(folder: &Path, steps: &mut Steps, record: &mut Record) -> Result<Option<plugin::Installed>> {
    // A dry run does not ask Claude Code, which writes to its folder whatever it is asked.
    let found = match (steps.dry_run, external::find("claude")) {
        (true, None) => Err(plugin::missing("claude")),
        (true, Some(_)) => Ok(plugin::on_disk(folder)),
        (false, _) => listed(),
    };
    let found = match found {
        Ok(found) => found,
        Err(why) => {
            let word = if steps.dry_run { "would fail" } else { "failed" };
            out::print_line(&format!("{word}: claude plugin list --json: {}", crate::text::on_one_line(&why)))?;
            if external::find("claude").is_none() {
                steps.by_hand.push(plugin::INSTALL_CLAUDE.to_owned());
            }
            steps.by_hand.push(plugin::ADD_BY_HAND.to_owned());
            steps.by_hand.push(format!("claude plugin install {PLUGIN}"));
            return Ok(plugin::on_disk(folder));
        }
    };
    let found = match found {
        Some(found) => {
            out::print_line("fakechat is installed")?;
            Some(found)
        }
        None => {
            if steps.dry_run {
                out::print_line(
                    "fakechat is not in Claude Code's files; setup asks `claude plugin list`, and leaves out what is there",
                )?;
            }
            if !plugin::knows_marketplace(folder) {
                let added = steps.run("claude", &["plugin", "marketplace", "add", plugin::SOURCE], None)?;
                record.marketplace |= added && !steps.dry_run;
                if !added {
                    steps.by_hand.pop();
                    steps.by_hand.push(plugin::ADD_BY_HAND.to_owned());
                }
            }
            record.plugin |= steps.run("claude", &["plugin", "install", PLUGIN], None)? && !steps.dry_run;
            // Its installation turns it on.
            let after = if steps.dry_run { None } else { listed().ok().flatten() };
            after.or_else(|| plugin::on_disk(folder))
        }
    };
    if found.as_ref().is_some_and(|one| one.enabled) {
        let args = ["plugin", "disable", PLUGIN, "-s", "user"];
        if !steps.run("claude", &args, None)? {
            // The settings say it below all the same.
            steps.by_hand.pop();
        }
    }
    Ok(found)
}

fn listed() -> Result<Option<plugin::Installed>, String> {
    plugin::list().map(|all| plugin::fakechat(&all).cloned())
}

/// Brings one file to what it is to be. Gives whether that changed anything.
fn settle(job: Job, folder: &Path, dry_run: bool, record: &mut Record) -> Result<bool> {
    let Job { file: before, wants } = job;
    let name = before.path.display().to_string();
    // What Claude Code's commands have changed meanwhile is taken over, but not the form they gave the file.
    let now = if dry_run { before.clone() } else { Settings::read(&before.path)? };
    let kept = match (&before.text, &now.text) {
        (Some(old), Some(new)) if old != new => wants::merge(old, new).map_err(|refusal| now.refused(&refusal))?,
        (_, new) => new.clone().unwrap_or_default(),
    };
    let text = Job { file: now.with_text(kept), wants }.text()?;
    if before.text.as_deref() == Some(text.as_str()) && now.text == before.text {
        out::print_line(&format!("{name} is as it should be"))?;
        return Ok(false);
    }
    if dry_run {
        out::print(&crate::text::visible(&diff::unified(&name, before.text.as_deref(), Some(&text))))?;
        return Ok(true);
    }
    let backup = record.note(&before, &text)?;
    record.save(folder)?;
    // Claude Code's commands may have made all of the change.
    if now.text.as_deref() != Some(text.as_str()) {
        now.write(&text)?;
    }
    let backup = backup.map_or_else(String::new, |path| format!(" (as it was: {})", path.display()));
    out::print_line(&format!("wrote {name}{backup}"))?;
    Ok(true)
}

/// Has bun download what fakechat needs, so that no session's start waits for it.
fn warm(folder: &Path, installed: Option<&plugin::Installed>, steps: &mut Steps, record: &mut Record) -> Result<()> {
    let Some(directory) = plugin::directory(folder, installed) else {
        if !steps.dry_run {
            out::print_line("fakechat's folder was not found: its first start downloads what it needs")?;
        }
        return Ok(());
    };
    if plugin::is_warm(&directory) {
        return Ok(());
    }
    if steps.run("bun", &["install", "--no-summary"], Some(&directory))? && !steps.dry_run {
        record.warmed = Some(directory);
    }
    Ok(())
}

/// The last words.
fn finish(steps: &Steps, changed: bool) -> Result<()> {
    if !steps.by_hand.is_empty() {
        let how = match steps.dry_run {
            true => "setting up: not every step would succeed; nothing was changed: this was a dry run",
            false => "setting up: not every step succeeded; the settings are in place",
        };
        return Err(Error::failed(how).hint(format!(
            "do by hand what is missing, then run `anna-relay setup` again: {}",
            steps.by_hand.join("; ")
        )));
    }
    match (steps.dry_run, changed) {
        (true, true) => out::print_line("nothing was changed: this was a dry run"),
        (false, true) => out::print_line("done; `anna-relay doctor` looks whether all is well"),
        (_, false) => out::print_line("nothing to do: all is set up"),
    }
}
