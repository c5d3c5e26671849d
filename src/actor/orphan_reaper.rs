//! The OrphanReaper: says who holds the two ports, tells the sides when that changes, and ends an orphan.
//!
//! A side asks ([`Judge`]) whenever it is about to act. Beside that its port is swept when its session ends, for that may
//! leave an open websocket behind while there is nothing to push, and at each ping of the Supervisor.

mod activity;
mod deaf;

use std::io;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use actix::prelude::*;
use tokio::time::sleep;

use crate::config::{Holder, Side};
use crate::control::wire::HolderStatus;
use crate::handoff::SessionKey;
use crate::message::{Judge, Ping, Reload, Seen, ToSide};
use crate::port::end::EndCause;
use crate::port::exit::exit;
use crate::port::registry::{Entry, Mark};
use crate::port::{self, Orphan, Session, Verdict};
use crate::watch::Watch;

use deaf::Deaf;

use super::wires::Wires;

#[cfg(debug_assertions)]
use crate::message::Fault;

/// The actor's name.
pub const NAME: &str = "orphan_reaper";
/// How long a verdict is waited for: it takes less than a millisecond, or some 10 where all processes are looked at.
pub const JUDGE_WITHIN: Duration = Duration::from_secs(5);
/// How long after a session's end its fakechat is left alone: it may still be telling what the session said.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The actor.
pub struct OrphanReaper {
    wires: Rc<Wires>,
    ports: [Port; 2],
    /// Tells when what Claude Code says of its sessions changes.
    registry: Option<Rc<Watch>>,
}

/// What is known of a side's port.
#[derive(Default)]
struct Port {
    /// Whether a side asked since the last sweep, and was told something other than a live session.
    asked: bool,
    /// What was last warned of, so that each is said once.
    warned: Option<String>,
    /// The orphan that is being ended.
    ending: bool,
    /// The orphan that could not be ended, so that this too is said once.
    survivor: Option<SessionKey>,
    /// The live session, with what it was last seen to do.
    session: Option<(SessionKey, Option<Entry>)>,
    /// Waits for its end, where that is told.
    exit: Option<SpawnHandle>,
    /// Tells whether what it does has to be read anew.
    mark: Option<Mark>,
    deaf: Deaf,
}

impl OrphanReaper {
    /// A reaper.
    #[must_use]
    pub fn new(wires: Rc<Wires>) -> Self {
        OrphanReaper { wires, ports: Default::default(), registry: None }
    }

    /// Whether what happens next at the ports is told: two sessions go on, or end.
    fn is_told(&self) -> bool {
        self.ports.iter().all(|port| port.session.is_some() && port.exit.is_some())
            && self.registry.as_ref().is_some_and(|watch| watch.is_whole())
    }

    fn port(&mut self, side: Side) -> &mut Port {
        &mut self.ports[side as usize]
    }

    /// Who holds the port: at once where nothing has changed, else by a look that may block.
    fn look(&self, side: Side) -> impl Future<Output = Verdict> + use<> {
        let (judge, port) = (Arc::clone(&self.wires.judge), self.wires.config().relay.port(side));
        async move {
            let still = judge.try_lock().ok().and_then(|judge| judge.still(port));
            if let Some(verdict) = still {
                return verdict;
            }
            let looking =
                tokio::task::spawn_blocking(move || judge.lock().unwrap_or_else(PoisonError::into_inner).judge(port));
            looking.await.unwrap_or_else(|_| Verdict::Unknown { why: "looking for it failed".to_owned() })
        }
    }

    /// Looks, and tells the side too.
    fn sweep(&self, side: Side, ctx: &mut Context<Self>) {
        let at = self.wires.now().mono;
        ctx.spawn(self.look(side).into_actor(self).map(move |verdict, act, ctx| {
            act.saw(side, &verdict, ctx);
            let deaf = act.port(side).deaf.shown();
            act.wires.side(side).send(ToSide::Seen(Box::new(Seen { at, verdict, deaf })));
        }));
    }

    fn saw(&mut self, side: Side, verdict: &Verdict, ctx: &mut Context<Self>) {
        self.show(side, verdict, ctx);
        if self.wires.config().relay.holder == Holder::Any {
            return;
        }
        if let Verdict::Orphan(orphan) = verdict {
            self.end(side, orphan, ctx);
        }
        let warning = match verdict {
            Verdict::Orphan(orphan) => Some(format!(
                "an orphaned fakechat holds the {side}'s port (pid {}): its session has ended; it is being ended",
                orphan.listener.pid
            )),
            Verdict::Foreign { pid, command, why } => {
                let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
                let command = command.as_deref().map(|command| format!(", {command}")).unwrap_or_default();
                Some(format!("a stranger holds the {side}'s port{pid}{command}: {why}; nothing is said to it"))
            }
            // Who cannot be seen for a moment may be the same as before.
            Verdict::Unknown { .. } => return,
            Verdict::Free | Verdict::Live { .. } => None,
        };
        self.look_for_deaf(side, *verdict == Verdict::Free, ctx);
        let before = std::mem::replace(&mut self.port(side).warned, warning.clone());
        if let Some(warning) = warning.filter(|warning| before.as_ref() != Some(warning)) {
            self.wires.stream.warn(&warning);
        }
    }

