//! The OrphanReaper: says who holds the two ports, and ends an orphan that does.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::prelude::*;

use crate::config::{Holder, Side};
use crate::control::wire::{HolderStatus, SessionStatus};
use crate::message::{Judge, Ping, Reload};
use crate::port::{self, Orphan, Verdict};

use super::wires::Wires;

#[cfg(debug_assertions)]
use crate::message::Fault;

/// The actor's name.
pub const NAME: &str = "orphan_reaper";
/// How long a verdict is waited for: it takes less than a millisecond, or some 10 where all processes are looked at.
pub const JUDGE_WITHIN: Duration = Duration::from_secs(5);

/// The actor.
pub struct OrphanReaper {
    wires: Rc<Wires>,
    judge: Arc<Mutex<port::Judge>>,
    /// Of each side: what it was last warned of, so that each is said once.
    warned: [Option<String>; 2],
    ending: [bool; 2],
}

impl OrphanReaper {
    /// A reaper.
    #[must_use]
    pub fn new(wires: Rc<Wires>) -> Self {
        let judge = Arc::new(Mutex::new(port::Judge::of_this_user()));
        OrphanReaper { wires, judge, warned: [None, None], ending: [false, false] }
    }

    fn look(&self, side: Side) -> impl Future<Output = Verdict> + use<> {
        let (judge, port) = (Arc::clone(&self.judge), self.wires.config().relay.port(side));
        async move {
            let looking =
                tokio::task::spawn_blocking(move || judge.lock().unwrap_or_else(PoisonError::into_inner).judge(port));
            looking.await.unwrap_or_else(|_| Verdict::Unknown { why: "looking for it failed".to_owned() })
        }
    }

    fn saw(&mut self, side: Side, verdict: &Verdict, ctx: &mut Context<Self>) {
        self.show(side, verdict);
        if self.wires.config().relay.holder == Holder::Any {
            return;
        }
        let warning = match verdict {
            Verdict::Orphan(orphan) => {
                self.end(side, orphan.clone(), ctx);
                Some(format!(
                    "an orphaned fakechat holds the {side}'s port (pid {}): its session has ended; it is being ended",
                    orphan.listener.pid
                ))
            }
            Verdict::Foreign { pid, command, why } => {
                let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
                let command = command.as_deref().map(|command| format!(", {command}")).unwrap_or_default();
                Some(format!("a stranger holds the {side}'s port{pid}{command}: {why}; nothing is said to it"))
            }
            _ => None,
        };
        let before = std::mem::replace(&mut self.warned[side as usize], warning.clone());
        if let Some(warning) = warning.filter(|warning| before.as_ref() != Some(warning)) {
            self.wires.stream.warn(&warning);
        }
    }

    fn show(&self, side: Side, verdict: &Verdict) {
        let holder = |process: &port::Process| HolderStatus { pid: process.pid, command: process.command() };
        let mut board = self.wires.board.borrow_mut();
        let shown = board.side(side);
        (shown.holder, shown.session) = match verdict {
            Verdict::Live { listener, session } => {
                let activity = port::registry::activity(session.key());
                let (status, waiting_for) = activity.map(|entry| (entry.status, entry.waiting_for)).unwrap_or_default();
                (Some(holder(listener)), Some(SessionStatus { pid: session.pid, status, waiting_for }))
            }
            Verdict::Orphan(orphan) => (Some(holder(&orphan.listener)), None),
            Verdict::Foreign { pid: Some(pid), command, .. } => {
                (Some(HolderStatus { pid: *pid, command: command.clone().unwrap_or_default() }), None)
            }
            _ => (None, None),
        };
    }

    fn end(&mut self, side: Side, orphan: Orphan, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.ending[side as usize], true) {
            return;
        }
        let port = self.wires.config().relay.port(side);
        let ending = tokio::task::spawn_blocking(move || port::end::end(&orphan, port));
        ctx.spawn(ending.into_actor(self).map(move |ended, act, _| {
            act.ending[side as usize] = false;
            match ended {
                Ok(Ok(ended)) => {
                    act.wires.stream.note(&format!("the orphan on the {side}'s port was ended ({:?})", ended.pids))
                }
                Ok(Err(error)) => {
                    act.wires.stream.warn(&format!("the orphan on the {side}'s port could not be ended: {error}"))
                }
                Err(_) => tracing::error!("ending an orphan failed"),
            }
        }));
    }
}

impl Actor for OrphanReaper {
    type Context = Context<Self>;
}

impl Handler<Judge> for OrphanReaper {
    type Result = ResponseActFuture<Self, Verdict>;

    fn handle(&mut self, Judge(side): Judge, _: &mut Self::Context) -> Self::Result {
        Box::pin(self.look(side).into_actor(self).map(move |verdict, act, ctx| {
            act.saw(side, &verdict, ctx);
            verdict
        }))
    }
}

impl Handler<Ping> for OrphanReaper {
    type Result = ();

    /// The Supervisor's ping is also the time to sweep.
    fn handle(&mut self, _: Ping, ctx: &mut Self::Context) {
        self.wires.answer_ping(NAME);
        for side in Side::BOTH {
            let looking = self.look(side).into_actor(self);
            ctx.spawn(looking.map(move |verdict, act, ctx| act.saw(side, &verdict, ctx)));
        }
    }
}

impl Handler<Reload> for OrphanReaper {
    type Result = ();

    fn handle(&mut self, _: Reload, _: &mut Self::Context) {}
}

#[cfg(debug_assertions)]
impl Handler<Fault> for OrphanReaper {
    type Result = ();

    fn handle(&mut self, fault: Fault, ctx: &mut Self::Context) {
        fault.strike(ctx);
    }
}
