//! A night's hand-offs, let go in the morning.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anna_relay::control::wire::Command;

use crate::Run;
use crate::floor::Floor;
use crate::table::Goal;
use crate::times::mean;
use crate::world::{REST, World, wait};

/// How long each takes. Of many the relay also writes the confirmations meanwhile, one more durable write each.
pub fn night(run: &mut Run) {
    let (few, many, times) = run.pick((1_000, 4_000, 2), (20, 60, 1));
    let (mut of_few, mut of_many) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for _ in 0..times {
        of_few.0.push(release(few, false, &mut of_few.1));
        of_many.0.push(release(many, true, &mut of_many.1));
    }
    for (n, (ours, floors), with) in [(few, of_few, ""), (many, of_many, ", with their confirmations")] {
        let name = format!("a night's {n} waiting hand-offs let go, each{with}");
        run.table.row(&name, mean(&ours), Some(mean(&floors)), "ms", Goal::Ratio(1.7));
    }
}

/// Has so many wait, and lets them go. Returns how long it took each; takes floors before and after.
fn release(n: usize, confirmed: bool, floors: &mut Vec<Duration>) -> Duration {
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
        for _ in 0..n.min(1_000).div_ceil(10) {
            // Without a pause, as the relay does it: the next one after the answer to the one before.
            let pushed = floor.hand_off(&world.bot, &said).answered;
            floors.push(if confirmed { pushed + floor.create(said.as_bytes()) } else { pushed });
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
