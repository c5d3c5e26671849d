//! The trust audit over the settings files that there are: which of their rules reach a session, and how much that matters.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::audit::{CHECK, audit};
use super::{Finding, Level, Scene};
use crate::cli::setup::{USER_SETTINGS, side_settings};
use crate::config::Side;
use crate::text;

/// Whose settings they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// They hold for the bot, which hears strangers' words.
    Bot,
    /// They hold for the brain, which is meant to do work: a look is enough.
    Brain,
    /// They hold where this was called, and for the bot only if it works there.
    Here,
}

/// Audits what it finds and what it is pointed at.
pub fn look(scene: &Scene) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut audited = 0;
    for (path, whose, named) in files(scene) {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        match super::plugin::read(&path) {
            Ok(Some(settings)) => {
                audited += 1;
                findings.extend(one(&path, whose, &settings));
            }
            Ok(None) if named => findings.push(unread(&path, named, format!("there is no {}", path.display()))),
            Ok(None) => {}
            // That those of setup are not JSON is said elsewhere, but then nothing is known of their rules.
            Err(why) => findings.push(unread(&path, named, why)),
        }
    }
    findings.extend(
        scene.live.iter().filter(|live| live.side == Side::Bot).flat_map(|live| command_line(live.args.as_deref())),
    );
    if findings.is_empty() {
        findings.push(match audited {
            0 => Finding::ok(CHECK, "there are no settings whose rules could let the bot reach a port or run code"),
            n => Finding::ok(
                CHECK,
                format!("no rule in {} lets the bot reach a port or run code", text::count(n, "settings file")),
            ),
        });
    }
    findings
}

fn unread(path: &Path, named: bool, why: String) -> Finding {
    let fix = match named && !path.is_file() {
        true => "give --settings the path of a settings file".to_owned(),
        false => format!("correct {}, then look again", path.display()),
    };
    Finding::fail(CHECK, why, "what it allows cannot be told", fix)
}

/// The files, the strictest reading first, and whether each was asked for.
fn files(scene: &Scene) -> Vec<(PathBuf, Whose, bool)> {
    let mut files: Vec<(PathBuf, Whose, bool)> =
        scene.named.iter().map(|path| (path.clone(), Whose::Bot, true)).collect();
    files.push((scene.folder.join(side_settings(Side::Bot)), Whose::Bot, false));
    for name in [USER_SETTINGS, "settings.local.json"] {
        files.push((scene.folder.join(name), Whose::Bot, false));
    }
    let project =
        |folder: &Path| ["settings.json", "settings.local.json"].map(|name| folder.join(".claude").join(name));
    for (side, whose) in [(Side::Bot, Whose::Bot), (Side::Brain, Whose::Brain)] {
        let folders = scene.live.iter().filter(|live| live.side == side).filter_map(|live| live.cwd.as_deref());
        files.extend(folders.flat_map(project).map(|path| (path, whose, false)));
    }
    files.push((scene.folder.join(side_settings(Side::Brain)), Whose::Brain, false));
    if let Ok(here) = std::env::current_dir() {
        files.extend(project(&here).map(|path| (path, Whose::Here, false)));
    }
    files
}

