//! What setup wants to be in the settings files, and putting it there or taking it back: edits of a text, no files.

use std::path::Path;

use serde_json::{Value, json};

use super::json::{Document, Refusal};
use crate::config::Side;

/// The plugin, as Claude Code names it.
pub const PLUGIN: &str = "fakechat@claude-plugins-official";
/// The tool with which a session answers.
pub const REPLY: &str = "mcp__plugin_fakechat_fakechat__reply";
/// The tool with which it corrects an answer.
pub const EDIT: &str = "mcp__plugin_fakechat_fakechat__edit_message";
/// The commands that `--bot-commands` lets the bot run: they look, or take back. None puts words into a session.
pub const BOT_COMMANDS: [&str; 4] = ["status", "list", "show", "cancel"];
/// The events of which the relay wants to hear.
pub const EVENTS: [&str; 7] =
    ["PostToolUse", "SessionStart", "SessionEnd", "Notification", "PermissionRequest", "Stop", "UserPromptSubmit"];
/// How long a hook may take, seconds: more than it gives itself for large files on a slow disk.
const HOOK_TIMEOUT_S: u32 = 30;

/// One thing that is to be in a settings file.
#[derive(Clone, Debug, PartialEq)]
pub enum Want {
    /// This value at this path.
    Set(&'static [&'static str], Value),
    /// This value in the list at this path.
    Include(&'static [&'static str], Value),
    /// This hook.
    Hook {
        /// When it is called.
        event: &'static str,
        /// The side whose hook it is.
        side: Side,
        /// What is run.
        command: String,
    },
}

/// What is to be in the settings of all of the person's sessions: the plugin is off, for it would start in each.
#[must_use]
pub fn user() -> Vec<Want> {
    vec![Want::Set(&["enabledPlugins", PLUGIN], json!(false))]
}

/// What is to be in the settings of a side.
#[must_use]
pub fn side(side: Side, command: &str, bot_commands: bool) -> Vec<Want> {
    const ALLOW: &[&str] = &["permissions", "allow"];
    let mut wants = vec![Want::Set(&["enabledPlugins", PLUGIN], json!(true)), Want::Include(ALLOW, json!(REPLY))];
    match side {
        Side::Brain => wants.push(Want::Include(ALLOW, json!(EDIT))),
        Side::Bot if bot_commands => {
            let rules = BOT_COMMANDS.map(|name| Want::Include(ALLOW, json!(format!("Bash(anna-relay {name}:*)"))));
            wants.extend(rules);
        }
        Side::Bot => {}
    }
    wants.push(Want::Set(&["env", "ENABLE_TOOL_SEARCH"], json!("false")));
    wants.extend(EVENTS.map(|event| Want::Hook { event, side, command: command.to_owned() }));
    wants
}

/// The command line of a side's hook, for the shell that Claude Code runs it with.
#[must_use]
pub fn hook_command(program: &Path, side: Side, config: Option<&Path>) -> String {
    let config = config.map_or_else(String::new, |path| format!(" --config {}", quoted(&path.to_string_lossy())));
    format!("{} hook {side}{config}", quoted(&program.to_string_lossy()))
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Whether a hook's command is the relay's for that side, wherever the program lies.
#[must_use]
pub fn is_ours(command: &str, side: Side) -> bool {
    program(command, side).is_some()
}

/// The program that a hook of the relay for that side calls; `None`: it is not one.
#[must_use]
pub fn program(command: &str, side: Side) -> Option<String> {
    let call = format!(" hook {side}");
    let at = command.rfind(&call)?;
    let (word, rest) = (&command[..at], &command[at + call.len()..]);
    let bare = match word.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\'')) {
        Some(inner) => inner.replace(r"'\''", "'"),
        None => word.to_owned(),
    };
    let named = bare.rsplit('/').next() == Some(super::super::PROGRAM);
    (named && quoted(&bare) == word && (rest.is_empty() || rest.starts_with(" --config "))).then_some(bare)
}

impl Want {
    /// Puts it there; nothing is changed where it is.
    ///
    /// # Errors
    /// What is there has another shape.
    pub fn put(&self, document: &Document) -> Result<(), Refusal> {
        match self {
            Want::Set(path, value) => document.set(path, value),
            Want::Include(path, value) => document.include(path, value),
            Want::Hook { event, side, command } => put_hook(document, event, *side, command),
        }
    }

    /// Takes it back, where it is as setup put it; `original`: what was there before setup came.
    ///
    /// # Errors
    /// What is there has another shape.
    pub fn take_back(&self, document: &Document, original: &Document) -> Result<(), Refusal> {
        match self {
            Want::Set(path, value) if document.get(path).as_ref() == Some(value) => match original.get(path) {
                Some(before) => document.set(path, &before)?,
                None => document.remove(path),
            },
            Want::Set(..) => {}
            Want::Include(path, value) => {
                if !elements(original, path).contains(value) {
                    document.exclude(path, value);
                }
            }
            Want::Hook { event, side, .. } => take_back_hook(document, original, event, *side)?,
        }
        prune(document, original, self.path())
    }

