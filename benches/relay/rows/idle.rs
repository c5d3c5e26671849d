//! What it costs while nothing happens.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anna_relay::fakechat::socket::PING_EVERY;

use super::handoffs::{answer, there};
use crate::Run;
use crate::process::{Work, is_open, mib};
use crate::table::Goal;
use crate::times::millis;
use crate::world::World;

/// Has this program be the floor: see [`sleeper`].
pub const SLEEPER: &str = "--sleeper";

/// Does nothing but wake, about as often as an idle bridge: what that costs says how cold the machine gets in between.
pub fn sleeper() -> ! {
    loop {
        sleep(Duration::from_secs(16));
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// Both sides are online, and one hand-off went there and back before.
pub fn idle(run: &mut Run) {
    if !is_open() {
        return;
    }
    // In the longer time each websocket is asked once whether it is there, as in each such time.
    let (settle, time) = run.pick((Duration::from_secs(20), PING_EVERY), (Duration::ZERO, Duration::from_secs(2)));
    let world = World::online();
    answer(&world, &there(&world, "x", 1, &mut Vec::new(), || {}));
    let mut floor = Command::new(std::env::current_exe().unwrap()).arg(SLEEPER).spawn().unwrap();
    sleep(settle);
    let (mut work, mut least) = (Work::since_now(world.pid()), Work::since_now(floor.id()));
    let end = Instant::now() + time;
    // Often enough that no thread comes and goes unseen.
    while Instant::now() < end {
        sleep(Duration::from_millis(500).min(end.saturating_duration_since(Instant::now())));
        work.look(world.pid());
        least.look(floor.id());
    }
    floor.kill().unwrap();
    floor.wait().unwrap();
    let share = MINUTE.as_secs_f64() / time.as_secs_f64();
    run.table.row("idle: memory", mib(world.pid(), "VmRSS"), None, "MiB", Goal::AtMost(8.0));
    let (ours, floor) = (millis(work.time()) * share, millis(least.time()) * share);
    run.table.row("idle for a minute: processor time", ours, Some(floor), "ms", Goal::AtMost(10.0));
    run.table.row("idle for a minute: wake-ups", work.wakes() as f64 * share, None, "", Goal::AtMost(60.0));
}
