//! `show`, for people.

use time::OffsetDateTime;

use super::{Ink, Style, ago, stage, time_and_ago};
use crate::handoff::listed::{Listed, Stage};
use crate::handoff::{Attachment, Failure, HandOff, Origin, Outcome, Push, PushOutcome};
use crate::text::{count, on_one_line, visible};

/// Columns that a label and the room after it take.
const LABEL: usize = 9;

/// One hand-off, whole, with its history and, where something is wrong, the next step.
#[must_use]
pub fn show(listed: &Listed, now: OffsetDateTime, style: &Style) -> String {
    let mut page = Page { style: *style, now, text: String::new() };
    let handoff = &listed.handoff;
    page.head(&format!("hand-off {}", handoff.id));
    let from = match (handoff.from, &handoff.source) {
        (Origin::Bot, Some(source)) => format!("the bot, message {}", on_one_line(&source.message)),
        (Origin::Bot, None) => "the bot".to_owned(),
        (Origin::Script, _) => "a script".to_owned(),
    };
    page.row("from", &from);
    page.row("created", &time_and_ago(handoff.created, now));
    page.row("state", &format!("{}: {}", listed.state, stage(listed)));
    if let Some(retried) = &handoff.retried {
        page.row("retried", &time_and_ago(retried.at, now));
    }
    if let Some(alarmed) = handoff.alarmed {
        page.row("alarmed", &time_and_ago(alarmed, now));
    }
    page.files(&handoff.files);
    page.block(&handoff.text);
    page.pushes(&handoff.pushes);
    for result in &handoff.results {
        page.result(result);
    }
    if let Some(failure) = &handoff.failed {
        page.failure(failure);
    }
    if let Some(step) = step(listed) {
        page.text += &format!("\n{}\n", style.step(&step));
    }
    page.text
}

struct Page {
    style: Style,
    now: OffsetDateTime,
    text: String,
}

impl Page {
    fn head(&mut self, text: &str) {
        self.text += &format!("{}\n", self.style.paint(Ink::Head, text));
    }

    fn row(&mut self, label: &str, text: &str) {
        self.text += &format!("  {label:<LABEL$}{text}\n");
    }

    fn files(&mut self, files: &[Attachment]) {
        for file in files {
            let place = match &file.path {
                Some(path) => format!("{} in the spool", on_one_line(path)),
                None => "it could not be had".to_owned(),
            };
            self.row("file", &format!("{}, {} bytes, {place}", on_one_line(&file.name), file.bytes));
        }
    }

    /// Text of a session, indented so that none of it can be taken for ours.
    fn block(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.text.push('\n');
        for line in visible(text).lines() {
            self.text += format!("    {line}").trim_end();
            self.text.push('\n');
        }
    }

    fn pushes(&mut self, pushes: &[Push]) {
        if pushes.is_empty() {
            return;
        }
        self.text.push('\n');
        self.head(&format!("pushed to the brain: {}", count(pushes.len(), "time")));
        for push in pushes {
            let (word, ink) = match push.outcome {
                PushOutcome::Sent => ("sent", Ink::Look),
                PushOutcome::Seen => ("seen", Ink::Good),
                PushOutcome::Refused => ("refused", Ink::Bad),
                PushOutcome::Unknown => ("unknown", Ink::Look),
            };
            let session = push.session.map(|session| format!(" by session {}", session.pid)).unwrap_or_default();
            let why = push.why.as_deref().map(|why| format!(": {}", on_one_line(why))).unwrap_or_default();
            let word = self.style.paint(ink, word);
            self.row(
                &format!("{}.", push.attempt),
                &format!("{word}{session}{why} ({})", time_and_ago(push.at, self.now)),
            );
        }
    }

    fn result(&mut self, result: &Outcome) {
        self.text.push('\n');
        self.head(result.kind.word());
        self.row("came", &time_and_ago(result.at, self.now));
        self.told(result.told, result.pushes.len());
        self.files(&result.files);
        self.block(&result.text);
    }

