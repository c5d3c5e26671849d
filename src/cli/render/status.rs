//! `status`, for people.

use std::time::Duration;

use time::OffsetDateTime;

use super::{Ink, Style, seconds_since, span, step};
use crate::cli::starter::Starter;
use crate::config::{Config, Side};
use crate::control::wire::{Activity, SideState, SideStatus, Status};
use crate::text::{count, on_one_line};

/// Columns that a label and the room after it take.
const LABEL: usize = 9;
/// A pause longer than this was perhaps forgotten: the same 12 hours after which the bot is told of it.
const LONG_PAUSE_S: u64 = 12 * 3_600;

/// How things stand, with the next step wherever something is wrong. `config` is what the asker's own file
/// says: why no bridge runs, and where things lie.
#[must_use]
pub fn status(status: &Status, config: &Config, starter: Starter, now: OffsetDateTime, style: &Style) -> String {
    let mut page = Page { style: *style, text: String::new() };
    bridge(&mut page, status, config, starter);
    paused(&mut page, status, now);
    for (name, side) in [(Side::Brain, &status.brain), (Side::Bot, &status.bot)] {
        page.row(name.name(), &describe(side, config.relay.settle, now, *style));
        // Without a bridge nobody has looked, and a brain that is wrapping up may be away.
        let away = name == Side::Brain && side.state == SideState::Offline && status.paused.is_some();
        if let Some(step) = step::side(name, side).filter(|_| status.running && !away) {
            page.step(&step);
        }
    }
    queue(&mut page, status, config);
    breaker(&mut page, status);
    if status.alarms > 0 {
        page.row("alarms", &style.paint(Ink::Bad, &alarms(status.alarms)));
        page.step("see which: anna-relay list");
    }
    let restarted = status.actors.iter().filter(|actor| actor.restarts > 0 || actor.state != "running");
    for actor in restarted {
        let text = format!("{} is {}, started again {}", actor.name, actor.state, times(actor.restarts));
        page.row("part", &style.paint(Ink::Look, &on_one_line(&text)));
    }
    page.text
}

/// Rows with a label, and steps under them.
struct Page {
    style: Style,
    text: String,
}

impl Page {
    fn row(&mut self, label: &str, text: &str) {
        let label = format!("{label:<LABEL$}");
        self.text += &format!("{}{text}\n", self.style.paint(Ink::Head, &label));
    }

    fn step(&mut self, text: &str) {
        self.text += &format!("{:LABEL$}{}\n", "", self.style.step(text));
    }
}

fn bridge(page: &mut Page, status: &Status, config: &Config, starter: Starter) {
    if status.running {
        let pid = status.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
        let up = status.uptime_s.map(|seconds| format!(", up {}", span(seconds))).unwrap_or_default();
        let text = format!("{}{pid}{up}, version {}", page.style.paint(Ink::Good, "running"), status.version);
        page.row("bridge", &text);
        if status.recovering {
            let text = "still being read; how long something waits, and alarms, are not known yet";
            page.row("spool", &page.style.paint(Ink::Look, text));
        }
        return;
    }
    let text = format!("{}; this is what its spool says", page.style.paint(Ink::Bad, "not running"));
    page.row("bridge", &text);
    for step in step::start(config, starter) {
        page.step(&step);
    }
}

fn paused(page: &mut Page, status: &Status, now: OffsetDateTime) {
    let Some(paused) = &status.paused else { return };
    let seconds = seconds_since(paused.since, now);
    let reason = paused.reason.as_deref().map(|reason| format!(": {}", on_one_line(reason))).unwrap_or_default();
    let ink = if seconds > LONG_PAUSE_S { Ink::Bad } else { Ink::Look };
    let text = format!("{}{reason}", page.style.paint(ink, &format!("for {}", span(seconds))));
    page.row("paused", &text);
    page.step(step::RESUME);
}

/// The word for where a connection stands.
#[must_use]
pub fn state(state: SideState) -> &'static str {
    match state {
        SideState::Offline => "offline",
        SideState::Connecting => "connecting",
        SideState::Settling => "settling",
        SideState::Online => "online",
        SideState::Orphan => "orphan",
        SideState::Foreign => "foreign",
    }
}

/// So many hand-offs have an alarm.
#[must_use]
pub fn alarms(n: usize) -> String {
    format!("{} without a result for too long", count(n, "hand-off"))
}

fn describe(side: &SideStatus, settle: Duration, now: OffsetDateTime, style: Style) -> String {
    let word = state(side.state);
    let ink = match side.state {
        SideState::Online => Ink::Good,
        SideState::Connecting | SideState::Settling => Ink::Look,
        SideState::Offline | SideState::Orphan | SideState::Foreign => Ink::Bad,
    };
    let since = side.since.map(|since| format!(" for {}", span(seconds_since(since, now)))).unwrap_or_default();
    let mut text = format!("{}{since}, port {}", style.paint(ink, word), side.port);
    if let Some(session) = &side.session {
        text += &format!(", session {}", session.pid);
        match (session.status, &session.waiting_for) {
            (None, _) => {}
            (Some(Activity::Busy), _) => text += " busy",
            (Some(Activity::Idle), _) => text += " idle",
            (Some(Activity::Waiting), None) => text += &style.paint(Ink::Look, " waits for a person"),
            (Some(Activity::Waiting), Some(what)) => {
                text += &style.paint(Ink::Look, &format!(" waits for a person: {}", on_one_line(what)));
            }
        }
    }
    if let Some(since) = side.since.filter(|_| side.state == SideState::Settling) {
        let left = settle.saturating_sub(Duration::try_from(now - since).unwrap_or_default());
        text += &match left.as_secs_f64().ceil() {
            0.0 => ": online in a moment".to_owned(),
            seconds => format!(": online in {seconds} s"),
        };
    }
    if let Some(why) = step::why(side) {
        text += &format!(": {}", on_one_line(why));
    }
    text
}

fn queue(page: &mut Page, status: &Status, config: &Config) {
    let counts = &status.queue;
    let folders = [
        ("new", counts.new),
        ("brain", counts.brain),
        ("out", counts.out),
        ("done", counts.done),
        ("failed", counts.failed),
        ("corrupt", counts.corrupt),
    ];
    let texts = folders.map(|(name, n)| match (name, n) {
        (_, 0) => page.style.paint(Ink::Faint, &format!("{name} 0")),
        ("corrupt", _) => page.style.paint(Ink::Bad, &format!("{name} {n}")),
        _ => format!("{name} {n}"),
    });
    page.row("queue", &texts.join("  "));
    if counts.corrupt > 0 {
        let folder = config.paths.spool().join("corrupt").display().to_string();
        page.step(&format!("see what could not be read: {}", on_one_line(&folder)));
    }
    if let Some(seconds) = status.oldest_waiting_s {
        page.row("waiting", &format!("the oldest for {}", span(seconds)));
    }
}

fn breaker(page: &mut Page, status: &Status) {
    let breaker = &status.breaker;
    if breaker.tripped {
        let text = format!("tripped, {} refused since", count(breaker.refused, "hand-off"));
        let text = page.style.paint(Ink::Bad, &text);
        page.row("breaker", &text);
        page.step("let hand-offs in again: anna-relay reset-breaker");
        page.step("see what was refused: anna-relay list --state failed");
    } else {
        let text = format!(
            "{}, {} of {} in {} s",
            page.style.paint(Ink::Good, "closed"),
            breaker.recent,
            breaker.limit,
            breaker.window_s
        );
        page.row("breaker", &text);
    }
}

fn times(n: u32) -> String {
    match n {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}

#[cfg(test)]
mod tests;
