//! How actors reach each other: a slot for each, which the Supervisor fills anew whenever it starts one again. What is
//! sent into an empty slot is dropped; whoever cares sends it again when told (`Resend`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use actix::prelude::*;
use time::OffsetDateTime;
use tokio::sync::watch;

use crate::config::{Config, Side};
use crate::control::wire::{BreakerStatus, Status};
use crate::guard::Breaker;
use crate::message::{Judge, ToControl, ToGuard, ToQueue, ToSide, ToSupervisor, ToWitness};
use crate::port::Verdict;
use crate::queue::event::Sighted;
use crate::queue::{Event, Now, Receipt};
use crate::spool::lock::Place;
use crate::stream::Stream;

use super::board::Board;
use super::intake::Intake;

#[cfg(debug_assertions)]
use crate::message::Fault;

/// The way to one actor.
pub struct Slot<M: Message + Send>(RefCell<Option<Recipient<M>>>)
where
    M::Result: Send;

impl<M: Message + Send> Default for Slot<M>
where
    M::Result: Send,
{
    fn default() -> Self {
        Slot(RefCell::new(None))
    }
}

impl<M: Message + Send + 'static> Slot<M>
where
    M::Result: Send,
{
    /// Sends, if there is anybody.
    pub fn send(&self, message: M) {
        if let Some(recipient) = &*self.0.borrow() {
            recipient.do_send(message);
        }
    }

    /// Puts an actor into the slot.
    pub fn fill(&self, recipient: Recipient<M>) {
        self.0.replace(Some(recipient));
    }
}

/// A number that can be waited for.
#[derive(Debug)]
pub struct Count(watch::Sender<usize>);

impl Default for Count {
    fn default() -> Self {
        Count(watch::channel(0).0)
    }
}

impl Count {
    /// One more, until what this returns is dropped.
    #[must_use]
    pub fn one(self: &Rc<Self>) -> One {
        self.0.send_modify(|count| *count += 1);
        One(Rc::clone(self))
    }

    /// Waits until it is as wanted. True: the sender, whose end alone could stop the wait, is ours.
    pub async fn wait_for(&self, wanted: impl Fn(&usize) -> bool) -> bool {
        self.0.subscribe().wait_for(wanted).await.is_ok()
    }
}

/// One of a [`Count`].
#[derive(Debug)]
pub struct One(Rc<Count>);

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

/// A live session, by its own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// Claude's own id of it.
    pub session_id: String,
    /// Its working directory.
    pub cwd: PathBuf,
}

/// Tells the time; it may go to other threads.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// The time.
    #[must_use]
    pub fn now(self) -> Now {
        Now { mono: self.0.elapsed(), wall: OffsetDateTime::now_utc() }
    }
}

/// See [`Wires::spool_guard`].
pub struct SpoolGuard(Arc<Mutex<u64>>);

impl Drop for SpoolGuard {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = u64::MAX;
    }
}

/// What all actors share. It outlives each of them.
pub struct Wires {
    /// The way to the Queue.
    pub queue: Slot<ToQueue>,
    /// The way to the Guard.
    pub guard: Slot<ToGuard>,
    /// The way to the OrphanReaper.
    pub reaper: RefCell<Option<Recipient<Judge>>>,
    /// The way to Control.
    pub control: Slot<ToControl>,
    /// The way to the Supervisor.
    pub supervisor: Slot<ToSupervisor>,
    /// How many requests at the control socket are being answered.
    pub answering: Rc<Count>,
    /// The way to the Witness.
    pub witness: Slot<ToWitness>,
    /// The sides' live sessions, as far as they are known.
    pub live: RefCell<[Option<Live>; 2]>,
    /// Which sides' sessions have hooks that tell what was said.
    pub hooked: [Cell<bool>; 2],
    /// What the transcripts have shown and the Queue was not told yet: it outlives the Witness that read it.
    pub sighted: Arc<Mutex<Vec<Sighted>>>,
    sides: [Slot<ToSide>; 2],
    intakes: [RefCell<Intake>; 2],
    /// What `status` shows.
    pub board: RefCell<Board>,
    /// Whether the bridge stops: a Queue that is started again begins nothing then.
    pub stopping: Cell<bool>,
    /// The breaker: a Guard that is started again stays tripped.
    pub breaker: RefCell<Breaker>,
    /// What the Guard has to say to the bot and the bot was not told yet, by number: it outlives the Queue.
    pub notices: RefCell<BTreeMap<u64, String>>,
    /// The lock on the spool.
    pub lock: Place,
    /// Held by whoever works on the spool, with the number of the Queue whose it is: one that fell may have left a
    /// thread there.
    pub spool: Arc<Mutex<u64>>,
    /// What is remembered of the ports: an OrphanReaper that is started again knows the sessions that were there.
    pub judge: Arc<Mutex<crate::port::Judge>>,
    /// Anna's record of events.
    pub stream: Stream,
    config: RefCell<Arc<Config>>,
    next_token: Cell<u64>,
    next_notice: Cell<u64>,
    clock: Clock,
    /// By name: the way to have an actor fail.
    #[cfg(debug_assertions)]
    pub faults: RefCell<std::collections::HashMap<&'static str, Recipient<Fault>>>,
}

