//! A process, and what it is by its command line: fakechat's server, its wrapper, an init. Pure.

use crate::handoff::SessionKey;

/// The port fakechat takes where `FAKECHAT_PORT` is not set.
pub const DEFAULT_PORT: u16 = 8787;

/// How much of a command line is shown, characters: one line of a terminal or so.
const SHOWN_COMMAND: usize = 160;

/// Programs that adopt orphans and never own a fakechat, whatever their process id: inits of containers and
/// service managers that are made subreapers. (PID 1 needs no name, and `systemd --user` is asked for by its flag.)
const INITS: [&str; 10] = [
    "init",
    "launchd",
    "tini",
    "dumb-init",
    "docker-init",
    "catatonit",
    "s6-svscan",
    "runsvdir",
    "containerd-shim-runc-v2",
    "conmon",
];

/// Programs that run a script given as an argument, as Claude Code is where it was installed with npm.
const RUNTIMES: [&str; 4] = ["node", "nodejs", "bun", "deno"];

/// A process, as it was at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// The process id of its parent; 0 where that is outside of what can be seen.
    pub parent: u32,
    /// When it started (see [`SessionKey::started`]): tells it from a later process of that id.
    pub started: u64,
    /// Its effective user id.
    pub uid: u32,
    /// Whether it has ended and was not reaped.
    pub zombie: bool,
    /// The kernel's short name for it, for those that have no command line.
    pub name: String,
    /// Its command line.
    pub argv: Vec<String>,
    /// What its environment says about the port. Only read for what looks like fakechat.
    pub setting: PortSetting,
}

/// What the environment of a fakechat says about its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSetting {
    /// This port. Not set means [`DEFAULT_PORT`]; set and empty means 0, a random one.
    Port(u16),
    /// Something that is no port.
    Nonsense,
    /// It was not read, or could not be.
    Unread,
}

impl PortSetting {
    /// Reads the value of `FAKECHAT_PORT` as fakechat does (`Number(… ?? 8787)`).
    #[must_use]
    pub fn parse(value: Option<&str>) -> Self {
        match value.map(str::trim) {
            None => PortSetting::Port(DEFAULT_PORT),
            Some("") => PortSetting::Port(0),
            Some(text) => text.parse().map_or(PortSetting::Nonsense, PortSetting::Port),
        }
    }
}

impl Process {
    /// Its command line, for a person: one line, of bounded length, control characters made visible.
    #[must_use]
    pub fn command(&self) -> String {
        let line = if self.argv.is_empty() { format!("[{}]", self.name) } else { self.argv.join(" ") };
        let mut shown = String::new();
        for (n, character) in line.chars().enumerate() {
            if n == SHOWN_COMMAND {
                shown.push('…');
                break;
            }
            if character.is_control() {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
        }
        shown
    }

    /// What tells it from every other process, also later ones.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        SessionKey { pid: self.pid, started: self.started }
    }

    /// Whether it is on its way out: its memory is gone already, and its command line with it, but its files may not be.
    /// (One that is just being started looks the same for an instant.) What it is must not be told from what is left.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.zombie || (self.argv.is_empty() && self.pid != 1)
    }

    /// Whether it is fakechat's server: `bun server.ts`.
    #[must_use]
    pub fn is_server(&self) -> bool {
        let script = self.argv.get(1).map_or("", String::as_str);
        self.program() == "bun" && (script == "server.ts" || script.ends_with("/server.ts"))
    }

    /// Whether it is what Claude Code starts fakechat with: `bun run … start`.
    #[must_use]
    pub fn is_wrapper(&self) -> bool {
        self.program() == "bun"
            && self.argv.get(1).is_some_and(|word| word == "run")
            && self.argv.len() > 2
            && self.argv.last().is_some_and(|word| word == "start")
    }

    /// Whether it is one of fakechat's own processes.
    #[must_use]
    pub fn is_fakechat(&self) -> bool {
        self.is_server() || self.is_wrapper()
    }

    /// Whether it adopts orphans. PID 1 does whatever its name, unless it is Claude Code itself, as in a container.
    #[must_use]
    pub fn is_init(&self) -> bool {
        let program = self.program();
        let manager = program == "systemd" && self.argv.iter().any(|word| word == "--user");
        manager || INITS.contains(&program) || (self.pid == 1 && !self.is_claude())
    }

    /// Whether it is Claude Code, by its name: asked where nothing better can be known.
    pub(super) fn is_claude(&self) -> bool {
        is_claude(&self.argv)
    }

    /// The last part of the path it was started as.
    fn program(&self) -> &str {
        program(&self.argv)
    }
}

/// Whether this is a command line of Claude Code: `claude`, or a script of that name under a runtime.
pub(super) fn is_claude(argv: &[String]) -> bool {
    let script = || argv.iter().skip(1).find(|word| !word.starts_with('-'));
    let program = program(argv);
    program == "claude" || (RUNTIMES.contains(&program) && script().is_some_and(|path| path.contains("claude")))
}

fn program(argv: &[String]) -> &str {
    let first = argv.first().map_or("", String::as_str);
    first.rsplit('/').next().unwrap_or(first)
}
