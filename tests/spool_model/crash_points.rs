//! Every transition of a hand-off is stopped before each of its calls, by `kill -9` and by a power cut, and so is every
//! start that follows.

use std::time::Instant;

use super::transitions::transitions;
use super::world::{Said, World};

/// How many of the states that a power cut may leave are looked at, for each point.
const CUTS: u64 = 10;
/// For how many of them the start is stopped at each of its calls, too.
const DEEP: u64 = 1;

/// What a crash leaves is made whole by the next start, which may be stopped too.
fn recovers(mut world: World, deep: bool, points: &mut u64) {
    let crashed = world.branch(&world.fs);
    assert!(world.open(), "it starts");
    world.check_whole();
    // The bot's message may come again, and is dealt with only if its hand-off is there to stay.
    let mut again = crashed.branch(&world.fs);
    assert!(again.open());
    again.accept("m1000-1");
    let disk = world.fs.files();
    let least = world.fs.copy();
    least.power_cut(&mut |_| 0);
    world.check_promises(&World::on_disk(&least));
    world.kill();
    let calls = world.fs.calls() - crashed.fs.calls();
    assert!(world.open(), "it starts again");
    assert_eq!(world.fs.files(), disk, "the second start finds nothing to do");
    world.check_whole();
    for n in (0..calls).filter(|_| deep) {
        for cut in [None, Some(1)] {
            let mut again = crashed.branch(&crashed.fs);
            again.fs.crash_after(n);
            if again.open() {
                continue;
            }
            *points += 1;
            again.crash(cut);
            assert!(again.open(), "it starts after a start that was stopped");
            again.check_whole();
        }
    }
    if deep {
        world.finish();
    }
    for known in world.known.values() {
        // One before the crash, and one after; a retry by a person adds one.
        assert!(known.attempts.len() <= 3, "pushed {:?}", known.attempts);
    }
}

#[test]
fn a_crash_at_any_point_loses_nothing() {
    let started = Instant::now();
    let (mut points, mut starts) = (0, 0);
    for (prepares, (name, before, transition)) in transitions() {
        for n in 0.. {
            let mut world = World::new(prepares);
            let id = before(&mut world);
            world.fs.crash_after(n);
            transition(&mut world, id);
            points += 1;
            let ended = !world.fs.is_dead();
            assert!(n > 1 || !ended, "{name} does nothing");
            let crashed = world.fs.copy();
            for cut in std::iter::once(None).chain((0..CUTS).map(Some)) {
                let mut left = world.branch(&crashed);
                left.crash(cut);
                let context = format!("{name}, stopped before call {n}, {cut:?}");
                let _said = Said(context);
                recovers(left, cut.is_none_or(|cut| cut < DEEP), &mut starts);
            }
            if ended {
                break;
            }
        }
    }
    println!(
        "{points} points in {} transitions, {starts} more in the starts after them, {:?}",
        transitions().count(),
        started.elapsed()
    );
    assert!(points > 200, "{points}");
}
