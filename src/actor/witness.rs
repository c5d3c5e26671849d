//! The Witness: takes what the sessions' hooks brought to the inbox, and reads off their transcripts what they have
//! seen. So what was said while nobody listened is not lost, and a push is known to have arrived.

mod look;
mod obstacles;
mod when;

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use actix::prelude::*;

use crate::config::Side;
use crate::hook::What;
use crate::inbox::{self, Entry};
use crate::message::{Candidate, Ping, Reload, ToGuard, ToQueue, ToSupervisor, ToWitness};
use crate::queue::event::{Event, Reply, Sighted};
use crate::queue::{Incoming, Receipt};
use crate::receipts::Receipts;
use crate::spool::store::Store;
use crate::transcript::locate;
use crate::watch::Watch;

use super::wires::Wires;
use look::{Found, Look, Seen};
use obstacles::Obstacles;

#[cfg(debug_assertions)]
use crate::message::Fault;

/// The actor's name.
pub const NAME: &str = "witness";
/// At every so-manieth ping it looks even if nothing seems to have changed.
const LOOK_EVERY: u32 = 64;
/// So many sightings are kept for a Queue that falls.
const RECENT: usize = 200;

/// The actor.
pub struct Witness {
    wires: Rc<Wires>,
    /// At home while it is not looking.
    receipts: Option<Receipts>,
    /// The spool, once it was seen to be the one that is locked.
    store: Option<Arc<Store>>,
    /// Tells when something comes into the inbox.
    came: Option<Rc<Watch>>,
    /// Tells when something is written where the transcripts are.
    changes: Option<Rc<Watch>>,
    obstacles: Obstacles,
    /// What is being dealt with, by number.
    under_way: HashMap<u64, Arc<Entry>>,
    /// The number of the last one: its predecessors' are not among those of a Witness that was started again.
    last: u64,
    /// More waits than was taken.
    more: bool,
    /// It is to look again: it was to while it was looking, or has learnt of a transcript since.
    again: bool,
    /// What the transcripts showed lately, to be told again to a Queue that was started again.
    recent: VecDeque<Sighted>,
    /// The last look came to nothing, in whole or in part.
    failed: bool,
    /// When the inbox last changed, if it was looked into long enough after that.
    changed: Option<SystemTime>,
    pings: u32,
}

impl Witness {
    /// A witness.
    #[must_use]
    pub fn new(wires: Rc<Wires>) -> Self {
        let receipts = Receipts::open(&wires.config().paths.spool());
        for side in Side::BOTH {
            wires.hooked[side as usize].set(receipts.is_hooked(side));
        }
        Witness {
            last: wires.token_range(),
            wires,
            receipts: Some(receipts),
            store: None,
            came: None,
            changes: None,
            obstacles: Obstacles::default(),
            under_way: HashMap::new(),
            more: false,
            again: false,
            recent: VecDeque::new(),
            failed: false,
            changed: None,
            pings: 0,
        }
    }

    /// Looks at the inbox and the transcripts, on a thread that may wait for the disk.
    fn look(&mut self, ctx: &mut Context<Self>) {
        let Some(receipts) = self.receipts.take() else {
            self.again = true;
            return;
        };
        let look = Look {
            spool: self.wires.config().paths.spool(),
            lock: self.wires.lock,
            store: self.store.clone(),
            live: self.wires.live.borrow().clone(),
            now: self.wires.now().wall,
            untold: Arc::clone(&self.wires.sighted),
            stream: self.wires.stream.clone(),
        };
        let looking = tokio::task::spawn_blocking(move || look.find(receipts));
        ctx.spawn(looking.into_actor(self).map(|found, act, ctx| match found {
            Ok(found) => act.found(found, ctx),
            Err(_) => ctx.stop(),
        }));
    }

    fn found(&mut self, found: Found, ctx: &mut Context<Self>) {
        let Found { mut receipts, seen } = found;
        self.tell();
        let Some(Seen { store, listing, more }) = seen else {
            // At the next tick again.
            (self.receipts, self.changed, self.failed) = (Some(receipts), None, true);
            self.wires.supervisor.send(ToSupervisor::Stir);
            return;
        };
        self.store = Some(store);
        self.failed = listing.failed.is_some();
        if let Some(error) = &listing.failed {
            self.changed = None;
            tracing::warn!(%error, "looking into the inbox");
        }
        for new in self.obstacles.new_in(&listing) {
            self.wires.stream.warn(&new);
        }
        if !listing.put_aside.is_empty() {
            // To have it counted.
            self.wires.queue.send(ToQueue(Event::Tick));
        }
        let fresh = |entry: &Entry| !self.under_way.values().any(|known| known.path == entry.path);
        let entries: Vec<Entry> = listing.entries.into_iter().filter(fresh).collect();
        self.more = listing.more;
        for entry in entries {
            self.take(entry, &mut receipts);
        }
        for side in Side::BOTH {
            self.wires.hooked[side as usize].set(receipts.is_hooked(side));
        }
        self.receipts = Some(receipts);
        if self.renew(ctx) | more | std::mem::take(&mut self.again) {
            ctx.notify(Again);
        }
        if !self.is_told() {
            // Of what comes next only a tick tells.
            self.wires.supervisor.send(ToSupervisor::Stir);
        }
    }

