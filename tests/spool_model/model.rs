//! Anything in any order, with crashes and a disk that fails at any moment.

use std::collections::HashMap;
use std::time::Duration;

use anna_relay::config::Side;
use anna_relay::handoff::{Id, SessionKey};
use anna_relay::queue::Pushed;
use proptest::prelude::*;

use super::sim::{EIO, EMFILE, ENOSPC, EROFS};
use super::world::World;

/// What can happen. Hand-offs are named by their number, among those there are.
#[derive(Clone, Debug)]
enum Action {
    Accept,
    AcceptAgain(usize),
    Reply(usize, bool),
    ReplyAgain(usize),
    Edit(usize),
    Land(Side, Landing),
    Side(Side, Option<u32>),
    Reset(Side),
    Pause(bool),
    Retry(usize),
    Cancel(usize),
    Prune(usize),
    Pass(u32),
    Crash(u64, Option<u64>),
    Fail(u64, i32),
    Break(i32),
    Heal,
}

#[derive(Clone, Copy, Debug)]
enum Landing {
    Accepted,
    Confirmed,
    Dropped,
    Refused,
    NotTried,
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Brain), Just(Side::Bot)]
}

fn landing() -> impl Strategy<Value = Landing> {
    use Landing::{Accepted, Confirmed, Dropped, NotTried, Refused};
    prop_oneof![4 => Just(Accepted), 4 => Just(Confirmed), 2 => Just(Dropped), 1 => Just(Refused), 1 => Just(NotTried)]
}

fn errno() -> impl Strategy<Value = i32> {
    prop_oneof![Just(ENOSPC), Just(EIO), Just(EROFS), Just(EMFILE)]
}

fn action() -> impl Strategy<Value = Action> {
    let which = 0..8_usize;
    prop_oneof![
        6 => Just(Action::Accept),
        1 => which.clone().prop_map(Action::AcceptAgain),
        6 => (which.clone(), any::<bool>()).prop_map(|(which, file)| Action::Reply(which, file)),
        1 => which.clone().prop_map(Action::ReplyAgain),
        2 => which.clone().prop_map(Action::Edit),
        12 => (side(), landing()).prop_map(|(side, landing)| Action::Land(side, landing)),
        5 => (side(), proptest::option::weighted(0.7, 0..3_u32)).prop_map(|(side, up)| Action::Side(side, up)),
        1 => side().prop_map(Action::Reset),
        2 => any::<bool>().prop_map(Action::Pause),
        2 => which.clone().prop_map(Action::Retry),
        2 => which.clone().prop_map(Action::Cancel),
        1 => which.prop_map(Action::Prune),
        4 => prop_oneof![0..3_u32, 0..90_u32, Just(2000_u32)].prop_map(Action::Pass),
        2 => (0..30_u64, proptest::option::of(0..1000_u64)).prop_map(|(n, cut)| Action::Crash(n, cut)),
        1 => (0..20_u64, errno()).prop_map(|(n, errno)| Action::Fail(n, errno)),
        1 => errno().prop_map(Action::Break),
        2 => Just(Action::Heal),
    ]
}

/// A world in which things happen.
struct Run {
    world: World,
    ids: Vec<(Id, String)>,
    /// The last message of the brain about each.
    said: HashMap<Id, String>,
    messages: u32,
    cut: Option<u64>,
}

impl Run {
    fn nth(&self, n: usize) -> Option<(Id, String)> {
        self.ids.get(n % self.ids.len().max(1)).cloned()
    }

    fn message(&mut self) -> String {
        self.messages += 1;
        format!("m{}-1", 1000 + self.messages)
    }

