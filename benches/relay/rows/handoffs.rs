//! One hand-off at a time, a way each.

use std::time::{Duration, Instant};

use anna_relay::fakechat::server::{Double, Received};

use crate::Run;
use crate::floor::Floor;
use crate::table::Goal;
use crate::times::{p50, percentile};
use crate::world::{BLOCK, WARM, World, wait};

const THERE: &str = "bot's frame → request at the brain";
const BACK: &str = "brain's frame → request at the bot";

/// Times of one way, and of what is under it.
#[derive(Default)]
struct Way {
    ours: Vec<Duration>,
    floor: Vec<Duration>,
}

impl Way {
    fn add(&mut self, block: Way) {
        self.ours.extend(block.ours.into_iter().skip(WARM));
        self.floor.extend(block.floor.into_iter().skip(WARM));
    }
}

/// Takes a floor: one durable creation, one POST of what the relay posted there, to the same double.
fn take(floor: &mut Floor, to: &Double, like: &str) -> Duration {
    floor.hand_off(to, like).arrived
}

/// Up to `n` hand-offs of the bot, as many as go into a block, each after that. Returns what the brain got of each.
pub fn there(
    world: &World,
    text: &str,
    n: usize,
    times: &mut Vec<Duration>,
    mut before: impl FnMut(),
) -> Vec<Received> {
    world.brain.forget();
    let (text, block) = (format!("RELAY: {text}"), Instant::now());
    for i in 0..n {
        before();
        if block.elapsed() > BLOCK {
            break;
        }
        world.bot.say(&text, None);
        let at = wait(&world.brain, i + 1)[i].at;
        times.push(at - world.bot.sent().unwrap());
    }
    wait(&world.brain, 0)
}

/// The brain's answers to these, as many as go into a block, each after that. Returns what the bot got of each.
pub fn back(
    world: &World,
    text: &str,
    asked: &[Received],
    times: &mut Vec<Duration>,
    mut before: impl FnMut(),
) -> Vec<Received> {
    world.bot.forget();
    let block = Instant::now();
    for (i, asked) in asked.iter().enumerate() {
        before();
        if block.elapsed() > BLOCK {
            break;
        }
        world.brain.say(text, Some(&asked.id));
        let at = wait(&world.bot, i + 1)[i].at;
        times.push(at - world.brain.sent().unwrap());
    }
    wait(&world.bot, 0)
}

/// Answers these, and waits until nothing is open.
pub fn answer(world: &World, asked: &[Received]) {
    if asked.is_empty() {
        return;
    }
    for asked in asked {
        world.brain.say("done", Some(&asked.id));
    }
    world.empty();
}

/// Each way with nothing else to do: blocks of floors and hand-offs in turn, with quiet between the blocks. The first
/// blocks only wake the machine, and are not counted.
pub fn one_at_a_time(run: &mut Run) {
    let (first, blocks, n) = run.pick((12, 30, 16), (0, 1, 2));
    let (world, text) = (World::online(), "x".repeat(1_000));
    let mut floor = Floor::new(world.dir.path());
    let (mut to_brain, mut to_bot) = (Way::default(), Way::default());
    let (mut like_asked, mut like_told) = (text.clone(), text.clone());
    for block in 0..first + blocks {
        if block == first {
            (to_brain, to_bot) = (Way::default(), Way::default());
        }
        let mut way = Way::default();
        let before = || way.floor.push(take(&mut floor, &world.brain, &like_asked));
        let asked = there(&world, &text, n + WARM, &mut way.ours, before);
        to_brain.add(way);
        world.quiet();
        let mut way = Way::default();
        let before = || way.floor.push(take(&mut floor, &world.bot, &like_told));
        let told = back(&world, &text, &asked, &mut way.ours, before);
        to_bot.add(way);
        world.quiet();
        answer(&world, &asked[told.len()..]);
        (like_asked, like_told) = (asked[0].text.clone(), told[0].text.clone());
    }
    for (name, way) in [(THERE, &to_brain), (BACK, &to_bot)] {
        let (floor, late) = (p50(&way.floor), percentile(&way.ours, 99));
        run.table.row(&format!("{name}, p50"), p50(&way.ours), Some(floor), "ms", Goal::Ratio(1.3));
        run.table.row(&format!("{name}, p99"), late, Some(percentile(&way.floor, 99)), "ms", Goal::Ratio(3.0));
        run.table.row(&format!("{name}: that p99 over the floor's p50"), late, Some(floor), "ms", Goal::None);
    }
}

/// One after the other without a pause: what the relay writes to confirm earlier ones falls into it.
pub fn stream(run: &mut Run) {
    let (seconds, n) = run.pick((8, 60), (1, 5));
    let (world, text) = (World::online(), "x".repeat(1_000));
    let mut floor = Floor::new(world.dir.path());
    let (mut to_brain, mut to_bot) = (Way::default(), Way::default());
    let asked = there(&world, &text, 1, &mut Vec::new(), || {});
    let told = back(&world, &text, &asked, &mut Vec::new(), || {});
    let mut floors = |to_brain: &mut Way, to_bot: &mut Way| {
        world.empty();
        for _ in 0..n {
            to_brain.floor.push(take(&mut floor, &world.brain, &asked[0].text));
            to_bot.floor.push(take(&mut floor, &world.bot, &told[0].text));
        }
        world.brain.forget();
        world.bot.forget();
    };
    floors(&mut to_brain, &mut to_bot);
    let end = Instant::now() + Duration::from_secs(seconds);
    let said = format!("RELAY: {text}");
    while Instant::now() < end {
        world.bot.say(&said, None);
        let asked = wait(&world.brain, 1).remove(0);
        to_brain.ours.push(asked.at - world.bot.sent().unwrap());
        world.brain.forget();
        world.brain.say(&text, Some(&asked.id));
        let at = wait(&world.bot, 1)[0].at;
        to_bot.ours.push(at - world.brain.sent().unwrap());
        world.bot.forget();
    }
    floors(&mut to_brain, &mut to_bot);
    for (name, way) in [(THERE, &to_brain), (BACK, &to_bot)] {
        let (name, floor) = (format!("{name}, in a stream of hand-offs without a pause"), p50(&way.floor));
        run.table.row(&format!("{name}, p50"), p50(&way.ours), Some(floor), "ms", Goal::None);
        run.table.row(&format!("{name}, p99"), percentile(&way.ours, 99), Some(floor), "ms", Goal::None);
    }
}