fn one(path: &Path, whose: Whose, settings: &Value) -> Vec<Finding> {
    let texts = |pointer: &str| {
        let list = settings.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let denied = texts("/permissions/deny");
    let is_denied =
        |rule: &str| denied.iter().any(|deny| deny == rule || Some(deny.as_str()) == rule.split('(').next());
    let rules = texts("/permissions/allow").into_iter().filter(|rule| !is_denied(rule));
    let mut findings: Vec<Finding> = rules.filter_map(|rule| audit(&rule)).collect();
    if whose == Whose::Brain {
        // The brain corrects its answers, and writes: only what reaches a port or runs code is worth a look there.
        findings.retain(|finding| finding.level == Level::Fail);
    }
    let mode = settings.pointer("/permissions/defaultMode").and_then(Value::as_str);
    findings.extend(mode.and_then(|mode| permission_mode(mode, "permissions.defaultMode")));
    let sandbox = |key: &str| settings.pointer(&format!("/sandbox/{key}")).and_then(Value::as_bool);
    if sandbox("enabled") == Some(true) && sandbox("autoAllowBashIfSandboxed") != Some(false) {
        let why = "in the sandbox every command runs unasked, and what the sandbox lets through is all that holds it";
        let fix = "set sandbox.autoAllowBashIfSandboxed to false";
        findings.push(Finding::warn(CHECK, "sandbox.enabled allows every command in it", why, fix));
    }
    for finding in &mut findings {
        finding.what = format!("{}: {}", path.display(), finding.what);
        let extra = match whose {
            Whose::Bot => continue,
            Whose::Brain => {
                "this is the brain, which is meant to do work: make sure that it is meant to do this unasked"
            }
            Whose::Here => "it holds for the bot only if it is started in this folder",
        };
        finding.level = Level::Warn;
        finding.why = finding.why.take().map(|why| format!("{why}; {extra}"));
    }
    findings
}

fn permission_mode(mode: &str, place: &str) -> Option<Finding> {
    let what = format!("{place} is {mode}");
    let fix = format!("remove {place}");
    match mode {
        "bypassPermissions" => Some(Finding::fail(CHECK, what, "the session runs every command unasked", fix)),
        "acceptEdits" | "auto" => {
            Some(Finding::warn(CHECK, what, "the session does more unasked than its rules say", fix))
        }
        _ => None,
    }
}

/// What the bot was allowed on its command line.
fn command_line(args: Option<&[String]>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut taking = false;
    let args = args.unwrap_or_default();
    for (n, arg) in args.iter().enumerate() {
        let (flag, value) = arg.split_once('=').map_or((arg.as_str(), None), |(flag, value)| (flag, Some(value)));
        match flag {
            "--dangerously-skip-permissions" => {
                findings.extend(permission_mode("bypassPermissions", "--dangerously-skip-permissions"));
            }
            "--permission-mode" => {
                let mode = value.or_else(|| args.get(n + 1).map(String::as_str));
                findings.extend(mode.and_then(|mode| permission_mode(mode, "--permission-mode")));
            }
            "--allowedTools" | "--allowed-tools" => {
                findings.extend(value.into_iter().flat_map(rules).filter_map(|rule| audit(&rule)))
            }
            _ if !arg.starts_with('-') && taking => {
                findings.extend(rules(arg).into_iter().filter_map(|rule| audit(&rule)))
            }
            _ => {}
        }
        taking = if arg.starts_with('-') { matches!(flag, "--allowedTools" | "--allowed-tools") } else { taking };
    }
    for finding in &mut findings {
        finding.what = format!("the running bot's command line: {}", finding.what);
    }
    findings
}

/// The rules in a list that is separated by commas or spaces, outside of their brackets.
fn rules(list: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0_usize;
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match found.last_mut() {
            Some(last) if depth > 0 || !(c == ',' || c.is_whitespace()) => last.push(c),
            _ => found.push(String::new()),
        }
    }
    found.retain(|rule| !rule.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn levels(whose: Whose, settings: &Value) -> Vec<Level> {
        one(Path::new("x"), whose, settings).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn the_bot_is_held_to_the_rules_and_the_brain_is_looked_at() {
        let settings =
            json!({"permissions": {"allow": ["Bash(curl:*)", "Edit", "Read", 5], "defaultMode": "acceptEdits"}});
        assert_eq!(levels(Whose::Bot, &settings), [Level::Fail, Level::Warn, Level::Warn]);
        assert_eq!(levels(Whose::Brain, &settings), [Level::Warn, Level::Warn]);
        assert_eq!(levels(Whose::Here, &settings), [Level::Warn, Level::Warn, Level::Warn]);
        let denied = json!({"permissions": {"allow": ["Bash(curl:*)", "WebFetch"], "deny": ["Bash", "WebFetch"]}});
        assert!(levels(Whose::Bot, &denied).is_empty());
    }

    #[test]
    fn a_command_line_is_audited_too() {
        let args: Vec<String> = [
            "claude",
            "--allowedTools",
            "Bash(git log -n1, x) Read,WebFetch",
            "Bash(curl *)",
            "--permission-mode",
            "bypassPermissions",
        ]
        .map(str::to_owned)
        .to_vec();
        let what: Vec<String> = command_line(Some(&args)).into_iter().map(|finding| finding.what).collect();
        assert_eq!(what.len(), 3, "{what:?}");
        assert!(what[0].contains("WebFetch") && what[1].contains("curl") && what[2].contains("bypassPermissions"));
    }
}
