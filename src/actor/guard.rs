//! The Guard: lets the bot's hand-offs in, or not.

use std::rc::Rc;

use actix::prelude::*;
use serde_json::json;

use crate::config::Side;
use crate::guard::{Admission, Verdict, judge};
use crate::handoff::{Id, Origin};
use crate::message::{Candidate, Ping, Reload, ToControl, ToGuard, ToQueue};
use crate::queue::Receipt;
use crate::queue::event::{Arrival, Event};

use super::wires::Wires;

#[cfg(debug_assertions)]
use crate::message::Fault;

/// The actor's name.
pub const NAME: &str = "guard";

/// The actor. The breaker itself is in [`Wires`]: it outlives this.
pub struct Guard {
    wires: Rc<Wires>,
}

impl Guard {
    /// A guard.
    #[must_use]
    pub fn new(wires: Rc<Wires>) -> Self {
        Guard { wires }
    }

    fn admit(&self, candidate: Candidate) {
        let Candidate { receipt, message, text, reply_to, files } = candidate;
        let text = match judge(text.as_deref(), reply_to.as_deref(), !files.is_empty()) {
            Verdict::HandOff(text) => text,
            Verdict::HasReplyTo => {
                let said = text.unwrap_or_default();
                return self.dismiss(
                    receipt,
                    &message,
                    &format!("a RELAY: of the bot was refused, for it is a reply to something: {said}"),
                );
            }
            Verdict::Empty => {
                return self.dismiss(
                    receipt,
                    &message,
                    "a RELAY: of the bot was refused, for there is nothing behind it",
                );
            }
            Verdict::NearMiss => {
                let said = text.unwrap_or_default();
                if self.wires.breaker.borrow_mut().dismiss(&message) {
                    self.wires.stream.warn(&format!(
                        "the bot said what is no hand-off, for it does not start with `RELAY:`: {said}"
                    ));
                }
                return self.wires.done(receipt);
            }
            Verdict::NotForUs => return self.wires.done(receipt),
        };
        let id = Id::derive(Side::Bot, &message);
        let received = self.wires.now().unix_millis();
        let (admission, tripped_now) = {
            let mut breaker = self.wires.breaker.borrow_mut();
            let before = breaker.tripped();
            (breaker.admit(&message, received), breaker.tripped() && !before)
        };
        if tripped_now {
            self.tripped();
        }
        let arrival = Arrival { id, from: Origin::Bot, text: text.to_owned(), message: Some(message), files, receipt };
        self.wires.queue.send(ToQueue(match admission {
            Admission::Admitted => Event::Accept(arrival),
            Admission::Refused { kept } => Event::Refuse { arrival, keep: kept },
        }));
    }

    fn dismiss(&self, receipt: Receipt, message: &str, why: &str) {
        // What came by the websocket comes once more by the hook.
        if self.wires.breaker.borrow_mut().dismiss(message) {
            self.wires.stream.warn(why);
        }
        self.wires.done(receipt);
    }

    fn tripped(&self) {
        let relay = &self.wires.config().relay;
        let (count, window) = (relay.breaker_count, relay.breaker_window.as_secs_f64());
        let why = format!("more than {count} hand-offs within {window} s");
        self.wires
            .stream
            .warn(&format!("the breaker tripped: {why}; `anna-relay reset-breaker` lets hand-offs in again"));
        let text = format!(
            "the breaker tripped: {why}; further ones are refused until a person runs `anna-relay reset-breaker`. \
             Hand nothing off until then, and say so if asked"
        );
        self.wires.notify(text);
    }

    fn reset(&self, receipt: Receipt) {
        let (was_tripped, refused) = {
            let mut breaker = self.wires.breaker.borrow_mut();
            (breaker.tripped(), breaker.reset())
        };
        if was_tripped {
            let were = if refused == 1 { "was" } else { "were" };
            self.wires.stream.note(&format!("the breaker was reset; {refused} {were} refused"));
            let text = format!(
                "the breaker was reset: hand-offs go through again; {refused} {were} refused meanwhile \
                 (`anna-relay list --state failed`)"
            );
            self.wires.notify(text);
        }
        if let Receipt::Request(request) = receipt {
            let answer = json!({ "was_tripped": was_tripped, "refused": refused });
            self.wires.control.send(ToControl::Answer(request, Ok(answer)));
        }
    }
}

impl Actor for Guard {
    type Context = Context<Self>;
}

impl Handler<ToGuard> for Guard {
    type Result = ();

    fn handle(&mut self, message: ToGuard, _: &mut Self::Context) {
        match message {
            ToGuard::Admit(candidate) => self.admit(candidate),
            ToGuard::ResetBreaker(receipt) => self.reset(receipt),
        }
    }
}

impl Handler<Ping> for Guard {
    type Result = ();

    fn handle(&mut self, _: Ping, _: &mut Self::Context) {
        self.wires.answer_ping(NAME, false);
    }
}

impl Handler<Reload> for Guard {
    type Result = ();

    fn handle(&mut self, Reload(config): Reload, _: &mut Self::Context) {
        self.wires.breaker.borrow_mut().configure(config.relay.breaker_count, config.relay.breaker_window);
    }
}

#[cfg(debug_assertions)]
impl Handler<Fault> for Guard {
    type Result = ();

    fn handle(&mut self, fault: Fault, ctx: &mut Self::Context) {
        fault.strike(ctx);
    }
}
