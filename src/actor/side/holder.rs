//! Whose fakechat it is: asked before a websocket is opened, once it is open and before each push, and told by the
//! OrphanReaper's sweeps, for a session can end without a word while its websocket stays open.

use std::rc::Rc;
use std::time::Duration;

use actix::prelude::*;

use crate::config::{Holder, Side};
use crate::control::wire::SideState;
use crate::message::Seen;
use crate::port::Verdict;

use super::super::wires::Wires;
use super::{Bar, Peer, Role, SideActor};

impl<R: Role> SideActor<R> {
    /// Who is at the port, if it may be dealt with.
    pub(super) async fn verdict(wires: &Rc<Wires>) -> Result<Option<Peer>, Bar> {
        if wires.config().relay.holder == Holder::Any {
            return Ok(None);
        }
        admit(R::SIDE, &Rc::clone(wires).judge(R::SIDE).await).map(Some)
    }

    /// The holder of the port is not dealt with. One that cannot be told for a moment is what it was before.
    pub(super) fn bar(&mut self, bar: Bar) {
        let known = self.barred.as_ref().is_some_and(|before| before.state != SideState::Offline);
        if bar.sure || !known {
            self.barred = Some(bar);
        }
    }

    /// The holder of the port is not to be dealt with any more.
    pub(super) fn shut_out(&mut self, bar: Bar, ctx: &mut Context<Self>) {
        let (why, orphan) = (bar.why.clone(), bar.state == SideState::Orphan);
        self.bar(bar);
        if orphan {
            self.hear_out(ctx);
        }
        self.lose(why, ctx);
    }

    /// Nothing is pushed to a session that has ended. What it said before is still read.
    fn hear_out(&mut self, ctx: &mut Context<Self>) {
        let Some(link) = self.link.take() else { return };
        let epoch = link.epoch;
        self.let_go(ctx);
        self.ended = Some(link);
        ctx.run_later(LAST_WORDS, move |act, ctx| {
            if act.ended.as_ref().is_some_and(|link| link.epoch == epoch) {
                act.let_go(ctx);
            }
        });
    }

    /// All is read of a session that has ended.
    pub(super) fn let_go(&mut self, ctx: &mut Context<Self>) {
        if let Some(link) = self.ended.take() {
            ctx.cancel_future(link.reader);
        }
    }

    /// A sweep saw who holds the port: if that is not who the websocket is with, it has to go.
    pub(super) fn seen(&mut self, Seen { at, verdict, deaf }: Seen, ctx: &mut Context<Self>) {
        if self.closing || self.wires.config().relay.holder == Holder::Any {
            return;
        }
        self.deaf = deaf;
        let stale = self.link.as_ref().is_some_and(|link| at < link.since);
        let known = self.link.as_ref().map(|link| link.peer);
        match admit(R::SIDE, &verdict) {
            _ if stale => {}
            Ok(peer) => {
                self.barred = None;
                // Without a peer it was opened while holders were not told apart.
                if known.is_some_and(|known| known != Some(peer)) {
                    return self.lose(CHANGED.to_owned(), ctx);
                }
            }
            Err(bar) if known.is_some() => return self.shut_out(bar, ctx),
            Err(bar) => self.bar(bar),
        }
        self.show();
    }
}

/// How long is read, after a session's end, what it had said: that lies in the kernel, and is had at once.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a websocket is let go of, or a push not made, though there is a live session.
pub(super) const CHANGED: &str = "another session's fakechat holds the port now";

/// Whether that holder of the port may be dealt with; else what it is instead, and what to do.
fn admit(side: Side, verdict: &Verdict) -> Result<Peer, Bar> {
    let bar = |state, why| Err(Bar { state, why, sure: true });
    match verdict {
        Verdict::Live { listener, session } => Ok(Peer { listener: listener.key(), session: session.key() }),
        Verdict::Free => bar(SideState::Offline, "nobody listens on the port".to_owned()),
        Verdict::Orphan(orphan) => {
            let pid = orphan.listener.pid;
            let why = format!("the session of the fakechat on the port (pid {pid}) has ended; the bridge ends it");
            bar(SideState::Orphan, why)
        }
        Verdict::Foreign { pid, why, .. } => {
            let who = pid.map_or_else(|| "what holds the port".to_owned(), |pid| format!("pid {pid}"));
            bar(SideState::Foreign, format!("{why}: end {who}, or set relay.{side}_port to another port"))
        }
        Verdict::Unknown { why } => Err(Bar {
            state: SideState::Offline,
            why: format!(
                "whose fakechat it is cannot be told ({why}); if this machine cannot tell, set relay.holder = \"any\""
            ),
            sure: false,
        }),
    }
}
