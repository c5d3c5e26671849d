//! One hand-off at a time, a way each.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anna_relay::fakechat::server::{Double, Received};

use crate::Run;
use crate::floor::Floor;
use crate::table::Goal;
use crate::times::{p50, percentile};
use crate::world::{BLOCK, REST, World, wait};

const THERE: &str = "bot's frame → request at the brain";
const BACK: &str = "brain's frame → request at the bot";

/// Times of one way, and of what is under it.
#[derive(Default)]
struct Way {
    ours: Vec<Duration>,
    floor: Vec<Duration>,
}

impl Way {
    /// Takes some floors: one durable creation, one POST of what the relay posted there, to the same double.
    fn floors(&mut self, floor: &mut Floor, double: &Double, like: &str, n: usize) {
        for _ in 0..n {
            sleep(REST);
            self.floor.push(floor.hand_off(double.port(), like));
        }
    }
}

/// Up to `n` hand-offs of the bot, as many as go into a block. Returns what the brain got of each.
pub fn there(world: &World, text: &str, n: usize, times: &mut Vec<Duration>) -> Vec<Received> {
    world.brain.forget();
    let (text, block) = (format!("RELAY: {text}"), Instant::now());
    for i in 0..n {
        sleep(REST);
        if block.elapsed() > BLOCK {
            break;
        }
        let started = Instant::now();
        world.bot.say(&text, None);
        times.push(wait(&world.brain, i + 1)[i].at - started);
    }
    wait(&world.brain, 0)
}

/// The brain's answers to these, as many as go into a block. Returns what the bot got of each.
pub fn back(world: &World, text: &str, asked: &[Received], times: &mut Vec<Duration>) -> Vec<Received> {
    world.bot.forget();
    let block = Instant::now();
    for (i, asked) in asked.iter().enumerate() {
        sleep(REST);
        if block.elapsed() > BLOCK {
            break;
        }
        let started = Instant::now();
        world.brain.say(text, Some(&asked.id));
        times.push(wait(&world.bot, i + 1)[i].at - started);
    }
    wait(&world.bot, 0)
}

/// Answers these, and waits until nothing is open.
pub fn answer(world: &World, asked: &[Received]) {
    for asked in asked {
        world.brain.say("done", Some(&asked.id));
    }
    world.empty();
}

/// Each way with nothing else to do: blocks of hand-offs, quiet between them, floors before and after each block.
pub fn one_at_a_time(run: &mut Run) {
    let (blocks, n) = run.pick((30, 10), (1, 4));
    let (world, text) = (World::online(), "x".repeat(1_000));
    let mut floor = Floor::new(world.dir.path());
    let (mut to_brain, mut to_bot) = (Way::default(), Way::default());
    let mut like = (text.clone(), text.clone());
    for block in 0..=blocks {
        to_brain.floors(&mut floor, &world.brain, &like.0, n / 2);
        let asked = there(&world, &text, n, &mut to_brain.ours);
        like.0 = asked[0].text.clone();
        world.quiet();
        to_brain.floors(&mut floor, &world.brain, &like.0, n.div_ceil(2));
        to_bot.floors(&mut floor, &world.bot, &like.1, n / 2);
        let told = back(&world, &text, &asked, &mut to_bot.ours);
        like.1 = told[0].text.clone();
        world.quiet();
        to_bot.floors(&mut floor, &world.bot, &like.1, n.div_ceil(2));
        answer(&world, &asked[told.len()..]);
        if block == 0 {
            // To warm up.
            (to_brain, to_bot) = (Way::default(), Way::default());
        }
    }
    for (name, way) in [(THERE, &to_brain), (BACK, &to_bot)] {
        let floor = p50(&way.floor);
        run.table.row(&format!("{name}, p50"), p50(&way.ours), Some(floor), "ms", Goal::Ratio(1.3));
        run.table.row(&format!("{name}, p99"), percentile(&way.ours, 99), Some(floor), "ms", Goal::Ratio(3.0));
        let own = percentile(&way.floor, 99);
        run.table.row(&format!("{name}: the floor's own p99, over its p50"), own, Some(floor), "ms", Goal::None);
    }
}

/// One after the other without a pause: what the relay writes to confirm earlier ones falls into it.
pub fn stream(run: &mut Run) {
    let (seconds, n) = run.pick((8, 60), (1, 5));
    let (world, text) = (World::online(), "x".repeat(1_000));
    let mut floor = Floor::new(world.dir.path());
    let (mut to_brain, mut to_bot) = (Way::default(), Way::default());
    let asked = there(&world, &text, 1, &mut Vec::new());
    let told = back(&world, &text, &asked, &mut Vec::new());
    let mut floors = |to_brain: &mut Way, to_bot: &mut Way| {
        world.empty();
        to_brain.floors(&mut floor, &world.brain, &asked[0].text, n);
        to_bot.floors(&mut floor, &world.bot, &told[0].text, n);
        world.brain.forget();
        world.bot.forget();
    };
    floors(&mut to_brain, &mut to_bot);
    let end = Instant::now() + Duration::from_secs(seconds);
    let said = format!("RELAY: {text}");
    while Instant::now() < end {
        let started = Instant::now();
        world.bot.say(&said, None);
        let asked = wait(&world.brain, 1).remove(0);
        to_brain.ours.push(asked.at - started);
        world.brain.forget();
        let started = Instant::now();
        world.brain.say(&text, Some(&asked.id));
        to_bot.ours.push(wait(&world.bot, 1)[0].at - started);
        world.bot.forget();
    }
    floors(&mut to_brain, &mut to_bot);
    for (name, way) in [(THERE, &to_brain), (BACK, &to_bot)] {
        let (name, floor) = (format!("{name}, in a stream of hand-offs without a pause"), p50(&way.floor));
        run.table.row(&format!("{name}, p50"), p50(&way.ours), Some(floor), "ms", Goal::None);
        run.table.row(&format!("{name}, p99"), percentile(&way.ours, 99), Some(floor), "ms", Goal::None);
    }
}
