//! A brain that waits for a person, and sessions that end with a hand-off in them.

use std::time::Duration;

use time::macros::datetime;

use super::*;
use crate::config::Side;
use crate::handoff::{Id, Origin};
use crate::queue::event::{Arrival, Effect, Event, Pushed, Receipt};
use crate::queue::{Settings, Token};

const OLD: SessionKey = SessionKey { pid: 7, started: 1 };
const NEW: SessionKey = SessionKey { pid: 8, started: 2 };

/// A queue whose disk takes everything.
struct Bench {
    queue: Queue,
    seconds: u64,
    effects: Vec<Effect>,
}

impl Bench {
    fn new() -> Bench {
        let settings = Settings {
            alarm: Duration::from_secs(1_800),
            max_attempts: 3,
            gap: Duration::from_secs(10),
            inline_bytes: 65_536,
        };
        let mut bench = Bench { queue: Queue::new(settings, 0, now(0)), seconds: 0, effects: Vec::new() };
        bench.tell(Event::Side { side: Side::Bot, online: true, session: None });
        bench.brain_is(Some(OLD));
        bench
    }

    fn tell(&mut self, event: Event) {
        self.queue.handle(event, now(self.seconds));
        for id in self.queue.unwritten() {
            let state = self.queue.entry_mut(id).unwrap().h.state();
            self.queue.written(id, state);
        }
        self.effects.extend(self.queue.effects());
    }

    fn brain_is(&mut self, session: Option<SessionKey>) {
        self.tell(Event::Side { side: Side::Brain, online: session.is_some(), session });
    }

    fn send(&mut self) -> Id {
        let id = Id::now();
        self.tell(Event::Accept(Arrival {
            id,
            from: Origin::Script,
            text: "one".to_owned(),
            message: None,
            files: Vec::new(),
            receipt: Receipt::None,
        }));
        id
    }

    fn does(&mut self, session: SessionKey, status: Activity, since: u64) {
        let waiting_for = (status == Activity::Waiting).then(|| "permission prompt".to_owned());
        self.tell(Event::Brain(Doing { session, status: Some(status), since: Some(since), waiting_for }));
    }

    /// The pushes to that side since the last time, which all succeed.
    fn pushes(&mut self, to: Side) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(at) = self.effects.iter().position(|e| matches!(e, Effect::Push { side, .. } if *side == to)) {
            let Effect::Push { token, uploads, .. } = self.effects.remove(at) else { unreachable!() };
            texts.push(uploads[0].part.text.clone());
            self.landed(token);
        }
        texts
    }

    fn landed(&mut self, token: Token) {
        for pushed in [Pushed::Accepted, Pushed::Confirmed] {
            self.tell(Event::Pushed { token, pushed });
        }
    }

    fn warned(&self, part: &str) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::Warn { text, .. } if text.contains(part)))
    }
}

fn now(seconds: u64) -> Now {
    let mono = Duration::from_secs(seconds);
    Now { mono, wall: datetime!(2026-11-30 10:00 UTC) + mono }
}

const SAID: &str =
    "[relay] the brain waits for a person (permission prompt): its hand-off goes on once that is answered there";

#[test]
fn the_bot_is_told_once_a_wait_and_only_of_one_that_holds_something_up() {
    let mut bench = Bench::new();
    bench.does(OLD, Activity::Waiting, 1);
    assert!(bench.pushes(Side::Bot).is_empty(), "there is nothing in it");
    bench.send();
    assert!(bench.pushes(Side::Bot).is_empty(), "it is not known to be in it");
    assert_eq!(bench.pushes(Side::Brain).len(), 1);
    assert_eq!(bench.pushes(Side::Bot), [SAID]);
    bench.does(OLD, Activity::Waiting, 1);
    bench.tell(Event::Tick);
    assert!(bench.pushes(Side::Bot).is_empty(), "it is the same wait");
    bench.does(OLD, Activity::Waiting, 2);
    assert_eq!(bench.pushes(Side::Bot), [SAID]);
    bench.does(OLD, Activity::Busy, 3);
    bench.does(OLD, Activity::Waiting, 4);
    assert_eq!(bench.pushes(Side::Bot), [SAID]);
}

#[test]
fn a_wait_that_is_over_before_the_bot_can_be_told_is_not_told_of() {
    let mut bench = Bench::new();
    bench.send();
    bench.pushes(Side::Brain);
    bench.tell(Event::Side { side: Side::Bot, online: false, session: None });
    bench.does(OLD, Activity::Waiting, 1);
    bench.does(OLD, Activity::Idle, 2);
    bench.tell(Event::Side { side: Side::Bot, online: true, session: None });
    assert!(bench.pushes(Side::Bot).is_empty());
}

#[test]
fn the_alarm_says_that_the_session_waits_for_a_person() {
    for (waits, why) in [(true, "the session waits for a person (permission prompt)"), (false, "pushed and not seen")] {
        let mut bench = Bench::new();
        bench.send();
        bench.pushes(Side::Brain);
        if waits {
            bench.does(OLD, Activity::Waiting, 1);
        } else {
            bench.does(NEW, Activity::Waiting, 1);
        }
        bench.seconds = 1_800;
        bench.tell(Event::Tick);
        assert!(bench.warned(&format!("no result after 30 min: {why}")), "{:?}", bench.effects);
    }
}

#[test]
fn it_goes_to_the_next_session_and_not_to_more_than_max_attempts() {
    let mut bench = Bench::new();
    let id = bench.send();
    assert_eq!(bench.pushes(Side::Brain), [format!("[relay {id} from a script] one")]);
    bench.brain_is(None);
    bench.brain_is(Some(OLD));
    assert!(bench.pushes(Side::Brain).is_empty(), "the session is the same");
    for (session, attempt) in [(NEW, 2), (OLD, 3)] {
        bench.brain_is(None);
        bench.brain_is(Some(session));
        let again = bench.pushes(Side::Brain);
        assert!(again[0].starts_with(&format!("[relay {id} from a script, attempt {attempt}: ")), "{again:?}");
    }
    bench.brain_is(Some(NEW));
    assert!(bench.pushes(Side::Brain).is_empty());
    let told = bench.pushes(Side::Bot).remove(0);
    assert!(told.contains("was given up after 3 attempts: the sessions that had it ended without an answer"), "{told}");
}

#[test]
fn a_push_of_which_nothing_was_posted_is_no_attempt() {
    let mut bench = Bench::new();
    let id = bench.send();
    let Some(Effect::Push { token, .. }) =
        bench.effects.iter().find(|e| matches!(e, Effect::Push { side: Side::Brain, .. }))
    else {
        panic!("nothing is pushed");
    };
    let token = *token;
    bench.effects.clear();
    bench.brain_is(None);
    bench.tell(Event::Pushed { token, pushed: Pushed::NotTried });
    assert_eq!(bench.queue.entry_mut(id).unwrap().h.pushes, []);
    bench.brain_is(Some(NEW));
    assert_eq!(bench.pushes(Side::Brain), [format!("[relay {id} from a script] one")]);
}
