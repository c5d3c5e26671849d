//! Whole rounds: the bot's frame, the request at the brain, its answer, the request at the bot.

use std::time::Instant;

use crate::Run;
use crate::floor::{self, Floor};
use crate::table::Goal;
use crate::times::p50;
use crate::world::{BLOCK, WARM, World, wait};

/// Rounds with a short text each way, and with a long one.
pub fn rounds(run: &mut Run) {
    for kib in [1, 50] {
        with_text(run, kib);
    }
}

fn with_text(run: &mut Run, kb: usize) {
    let (blocks, n) = run.pick((20, 12), (1, 2));
    let (world, text) = (World::online(), "x".repeat(kb * 1_000));
    let answer = text.clone();
    world.brain.on_upload(move |sayer, asked| {
        if asked.id != floor::ID {
            sayer.say(&answer, Some(&asked.id));
        }
    });
    let said = format!("RELAY: {text}");
    let mut floor = Floor::new(world.dir.path());
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    let mut like = (text.clone(), text.clone());
    for _ in 0..blocks {
        world.brain.forget();
        world.bot.forget();
        let began = Instant::now();
        for i in 0..n + WARM {
            let there = floor.hand_off(&world.brain, &like.0).answered;
            let both = floor.hand_off(&world.bot, &like.1).after(there).arrived;
            if began.elapsed() > BLOCK {
                break;
            }
            world.bot.say(&said, None);
            let at = wait(&world.bot, i + 1)[i].at;
            let took = at - world.bot.sent().unwrap();
            if i >= WARM {
                floors.push(both);
                ours.push(took);
            }
        }
        like = (wait(&world.brain, 1)[0].text.clone(), wait(&world.bot, 1)[0].text.clone());
        world.empty();
    }
    let name = format!("whole round, {kb} kB each way, p50");
    run.table.row(&name, p50(&ours), Some(p50(&floors)), "ms", Goal::Ratio(1.5));
}