    fn show(&mut self, side: Side, verdict: &Verdict, ctx: &mut Context<Self>) {
        let holder = |process: &port::Process| HolderStatus { pid: process.pid, command: process.command() };
        let (holder, session) = match verdict {
            Verdict::Live { listener, session } => (Some(holder(listener)), Some(session)),
            Verdict::Orphan(orphan) => (Some(holder(&orphan.listener)), None),
            Verdict::Foreign { pid: Some(pid), command, .. } => {
                (Some(HolderStatus { pid: *pid, command: command.clone().unwrap_or_default() }), None)
            }
            _ => (None, None),
        };
        self.wires.board.borrow_mut().side(side).holder = holder;
        let key = session.map(Session::key);
        if self.port(side).session.as_ref().map(|(key, _)| *key) != key {
            let exit = key.map(|session| self.wait_for_exit(side, session, ctx));
            let port = self.port(side);
            (port.session, port.mark) = (key.map(|key| (key, None)), None);
            if let Some(before) = std::mem::replace(&mut port.exit, exit) {
                ctx.cancel_future(before);
            }
            self.read_activity(ctx);
        }
        self.show_session(side);
    }

    /// Has the port swept when its session has ended, and its last words are said.
    fn wait_for_exit(&self, side: Side, session: SessionKey, ctx: &mut Context<Self>) -> SpawnHandle {
        let ended = async move {
            exit(session.pid).await?;
            sleep(LAST_WORDS).await;
            io::Result::Ok(())
        };
        ctx.spawn(ended.into_actor(self).map(move |ended, act, ctx| match ended {
            Ok(()) => act.sweep(side, ctx),
            Err(error) => {
                tracing::debug!(%error, "waiting for the end of a session; the next sweep will tell");
                act.port(side).exit = None;
            }
        }))
    }

    fn end(&mut self, side: Side, orphan: &Orphan, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.port(side).ending, true) {
            return;
        }
        let (port, orphan) = (self.wires.config().relay.port(side), orphan.clone());
        let key = orphan.listener.key();
        let ending = tokio::task::spawn_blocking(move || port::end::end(&orphan, port));
        ctx.spawn(ending.into_actor(self).map(move |ended, act, ctx| {
            act.port(side).ending = false;
            let stream = &act.wires.stream;
            match ended {
                Ok(Ok(ended)) if ended.pids.is_empty() => {
                    stream.note(&format!("the orphan on the {side}'s port (pid {}) is gone", key.pid));
                }
                Ok(Ok(ended)) => {
                    let how = if ended.forced { "; it took SIGKILL" } else { "" };
                    stream.note(&format!("the orphan on the {side}'s port was ended (pid {}{how})", pids(&ended.pids)));
                }
                // It is not what it was any more, or not alone: the next look says what now is.
                Ok(Err(error)) if matches!(error.cause, EndCause::Changed(_) | EndCause::StillHeld) => {
                    tracing::info!(side = side.name(), %error, "an orphan was not ended");
                }
                Ok(Err(error)) => {
                    if act.port(side).survivor.replace(key) != Some(key) {
                        act.wires.stream.warn(&format!(
                            "the orphan on the {side}'s port could not be ended: {error}; `kill -9 {}` may",
                            key.pid
                        ));
                    }
                    return;
                }
                Err(_) => return tracing::error!("ending an orphan failed"),
            }
            act.sweep(side, ctx);
        }));
    }
}

fn pids(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

impl Actor for OrphanReaper {
    type Context = Context<Self>;
}

impl Handler<Judge> for OrphanReaper {
    type Result = ResponseActFuture<Self, Verdict>;

    fn handle(&mut self, Judge(side): Judge, _: &mut Self::Context) -> Self::Result {
        Box::pin(self.look(side).into_actor(self).map(move |verdict, act, ctx| {
            act.port(side).asked = !matches!(verdict, Verdict::Live { .. });
            act.saw(side, &verdict, ctx);
            verdict
        }))
    }
}

impl Handler<Ping> for OrphanReaper {
    type Result = ();

    /// The Supervisor's ping is also the time to sweep.
    fn handle(&mut self, _: Ping, ctx: &mut Self::Context) {
        for side in Side::BOTH {
            // A side without a websocket looks itself, about as often.
            if !std::mem::take(&mut self.port(side).asked) {
                self.sweep(side, ctx);
            }
        }
        self.read_activity(ctx);
        let any = self.wires.config().relay.holder == Holder::Any;
        self.wires.answer_ping(NAME, !any && !self.is_told());
    }
}

impl Handler<Reload> for OrphanReaper {
    type Result = ();

    /// Others may be dealt with now than before.
    fn handle(&mut self, _: Reload, ctx: &mut Self::Context) {
        for side in Side::BOTH {
            self.sweep(side, ctx);
        }
    }
}

#[cfg(debug_assertions)]
impl Handler<Fault> for OrphanReaper {
    type Result = ();

    fn handle(&mut self, fault: Fault, ctx: &mut Self::Context) {
        fault.strike(ctx);
    }
}
