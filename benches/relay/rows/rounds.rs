//! Whole rounds: the bot's frame, the request at the brain, its answer, the request at the bot.

use std::thread::sleep;
use std::time::Instant;

use crate::Run;
use crate::floor::{self, Floor};
use crate::table::Goal;
use crate::times::p50;
use crate::world::{BLOCK, REST, World, wait};

/// Rounds with a short text each way, and with a long one.
pub fn rounds(run: &mut Run) {
    for kib in [1, 50] {
        with_text(run, kib);
    }
}

fn with_text(run: &mut Run, kb: usize) {
    let (blocks, n) = run.pick((20, 6), (1, 3));
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
    for block in 0..=blocks {
        world.brain.forget();
        world.bot.forget();
        let began = Instant::now();
        for i in 0..n {
            sleep(REST);
            let there = floor.hand_off(&world.brain, &like.0).answered;
            floors.push(floor.hand_off(&world.bot, &like.1).after(there).arrived);
            sleep(REST);
            if began.elapsed() > BLOCK {
                break;
            }
            let started = Instant::now();
            world.bot.say(&said, None);
            ours.push(wait(&world.bot, i + 1)[i].at - started);
        }
        like = (wait(&world.brain, 1)[0].text.clone(), wait(&world.bot, 1)[0].text.clone());
        world.empty();
        if block == 0 {
            // To warm up.
            ours.clear();
            floors.clear();
        }
    }
    let name = format!("whole round, {kb} kB each way, p50");
    run.table.row(&name, p50(&ours), Some(p50(&floors)), "ms", Goal::Ratio(1.5));
}
