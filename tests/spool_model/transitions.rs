//! The transitions of a hand-off, each with what goes before it.

use std::time::Duration;

use anna_relay::config::Side;
use anna_relay::handoff::{Id, SessionKey};
use anna_relay::queue::Pushed;

use super::world::World;

/// A transition: what goes before, and itself.
pub type Transition = (&'static str, fn(&mut World) -> Id, fn(&mut World, Id));

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

/// All of them, of a relay that has made a file before each write, and of one that had no time to.
pub fn transitions() -> impl Iterator<Item = (bool, Transition)> {
    [true, false].into_iter().flat_map(|prepares| TRANSITIONS.iter().map(move |transition| (prepares, *transition)))
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
    (
        "late answer, told",
        |w| {
            let id = given_up(w);
            w.reply(id, "m1-1", "late (m1-1)", false, vec![]);
            id
        },
        |w, _| land(w, Side::Bot, Pushed::Confirmed),
    ),
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