    fn failure(&mut self, failure: &Failure) {
        self.text.push('\n');
        let reason = on_one_line(failure.reason.word()).into_owned();
        let line = self.style.paint(Ink::Bad, &format!("given up: {reason}"));
        self.text += &format!("{line}\n");
        self.row("at", &time_and_ago(failure.at, self.now));
        if let Some(detail) = &failure.detail {
            self.row("because", &on_one_line(detail));
        }
        self.told(failure.told, failure.pushes.len());
        if failure.take_back {
            self.row("brain", "not told to stop yet");
        }
    }

    fn told(&mut self, told: Option<OffsetDateTime>, pushes: usize) {
        let text = match (told, pushes) {
            (Some(told), _) => format!("the bot, {}", ago(told, self.now)),
            (None, 0) => "not yet".to_owned(),
            (None, pushes) => format!("not yet, tried {}", count(pushes, "time")),
        };
        self.row("told", &text);
    }
}

/// What to do about it, where something is wrong.
fn step(listed: &Listed) -> Option<String> {
    let HandOff { id, alarmed, results, .. } = &listed.handoff;
    let id = id.short();
    match listed.stage() {
        Stage::Failed => Some(format!("have it tried again: anna-relay retry {id}")),
        _ if alarmed.is_some() && results.is_empty() => {
            Some(format!("push it again: anna-relay retry {id}; give it up: anna-relay cancel {id}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{NOW, answered, failed, fresh};
    use super::*;

    #[test]
    fn a_fresh_one() {
        assert_eq!(
            show(&fresh(), NOW, &Style::PLAIN),
            "\
hand-off 01939f3c-aaaa-7bbb-8ccc-1234567890ab
  from     the bot, message m1796031734360-1
  created  2026-11-30 11:57:00 UTC, 3 min ago
  state    new: queued
  file     a.pdf, 1234 bytes, files/x/a.pdf in the spool

    look at the backup␛
    and tell me
"
        );
    }

    #[test]
    fn an_answered_one() {
        assert_eq!(
            show(&answered(), NOW, &Style::PLAIN),
            "\
hand-off 01939f3c-aaaa-7bbb-8ccc-1234567890ab
  from     the bot, message m1796031734360-1
  created  2026-11-30 11:57:00 UTC, 3 min ago
  state    done: handed to the bot
  file     a.pdf, 1234 bytes, files/x/a.pdf in the spool

    look at the backup␛
    and tell me

pushed to the brain: 2 times
  1.       unknown by session 4711: the websocket dropped (2026-11-30 11:57:01 UTC, 2 min ago)
  2.       seen (2026-11-30 11:57:01 UTC, 2 min ago)

result
  came     2026-11-30 11:58:00 UTC, 2 min ago
  told     the bot, 1 min ago

    it is whole

    all of it
"
        );
    }

    #[test]
    fn a_failed_and_a_late_one_say_what_to_do() {
        let text = show(&failed(), NOW, &Style::PLAIN);
        assert!(text.contains("  state    failed: attempts\n"), "{text}");
        let expected = "
given up: attempts
  at       2026-11-30 11:59:00 UTC, 1 min ago
  because  5 pushes failed
  told     not yet

→ have it tried again: anna-relay retry 567890ab
";
        assert!(text.ends_with(expected), "{text}");
        let mut pushed = failed();
        pushed.handoff.failed.as_mut().unwrap().take_back = true;
        assert!(show(&pushed, NOW, &Style::PLAIN).contains("  told     not yet\n  brain    not told to stop yet\n"));
        let mut late = fresh();
        late.handoff.alarmed = Some(NOW);
        let text = show(&late, NOW, &Style::PLAIN);
        assert!(text.contains("  alarmed  2026-11-30 12:00:00 UTC, just now\n"), "{text}");
        assert!(
            text.ends_with("\n→ push it again: anna-relay retry 567890ab; give it up: anna-relay cancel 567890ab\n")
        );
    }
}
