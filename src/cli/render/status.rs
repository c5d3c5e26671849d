//! `status`, for people.

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
        page.row(name.name(), &describe(side, now, *style));
        // Without a bridge nobody has looked, and a brain that is wrapping up may be away.
        let away = name == Side::Brain && side.state == SideState::Offline && status.paused.is_some();
        if let Some(step) = step::side(name, side).filter(|_| status.running && !away) {
            page.step(&step);
        }
    }
    queue(&mut page, status, config);
    breaker(&mut page, status);
    if status.alarms > 0 {
        let text = format!("{} without a result for too long", count(status.alarms, "hand-off"));
        page.row("alarms", &style.paint(Ink::Bad, &text));
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

fn describe(side: &SideStatus, now: OffsetDateTime, style: Style) -> String {
    let (word, ink) = match side.state {
        SideState::Offline => ("offline", Ink::Bad),
        SideState::Connecting => ("connecting", Ink::Look),
        SideState::Settling => ("settling", Ink::Look),
        SideState::Online => ("online", Ink::Good),
        SideState::Orphan => ("orphan", Ink::Bad),
        SideState::Foreign => ("foreign", Ink::Bad),
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
    if let Some(why) = side.why.as_deref().filter(|_| side.state != SideState::Online) {
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
mod tests {
    use super::super::samples::{NOW, config, status as sample};
    use super::*;
    use crate::control::wire::{ActorStatus, HolderStatus, Paused, SessionStatus};

    fn text(sample: &Status, enabled: bool) -> String {
        status(sample, &config(enabled), Starter::Systemd, NOW, &Style::PLAIN)
    }

    #[test]
    fn all_is_well() {
        assert_eq!(
            text(&sample(), true),
            "\
bridge   running, pid 4242, up 3 h, version 0.1.0
brain    online for 3 min, port 8788, session 4711 busy
bot      online for 3 min, port 8789, session 4712 idle
queue    new 0  brain 1  out 0  done 40  failed 0  corrupt 0
breaker  closed, 1 of 5 in 120 s
"
        );
    }

    #[test]
    fn everything_is_wrong() {
        let mut sample = sample();
        sample.paused = Some(Paused { since: NOW - time::Duration::hours(9), reason: Some("night\x1b".to_owned()) });
        sample.brain = SideStatus {
            state: SideState::Foreign,
            why: Some("not a fakechat".to_owned()),
            holder: Some(HolderStatus { pid: 99, command: "nc -l\n8788".to_owned() }),
            session: None,
            ..sample.brain
        };
        sample.bot.session =
            Some(SessionStatus { pid: 7, status: Some(Activity::Waiting), waiting_for: Some("Bash".to_owned()) });
        sample.breaker.tripped = true;
        sample.breaker.refused = 1;
        sample.queue.corrupt = 2;
        sample.oldest_waiting_s = Some(240);
        sample.alarms = 2;
        sample.actors = vec![
            ActorStatus { name: "queue".to_owned(), state: "restarting".to_owned(), restarts: 3 },
            ActorStatus { name: "guard".to_owned(), state: "running".to_owned(), restarts: 0 },
        ];
        assert_eq!(
            text(&sample, true),
            "\
bridge   running, pid 4242, up 3 h, version 0.1.0
paused   for 9 h: night␛
         → when the brain is back: anna-relay resume
brain    foreign for 3 min, port 8788: not a fakechat
         → end pid 99 (nc -l ⏎ 8788), or give relay.brain_port another port
bot      online for 3 min, port 8789, session 7 waits for a person: Bash
         → answer it in the bot's own window
queue    new 0  brain 1  out 0  done 40  failed 0  corrupt 2
         → see what could not be read: /home/anna/.local/state/anna/relay/corrupt
waiting  the oldest for 4 min
breaker  tripped, 1 hand-off refused since
         → let hand-offs in again: anna-relay reset-breaker
         → see what was refused: anna-relay list --state failed
alarms   2 hand-offs without a result for too long
         → see which: anna-relay list
part     queue is restarting, started again 3 times
"
        );
    }

    #[test]
    fn no_bridge_runs() {
        let mut sample = sample();
        (sample.running, sample.pid, sample.uptime_s) = (false, None, None);
        for side in [&mut sample.brain, &mut sample.bot] {
            (side.state, side.since, side.session) = (SideState::Offline, None, None);
        }
        let expected = "\
bridge   not running; this is what its spool says
         → start it: systemctl --user start anna-relay (here and now: anna-relay bridge)
brain    offline, port 8788
bot      offline, port 8789
";
        assert!(text(&sample, true).starts_with(expected), "{}", text(&sample, true));
        let by_hand = status(&sample, &config(true), Starter::Person, NOW, &Style::PLAIN);
        assert_eq!(by_hand.lines().nth(1), Some("         → start it: anna-relay bridge, in a terminal of its own"));
        let step = "         → first set relay.enabled = true in /home/anna/.config/anna/anna.toml\n";
        assert_eq!(text(&sample, false).lines().nth(1).unwrap().to_owned() + "\n", step);
    }

    #[test]
    fn a_spool_that_is_still_read_is_said_to_be() {
        let text = text(&Status { recovering: true, ..sample() }, true);
        let line = text.lines().nth(1).unwrap();
        assert_eq!(line, "spool    still being read; how long something waits, and alarms, are not known yet");
    }

    #[test]
    fn an_offline_and_an_orphaned_side_say_what_to_do() {
        let mut sample = sample();
        sample.brain.state = SideState::Offline;
        sample.brain.why = Some("nothing listens there".to_owned());
        sample.bot.state = SideState::Orphan;
        let night = Status { paused: Some(Paused { since: NOW, reason: None }), ..sample.clone() };
        assert!(!self::text(&night, true).contains("start the brain"));
        let text = text(&sample, true);
        assert!(text.contains("session 4711 busy: nothing listens there\n         → start the brain's session, with its fakechat on port 8788: anna-relay launch brain\n"), "{text}");
        assert!(text.contains("→ the bridge ends it; should that fail: anna-relay clear-port bot\n"), "{text}");
    }

    #[test]
    fn colours_do_not_move_the_columns() {
        let colored = status(&sample(), &config(true), Starter::Systemd, NOW, &Style::COLORED);
        let mut plain = colored.clone();
        for code in ["\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[2m", "\x1b[1m", "\x1b[0m"] {
            plain = plain.replace(code, "");
        }
        assert!(colored.contains("\x1b[32monline\x1b[0m"));
        assert_eq!(plain, text(&sample(), true));
    }
}