    fn act(&mut self, action: Action) {
        let n = match action {
            Action::AcceptAgain(n) | Action::Reply(n, _) | Action::ReplyAgain(n) | Action::Edit(n) => n,
            Action::Retry(n) | Action::Cancel(n) | Action::Prune(n) => n,
            _ => 0,
        };
        let about = self.nth(n);
        match (action, about) {
            (Action::Accept, _) => self.accept(),
            (Action::Land(side, landing), _) => self.land(side, landing),
            (Action::Side(side, up), _) => {
                // The third kind is a fakechat whose session is not known.
                let session = up.filter(|pid| *pid < 2).map(|pid| SessionKey { pid, started: 1 });
                self.world.side(side, up.is_some(), session);
            }
            (Action::Reset(side), _) => self.world.reset(side),
            (Action::Pause(pause), _) => self.world.pause(pause),
            (Action::Pass(seconds), _) => self.world.pass(Duration::from_secs(seconds.into())),
            (Action::Crash(n, cut), _) => {
                self.world.fs.crash_after(n);
                self.cut = cut;
            }
            (Action::Fail(n, errno), _) => self.world.fs.fail_after(n, errno),
            (Action::Break(errno), _) => self.world.fs.break_with(Some(errno)),
            (Action::Heal, _) => self.world.fs.break_with(None),
            (action, Some((id, made_by))) => self.act_on(action, id, &made_by),
            (_, None) => {}
        }
    }

    fn act_on(&mut self, action: Action, id: Id, made_by: &str) {
        let said = |world: &World| world.find(id).and_then(|(h, _)| h.results.last().cloned());
        match action {
            Action::AcceptAgain(_) => {
                self.world.pass(Duration::from_millis(1));
                assert_eq!(self.world.accept(made_by), id);
            }
            Action::Reply(_, file) => {
                let message = self.message();
                let files = if file { vec![self.world.fetched(&message)] } else { vec![] };
                self.world.reply(id, &message, &format!("answer ({message})"), false, files);
                self.said.insert(id, message);
            }
            Action::ReplyAgain(_) => {
                if let Some(message) = self.said.get(&id) {
                    self.world.reply(id, message, &format!("answer ({message})"), false, vec![]);
                }
            }
            Action::Edit(_) => {
                let text = format!("edited ({})", self.message());
                if let Some(said) = said(&self.world) {
                    self.world.reply(id, &said.message, &text, true, vec![]);
                }
            }
            Action::Retry(_) => self.world.retry(id),
            Action::Cancel(_) => self.world.cancel(id),
            Action::Prune(_) => self.world.prune(vec![id]),
            _ => {}
        }
    }

    fn accept(&mut self) {
        self.world.pass(Duration::from_millis(1));
        let made_by = self.message();
        let id = self.world.accept(&made_by);
        self.ids.push((id, made_by));
    }

    fn land(&mut self, side: Side, landing: Landing) {
        let failed = |permanent| Pushed::Failed { why: "HTTP 500".into(), permanent };
        let posting = self.world.posting(side);
        let confirming = self.world.flights.iter().find(|flight| flight.side == side && flight.accepted).cloned();
        let (flight, pushed) = match landing {
            Landing::Accepted => (posting, Pushed::Accepted),
            Landing::Confirmed => (confirming, Pushed::Confirmed),
            Landing::Dropped => (confirming.or(posting), failed(false)),
            Landing::Refused => (posting, failed(true)),
            Landing::NotTried => (posting, Pushed::NotTried),
        };
        if let Some(flight) = flight {
            self.world.land(flight.token, pushed);
        }
    }

    /// After each action.
    fn check(&mut self) {
        if self.world.fs.is_dead() {
            self.world.crash(self.cut);
            self.world.fs.break_with(None);
            assert!(self.world.open(), "it starts");
            self.world.check_whole();
        }
        self.world.check_wake();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: Some(Box::new(
        proptest::test_runner::FileFailurePersistence::Direct("tests/spool_model/regressions.txt"))),
        ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_whatever_happens(
        actions in proptest::collection::vec(action(), 1..150),
        prepares in any::<bool>(),
    ) {
        let world = World::new(prepares);
        let mut run = Run { world, ids: Vec::new(), said: HashMap::new(), messages: 0, cut: None };
        for action in actions {
            run.act(action);
            run.check();
        }
        let world = &mut run.world;
        world.fs.revive();
        world.fs.break_with(None);
        world.finish();
        world.kill();
        prop_assert!(world.open());
        world.check_whole();
    }
}
