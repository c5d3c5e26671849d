//! What the live sessions are doing, read from Claude Code's registry at each ping, and on Linux as soon as that changes.

use std::rc::Rc;

use actix::prelude::*;

use crate::config::Side;
use crate::control::wire::{Activity, SessionStatus};
use crate::handoff::SessionKey;
use crate::message::ToQueue;
use crate::port::registry::{self, Entry, Mark};
use crate::queue::event::{Doing, Event};
use crate::watch::{News, Watch};

use super::super::wires::Live;
use super::OrphanReaper;

impl OrphanReaper {
    /// Watches the registry, if there are sessions, and if it can.
    fn watch(&mut self, ctx: &mut Context<Self>) {
        let Some(folder) = registry::folder().filter(|_| self.ports.iter().any(|port| port.session.is_some())) else {
            return;
        };
        if self.registry.is_none() {
            let watch = Watch::new(News::Changed).inspect_err(|error| tracing::debug!(%error, "watching the registry"));
            let Ok(watch) = watch.map(Rc::new) else { return };
            self.wait_for(Rc::clone(&watch), ctx);
            self.registry = Some(watch);
        }
        if let Some(watch) = &self.registry {
            watch.set([folder.as_path()]);
        }
    }

    /// Has the registry read when it changes.
    fn wait_for(&self, watch: Rc<Watch>, ctx: &mut Context<Self>) {
        let waiting = async move { watch.told().await.map(|()| watch) };
        ctx.spawn(waiting.into_actor(self).map(|told, act, ctx| match told {
            Ok(watch) => {
                act.read_activity(ctx);
                act.wait_for(watch, ctx);
            }
            Err(error) => {
                tracing::debug!(%error, "watching the registry");
                act.registry = None;
            }
        }));
    }

    pub(super) fn show_session(&mut self, side: Side) {
        let session = self.port(side).session.as_ref().map(|(key, entry)| SessionStatus {
            pid: key.pid,
            status: entry.as_ref().and_then(|entry| entry.status),
            waiting_for: entry.as_ref().and_then(|entry| entry.waiting_for.clone()),
        });
        self.wires.board.borrow_mut().side(side).session = session;
    }

    /// Reads what the live sessions are doing, as far as that may have changed.
    pub(super) fn read_activity(&mut self, ctx: &mut Context<Self>) {
        self.watch(ctx);
        for side in Side::BOTH {
            let Some((key, known)) = self.port(side).session.clone() else { continue };
            let mark = Mark::of(key);
            if mark.is_some() && self.port(side).mark == mark {
                self.does(side, key, known);
                continue;
            }
            let reading = tokio::task::spawn_blocking(move || registry::activity(key));
            ctx.spawn(reading.into_actor(self).map(move |read, act, _| {
                let Ok(entry) = read else { return };
                if act.port(side).session.as_ref().is_some_and(|(now, _)| *now == key) {
                    act.port(side).mark = mark;
                }
                act.does(side, key, entry);
            }));
        }
    }

    fn does(&mut self, side: Side, key: SessionKey, entry: Option<Entry>) {
        let Some((_, known)) = self.port(side).session.as_mut().filter(|(now, _)| *now == key) else { return };
        // A wait is told again and again: a Queue that was started again has to hear of it too.
        let waits = entry.as_ref().is_some_and(|entry| entry.status == Some(Activity::Waiting));
        let news = waits || (entry.is_some() && *known != entry);
        *known = entry.clone();
        let live = entry.as_ref().map(|entry| Live { session_id: entry.session_id.clone(), cwd: entry.cwd.clone() });
        if live.is_some() {
            self.wires.live.borrow_mut()[side as usize] = live;
        }
        self.show_session(side);
        if let Some(Entry { status, since, waiting_for, .. }) = entry.filter(|_| news && side == Side::Brain) {
            self.wires.queue.send(ToQueue(Event::Brain(Doing { session: key, status, since, waiting_for })));
        }
    }
}
