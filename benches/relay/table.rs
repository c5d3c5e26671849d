//! The table.

use serde_json::{Value, json};

/// What a row should come to.
#[derive(Clone, Copy)]
pub enum Goal {
    /// It is only shown.
    None,
    /// So many times the floor at most.
    Ratio(f64),
    /// The figure itself is at most this.
    AtMost(f64),
}

/// The rows so far.
pub struct Table {
    rows: Vec<Row>,
    judged: bool,
}

struct Row {
    name: String,
    ours: f64,
    floor: Option<f64>,
    unit: &'static str,
    goal: Goal,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.floor.map(|floor| self.ours / floor)
    }

    fn goal(&self) -> Option<String> {
        match self.goal {
            Goal::None => None,
            Goal::Ratio(most) => Some(format!("≤ {most}")),
            Goal::AtMost(most) => Some(format!("≤ {}", self.figure(most))),
        }
    }

    fn met(&self) -> Option<bool> {
        match self.goal {
            Goal::None => None,
            Goal::Ratio(most) => self.ratio().map(|ratio| ratio <= most),
            Goal::AtMost(most) => Some(self.ours <= most),
        }
    }

    fn figure(&self, figure: f64) -> String {
        format!("{} {}", short(figure), self.unit).trim_end().to_owned()
    }
}

impl Table {
    /// An empty one. `judged`: it says which goals are met.
    pub fn new(judged: bool) -> Table {
        Table { rows: Vec::new(), judged }
    }

    /// Adds a row.
    pub fn row(&mut self, name: &str, ours: f64, floor: Option<f64>, unit: &'static str, goal: Goal) {
        let row = Row { name: name.to_owned(), ours, floor, unit, goal };
        let floor = floor.map_or(String::new(), |floor| format!(" (floor {})", row.figure(floor)));
        eprintln!("  {name}: {}{floor}", row.figure(ours));
        self.rows.push(row);
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("\non {}\n\n| row | ours | floor | ratio | goal |\n|---|---|---|---|---|\n", machine());
        let none = || "–".to_owned();
        for row in &self.rows {
            let mark = match row.met().filter(|_| self.judged) {
                Some(true) => " ✓",
                Some(false) => " ✗",
                None => "",
            };
            text += &format!(
                "| {} | {} | {} | {} | {}{mark} |\n",
                row.name,
                row.figure(row.ours),
                row.floor.map_or_else(none, |floor| row.figure(floor)),
                row.ratio().map_or_else(none, |ratio| format!("{ratio:.2}")),
                row.goal().unwrap_or_else(none)
            );
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "name": row.name, "ours": row.ours, "floor": row.floor, "unit": row.unit, "ratio": row.ratio(),
                "goal": row.goal(), "met": row.met().filter(|_| self.judged),
            })
        };
        json!({ "machine": machine(), "rows": self.rows.iter().map(row).collect::<Vec<_>>() })
    }
}

/// With as many places as say something.
fn short(figure: f64) -> String {
    match figure {
        figure if figure.fract() == 0.0 => format!("{figure}"),
        figure if figure < 10.0 => format!("{figure:.3}"),
        figure => format!("{figure:.1}"),
    }
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores, {}", model.unwrap_or("an unknown processor"), std::env::consts::OS)
}
