//! The two sessions, as their scripts have it: a bot that hands off, a brain that answers in all the ways it can.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anna_relay::config::Side;
use anna_relay::fakechat::server::Received;
use anna_relay::handoff::Id;

use super::agenda::Act;
use super::play::Play;
use super::reports;

const ANSWER: &str = "it is done:\n  „erledigt“ 🌱";
const MORE: &str = "and more to it";
const RATHER: &str = "rather: it is not done";

/// How long a person waits before looking after a hand-off that nothing came of.
const PATIENCE_MS: u64 = 1500;

/// How the brain deals with a hand-off.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    AtOnce,
    Late,
    WithMore,
    ThenEdited,
    /// It says the same twice.
    Repeated,
    /// It does nothing until it is asked again.
    SecondTimeOnly,
}

impl Way {
    fn draw(rng: &mut fastrand::Rng) -> Way {
        match rng.u8(..100) {
            0..12 => Way::WithMore,
            12..24 => Way::ThenEdited,
            24..30 => Way::Repeated,
            30..36 => Way::Late,
            36..39 => Way::SecondTimeOnly,
            _ => Way::AtOnce,
        }
    }
}

/// What the brain remembers: its session outlives its fakechat.
#[derive(Default)]
pub struct Memory(HashMap<String, Task>);

struct Task {
    way: Way,
    taken_up: bool,
    edited: bool,
}

impl Play {
    /// The bot hands something off, or not quite.
    pub fn say(&mut self) {
        let busy = self.ledger.unreached.len() + self.ledger.untold.len() >= self.at_once();
        let pause = if busy { 50 } else { self.rng.u64(2..15) };
        if busy || self.world.bot.is_none() {
            return self.agenda.after(pause, Act::Say);
        }
        self.said += 1;
        let text = format!("RELAY: piece of work {}", self.said);
        let message = self.world.bot().say(&text, None);
        self.ledger.accepted(&Id::derive(Side::Bot, &message).to_string());
        self.report(Side::Bot, reports::reply(&message, &text, None));
        if self.rng.u8(..10) == 0 {
            self.talk();
        }
        if self.said < self.total {
            self.agenda.after(pause, Act::Say);
        }
    }

    /// What the bot says to others must go nowhere.
    fn talk(&mut self) {
        let message = self.world.bot().say("about RELAY: nothing", None);
        self.report(Side::Bot, reports::reply(&message, "about RELAY: nothing", None));
        let message = self.world.bot().say("RELAY: in reply to something", Some("m1-1"));
        self.report(Side::Bot, reports::reply(&message, "RELAY: in reply to something", Some("m1-1")));
    }

    /// A session's hooks run one after the other.
    fn report(&mut self, side: Side, json: String) {
        let after = if self.rng.bool() { 0 } else { self.rng.u64(0..100) };
        let at = (Instant::now() + Duration::from_millis(after)).max(self.reported[side as usize]);
        self.reported[side as usize] = at;
        self.agenda.at(at, Act::Hook { side, json });
    }

    /// The brain got something to do.
    pub fn take_up(&mut self, received: &Received) {
        let id = received.id.clone();
        let again = received.text.contains(", attempt ");
        let way = Way::draw(&mut self.rng);
        let task = self.memory.0.entry(id.clone()).or_insert(Task { way, taken_up: false, edited: false });
        if task.taken_up {
            // It is done, so it only answers: in the same words.
            if self.rng.bool() {
                self.agenda.after(30, Act::Answer { id, text: ANSWER.into() });
            }
            return;
        }
        if task.way == Way::SecondTimeOnly && !again {
            return self.agenda.after(PATIENCE_MS, Act::LookAfter { id });
        }
        task.taken_up = true;
        let way = task.way;
        let soon = if way == Way::Late { self.rng.u64(1000..4000) } else { self.rng.u64(0..200) };
        let second = match way {
            Way::WithMore => Some(MORE),
            Way::Repeated => Some(ANSWER),
            _ => None,
        };
        self.agenda.after(soon, Act::Answer { id: id.clone(), text: ANSWER.into() });
        if let Some(text) = second {
            let after = soon + self.rng.u64(1..1500);
            self.agenda.after(after, Act::Answer { id, text: text.into() });
        }
    }

    /// The brain answers, as soon as it has something to answer with.
    pub fn answer(&mut self, id: String, text: String) {
        let Some(brain) = &self.world.brain else { return self.agenda.after(50, Act::Answer { id, text }) };
        // Some models cut it short.
        let named = if self.rng.u8(..20) == 0 { &id[24..] } else { &id };
        let message = brain.say(&text, Some(named));
        let json = reports::reply(&message, &text, Some(named));
        self.ledger.said(&id, &text);
        self.report(Side::Brain, json);
        let task = self.memory.0.get_mut(&id).expect("it was asked");
        if task.way == Way::ThenEdited && !task.edited {
            task.edited = true;
            let after = self.rng.u64(1..2000);
            self.agenda.after(after, Act::Edit { id, message, text: RATHER.into() });
        }
    }

    /// The brain changes what it said.
    pub fn edit(&mut self, id: String, message: String, text: String) {
        let Some(brain) = &self.world.brain else { return self.agenda.after(50, Act::Edit { id, message, text }) };
        brain.edit(&message, &text);
        self.ledger.said(&id, &text);
        self.report(Side::Brain, reports::edit(&message, &text));
    }

    /// A person has it pushed again, if nothing came of it. Whatever becomes of that: they look again.
    pub fn look_after(&mut self, id: String) {
        if self.memory.0.get(&id).is_some_and(|task| !task.taken_up) {
            self.world.run(&["retry", &id]);
            self.agenda.after(PATIENCE_MS, Act::LookAfter { id });
        }
    }
}
