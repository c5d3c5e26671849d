//! `setup --undo`: takes back what setup did, and nothing else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::out;
use super::file::{Settings, WRITABLE};
use super::json::Document;
use super::plugin::{self, Steps};
use super::record::{Changed, Record, fingerprint};
use super::wants::{self, PLUGIN, Want};
use super::{USER_SETTINGS, diff, side_settings};
use crate::config::Side;
use crate::error::{Advise, During, Error, Result};

/// What a file is to become again.
struct Back {
    /// The file, before Claude Code's commands.
    file: Settings,
    /// Its text then; none: no file.
    text: Option<String>,
    /// The copy that is not needed afterwards.
    copy: Option<PathBuf>,
    /// Whether it is to the byte what it was before setup.
    exact: bool,
    changed: Changed,
}

/// Takes back what setup did in this folder.
///
/// # Errors
/// A file cannot be edited (then nothing was begun), or a step failed.
pub fn run(folder: &Path, dry_run: bool) -> Result<()> {
    let Some(record) = Record::load(folder)? else {
        return out::print_line("nothing to take back: setup has left nothing here");
    };
    let backs: Vec<Back> = record.files.iter().map(plan).collect::<Result<_>>()?;
    let mut steps = Steps::new(dry_run);
    if let Some(warmed) = record.warmed.as_ref().filter(|warmed| plugin::is_warm(warmed) && !record.plugin) {
        cool(warmed, dry_run)?;
    }
    if record.plugin {
        steps.run("claude", &["plugin", "uninstall", PLUGIN, "-s", "user"], None)?;
    }
    if record.marketplace {
        steps.run("claude", &["plugin", "marketplace", "remove", plugin::MARKETPLACE], None)?;
    }
    for back in &backs {
        put_back(back, dry_run)?;
    }
    if dry_run {
        return out::print_line("nothing was changed: this was a dry run");
    }
    let path = Record::path(folder);
    fs::remove_file(&path).during(format_args!("removing {}", path.display())).advise(WRITABLE)?;
    if record.folder {
        // Only if nobody has put anything else there.
        fs::remove_dir(folder).unwrap_or_default();
    }
    if !steps.by_hand.is_empty() {
        return Err(Error::failed(
            "taking back what setup did: not every step succeeded; the settings are as they were",
        )
        .hint(format!("do by hand what is missing: {}", steps.by_hand.join("; "))));
    }
    out::print_line("done: what setup did is taken back")
}

/// What is to become of a file.
fn plan(changed: &Changed) -> Result<Back> {
    let file = Settings::read_any(&changed.path)?;
    let original = changed.backup.as_deref().map(read_copy).transpose()?.flatten();
    let untouched = file.text.as_deref().map(fingerprint).as_deref() == Some(changed.sha256.as_str());
    let lost = changed.backup.is_some() && original.is_none();
    let exact = untouched && !changed.mixed && !lost;
    let text = if exact { original.clone() } else { without_ours(&file, original.as_deref())? };
    if text != file.text {
        file.check_writable()?;
    }
    let copy = changed.backup.clone().filter(|_| exact);
    Ok(Back { file, text, copy, exact, changed: changed.clone() })
}

/// The backup's text; none where somebody has removed it.
fn read_copy(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read
            .map(Some)
            .during(format_args!("reading the backup {}", path.display()))
            .advise("make it readable, or move it away: then only what setup put there is taken out"),
    }
}

/// A text that somebody else has changed too: what setup put there is taken out, the rest stays.
fn without_ours(file: &Settings, original: Option<&str>) -> Result<Option<String>> {
    if file.text.is_none() {
        return Ok(None);
    }
    let document = file.document()?;
    let before = Document::open(original.unwrap_or_default()).map_err(|refusal| file.refused(&refusal))?;
    for want in wanted(&file.path) {
        want.take_back(&document, &before).map_err(|refusal| file.refused(&refusal))?;
    }
    let empty = document.get(&[]).and_then(|value| value.as_object().map(serde_json::Map::is_empty)) == Some(true);
    Ok(if empty && original.is_none() { None } else { Some(document.text()) })
}

/// All that setup may have put into that file.
fn wanted(path: &Path) -> Vec<Want> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match Side::BOTH.into_iter().find(|side| side_settings(*side) == name) {
        Some(side) => wants::side(side, "", true),
        None if name == USER_SETTINGS => wants::user(),
        None => Vec::new(),
    }
}

fn put_back(back: &Back, dry_run: bool) -> Result<()> {
    let name = back.changed.path.display().to_string();
    if dry_run {
        return out::print(&crate::text::visible(&diff::unified(
            &name,
            back.file.text.as_deref(),
            back.text.as_deref(),
        )));
    }
    let now = Settings::read_any(&back.file.path)?;
    let text = match (&back.text, &back.file.text, &now.text) {
        // What Claude Code's commands took out is taken over.
        (Some(text), Some(was), Some(is)) if !back.exact && was != is => {
            let theirs = wants::merge(was, is).map_err(|refusal| now.refused(&refusal))?;
            let file = now.with_text(theirs);
            without_ours(&file, back.changed.backup.as_deref().map(read_copy).transpose()?.flatten().as_deref())?
                .or_else(|| Some(text.clone()))
        }
        (text, _, _) => text.clone(),
    };
    match text {
        None if now.text.is_none() => {}
        None => {
            now.delete()?;
            out::print_line(&format!("removed {name}"))?;
        }
        Some(text) if now.text.as_deref() == Some(text.as_str()) => {}
        Some(text) => {
            let kept = if back.exact { None } else { now.back_up()? };
            now.write(&text)?;
            let kept = kept.map_or_else(String::new, |path| format!(" (as it was: {})", path.display()));
            let how = if back.exact { "is again what it was" } else { "no longer has what setup put there" };
            out::print_line(&format!("{name} {how}{kept}"))?;
        }
    }
    match &back.copy {
        Some(copy) => {
            fs::remove_file(copy).during(format_args!("removing the backup {}", copy.display())).advise(WRITABLE)
        }
        None => Ok(()),
    }
}

/// Removes what bun downloaded for a plugin that stays.
fn cool(directory: &Path, dry_run: bool) -> Result<()> {
    let parts = directory.join("node_modules");
    if dry_run {
        return out::print_line(&format!("would remove {}", parts.display()));
    }
    fs::remove_dir_all(&parts).during(format_args!("removing {}", parts.display())).advise(WRITABLE)?;
    out::print_line(&format!("removed {}", parts.display()))
}
