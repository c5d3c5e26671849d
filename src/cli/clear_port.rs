//! `clear-port`: before a launch, makes sure that no orphan holds a side's port.

use serde::Serialize;

use crate::config::Side;
use crate::error::{Error, Kind, Result};
use crate::port::end::{EndCause, EndError, end};
use crate::port::{Judge, Orphan, Verdict};

/// How often a port is judged anew after something there changed: each time another process was faster, which a
/// launcher in a loop may do once or twice, and nobody for ever.
const ROUNDS: usize = 5;

/// Clears a side's port and says what was found and done.
///
/// # Errors
/// The port is not free: [`Kind::LiveSession`], [`Kind::Stranger`], or [`Kind::Failed`] where it could not be
/// cleared or not be told who has it. A dry run succeeds where a real one is expected to.
pub fn run(side: Side, port: u16, dry_run: bool, json: bool) -> Result<()> {
    let cleared = clear(&mut Judge::of_this_user(), port, dry_run);
    let text = if json { cleared.report(side, port).document() } else { cleared.text(side, port) };
    if let Some(text) = text {
        super::out::print_line(&text)?;
    }
    cleared.outcome(side, port)
}

/// Clears a side's port for a session that is about to start, and says what was done, if anything was.
///
/// # Errors
/// Those of [`run`].
pub(super) fn before_launch(side: Side, port: u16) -> Result<Option<String>> {
    let cleared = clear(&mut Judge::of_this_user(), port, false);
    cleared.outcome(side, port)?;
    Ok(cleared.orphan.as_ref().and_then(|_| cleared.text(side, port)))
}

/// What came of it.
struct Cleared {
    /// What holds the port now, or, in a dry run, what would be ended.
    last: Verdict,
    /// The last orphan that was found.
    orphan: Option<Orphan>,
    ended: Vec<u32>,
    forced: bool,
    dry_run: bool,
    /// Why the orphan is still there.
    failure: Option<EndError>,
}

fn clear(judge: &mut Judge, port: u16, dry_run: bool) -> Cleared {
    let mut cleared =
        Cleared { last: judge.judge(port), orphan: None, ended: Vec::new(), forced: false, dry_run, failure: None };
    for _ in 0..ROUNDS {
        let Verdict::Orphan(orphan) = &cleared.last else { break };
        cleared.orphan = Some(orphan.clone());
        if dry_run {
            break;
        }
        cleared.failure = match end(orphan, port) {
            Ok(ended) => {
                cleared.ended.extend(ended.pids);
                cleared.forced |= ended.forced;
                None
            }
            Err(error) => {
                cleared.ended.extend(&error.ended);
                Some(error)
            }
        };
        cleared.last = judge.judge(port);
        let hopeless = |error: &EndError| matches!(error.cause, EndCause::Io { .. } | EndCause::Survived { .. });
        if cleared.failure.as_ref().is_some_and(hopeless) {
            break;
        }
    }
    cleared
}

impl Cleared {
    /// What was found and done, where the outcome is not an error.
    fn text(&self, side: Side, port: u16) -> Option<String> {
        let place = format!("the {side}'s port {port}");
        match (&self.last, &self.orphan) {
            (Verdict::Free, None) => Some(format!("{place} is free")),
            (Verdict::Free, Some(orphan)) if self.ended.is_empty() => {
                Some(format!("{place} is free: {} went away meanwhile", describe(orphan)))
            }
            (Verdict::Free, Some(orphan)) => {
                let how = if self.forced { " (it took SIGKILL)" } else { "" };
                Some(format!("ended {}{how}; {place} is free", describe(orphan)))
            }
            (Verdict::Orphan(orphan), _) if self.dry_run => {
                Some(format!("{} holds {place} and would be ended", describe(orphan)))
            }
            _ => None,
        }
    }

    fn outcome(&self, side: Side, port: u16) -> Result<()> {
        let doing = format!("clearing the {side}'s port {port}");
        let error = match &self.last {
            Verdict::Free => return Ok(()),
            Verdict::Orphan(_) if self.dry_run => return Ok(()),
            Verdict::Live { listener, session } => {
                let who =
                    format!("pid {} ({}), through its fakechat, pid {}", session.pid, session.command, listener.pid);
                Error::new(Kind::LiveSession, format!("{doing}: a live session holds it: {who}"))
                    .hint(format!("the {side} runs already: use that session, or end it and launch again"))
            }
            Verdict::Foreign { pid, command, why } => {
                let who = match (pid, command) {
                    (Some(pid), Some(command)) => format!("pid {pid} ({command}) holds it, and {why}"),
                    _ => format!("a process that cannot be seen holds it: {why}"),
                };
                Error::new(Kind::Stranger, format!("{doing}: {who}"))
                    .hint(format!("end that program, or set relay.{side}_port in anna.toml to another port"))
            }
            Verdict::Orphan(orphan) => {
                let cause =
                    self.failure.as_ref().map_or_else(|| "there is always another one".to_owned(), ToString::to_string);
                Error::failed(format!("{doing}: ending {}: {cause}", describe(orphan)))
                    .hint(format!("end it by hand: kill -9 {}", orphan.listener.pid))
            }
            Verdict::Unknown { why } => Error::failed(format!("{doing}: cannot tell who holds it: {why}"))
                .hint("try again; if it stays so, look with `ss -ltnp` (Linux) or `lsof -iTCP -sTCP:LISTEN` (macOS)"),
        };
        Err(error)
    }

    fn report(&self, side: Side, port: u16) -> Report {
        let holder = |pid, command: &str| Some(Holder { pid, command: command.to_owned() });
        let (found, holder, session) = match (&self.last, &self.orphan) {
            (Verdict::Free, None) => ("free", None, None),
            (Verdict::Free, Some(orphan)) | (Verdict::Orphan(orphan), _) => {
                ("orphan", holder(orphan.listener.pid, &orphan.listener.command()), None)
            }
            (Verdict::Live { listener, session }, _) => {
                ("live", holder(listener.pid, &listener.command()), holder(session.pid, &session.command))
            }
            (Verdict::Foreign { pid, command, .. }, _) => {
                let seen = pid.and_then(|pid| holder(pid, command.as_deref().unwrap_or_default()));
                ("foreign", seen, None)
            }
            (Verdict::Unknown { .. }, _) => ("unknown", None, None),
        };
        let free = self.last == Verdict::Free;
        Report { side, port, found, holder, session, ended: self.ended.clone(), free, dry_run: self.dry_run }
    }
}

/// The orphan, for a person.
fn describe(orphan: &Orphan) -> String {
    let listener = &orphan.listener;
    let wrapper = orphan.wrapper.as_ref().map_or_else(String::new, |one| format!(" and its wrapper, pid {}", one.pid));
    format!("an orphaned fakechat, pid {} ({}){wrapper}", listener.pid, listener.command())
}

/// The document of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    side: Side,
    port: u16,
    /// What was there; what is there now, where that is neither nothing nor an orphan.
    found: &'static str,
    holder: Option<Holder>,
    session: Option<Holder>,
    ended: Vec<u32>,
    free: bool,
    dry_run: bool,
}

#[derive(Debug, Serialize)]
struct Holder {
    pid: u32,
    command: String,
}

impl Report {
    fn document(&self) -> Option<String> {
        serde_json::to_string_pretty(self).ok()
    }
}
