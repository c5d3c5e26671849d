//! The trust audit: what a rule of an allowlist lets a restricted session do. Pure.
//!
//! The relay keeps the bot to explicit hand-offs, but fakechat asks nobody who he is: whatever lets the bot reach a
//! port, or run code, lets a message from a chat become a prompt to the brain.

use super::table::{Danger, RELAY_CHANGES, RELAY_SAFE, RUNNING_ARGS, TABLE, has, look_up};
use super::{Finding, Level};
use crate::cli::PROGRAM;
use crate::cli::setup::wants::REPLY;

/// The name of the check.
pub const CHECK: &str = "trust";
/// Parts of the names of MCP tools that reach the network.
const NET_TOOLS: &str = "browser playwright puppeteer chrome selenium webdriver fetch http curl crawl scrape firefox";
/// Words in the names of MCP tools that run code or commands.
const CODE_TOOLS: &str = "shell bash sh exec execute eval evaluate terminal ssh docker python repl jupyter desktop computer \
    command script";
/// What separates the commands of a line. Claude Code judges each by itself.
const SEPARATORS: [&str; 6] = ["&&", "||", ";", "|", "&", "\n"];
/// How many programs a wildcard is shown to admit.
const SHOWN: usize = 4;

/// What is wrong with a rule of an allowlist; `None`: nothing that is known.
#[must_use]
pub fn audit(rule: &str) -> Option<Finding> {
    let rule = rule.trim();
    let (danger, what) = judge(rule)?;
    let level = if danger.is_failure() { Level::Fail } else { Level::Warn };
    Some(Finding {
        check: CHECK,
        level,
        what: format!("the rule {rule} {what}"),
        why: Some(danger.why().to_owned()),
        fix: Some(format!(
            "remove {rule} from permissions.allow, or put a rule in its place that names one harmless command"
        )),
    })
}

/// What a rule admits that is dangerous.
fn judge(rule: &str) -> Option<(Danger, String)> {
    let (tool, spec) = match rule.split_once('(') {
        Some((tool, rest)) => (tool.trim(), Some(rest.strip_suffix(')').unwrap_or(rest).trim())),
        None => (rule, None),
    };
    let all = spec.is_none_or(|spec| spec.is_empty() || spec.chars().all(|c| matches!(c, '*' | ':' | ' ' | '/')));
    match tool {
        "Bash" | "Monitor" | "PowerShell" if all => Some((Danger::Code, "admits every command".to_owned())),
        "PowerShell" => Some((Danger::Code, "admits PowerShell, which this audit cannot tell apart".to_owned())),
        "Bash" | "Monitor" => line(spec.unwrap_or_default()),
        "WebFetch" => Some((Danger::Net, "lets the session fetch from the web".to_owned())),
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" if all || wide(spec.unwrap_or_default()) => {
            Some((Danger::Writes, "lets the session write files outside of its project, or all in it".to_owned()))
        }
        _ if tool.starts_with("mcp__") => mcp(tool),
        _ if tool.contains('*') => Some((Danger::Code, "admits tools by a wildcard".to_owned())),
        _ => None,
    }
}

/// Whether a path of a rule reaches beyond the project or over all of it.
fn wide(spec: &str) -> bool {
    spec.starts_with('~') || spec.starts_with("//") || spec.contains("..") || spec.contains(".claude") || spec == "./**"
}

fn mcp(tool: &str) -> Option<(Danger, String)> {
    let lower = tool.to_lowercase();
    let rest = lower.trim_start_matches("mcp__");
    let reaches = NET_TOOLS.split(' ').any(|part| rest.contains(part)) || rest.ends_with("navigate");
    let runs = rest.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| has(CODE_TOOLS, word));
    match () {
        () if tool == REPLY => None,
        () if rest.starts_with("plugin_fakechat_fakechat") => {
            Some((Danger::Writes, "admits more of fakechat than its reply tool".to_owned()))
        }
        () if rest.split('*').next().is_some_and(|fixed| rest.contains('*') && !fixed.contains("__")) => {
            Some((Danger::Code, "admits the tools of several servers by a wildcard".to_owned()))
        }
        () if reaches => Some((Danger::Net, "admits a tool that reaches the network".to_owned())),
        () if runs => Some((Danger::Code, "admits a tool that runs commands".to_owned())),
        () => None,
    }
}

/// A rule for a command line: the worst of its commands.
fn line(spec: &str) -> Option<(Danger, String)> {
    if spec.contains("/dev/tcp") || spec.contains("/dev/udp") {
        return Some((Danger::Net, "opens a port through the shell's /dev/tcp".to_owned()));
    }
    if spec.contains("$(") || spec.contains('`') || spec.contains("<(") {
        return Some((Danger::Code, "has another command in it".to_owned()));
    }
    // The older way to write a prefix: `git log:*`.
    let spec = spec.strip_suffix(":*").map_or_else(|| spec.to_owned(), |fixed| format!("{fixed} *"));
    let mut commands = vec![spec.as_str()];
    for separator in SEPARATORS {
        commands = commands.into_iter().flat_map(|part| part.split(separator)).collect();
    }
    let found = commands.into_iter().filter_map(|part| command(&part.split_whitespace().collect::<Vec<_>>()));
    let mut worst: Option<(Danger, String)> = None;
    for one in found {
        if worst.as_ref().is_none_or(|worst| one.0.is_failure() && !worst.0.is_failure()) {
            worst = Some(one);
        }
    }
    worst
}