    /// Tells the Queue what the transcripts have shown.
    fn tell(&mut self) {
        let sighted = std::mem::take(&mut *self.wires.sighted.lock().unwrap_or_else(PoisonError::into_inner));
        for sighted in sighted {
            self.wires.queue.send(ToQueue(Event::Sighted(sighted.clone())));
            self.recent.push_back(Sighted { new: false, ..sighted });
        }
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
    }

    /// Sends on what a hook brought.
    fn take(&mut self, entry: Entry, receipts: &mut Receipts) {
        let side = entry.record.side;
        receipts.hooked(side);
        if let Some(session) = &entry.record.session_id {
            let transcript = entry.record.transcript.as_deref().and_then(locate::from_hook);
            self.again |= receipts.learn(side, session, transcript, self.wires.now().wall);
        }
        self.last += 1;
        let (number, receipt) = (self.last, Receipt::Inbox(self.last));
        match (side, &entry.record.what) {
            (Side::Bot, What::Reply { message, text, reply_to, files }) => {
                let files = entry.incoming(files);
                let (message, text, reply_to) = (message.clone(), text.clone(), reply_to.clone());
                self.wires.guard.send(ToGuard::Admit(Candidate { receipt, message, text, reply_to, files }));
            }
            (Side::Brain, What::Reply { message, text, reply_to, files }) => {
                let files = entry.incoming(files);
                let text = text.clone().unwrap_or_default();
                self.reply(message.clone(), reply_to.clone(), false, text, files, receipt);
            }
            (Side::Brain, What::Edit { message, text }) => {
                self.reply(message.clone(), None, true, text.clone(), Vec::new(), receipt);
            }
            // That a session began or ended was learnt; what it does, the registry says.
            _ => return drop(tokio::task::spawn_blocking(self.forget(Arc::new(entry)))),
        }
        self.under_way.insert(number, Arc::new(entry));
    }

    /// Removes it, on another thread. Whether it is gone.
    fn forget(&self, entry: Arc<Entry>) -> impl FnOnce() -> bool + Send + use<> {
        let store = self.store.clone();
        move || {
            let removed = store.map_or(Ok(()), |store| inbox::remove(&store, &entry));
            removed.inspect_err(|error| tracing::warn!(%error, "removing what a hook brought")).is_ok()
        }
    }

    fn reply(
        &self,
        message: String,
        reply_to: Option<String>,
        edit: bool,
        text: String,
        files: Vec<Incoming>,
        receipt: Receipt,
    ) {
        let reply = Reply { message, reply_to, edit, text, files, found: None, receipt };
        self.wires.queue.send(ToQueue(Event::Reply(reply)));
    }
}

/// There is more to look at.
#[derive(Message)]
#[rtype(result = "()")]
struct Again;

impl Actor for Witness {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.tell();
        // Before the first look: what comes after that is told.
        self.renew(ctx);
        self.look(ctx);
    }
}

impl Handler<Again> for Witness {
    type Result = ();

    fn handle(&mut self, _: Again, ctx: &mut Self::Context) {
        self.look(ctx);
    }
}

impl Handler<ToWitness> for Witness {
    type Result = ();

    fn handle(&mut self, message: ToWitness, ctx: &mut Self::Context) {
        match message {
            ToWitness::Taken(number) => {
                let Some(entry) = self.under_way.get(&number).cloned() else { return };
                // Until it is gone it is under way: else a look would take it for a new one.
                let forgetting = tokio::task::spawn_blocking(self.forget(entry));
                ctx.spawn(forgetting.into_actor(self).map(move |gone, act, ctx| {
                    act.under_way.remove(&number);
                    if act.more && act.under_way.is_empty() && matches!(gone, Ok(true)) {
                        act.look(ctx);
                    }
                }));
            }
            ToWitness::Resend => {
                for sighted in &self.recent {
                    self.wires.queue.send(ToQueue(Event::Sighted(sighted.clone())));
                }
                self.under_way.clear();
                self.look(ctx);
            }
        }
    }
}

impl Handler<Ping> for Witness {
    type Result = ();

    /// The Supervisor's ping is also the time to look, if there seems to be something to see that no watch told of.
    fn handle(&mut self, _: Ping, ctx: &mut Self::Context) {
        self.wires.answer_ping(NAME, !self.is_told());
        self.pings = self.pings.wrapping_add(1);
        if self.receipts.is_none() {
            return;
        }
        let renewed = self.renew(ctx);
        let Some(receipts) = &self.receipts else { return };
        let grown = receipts.has_grown() || self.is_met(receipts);
        if self.has_news() || grown || renewed || self.pings.is_multiple_of(LOOK_EVERY) {
            self.look(ctx);
        }
    }
}

impl Handler<Reload> for Witness {
    type Result = ();

    fn handle(&mut self, _: Reload, _: &mut Self::Context) {}
}

#[cfg(debug_assertions)]
impl Handler<Fault> for Witness {
    type Result = ();

    fn handle(&mut self, fault: Fault, ctx: &mut Self::Context) {
        fault.strike(ctx);
    }
}
