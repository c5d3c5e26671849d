//! Each call of each transition fails, once or from then on, with each of the errors that a disk gives.

use std::time::Duration;

use super::sim::{EIO, EMFILE, ENOSPC, EROFS};
use super::transitions::transitions;
use super::world::{Said, World};

/// Before which call a transition is stopped: after the commit point, mostly.
const STOP: u64 = 5;

const ERRORS: [(i32, &str); 4] = [(ENOSPC, "ENOSPC"), (EIO, "EIO"), (EROFS, "EROFS"), (EMFILE, "EMFILE")];

/// After trouble: what was promised is there, also for the next start; and once the disk is well, all goes on by
/// itself.
fn goes_on(mut world: World) {
    world.check_promises(&World::on_disk(&world.fs));
    world.check_wake();
    let mut stopped = world.branch(&world.fs);
    assert!(stopped.open(), "it starts");
    stopped.check_whole();
    stopped.finish();
    world.pass(Duration::from_secs(2));
    world.check_counts();
    world.finish();
    world.kill();
    assert!(world.open(), "it starts");
    world.check_whole();
}

#[test]
fn a_call_that_fails_loses_nothing() {
    let mut points = 0;
    for (prepares, (name, before, transition)) in transitions() {
        for (errno, error) in ERRORS {
            for n in 0..60 {
                let mut world = World::new(prepares);
                let id = before(&mut world);
                let calls = world.fs.calls();
                world.fs.fail_after(n, errno);
                let _said = Said(format!("{name}, call {n} fails with {error}"));
                transition(&mut world, id);
                if world.fs.calls() - calls <= n {
                    break;
                }
                points += 1;
                world.fs.break_with(None);
                goes_on(world);
            }
        }
    }
    println!("{points} calls that fail");
    assert!(points > 500, "{points}");
}

#[test]
fn a_disk_that_goes_on_failing_loses_nothing_and_says_so_once() {
    for (prepares, (name, before, transition)) in transitions() {
        for (errno, error) in ERRORS {
            let mut world = World::new(prepares);
            let id = before(&mut world);
            let _said = Said(format!("{name}, on a disk that fails with {error}"));
            world.fs.break_with(Some(errno));
            transition(&mut world, id);
            for _ in 0..5 {
                world.pass(Duration::from_secs(1));
            }
            let said = world.lines.iter().filter(|line| line.starts_with("the spool cannot be written")).count();
            assert!(said <= 1, "{:#?}", world.lines);
            world.fs.break_with(None);
            goes_on(world);
        }
    }
}

#[test]
fn a_start_on_a_disk_that_fails_loses_nothing() {
    let mut starts = 0;
    for (prepares, (name, before, transition)) in transitions() {
        let mut crashed = World::new(prepares);
        let id = before(&mut crashed);
        crashed.fs.crash_after(STOP);
        transition(&mut crashed, id);
        crashed.crash(Some(STOP));
        for (errno, error) in [ERRORS[1], ERRORS[3]] {
            for n in 0..40 {
                let mut world = crashed.branch(&crashed.fs);
                let calls = world.fs.calls();
                world.fs.fail_after(n, errno);
                let _said = Said(format!("{name}, stopped before call {STOP}; in the start, {n} fails with {error}"));
                let opened = world.open();
                if world.fs.calls() - calls <= n {
                    break;
                }
                starts += 1;
                world.fs.break_with(None);
                if !opened {
                    world.kill();
                    assert!(world.open(), "it starts once the disk is well");
                    world.check_whole();
                }
                goes_on(world);
            }
        }
    }
    println!("{starts} starts with a call that fails");
}
