//! Getting fakechat from Claude Code's own plugin commands, and giving it back.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::super::{external, out};
use super::wants::PLUGIN;
use crate::text;

/// Where the plugin comes from, as `claude plugin marketplace add` takes it.
pub const SOURCE: &str = "anthropics/claude-plugins-official";
/// The same by hand: with a URL Claude Code needs no SSH key, as it may with the short form.
pub const ADD_BY_HAND: &str = "claude plugin marketplace add https://github.com/anthropics/claude-plugins-official.git";
/// How to get Claude Code.
pub const INSTALL_CLAUDE: &str = "npm install -g @anthropic-ai/claude-code";
/// How Claude Code calls that marketplace.
pub const MARKETPLACE: &str = "claude-plugins-official";
/// How long `claude` may take: it gives a clone of the marketplace two minutes itself.
const CLAUDE_WITHIN: Duration = Duration::from_secs(300);
/// How long it may take to say what is installed, which needs no network.
const LIST_WITHIN: Duration = Duration::from_secs(30);
/// How long the download of fakechat's own parts may take.
const BUN_WITHIN: Duration = Duration::from_secs(180);

/// A plugin in `claude plugin list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Installed {
    /// `name@marketplace`
    pub id: String,
    /// For whom: `user`, `project` or `local`.
    #[serde(default)]
    pub scope: String,
    /// Whether it is on.
    #[serde(default)]
    pub enabled: bool,
    /// Where it lies.
    #[serde(default)]
    pub install_path: Option<PathBuf>,
}

/// Runs the steps, or, in a dry run, says them; remembers what went wrong.
#[derive(Debug)]
pub struct Steps {
    /// Nothing is run.
    pub dry_run: bool,
    /// What is left to do by hand, in the words of a shell where that is possible.
    pub by_hand: Vec<String>,
    /// Whether there was anything to run.
    pub any: bool,
}

impl Steps {
    /// No steps yet.
    #[must_use]
    pub fn new(dry_run: bool) -> Steps {
        Steps { dry_run, by_hand: Vec::new(), any: false }
    }

    /// Runs one step. Gives whether it succeeded (in a dry run: whether its program is there).
    ///
    /// # Errors
    /// Nothing could be printed.
    pub fn run(&mut self, program: &str, args: &[&str], folder: Option<&Path>) -> crate::error::Result<bool> {
        let place = folder.map_or_else(String::new, |folder| format!(" (in {})", folder.display()));
        let line = format!("{}{place}", external::line(program, args));
        self.any = true;
        let (word, failed) = match self.dry_run {
            true if external::find(program).is_some() => {
                out::print_line(&format!("would run: {line}"))?;
                return Ok(true);
            }
            true => ("would fail", missing(program)),
            false => match external::call(program, args, folder, within(program)) {
                Ok(called) if called.ok => {
                    out::print_line(&format!("ran: {line}"))?;
                    return Ok(true);
                }
                Ok(called) => ("failed", called.why),
                Err(error) => ("failed", reason(program, &error)),
            },
        };
        out::print_line(&format!("{word}: {line}: {}", text::on_one_line(&failed)))?;
        self.by_hand.push(match folder {
            Some(folder) => format!("cd {} && {}", folder.display(), external::line(program, args)),
            None => external::line(program, args),
        });
        Ok(false)
    }
}

fn within(program: &str) -> Duration {
    if program == "bun" { BUN_WITHIN } else { CLAUDE_WITHIN }
}

/// Why a program that is not there could not be run.
#[must_use]
pub fn missing(program: &str) -> String {
    format!("there is no {program} on the PATH")
}

/// Why a program could not be run.
#[must_use]
pub fn reason(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => missing(program),
        _ => error.to_string(),
    }
}

/// What Claude Code says is installed.
///
/// # Errors
/// Says why it cannot be told.
pub fn list() -> Result<Vec<Installed>, String> {
    let called = external::call("claude", &["plugin", "list", "--json"], None, LIST_WITHIN);
    let called = called.map_err(|error| reason("claude", &error))?;
    if !called.ok {
        return Err(called.why);
    }
    // Something may be printed before it, such as a notice of an update.
    let start = called.out.find('[').unwrap_or(0);
    serde_json::from_str(&called.out[start..]).map_err(|error| format!("its answer is not understood: {error}"))
}

/// fakechat among the installed plugins, as installed for all of the person's sessions.
#[must_use]
pub fn fakechat(installed: &[Installed]) -> Option<&Installed> {
    installed.iter().find(|one| one.id == PLUGIN && one.scope == "user")
}

/// What Claude Code's own files say is installed, for a look that runs nothing.
#[must_use]
pub fn on_disk(folder: &Path) -> Option<Installed> {
    let file = json(&folder.join("plugins/installed_plugins.json"))?;
    let entries = file.get("plugins")?.get(PLUGIN)?.as_array()?.clone();
    let user = entries.into_iter().find(|entry| entry.get("scope").and_then(Value::as_str) == Some("user"))?;
    let path = user.get("installPath").and_then(Value::as_str).map(PathBuf::from);
    Some(Installed { id: PLUGIN.to_owned(), scope: "user".to_owned(), enabled: false, install_path: path })
}

/// Whether Claude Code knows the marketplace.
#[must_use]
pub fn knows_marketplace(folder: &Path) -> bool {
    json(&folder.join("plugins/known_marketplaces.json")).is_some_and(|known| known.get(MARKETPLACE).is_some())
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Where fakechat lies: where Claude Code says, else the newest copy below its folder.
#[must_use]
pub fn directory(folder: &Path, installed: Option<&Installed>) -> Option<PathBuf> {
    let has_server = |dir: &PathBuf| dir.join("server.ts").is_file();
    if let Some(dir) = installed.and_then(|one| one.install_path.clone()).filter(has_server) {
        return Some(dir);
    }
    let versions = std::fs::read_dir(folder.join("plugins/cache").join(MARKETPLACE).join("fakechat")).ok()?;
    let mut dirs: Vec<PathBuf> = versions.flatten().map(|entry| entry.path()).filter(has_server).collect();
    dirs.sort();
    dirs.pop()
}

/// Whether what fakechat needs has been downloaded.
#[must_use]
pub fn is_warm(directory: &Path) -> bool {
    directory.join("node_modules").is_dir()
}
