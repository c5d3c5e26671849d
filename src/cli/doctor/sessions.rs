//! The ports, who holds them, and how the live sessions were started.

use std::path::PathBuf;

use super::{Finding, Level, Scene};
use crate::cli::launch::SWITCH_OFF;
use crate::cli::setup::{USER_SETTINGS, side_settings};
use crate::config::{Config, Holder, Side};
use crate::port::{self, Judge, Verdict};

/// A session that holds a port, as it was started.
pub struct Live {
    /// Which of the two it is.
    pub side: Side,
    /// Its process.
    pub pid: u32,
    /// Its command line, where it can be read.
    pub args: Option<Vec<String>>,
    /// Its environment, where it can be read.
    pub environ: Option<Vec<String>>,
    /// Where it works.
    pub cwd: Option<PathBuf>,
}

impl Live {
    fn of(side: Side, pid: u32) -> Live {
        let strings = |name: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/{name}")).ok().filter(|bytes| !bytes.is_empty())?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Some(text.trim_end_matches('\0').split('\0').map(str::to_owned).collect())
        };
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).ok();
        Live { side, pid, args: strings("cmdline"), environ: strings("environ"), cwd }
    }
}

/// Looks who holds the ports.
pub fn ports(config: &Config) -> (Vec<Finding>, Vec<Live>) {
    let (mut findings, mut live) = (Vec::new(), Vec::new());
    let mut judge = Judge::of_this_user();
    for side in Side::BOTH {
        let port = config.relay.port(side);
        let verdict = judge.judge(port);
        if let Verdict::Live { session, .. } = &verdict {
            live.push(Live::of(side, session.pid));
        }
        findings.push(holder(side, port, &verdict, config.relay.holder));
        let lost = match &verdict {
            Verdict::Live { .. } => Vec::new(),
            _ => port::without_channel(port).unwrap_or_default(),
        };
        findings.extend(lost.iter().map(|session| {
            Finding::warn(
                "port",
                format!("the {side}, pid {}, was launched for port {port} and does not hold it", session.pid),
                "while it starts, that is so for up to a minute; later it has lost its fakechat, or never had one",
                "if it stays so, end that session and launch it again",
            )
        }));
    }
    (findings, live)
}

fn holder(side: Side, port: u16, verdict: &Verdict, holder: Holder) -> Finding {
    const CHECK: &str = "port";
    let place = format!("the {side}'s port {port}");
    match verdict {
        Verdict::Live { session, .. } => {
            Finding::ok(CHECK, format!("{place} is held by its session, pid {}", session.pid))
        }
        Verdict::Free => Finding::warn(
            CHECK,
            format!("nobody listens on {place}"),
            format!("the {side} does not run, or has no fakechat: hand-offs wait"),
            format!("start it: anna-relay launch {side}"),
        ),
        Verdict::Orphan(orphan) if holder == Holder::Any => Finding::ok(
            CHECK,
            format!(
                "{place} is held by a fakechat without a session, pid {}, which relay.holder = \"any\" admits",
                orphan.listener.pid
            ),
        ),
        Verdict::Orphan(orphan) => Finding::warn(
            CHECK,
            format!("{place} is held by a fakechat whose session has ended, pid {}", orphan.listener.pid),
            "a new session cannot have the port; a running bridge ends it",
            format!("anna-relay clear-port {side}"),
        ),
        Verdict::Foreign { why, .. } if holder == Holder::Any => Finding::ok(
            CHECK,
            format!("{place} is held by another program ({why}), which relay.holder = \"any\" admits"),
        ),
        Verdict::Foreign { pid, command, why } => Finding::fail(
            CHECK,
            match (pid, command) {
                (Some(pid), Some(command)) => format!("{place} is held by pid {pid} ({command}), and {why}"),
                _ => format!("{place} is held by a process that cannot be seen: {why}"),
            },
            format!("the {side}'s fakechat cannot start, and the relay does not deal with it"),
            format!("end that program, or set relay.{side}_port in anna.toml to another port"),
        ),
        Verdict::Unknown { why } => Finding::warn(
            CHECK,
            format!("it cannot be told who holds {place}: {why}"),
            "nothing is pushed there meanwhile",
            "look with `ss -ltnp` (Linux) or `lsof -iTCP -sTCP:LISTEN` (macOS)",
        ),
    }
}

