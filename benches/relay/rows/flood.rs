//! One side talks and talks, none of it a hand-off or an answer, while the other works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anna_relay::fakechat::server::{Received, Sayer};
use bytes::Bytes;

use super::handoffs::{answer, back, there};
use crate::Run;
use crate::table::Goal;
use crate::times::p50;
use crate::world::{World, wait};

/// Frames a second.
const RATE: f64 = 10_000.0;
/// How long it has flooded before anything is measured.
const STEADY: Duration = Duration::from_millis(300);
const MESSAGE: &str =
    r#"{"type":"msg","id":"m1796031734360-1","from":"assistant","ts":1796031734360,"text":"just talk"}"#;

/// A flood, until it is stopped.
struct Flood {
    began: Instant,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Flood {
    /// Begins one of this double.
    fn begin(sayer: Sayer) -> Flood {
        let (began, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (frame, mut sent) = (Bytes::from_static(MESSAGE.as_bytes()), 0);
            while !stopped.load(Ordering::Relaxed) {
                while f64::from(sent) < began.elapsed().as_secs_f64() * RATE {
                    sayer.say_frame(frame.clone());
                    sent += 1;
                }
                sleep(Duration::from_millis(1));
            }
            sent
        });
        sleep(STEADY);
        Flood { began, stop, thread }
    }

    /// Stops it. `marker` has something pass behind it, and says when it arrived: by then the relay has read all of
    /// the flood. Returns at what rate.
    fn end(self, marker: impl FnOnce() -> Instant) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.thread.join().unwrap();
        f64::from(sent) / (marker() - self.began).as_secs_f64()
    }
}

/// Times without a flood and with one, in turn.
#[derive(Default)]
struct Times {
    calm: Vec<Duration>,
    flooded: Vec<Duration>,
    rates: Vec<f64>,
}

impl Times {
    fn row(&mut self, run: &mut Run, name: &str) {
        self.rates.sort_unstable_by(f64::total_cmp);
        let (least, middle) = (self.rates[0], self.rates[self.rates.len() / 2]);
        eprintln!("  frames of the flood that the relay read in a second: {middle:.0}, in the worst block {least:.0}");
        run.table.row(name, p50(&self.flooded), Some(p50(&self.calm)), "ms", Goal::Ratio(2.0));
    }
}

/// The bot floods, the brain answers.
pub fn bot_floods(run: &mut Run) {
    let (blocks, n) = run.pick((15, 10), (1, 4));
    let (world, mut times) = (World::online(), Times::default());
    let ask = || {
        let asked = there(&world, "x", n, &mut Vec::new(), || {});
        world.quiet();
        asked
    };
    for _ in 0..blocks {
        let asked = ask();
        let told = back(&world, "done", &asked, &mut times.calm, || {});
        answer(&world, &asked[told.len()..]);

        let asked = ask();
        let flood = Flood::begin(world.bot.sayer());
        let told = back(&world, "done", &asked, &mut times.flooded, || {});
        world.brain.forget();
        let mut last = None;
        times.rates.push(flood.end(|| {
            world.bot.say("RELAY: the end", None);
            last.insert(wait(&world.brain, 1).remove(0)).at
        }));
        answer(&world, &[&asked[told.len()..], last.as_slice()].concat());
    }
    times.row(run, "brain's frame → request at the bot, while the bot says 10,000 things a second, p50");
}

/// The brain floods, the bot hands off.
pub fn brain_floods(run: &mut Run) {
    let (blocks, n) = run.pick((15, 10), (1, 4));
    let (world, mut times) = (World::online(), Times::default());
    for _ in 0..blocks {
        let asked = there(&world, "x", n, &mut times.calm, || {});
        world.quiet();
        answer(&world, &asked);

        let flood = Flood::begin(world.brain.sayer());
        let asked: Vec<Received> = there(&world, "x", n, &mut times.flooded, || {});
        world.bot.forget();
        times.rates.push(flood.end(|| {
            world.brain.say("the end", Some(&asked[0].id));
            wait(&world.bot, 1)[0].at
        }));
        answer(&world, &asked[1..]);
    }
    times.row(run, "bot's frame → request at the brain, while the brain says 10,000 things a second, p50");
}