/// A rule for one command.
fn command(words: &[&str]) -> Option<(Danger, String)> {
    let (first, rest) = words.split_first()?;
    let first = first.trim_start_matches(['\\', '(', '{']).trim_matches(['"', '\'']);
    if let Some((name, value)) = first.split_once('=')
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        // Settings before a command; a wildcard in one also admits whatever comes after it.
        return if value.contains('*') {
            Some((Danger::Code, "admits every command".to_owned()))
        } else {
            command(rest)
        };
    }
    if first.is_empty() {
        return command(rest);
    }
    if first.contains('*') {
        return wild(first);
    }
    let name = first.rsplit('/').next().unwrap_or(first);
    if name == PROGRAM {
        return relay(rest);
    }
    let Some(row) = look_up(name) else { return script(first) };
    let open = rest.iter().any(|word| word.contains('*'));
    let admits = || Some((row.danger, format!("admits {name}")));
    match row.danger {
        Danger::Wrapper => wrapped(name, rest),
        Danger::Args if !open && !rest.iter().any(|word| has(RUNNING_ARGS, word)) => None,
        _ if !open && matches!(rest, ["--version" | "-V" | "-v" | "--help" | "-h" | "version"]) => None,
        _ if rest.iter().find(|word| **word != "--user").is_some_and(|word| has(row.safe, word)) => None,
        _ => admits(),
    }
}

/// A program that is known by its path alone.
fn script(first: &str) -> Option<(Danger, String)> {
    const SYSTEM: [&str; 8] = [
        "/bin",
        "/sbin",
        "/usr/bin",
        "/usr/sbin",
        "/usr/local/bin",
        "/usr/local/sbin",
        "/opt/homebrew/bin",
        "/snap/bin",
    ];
    let (folder, _) = first.rsplit_once('/')?;
    (!SYSTEM.contains(&folder)).then(|| (Danger::Script, format!("admits {first}")))
}

/// A command that runs another one.
fn wrapped(name: &str, rest: &[&str]) -> Option<(Danger, String)> {
    let own = |word: &str| word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let wild_at = rest.iter().position(|word| word.contains('*')).unwrap_or(rest.len());
    let options = rest[..wild_at].iter().filter(|word| word.starts_with('-')).count();
    let plain: Vec<usize> = (0..wild_at).filter(|at| !own(rest[*at])).collect();
    // Each of its options may take a word, so the command is one of these.
    let commands = plain.iter().take(options + 1);
    if let Some(found) = commands.filter_map(|at| command(&rest[*at..])).next() {
        return Some(found);
    }
    if wild_at < rest.len() && plain.len() <= options {
        return Some((Danger::Wrapper, format!("admits every command, behind {name}")));
    }
    let as_another = matches!(name, "sudo" | "doas" | "su" | "pkexec" | "runuser") && !plain.is_empty();
    as_another.then(|| (Danger::System, format!("admits a command as another user, with {name}")))
}

/// A rule whose program has a wildcard: which programs it admits. What follows the wildcard is no bound, for it may
/// stand at the end of any command line.
fn wild(first: &str) -> Option<(Danger, String)> {
    let fixed = first.split('*').next().unwrap_or_default();
    let start = fixed.rsplit('/').next().unwrap_or(fixed);
    if start.is_empty() {
        return Some((Danger::Code, "admits every command".to_owned()));
    }
    let rows = TABLE.iter().flat_map(|row| row.names.split(' ').map(move |name| (row.danger, name)));
    let own = [(Danger::Session, PROGRAM)].into_iter();
    let mut hits: Vec<(Danger, &str)> = rows.chain(own).filter(|(_, name)| name.starts_with(start)).collect();
    hits.sort_by_key(|(danger, _)| !danger.is_failure());
    let (danger, _) = hits.first().copied()?;
    let names: Vec<&str> = hits.iter().take(SHOWN).map(|(_, name)| *name).collect();
    Some((danger, format!("admits {} by its wildcard", names.join(", "))))
}

/// A rule for the relay's own command.
fn relay(rest: &[&str]) -> Option<(Danger, String)> {
    let mut words = rest.iter();
    let name = loop {
        match words.next() {
            Some(&"--config") => {
                words.next();
            }
            Some(word) if word.starts_with('-') && !word.contains('*') => {}
            Some(word) => break *word,
            None => return None,
        }
    };
    let admits = |name: &str| format!("admits {PROGRAM} {name}");
    match name.split_once('*') {
        Some((start, _)) => {
            let speaks = ["send", "hook", "retry", "setup", "launch", "reset-breaker"];
            let speaks = speaks.into_iter().find(|one| one.starts_with(start));
            speaks.map(|one| (Danger::Session, admits(one)))
        }
        None if has(RELAY_SAFE, name) => None,
        None if has(RELAY_CHANGES, name) => Some((Danger::System, admits(name))),
        None => Some((Danger::Session, admits(name))),
    }
}

#[cfg(test)]
mod tests;