/// Looks how the live sessions were started, and what would switch off the channels of the next ones.
pub fn look(scene: &Scene) -> Vec<Finding> {
    let mut findings: Vec<Finding> = scene.live.iter().map(|live| channels(live, scene.config)).collect();
    let mut switches = Vec::new();
    for live in &scene.live {
        let set = live.environ.iter().flatten().filter_map(|entry| entry.split_once('='));
        switches.extend(set.filter(|(name, value)| is_switch(name, value)).map(|(name, _)| {
            let what = format!("{name} is set in the environment of the {}, pid {}", live.side, live.pid);
            switch(
                Level::Fail,
                what,
                format!("unset it and start the session again with `anna-relay launch {}`", live.side),
            )
        }));
    }
    for name in [USER_SETTINGS, side_settings(Side::Brain), side_settings(Side::Bot)] {
        let Ok(Some(settings)) = super::plugin::read(&scene.folder.join(name)) else { continue };
        let env = settings.get("env").and_then(serde_json::Value::as_object).cloned().unwrap_or_default();
        let value = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        switches.extend(env.iter().filter(|(key, set)| is_switch(key, &value(set))).map(|(key, _)| {
            switch(Level::Fail, format!("{key} is set under env in {name}"), format!("remove {key} from {name}"))
        }));
    }
    switches.extend(
        SWITCH_OFF.iter().filter(|name| std::env::var(name).is_ok_and(|value| is_switch(name, &value))).map(|name| {
            let fix = format!("unset {name} before starting a session, or start it with `anna-relay launch`");
            switch(Level::Warn, format!("{name} is set in this shell"), fix)
        }),
    );
    if switches.is_empty() {
        switches.push(Finding::ok("environment", "nothing that was looked at switches channels off"));
    }
    findings.extend(switches);
    findings
}

fn is_switch(name: &str, value: &str) -> bool {
    SWITCH_OFF.contains(&name) && !matches!(value, "" | "0" | "false")
}

fn switch(level: Level, what: String, fix: String) -> Finding {
    let why = "it switches channels off without a word: the session never sees a hand-off";
    Finding { level, ..Finding::warn("environment", what, why, fix) }
}

fn channels(live: &Live, config: &Config) -> Finding {
    const CHECK: &str = "channels";
    let (side, pid) = (live.side, live.pid);
    let Some(args) = &live.args else {
        return Finding::warn(
            CHECK,
            format!("the command line of the {side}, pid {pid}, cannot be read here"),
            "it cannot be told whether it listens to its channels",
            "make sure that it was started with --channels",
        );
    };
    let wanted = match side {
        Side::Brain => &config.relay.brain_channels,
        Side::Bot => &config.relay.bot_channels,
    };
    let given = given(args);
    let missing: Vec<&str> = wanted.iter().map(String::as_str).filter(|one| !given.contains(one)).collect();
    if missing.is_empty() {
        return Finding::ok(CHECK, format!("the {side}, pid {pid}, listens to its channels"));
    }
    Finding::fail(
        CHECK,
        format!("the {side}, pid {pid}, was started without --channels {}", missing.join(" ")),
        "what is pushed to it is answered with success and never seen",
        format!("end it and start it with `anna-relay launch {side}`"),
    )
}

/// The channels on a command line: the flag takes several, until the next flag.
fn given(args: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut taking = false;
    for arg in args {
        match arg.split_once('=') {
            Some(("--channels" | "--dangerously-load-development-channels", first)) => {
                found.push(first);
                taking = true;
            }
            _ if arg.starts_with('-') => {
                taking = arg == "--channels" || arg == "--dangerously-load-development-channels";
            }
            _ if taking => found.extend(arg.split(',').flat_map(str::split_whitespace)),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_read_off_a_command_line() {
        let args = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            given(&args("claude --channels plugin:a@b plugin:c@d --settings x y")),
            ["plugin:a@b", "plugin:c@d"]
        );
        assert_eq!(given(&args("claude --channels=plugin:a@b --resume")), ["plugin:a@b"]);
        assert!(given(&args("claude plugin:a@b")).is_empty());
    }

    #[test]
    fn a_switch_that_is_off_is_none() {
        assert!(is_switch("DO_NOT_TRACK", "1") && is_switch("DISABLE_TELEMETRY", "true"));
        assert!(!is_switch("DO_NOT_TRACK", "0") && !is_switch("DO_NOT_TRACK", "") && !is_switch("HOME", "1"));
    }
}