impl Wires {
    /// Empty slots.
    #[must_use]
    pub fn new(config: Arc<Config>, stream: Stream, lock: Place) -> Self {
        let breaker = Breaker::new(config.relay.breaker_count, config.relay.breaker_window);
        Wires {
            queue: Slot::default(),
            guard: Slot::default(),
            reaper: RefCell::default(),
            control: Slot::default(),
            supervisor: Slot::default(),
            answering: Rc::default(),
            witness: Slot::default(),
            live: RefCell::default(),
            hooked: Default::default(),
            sighted: Arc::default(),
            sides: Default::default(),
            intakes: Default::default(),
            board: RefCell::default(),
            stopping: Cell::new(false),
            breaker: RefCell::new(breaker),
            notices: RefCell::default(),
            lock,
            spool: Arc::default(),
            judge: Arc::new(Mutex::new(crate::port::Judge::of_this_user())),
            stream,
            config: RefCell::new(config),
            next_token: Cell::new(0),
            next_notice: Cell::new(0),
            clock: Clock(Instant::now()),
            #[cfg(debug_assertions)]
            faults: RefCell::default(),
        }
    }

    /// The way to a side.
    pub fn side(&self, side: Side) -> &Slot<ToSide> {
        &self.sides[side as usize]
    }

    /// What a side has taken and nobody has dealt with yet.
    pub fn intake(&self, side: Side) -> &RefCell<Intake> {
        &self.intakes[side as usize]
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.borrow())
    }

    /// Another configuration comes into force.
    pub fn set_config(&self, config: Arc<Config>) {
        self.config.replace(config);
    }

    /// The time.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// What tells it.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// What `status` shows.
    pub fn status(&self) -> Status {
        let (config, now) = (self.config(), self.now());
        let breaker = self.breaker.borrow();
        let breaker = BreakerStatus {
            tripped: breaker.tripped(),
            recent: breaker.recent(now.unix_millis()),
            refused: breaker.refused(),
            limit: config.relay.breaker_count,
            window_s: config.relay.breaker_window.as_secs_f64(),
        };
        self.board.borrow().status(&config, breaker, now)
    }

    /// What, once dropped, sees to it that nobody works on the spool any more: its lock is let go of after that.
    #[must_use]
    pub fn spool_guard(&self) -> SpoolGuard {
        SpoolGuard(Arc::clone(&self.spool))
    }

    /// A range of push tokens for a Queue that starts, apart from those of its predecessors.
    pub fn token_range(&self) -> u64 {
        self.next_token.replace(self.next_token.get() + (1 << 40))
    }

    /// Has the bot told something, once, also if the Queue falls meanwhile.
    pub fn notify(&self, text: String) {
        let number = self.next_notice.replace(self.next_notice.get() + 1);
        self.notices.borrow_mut().insert(number, text.clone());
        self.queue.send(ToQueue(Event::Notify { text, receipt: Receipt::Notice(number) }));
    }

    /// What this receipt is for was dealt with.
    pub fn done(&self, receipt: Receipt) {
        match receipt {
            Receipt::Frame(side, seq) => self.side(side).send(ToSide::Taken(seq)),
            Receipt::Inbox(number) => self.witness.send(ToWitness::Taken(number)),
            Receipt::Notice(number) => drop(self.notices.borrow_mut().remove(&number)),
            Receipt::None | Receipt::Request(_) => {}
        }
    }

    /// Who holds the side's port; [`Verdict::Unknown`] if nobody can say in time.
    pub async fn judge(self: Rc<Self>, side: Side) -> Verdict {
        let unknown = |why: &str| Verdict::Unknown { why: why.to_owned() };
        let Some(reaper) = self.reaper.borrow().clone() else { return unknown("the judge is being started again") };
        match tokio::time::timeout(super::orphan_reaper::JUDGE_WITHIN, reaper.send(Judge(side))).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => unknown("the judge is being started again"),
            Err(_) => unknown("no verdict in time"),
        }
    }

    /// Tells the Supervisor that a running actor is there, and whether it has to look again soon.
    pub fn answer_ping(&self, name: &'static str, soon: bool) {
        self.supervisor.send(ToSupervisor::Pong { name, soon });
    }
}
