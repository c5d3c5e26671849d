//! What it costs while nothing happens.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

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
        sleep(Duration::from_secs(4));
    }
}

/// Both sides are online, and one hand-off went there and back before.
pub fn idle(run: &mut Run) {
    if !is_open() {
        return;
    }
    let (settle, seconds) = run.pick((15, 60), (0, 2));
    let world = World::online();
    answer(&world, &there(&world, "x", 1, &mut Vec::new(), || {}));
    let mut floor = Command::new(std::env::current_exe().unwrap()).arg(SLEEPER).spawn().unwrap();
    sleep(Duration::from_secs(settle));
    let (mut work, mut least) = (Work::since_now(world.pid()), Work::since_now(floor.id()));
    let end = Instant::now() + Duration::from_secs(seconds);
    // Often enough that no thread comes and goes unseen.
    while Instant::now() < end {
        sleep(Duration::from_millis(500).min(end.saturating_duration_since(Instant::now())));
        work.look(world.pid());
        least.look(floor.id());
    }
    floor.kill().unwrap();
    floor.wait().unwrap();
    let (name, share) = (format!("idle for {seconds} s"), seconds as f64 / 60.0);
    run.table.row(&format!("{name}: memory"), mib(world.pid(), "VmRSS"), None, "MiB", Goal::AtMost(8.0));
    let time = millis(work.time());
    run.table.row(
        &format!("{name}: processor time"),
        time,
        Some(millis(least.time())),
        "ms",
        Goal::AtMost(10.0 * share),
    );
    run.table.row(&format!("{name}: wake-ups"), work.wakes() as f64, None, "", Goal::AtMost(60.0 * share));
}
