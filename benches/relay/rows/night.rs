//! A night's hand-offs, let go in the morning.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anna_relay::control::wire::Command;

use crate::Run;
use crate::floor::Floor;
use crate::table::Goal;
use crate::times::mean;
use crate::world::{REST, World, wait};

/// How long each takes; and whether many take longer each than few. Few are enough that most of them go while the
/// relay also writes its confirmations of those before, as all but the last of many do.
pub fn night(run: &mut Run) {
    let (few, many, times) = run.pick((1_000, 4_000, 2), (20, 60, 1));
    let (mut of_few, mut of_many, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..times {
        of_few.push(release(few, &mut floors));
        of_many.push(release(many, &mut Vec::new()));
    }
    let (of_few, of_many) = (mean(&of_few), mean(&of_many));
    let name = format!("a night's {few} waiting hand-offs let go, each");
    run.table.row(&name, of_few, Some(mean(&floors)), "ms", Goal::Ratio(1.7));
    let name = format!("a night's {many}, each, over each of {few}");
    run.table.row(&name, of_many, Some(of_few), "ms", Goal::Ratio(1.2));
}

/// Has so many wait, and lets them go. Returns how long it took each; takes floors before and after.
fn release(n: usize, floors: &mut Vec<Duration>) -> Duration {
    let world = World::online();
    let mut floor = Floor::new(world.dir.path());
    let said = format!("RELAY: {}", "x".repeat(1_000));
    world.ask(Command::Pause { reason: None });
    for i in 1..=n {
        world.bot.say(&said, None);
        if i % 100 == 0 {
            world.until(|status| status["queue"]["new"] == i);
        }
    }
    world.until(|status| status["queue"]["new"] == n);
    let mut some_floors = || {
        sleep(REST);
        for _ in 0..n.div_ceil(10) {
            // Without a pause, as the relay does it: the next one after the answer to the one before.
            floors.push(floor.hand_off(&world.bot, &said).answered);
        }
        sleep(REST);
    };
    some_floors();
    let mut client = world.client().unwrap();
    let started = Instant::now();
    client.ask(Command::Resume).unwrap();
    let took = wait(&world.brain, n)[n - 1].at - started;
    world.quiet();
    some_floors();
    took / u32::try_from(n).unwrap()
}
