//! Whole rounds with a large file each way.

use std::time::Instant;

use anna_relay::fakechat::server::Double;
use bytes::Bytes;

use crate::Run;
use crate::floor::{self, Floor, Posted};
use crate::process::{forget_peak, is_open, mib};
use crate::table::Goal;
use crate::times::p50;
use crate::world::{World, wait};

const MIB: usize = 1024 * 1024;

/// How long they take, and how much memory.
pub fn files(run: &mut Run) {
    let (rounds, size) = run.pick((8, 50), (1, 4));
    let world = World::online();
    let bytes: Bytes = (0..size * MIB).map(|n| ((n * 31) >> 7) as u8).collect::<Vec<_>>().into();
    let answer = bytes.clone();
    world.brain.on_upload(move |sayer, asked| {
        if asked.id != floor::ID {
            sayer.say_file(Some("here it is"), Some(&asked.id), "there.bin", answer.clone());
        }
    });
    let mut floor = Floor::new(world.dir.path());
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    let memory = is_open();
    if memory {
        forget_peak(world.pid());
    }
    for round in 0..=rounds {
        let started = Instant::now();
        world.bot.say_file(Some("RELAY: look at this"), None, "here.bin", bytes.clone());
        let told = wait(&world.bot, 1).remove(0);
        ours.push(told.at - started);
        let asked = wait(&world.brain, 1).remove(0);
        for got in [&asked, &told] {
            assert!(got.file.as_ref().is_some_and(|file| file.bytes == bytes), "another file arrived: {}", got.text);
        }
        world.empty();
        let there = one_way(&mut floor, &world.bot, &world.brain, &asked.text, &bytes);
        let back = one_way(&mut floor, &world.brain, &world.bot, &told.text, &bytes);
        floors.push(there.answered + back.arrived);
        world.brain.forget();
        world.bot.forget();
        if round == 0 && rounds > 1 {
            // To warm up.
            ours.clear();
            floors.clear();
        }
    }
    let name = format!("whole round, a file of {size} MiB each way, p50");
    run.table.row(&name, p50(&ours), Some(p50(&floors)), "ms", Goal::Ratio(1.5));
    if memory {
        let (name, peak) = (format!("memory at most, files of {size} MiB"), mib(world.pid(), "VmHWM"));
        run.table.row(&name, peak, Some(size as f64), "MiB", Goal::Ratio(3.0));
    }
}

/// The floor of a way: the file to the disk, a durable creation, the file from the disk to the other one.
fn one_way(floor: &mut Floor, from: &Double, to: &Double, text: &str, bytes: &Bytes) -> Posted {
    let url = from.keep_file("floor.bin", bytes.clone());
    let (got, path) = floor.get(from, &url);
    let all = floor::post_file(to, text, &path).after(got + floor.create(text.as_bytes()));
    std::fs::remove_file(path).unwrap();
    all
}
