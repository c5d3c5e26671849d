//! A night's hand-offs, let go in the morning.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anna_relay::control::wire::Command;

use crate::Run;
use crate::floor::Floor;
use crate::table::Goal;
use crate::times::{mean, p50};
use crate::world::{REST, World, wait};

/// How long each takes, and whether many take longer each than few.
pub fn night(run: &mut Run) {
    let (few, many, times) = run.pick((100, 1_000, 3), (10, 40, 1));
    let world = World::online();
    let mut floor = Floor::new(world.dir.path());
    let (mut of_few, mut of_many, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..times {
        of_few.push(release(&world, few, &mut floor, &mut floors));
        of_many.push(release(&world, many, &mut floor, &mut floors));
    }
    let (of_few, of_many) = (p50(&of_few), p50(&of_many));
    let name = format!("a night's {many} waiting hand-offs let go, each");
    run.table.row(&name, of_many, Some(mean(&floors)), "ms", Goal::Ratio(1.7));
    let name = format!("a night's {many}, each, over each of {few}");
    run.table.row(&name, of_many, Some(of_few), "ms", Goal::Ratio(1.2));
}

/// Has so many wait, and lets them go. Returns how long it took each; takes floors before and after.
fn release(world: &World, n: usize, floor: &mut Floor, floors: &mut Vec<Duration>) -> Duration {
    let text = "x".repeat(1_000);
    let said = format!("RELAY: {text}");
    world.brain.forget();
    world.ask(Command::Pause { reason: None });
    for i in 1..=n {
        world.bot.say(&said, None);
        if i % 100 == 0 {
            world.until(|status| status["queue"]["new"] == i);
        }
    }
    world.until(|status| status["queue"]["new"] == n);
    let mut some_floors = || {
        for _ in 0..n.div_ceil(10) {
            // In a row, as the relay does it: the next one after the answer to the one before.
            floors.push(floor.hand_off(&world.bot, &text).answered);
        }
    };
    sleep(REST);
    some_floors();
    sleep(REST);
    let mut client = world.client().unwrap();
    let started = Instant::now();
    client.ask(Command::Resume).unwrap();
    let asked = wait(&world.brain, n);
    let took = asked[n - 1].at - started;
    world.quiet();
    some_floors();
    for asked in asked {
        world.brain.say("done", Some(&asked.id));
    }
    world.empty();
    world.bot.forget();
    took / u32::try_from(n).unwrap()
}
