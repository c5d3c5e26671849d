//! The table.

use serde_json::{Value, json};

#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

struct Row {
    name: String,
    ours: f64,
    floor: f64,
    unit: &'static str,
    goal: String,
}

impl Table {
    /// Adds a row. `floor` 0: there is none, and the goal is about the figure itself.
    pub fn row(&mut self, name: &str, ours: f64, floor: f64, unit: &'static str, goal: &str) {
        eprintln!("{name}: {ours:.3} {unit} (floor {floor:.3})");
        self.rows.push(Row { name: name.to_owned(), ours, floor, unit, goal: goal.to_owned() });
    }

    pub fn text(&self) -> String {
        let mut text = format!("on {}\n\n| row | ours | floor | ratio | goal |\n|---|---|---|---|---|\n", machine());
        for row in &self.rows {
            let floor = if row.floor > 0.0 { format!("{:.3} {}", row.floor, row.unit) } else { "–".to_owned() };
            let ratio = if row.floor > 0.0 { format!("{:.2}", row.ours / row.floor) } else { "–".to_owned() };
            text += &format!("| {} | {:.3} {} | {floor} | {ratio} | {} |\n", row.name, row.ours, row.unit, row.goal);
        }
        text
    }

    pub fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let ratio = (row.floor > 0.0).then(|| row.ours / row.floor);
                json!({ "name": row.name, "ours": row.ours, "floor": row.floor, "unit": row.unit, "ratio": ratio, "goal": row.goal })
            })
            .collect();
        json!({ "machine": machine(), "rows": rows })
    }
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores, {}", model.unwrap_or("an unknown processor"), std::env::consts::OS)
}