    fn path(&self) -> Vec<&str> {
        match self {
            Want::Set(path, _) => path.split_last().map(|(_, parents)| parents.to_vec()).unwrap_or_default(),
            Want::Include(path, _) => path.to_vec(),
            Want::Hook { event, .. } => vec!["hooks", event],
        }
    }
}

fn elements(document: &Document, path: &[&str]) -> Vec<Value> {
    match document.get(path) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// Removes what is empty now and was not there before, from the inside out.
fn prune(document: &Document, original: &Document, mut path: Vec<&str>) -> Result<(), Refusal> {
    while !path.is_empty() {
        let empty = match document.get(&path) {
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            _ => false,
        };
        match original.get(&path) {
            None if empty => document.remove(&path),
            Some(Value::Null) if empty => document.set(&path, &Value::Null)?,
            _ => return Ok(()),
        }
        path.pop();
    }
    Ok(())
}

/// The entry of a list of hooks that holds the relay's hook alone.
fn group(event: &str, side: Side, command: &str) -> Value {
    let hooks = json!([{ "type": "command", "command": command, "timeout": HOOK_TIMEOUT_S }]);
    match (event, side) {
        ("PostToolUse", Side::Brain) => json!({ "matcher": format!("{REPLY}|{EDIT}"), "hooks": hooks }),
        ("PostToolUse", Side::Bot) => json!({ "matcher": REPLY, "hooks": hooks }),
        ("Notification", _) => json!({ "matcher": "permission_prompt", "hooks": hooks }),
        _ => json!({ "hooks": hooks }),
    }
}

/// The commands in an entry of a list of hooks.
pub fn commands(group: &Value) -> Vec<&Value> {
    group.get("hooks").and_then(Value::as_array).map(|hooks| hooks.iter().collect()).unwrap_or_default()
}

/// Whether a hook is the relay's for that side.
#[must_use]
pub fn is_our_hook(hook: &Value, side: Side) -> bool {
    hook.get("command").and_then(Value::as_str).is_some_and(|command| is_ours(command, side))
}

fn put_hook(document: &Document, event: &str, side: Side, command: &str) -> Result<(), Refusal> {
    let path = ["hooks", event];
    let wanted = group(event, side, command);
    for (n, found) in elements(document, &path).into_iter().enumerate() {
        let hooks = commands(&found);
        if found == wanted {
            return Ok(());
        }
        if !hooks.iter().any(|hook| is_our_hook(hook, side)) {
            continue;
        }
        // Of a person's own group only the relay's hook is brought up to date.
        let ours = commands(&wanted).first().copied().cloned().unwrap_or_default();
        let renewed: Vec<Value> =
            hooks.iter().map(|hook| if is_our_hook(hook, side) { ours.clone() } else { (*hook).clone() }).collect();
        let mut group = if hooks.len() == 1 { wanted.clone() } else { found.clone() };
        group["hooks"] = Value::Array(renewed);
        return if group == found { Ok(()) } else { document.replace(&path, n, &group) };
    }
    document.include(&path, &wanted)
}

fn take_back_hook(document: &Document, original: &Document, event: &str, side: Side) -> Result<(), Refusal> {
    let path = ["hooks", event];
    let before = elements(original, &path);
    let was_there = before.iter().flat_map(commands).any(|hook| is_our_hook(hook, side));
    if was_there {
        return Ok(());
    }
    for (n, found) in elements(document, &path).into_iter().enumerate().rev() {
        let hooks = commands(&found);
        let theirs: Vec<Value> =
            hooks.iter().filter(|hook| !is_our_hook(hook, side)).map(|hook| (*hook).clone()).collect();
        match theirs.len() {
            left if left == hooks.len() => {}
            0 => document.exclude(&path, &found),
            _ => {
                let mut group = found.clone();
                group["hooks"] = Value::Array(theirs);
                document.replace(&path, n, &group)?;
            }
        }
    }
    Ok(())
}

/// Brings the changes from one text to another into the first one, so that what both have keeps its form there.
///
/// # Errors
/// One of them is not JSON whose top is an object.
pub fn merge(before: &str, after: &str) -> Result<String, Refusal> {
    let document = Document::open(before)?;
    let (Some(old), Some(new)) = (document.get(&[]), Document::open(after)?.get(&[])) else {
        return Ok(after.to_owned());
    };
    merge_at(&document, &mut Vec::new(), &old, &new)?;
    Ok(document.text())
}

fn merge_at<'a>(document: &Document, path: &mut Vec<&'a str>, old: &'a Value, new: &'a Value) -> Result<(), Refusal> {
    match (old, new) {
        (old, new) if old == new => Ok(()),
        (Value::Object(was), Value::Object(is)) => {
            for name in was.keys().filter(|name| !is.contains_key(*name)) {
                path.push(name);
                document.remove(path);
                path.pop();
            }
            for (name, value) in is {
                path.push(name);
                merge_at(document, path, was.get(name).unwrap_or(&Value::Null), value)?;
                path.pop();
            }
            Ok(())
        }
        _ => document.set(path, new),
    }
}

#[cfg(test)]
mod tests;
