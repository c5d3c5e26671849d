//! What a soak found, in figures.

use serde_json::{Value, json};

use super::ledger::Sum;

/// Memory and open files of the bridge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub rss_kib: u64,
    pub fds: usize,
}

impl Figures {
    /// Those of this process; none where it has ended.
    pub fn of(pid: u32) -> Option<Figures> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let rss_kib = rss.trim().trim_end_matches(" kB").parse().ok()?;
        Some(Figures { rss_kib, fds: std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() })
    }
}

/// The figures of one soak.
#[derive(Debug, Default)]
pub struct Scorecard {
    pub seed: u64,
    pub kills: usize,
    pub stops: usize,
    pub restarts: usize,
    pub faults: usize,
    pub sum: Sum,
    pub seconds: u64,
    /// At the start of the last stretch, in which the bridge is left alone, and at its end.
    pub stretch: [Figures; 2],
}

impl Scorecard {
    fn rows(&self) -> Vec<(&'static str, &'static str, Value)> {
        let (sum, [begin, end]) = (&self.sum, self.stretch);
        vec![
            ("hand_offs", "hand-offs of the bot", json!(sum.accepted)),
            ("reached", "reached the brain", json!(sum.reached)),
            ("answered", "answered by the brain", json!(sum.answered)),
            ("told", "told to the bot, with all that was said", json!(sum.told)),
            ("lost", "lost", json!(sum.lost)),
            ("doubled_with_words", "came twice, and said so", json!(sum.doubled_with_words)),
            ("doubled_without_words", "came twice without a word", json!(sum.doubled_without_words)),
            ("kills", "SIGKILLs of the bridge", json!(self.kills)),
            ("stops", "SIGTERMs of the bridge", json!(self.stops)),
            ("restarts", "starts of the bridge after its first", json!(self.restarts)),
            ("faults", "faults of the fakechats", json!(self.faults)),
            (
                "rss_kib",
                "memory of the bridge in KiB, start and end of the last stretch",
                json!([begin.rss_kib, end.rss_kib]),
            ),
            ("fds", "its open files, likewise", json!([begin.fds, end.fds])),
            ("seconds", "seconds", json!(self.seconds)),
            ("seed", "seed", json!(self.seed)),
        ]
    }

    /// One document.
    pub fn json(&self) -> String {
        let all: serde_json::Map<String, Value> =
            self.rows().into_iter().map(|(key, _, value)| (key.to_owned(), value)).collect();
        format!("{:#}\n", Value::Object(all))
    }

    /// A table for people.
    pub fn table(&self) -> String {
        let mut table = "| | |\n|---|---|\n".to_owned();
        for (_, words, value) in self.rows() {
            let value = match value {
                Value::Array(two) => two.iter().map(Value::to_string).collect::<Vec<_>>().join(" → "),
                one => one.to_string(),
            };
            table += &format!("| {words} | {value} |\n");
        }
        table
    }
}
