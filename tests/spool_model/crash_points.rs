//! Every transition of a hand-off is stopped before each of its calls, by `kill -9` and by a power cut, and so is every
//! start that follows.

use std::time::{Duration, Instant};

use anna_relay::config::Side;
use anna_relay::handoff::{Id, SessionKey};
use anna_relay::queue::Pushed;

use super::world::World;

/// How many of the states that a power cut may leave are looked at, for each point.
const CUTS: u64 = 16;
/// For how many of them the start is stopped at each of its calls, too.
const DEEP: u64 = 1;

/// A transition: what goes before, and itself.
type Transition = (&'static str, fn(&mut World) -> Id, fn(&mut World, Id));

const FIRST: SessionKey = SessionKey { pid: 6, started: 6 };
const OTHER: SessionKey = SessionKey { pid: 7, started: 7 };

fn failed(permanent: bool) -> Pushed {
    Pushed::Failed { why: "HTTP 500".into(), permanent }
}

fn land(world: &mut World, side: Side, pushed: Pushed) {
    if let Some(flight) = world.posting(side) {
        if pushed == Pushed::Confirmed {
            world.land(flight.token, Pushed::Accepted);
        }
        world.land(flight.token, pushed);
    }
}

fn accepted(world: &mut World) -> Id {
    world.accept("m1000-1")
}

fn pushed(world: &mut World) -> Id {
    let id = accepted(world);
    world.side(Side::Brain, true, None);
    id
}

fn sent(world: &mut World) -> Id {
    let id = pushed(world);
    land(world, Side::Brain, Pushed::Confirmed);
    id
}

fn answered(world: &mut World) -> Id {
    let id = sent(world);
    world.reply(id, "m1-1", "answer (m1-1)", false, vec![]);
    id
}

fn being_told(world: &mut World) -> Id {
    let id = answered(world);
    world.side(Side::Bot, true, None);
    id
}

fn done(world: &mut World) -> Id {
    let id = being_told(world);
    land(world, Side::Bot, Pushed::Confirmed);
    id
}

fn refused(world: &mut World) -> Id {
    let id = pushed(world);
    land(world, Side::Brain, failed(true));
    id
}

fn given_up(world: &mut World) -> Id {
    let id = refused(world);
    world.side(Side::Bot, true, None);
    land(world, Side::Bot, Pushed::Confirmed);
    id
}

fn cancelled(world: &mut World) -> Id {
    let id = sent(world);
    world.side(Side::Bot, true, None);
    world.cancel(id);
    id
}

const TRANSITIONS: &[Transition] = &[
    (
        "accept",
        |_| Id::now(),
        |w, _| {
            accepted(w);
        },
    ),
    (
        "accept and push",
        |w| {
            w.side(Side::Brain, true, None);
            Id::now()
        },
        |w, _| {
            accepted(w);
        },
    ),
    ("push", accepted, |w, _| w.side(Side::Brain, true, None)),
    ("sent", pushed, |w, _| land(w, Side::Brain, Pushed::Confirmed)),
    ("push failed", pushed, |w, _| land(w, Side::Brain, failed(false))),
    (
        "push again",
        |w| {
            let id = pushed(w);
            land(w, Side::Brain, failed(false));
            id
        },
        |w, _| w.pass(Duration::from_secs(2)),
    ),
    (
        "push to the next session",
        |w| {
            let id = accepted(w);
            w.side(Side::Brain, true, Some(FIRST));
            land(w, Side::Brain, Pushed::Confirmed);
            w.side(Side::Brain, false, None);
            id
        },
        |w, _| w.side(Side::Brain, true, Some(OTHER)),
    ),
    ("result", sent, |w, id| w.reply(id, "m1-1", "answer (m1-1)", false, vec![])),
    ("result while the push is under way", pushed, |w, id| w.reply(id, "m1-1", "answer (m1-1)", false, vec![])),
    ("tell", answered, |w, _| w.side(Side::Bot, true, None)),
    (
        "result and tell",
        |w| {
            w.side(Side::Bot, true, None);
            sent(w)
        },
        |w, id| w.reply(id, "m1-1", "answer (m1-1)", false, vec![]),
    ),
    ("told", being_told, |w, _| land(w, Side::Bot, Pushed::Confirmed)),
    ("told of, and failed", being_told, |w, _| land(w, Side::Bot, failed(false))),
    ("told of, and refused", being_told, |w, _| land(w, Side::Bot, failed(true))),
    ("follow-up while told", being_told, |w, id| w.reply(id, "m1-2", "more (m1-2)", false, vec![])),
    ("follow-up", done, |w, id| w.reply(id, "m1-2", "more (m1-2)", false, vec![])),
    ("correction", done, |w, id| w.reply(id, "m1-1", "answer! (m1-1)", true, vec![])),
    ("give up", pushed, |w, _| land(w, Side::Brain, failed(true))),
    (
        "given up, told",
        |w| {
            let id = refused(w);
            w.side(Side::Bot, true, None);
            id
        },
        |w, _| land(w, Side::Bot, Pushed::Confirmed),
    ),
    ("late answer", given_up, |w, id| w.reply(id, "m1-1", "late (m1-1)", false, vec![])),
    ("cancel", accepted, |w, id| w.cancel(id)),
    ("cancel while pushed", pushed, |w, id| w.cancel(id)),
    ("cancel and take back", sent, |w, id| w.cancel(id)),
    ("taken back", cancelled, |w, _| land(w, Side::Brain, Pushed::Confirmed)),
    ("retry what was given up", given_up, |w, id| w.retry(id)),
    ("retry what waits", sent, |w, id| w.retry(id)),
    ("retry what was cancelled", cancelled, |w, id| w.retry(id)),
    (
        "alarm",
        |w| {
            w.side(Side::Brain, false, None);
            accepted(w)
        },
        |w, _| w.pass(Duration::from_secs(1801)),
    ),
    ("pause", accepted, |w, _| w.pause(true)),
    (
        "resume",
        |w| {
            let id = accepted(w);
            w.pause(true);
            id
        },
        |w, _| w.pause(false),
    ),
    ("prune", done, |w, id| w.prune(vec![id])),
    (
        "prune with files",
        |w| {
            let id = sent(w);
            let file = w.fetched("a.png");
            w.reply(id, "m1-1", "answer (m1-1)", false, vec![file]);
            w.side(Side::Bot, true, None);
            land(w, Side::Bot, Pushed::Confirmed);
            id
        },
        |w, id| w.prune(vec![id]),
    ),
    ("adopt a file", sent, |w, id| {
        let file = w.fetched("a.png");
        w.reply(id, "m1-1", "answer (m1-1)", false, vec![file]);
    }),
];

/// What a crash leaves is made whole by the next start, which may be stopped too.
fn recovers(mut world: World, deep: bool, points: &mut u64) {
    let crashed = world.fs.copy();
    assert!(world.open(), "it starts");
    world.check_whole();
    let disk = world.fs.files();
    let least = world.fs.copy();
    least.power_cut(&mut |_| 0);
    world.check_promises(&World::on_disk(&least));
    world.kill();
    let calls = world.fs.calls() - crashed.calls();
    assert!(world.open(), "it starts again");
    assert_eq!(world.fs.files(), disk, "the second start finds nothing to do");
    world.check_whole();
    for n in (0..calls).filter(|_| deep) {
        for cut in [None, Some(1), Some(2), Some(3)] {
            let mut again = world.branch(&crashed);
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
    world.finish();
    for known in world.known.values() {
        // One before the crash, and one after; a retry by a person adds one.
        assert!(known.attempts.len() <= 3, "pushed {:?}", known.attempts);
    }
}

#[test]
fn a_crash_at_any_point_loses_nothing() {
    let started = Instant::now();
    let (mut points, mut starts) = (0, 0);
    for (name, before, transition) in TRANSITIONS {
        for n in 0.. {
            let mut world = World::new();
            let id = before(&mut world);
            world.fs.crash_after(n);
            transition(&mut world, id);
            if !world.fs.is_dead() {
                assert!(n > 1, "{name} does nothing");
                break;
            }
            points += 1;
            let crashed = world.fs.copy();
            for cut in std::iter::once(None).chain((0..CUTS).map(Some)) {
                let mut left = world.branch(&crashed);
                left.crash(cut);
                let context = format!("{name}, stopped before call {n}, {cut:?}");
                let _said = Said(&context);
                recovers(left, cut.is_none_or(|cut| cut < DEEP), &mut starts);
            }
        }
    }
    println!(
        "{points} points in {} transitions, {starts} more in the starts after them, {:?}",
        TRANSITIONS.len(),
        started.elapsed()
    );
    assert!(points > 200, "{points}");
}

/// Says where a test was when it failed.
struct Said<'a>(&'a str);

impl Drop for Said<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("at: {}", self.0);
        }
    }
}
