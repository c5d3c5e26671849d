//! `list`, for people.

use time::OffsetDateTime;

use super::{Ink, Style, ago, stage};
use crate::handoff::life::State;
use crate::handoff::listed::{Listed, Stage};
use crate::handoff::{HandOff, Origin};
use crate::text::one_line;

/// Less room than this says nothing about a hand-off: on a narrower terminal its lines wrap.
const MIN_TEXT: usize = 20;
/// Columns of the text where there is no width to keep to: `--json` has the whole.
const PLAIN_TEXT: usize = 80;
/// Columns between two columns.
const GAP: usize = 2;

/// What is shown of one hand-off.
pub struct Line {
    cells: [String; 5],
    text: String,
    ink: Option<Ink>,
}

/// What is shown of a hand-off where lines have `width` columns, or no set number of them.
#[must_use]
pub fn line(listed: &Listed, now: OffsetDateTime, width: Option<usize>) -> Line {
    let room = width.map_or(PLAIN_TEXT, |width| width.max(MIN_TEXT));
    Line { cells: row(listed, now), text: one_line(&about(listed), room), ink: ink(listed) }
}

/// One line a hand-off, no longer than `width` columns where that leaves room for some of the text.
#[must_use]
pub fn list(lines: &[Line], width: Option<usize>, style: &Style) -> String {
    if lines.is_empty() {
        return "no hand-offs to show\n".to_owned();
    }
    let head = ["ID", "FROM", "STATE", "STAGE", "AGE"].map(str::to_owned);
    let mut widths = head.clone().map(|cell| cell.len());
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(&line.cells) {
            *width = (*width).max(cell.len());
        }
    }
    let before = widths.iter().sum::<usize>() + GAP * widths.len();
    let room = width.map_or(PLAIN_TEXT, |width| width.saturating_sub(before).max(MIN_TEXT));
    let mut out = style.paint(Ink::Head, &format!("{}TEXT", align(&head, &widths))) + "\n";
    for Line { cells, text, ink } in lines {
        let line = align(cells, &widths);
        let text = one_line(text, room);
        let line = match *ink {
            Some(ink) => style.paint(ink, line.trim_end()) + &" ".repeat(line.len() - line.trim_end().len()),
            None => line,
        };
        out += &format!("{}\n", format!("{line}{text}").trim_end());
    }
    out
}

fn row(listed: &Listed, now: OffsetDateTime) -> [String; 5] {
    let handoff = &listed.handoff;
    let from = match handoff.from {
        Origin::Bot => "bot",
        Origin::Script => "script",
    };
    [handoff.id.short(), from.to_owned(), listed.state.name().to_owned(), stage(listed), ago(handoff.created, now)]
}

fn align(cells: &[String; 5], widths: &[usize; 5]) -> String {
    cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}{:GAP$}", "")).collect()
}

/// What it is about: what its stage does not say, its text, and, where there is none, its files.
fn about(listed: &Listed) -> String {
    let handoff = &listed.handoff;
    let text = match handoff.text.trim() {
        "" => handoff.files.iter().map(|file| format!("[file {}]", file.name)).collect::<Vec<_>>().join(" "),
        text => text.to_owned(),
    };
    match (&handoff.failed, late(handoff)) {
        (Some(failed), _) if listed.stage() != Stage::Failed => format!("({}) {text}", failed.reason.word()),
        (None, true) => format!("⚠ {text}"),
        _ => text,
    }
}

/// Whether it has been without a result for too long.
fn late(handoff: &HandOff) -> bool {
    handoff.alarmed.is_some() && handoff.results.is_empty() && handoff.failed.is_none()
}

fn ink(listed: &Listed) -> Option<Ink> {
    match listed.stage() {
        _ if late(&listed.handoff) => Some(Ink::Look),
        Stage::Failed => Some(Ink::Bad),
        _ if listed.state == State::Done => Some(Ink::Faint),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{NOW, answered, failed, fresh};
    use super::*;

    fn list(listed: &[Listed], now: OffsetDateTime, width: impl Into<Option<usize>>, style: &Style) -> String {
        let width = width.into();
        let lines: Vec<Line> = listed.iter().map(|listed| line(listed, now, width)).collect();
        super::list(&lines, width, style)
    }

    #[test]
    fn an_empty_list_says_so() {
        assert_eq!(list(&[], NOW, 80, &Style::PLAIN), "no hand-offs to show\n");
    }

    #[test]
    fn columns_are_aligned_and_the_text_cut() {
        let mut late = fresh();
        late.handoff.alarmed = Some(NOW);
        late.handoff.text = "日本語のとても長いテキストなのでここで切られるはずです".to_owned();
        let mut file = fresh();
        file.handoff.text = String::new();
        assert_eq!(
            list(&[fresh(), late, answered(), failed(), file], NOW, 80, &Style::PLAIN),
            "\
ID        FROM    STATE   STAGE              AGE        TEXT
567890ab  bot     new     queued             3 min ago  look at the backup␛ ⏎ a…
567890ab  bot     new     queued             3 min ago  ⚠ 日本語のとても長いテ…
567890ab  bot     done    handed to the bot  3 min ago  look at the backup␛ ⏎ a…
567890ab  script  failed  attempts           3 min ago  look at the backup␛ ⏎ a…
567890ab  bot     new     queued             3 min ago  [file a.pdf]
"
        );
        let narrow = list(&[fresh()], NOW, 10, &Style::PLAIN);
        assert!(narrow.ends_with("3 min ago  look at the backup␛…\n"), "{narrow}");
    }

    #[test]
    fn the_text_is_cut_where_no_person_looks_too() {
        let mut long = fresh();
        long.handoff.text = "x".repeat(144_000);
        let listed = list(&[long], NOW, None, &Style::PLAIN);
        assert!(listed.ends_with(&format!("3 min ago  {}…\n", "x".repeat(PLAIN_TEXT - 1))), "{listed}");
    }

    #[test]
    fn colours_do_not_move_the_columns() {
        let colored = list(&[failed()], NOW, 80, &Style::COLORED);
        assert!(colored.ends_with("3 min ago\x1b[0m  look at the backup␛ ⏎ and tell me\n"), "{colored:?}");
    }

    #[test]
    fn why_it_was_given_up_is_said_beside_another_stage() {
        let mut answered = answered();
        answered.handoff.failed = failed().handoff.failed;
        let listed = list(&[answered], NOW, 100, &Style::PLAIN);
        assert!(listed.contains("  handed to the bot  3 min ago  (attempts) look at"), "{listed}");
    }
}
