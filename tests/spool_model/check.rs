//! What has to hold of a spool after a start, and of a relay that is left to finish its work.

use std::collections::BTreeMap;
use std::time::Duration;

use anna_relay::config::Side;
use anna_relay::handoff::life::State;
use anna_relay::queue::Pushed;

use super::world::World;

impl World {
    /// After a start: each hand-off lies in one folder, the one its content says, with nothing beside it; what was
    /// promised is there; and another start finds nothing to do.
    pub fn check_whole(&mut self) {
        let disk = World::on_disk(&self.fs);
        let mut folders = BTreeMap::new();
        for (h, lies) in &disk {
            assert_eq!(folders.insert(h.id, lies), None, "{} lies in two folders", h.id);
            assert_eq!(h.state(), *lies, "{} lies in the wrong folder", h.id);
        }
        self.check_promises(&disk);
        for path in self.fs.files().keys() {
            let odd = ["tmp", "corrupt"].iter().any(|dir| path.parent().is_some_and(|parent| parent.ends_with(dir)));
            assert!(!odd, "{} was left over", path.display());
        }
        if let Some(paused) = self.paused {
            assert_eq!(self.snapshot.paused.is_some(), paused, "whether it is paused");
        }
        self.check_counts();
    }

    /// The snapshot says what lies in the folders.
    pub fn check_counts(&mut self) {
        self.be_listed();
        assert!(self.snapshot.counted || self.spooler.is_none());
        let disk = World::on_disk(&self.fs);
        let count = |state| disk.iter().filter(|(_, lies)| *lies == state).count();
        let said = self.snapshot.counts;
        for (state, said) in [
            (State::New, said.new),
            (State::Brain, said.brain),
            (State::Out, said.out),
            (State::Done, said.done),
            (State::Failed, said.failed),
        ] {
            assert_eq!(count(state), said, "how many lie in {state}/");
        }
    }

    /// Nothing that could be done is left undone without a time set for it.
    pub fn check_wake(&self) {
        if self.spooler.is_none() {
            return;
        }
        if let Some(at) = self.wake_at {
            assert!(at >= self.now.mono);
            return;
        }
        let waits = |side| self.is_online(side) && self.posting(side).is_none();
        for (h, _) in World::on_disk(&self.fs) {
            let brain = h.wants_push(None)
                && self.snapshot.paused.is_none()
                && !self.is_in_flight(Side::Brain, &h.id.to_string());
            assert!(!(waits(Side::Brain) && brain), "{} is not pushed, and no time is set for it", h.id);
            let untold = h.results.iter().any(|r| r.told.is_none()) || h.owes_failure();
            let bot = untold && !self.is_in_flight(Side::Bot, &h.id.to_string());
            assert!(!(waits(Side::Bot) && bot), "the bot is not told of {}, and no time is set for it", h.id);
        }
    }

    fn is_in_flight(&self, side: Side, id: &str) -> bool {
        self.flights.iter().any(|flight| flight.side == side && flight.text.contains(id))
    }

    /// Lets all go well from here on, until nothing is left to do: all is told then.
    pub fn finish(&mut self) {
        self.pause(false);
        for side in [Side::Brain, Side::Bot] {
            if !self.is_online(side) {
                self.side(side, true, None);
            }
        }
        for _ in 0..500 {
            if let Some(flight) = self.flights.first().cloned() {
                self.land(flight.token, Pushed::Accepted);
                self.land(flight.token, Pushed::Confirmed);
                continue;
            }
            match self.wake_at {
                Some(at) if at < self.now.mono + Duration::from_secs(900) => self.pass(at - self.now.mono),
                _ => match World::on_disk(&self.fs).iter().find(|(h, _)| h.waits_for_result()) {
                    Some((h, _)) => {
                        let message = format!("m9-{}", self.now.mono.as_nanos());
                        self.reply(h.id, &message, &format!("done at last ({message})"), false, vec![]);
                    }
                    None => break,
                },
            }
        }
        assert!(self.flights.is_empty() && self.snapshot.idle, "still busy: {:?}", self.flights);
        for (h, lies) in World::on_disk(&self.fs) {
            assert!(!lies.is_open(), "{} is left in {lies}/: {h:?}", h.id);
        }
        self.check_promises(&World::on_disk(&self.fs));
        self.check_counts();
    }
}
