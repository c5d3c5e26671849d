//! The rows, one function each.

use std::time::{Duration, Instant};

use crate::floor;
use crate::table::Table;
use crate::world::World;

const WITHIN: Duration = Duration::from_secs(60);

pub fn all(table: &mut Table, smoke: bool) {
    let n = if smoke { 5 } else { 300 };
    one_at_a_time(table, n);
    let night = if smoke { 20 } else { 1_000 };
    released(table, night);
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    millis(times[(times.len() * percent / 100).min(times.len() - 1)])
}

/// The bot's frame to the request at the brain, and the brain's frame to the request at the bot.
fn one_at_a_time(table: &mut Table, n: usize) {
    let mut world = World::new();
    world.start_online();
    let text = "x".repeat(1_000);
    let (mut there, mut back, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let started = Instant::now();
        world.bot.say(&format!("RELAY: {text} {i}"), None);
        let all = world.brain.wait_uploads(WITHIN, |all| all.iter().filter(|one| one.id != "floor").count() > i);
        let asked = all.iter().rfind(|one| one.id != "floor").unwrap();
        there.push(asked.at - started);
        let created = floor::create(world.dir.path(), text.as_bytes(), i);
        floors.push(created + floor::post(world.brain.port(), &text));
        let started = Instant::now();
        world.brain.say(&format!("{text} {i}"), Some(&asked.id));
        let told = world.bot.wait_uploads(WITHIN, |all| all.len() > i);
        back.push(told[i].at - started);
    }
    for (name, times) in
        [("bot's frame → request at the brain", &mut there), ("brain's frame → request at the bot", &mut back)]
    {
        table.row(&format!("{name}, p50"), percentile(times, 50), percentile(&mut floors, 50), "ms", "≤ 1.3");
        table.row(&format!("{name}, p99"), percentile(times, 99), percentile(&mut floors, 50), "ms", "≤ 3");
    }
}

/// A night's waiting hand-offs, released.
fn released(table: &mut Table, n: usize) {
    let mut world = World::new();
    world.start_online();
    assert!(world.command(&["pause"]).status().unwrap().success());
    for i in 0..n {
        world.bot.say(&format!("RELAY: {} {i}", "x".repeat(1_000)), None);
        if i % 100 == 99 {
            world.until(|status| status["queue"]["new"] == i + 1);
        }
    }
    world.until(|status| status["queue"]["new"] == n);
    let text = "x".repeat(1_000);
    let floors: Duration = (0..100)
        .map(|i| floor::create(world.dir.path(), text.as_bytes(), i) + floor::post(world.bot.port(), &text))
        .sum();
    let started = Instant::now();
    assert!(world.command(&["resume"]).status().unwrap().success());
    let all = world.brain.wait_uploads(WITHIN, |all| all.len() >= n);
    let took = all[n - 1].at - started;
    table.row(
        &format!("a night's {n} waiting hand-offs released: time each"),
        millis(took) / n as f64,
        millis(floors) / 100.0,
        "ms",
        "≤ 1.7",
    );
}
