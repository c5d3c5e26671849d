//! `doctor`, for a person.

use super::{Ink, Style};
use crate::cli::doctor::{Finding, Level};
use crate::text;

/// The findings, each with why it matters and what to do, and their sum.
#[must_use]
pub fn doctor(findings: &[Finding], style: Style) -> String {
    let mut out = String::new();
    for finding in findings {
        let (ink, sign) = match finding.level {
            Level::Ok => (Ink::Good, "✓"),
            Level::Warn => (Ink::Look, "⚠"),
            Level::Fail => (Ink::Bad, "✗"),
        };
        out += &format!("{} {}\n", style.paint(ink, sign), text::on_one_line(&finding.what));
        if let Some(why) = &finding.why {
            out += &format!("    {}\n", style.paint(Ink::Faint, &text::on_one_line(why)));
        }
        if let Some(fix) = &finding.fix {
            out += &format!("    {}\n", style.step(&text::on_one_line(fix)));
        }
    }
    let sum = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (fails, warns) = (sum(Level::Fail), sum(Level::Warn));
    let last = match (fails, warns) {
        (0, 0) => "all is well".to_owned(),
        (0, warns) => text::count(warns, "warning"),
        (fails, warns) => format!("{}, {}", text::count(fails, "failure"), text::count(warns, "warning")),
    };
    out + "\n" + &last + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_says_what_why_and_what_to_do() {
        let findings = [Finding::ok("disk", "room"), Finding::fail("bun", "no\x1b bun", "it runs on it", "get it")];
        assert_eq!(
            doctor(&findings, Style::PLAIN),
            "✓ room\n✗ no␛ bun\n    it runs on it\n    → get it\n\n1 failure, 0 warnings\n"
        );
        assert_eq!(doctor(&findings[..1], Style::PLAIN), "✓ room\n\nall is well\n");
    }
}
