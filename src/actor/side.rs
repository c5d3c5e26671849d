//! A side: its websocket and its POSTs. BrainSide and BotSide are this, with a [`Role`] each.
//!
//! The reader of the websocket only puts frames into the [`Intake`](super::intake::Intake): it waits for no disk and
//! for no other side. Whose fakechat it is, is asked before a websocket is opened, once it is open and before each
//! push; frames are acted on only after the second answer.

mod holder;
mod push;
mod reader;
mod spare;
mod told;

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use actix::prelude::*;

use crate::config::{Holder, Side};
use crate::control::wire::SideState;
use crate::fakechat::frame::Frame;
use crate::handoff::SessionKey;
use crate::message::{Ping, Reload, ToSide};
use crate::queue::Token;
use crate::queue::event::{Pushed, Upload};
use crate::side::{Connection, Input};

use super::intake::Taken;
use super::wires::Wires;
use spare::Spare;

#[cfg(debug_assertions)]
use crate::message::Fault;

/// Why a websocket is let go of when `relay.holder` is made stricter.
const JUDGED: &str = "whose fakechat it is has to be told from now on";

/// What a frame is to a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// None of the relay's.
    None,
    /// It is taken in; its file too, if it has one.
    Take,
    /// It is taken in without its file.
    TakeText,
}

/// What tells the two sides apart.
pub trait Role: Unpin + 'static {
    /// Which one it is.
    const SIDE: Side;
    /// The actor's name.
    const NAME: &'static str;
    /// What a frame is to it.
    fn concern(frame: &Frame) -> Concern;
    /// Sends a frame on to whom it is for.
    fn send_on(wires: &Wires, taken: &mut Taken);
}

/// A push that waits for its turn.
struct Order {
    token: Token,
    uploads: Vec<Upload>,
}

/// The push whose POSTs are under way.
struct Posting {
    token: Token,
    since: Duration,
    handle: SpawnHandle,
}

/// Who is at the other end of the websocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Peer {
    /// Its fakechat: it takes its port once, so while it is there it is the same one that has it.
    listener: SessionKey,
    session: SessionKey,
}

/// Why the port's holder is not dealt with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bar {
    /// The word for it.
    state: SideState,
    why: String,
    /// Whether it is known who holds the port.
    sure: bool,
}

/// The websocket, once it is known whose it is.
struct Link {
    /// Counts websockets.
    epoch: u64,
    /// Since when it is known whose it is.
    since: Duration,
    /// None where holders are not told apart.
    peer: Option<Peer>,
    reader: SpawnHandle,
}

/// The actor.
pub struct SideActor<R: Role> {
    wires: Rc<Wires>,
    connection: Connection,
    link: Option<Link>,
    /// That of a session that has ended, until what it had said is read.
    ended: Option<Link>,
    epochs: u64,
    orders: VecDeque<Order>,
    posting: Option<Posting>,
    /// For the next push.
    spare: Spare,
    /// The last push that came to nothing and is made again: those behind it are not made before.
    stopped_at: Option<Token>,
    /// Pushes whose 204 is not yet old enough, with the time it will be.
    confirming: Vec<(Token, Duration)>,
    wake: Option<SpawnHandle>,
    /// Why the port's holder is not dealt with; none where it is, or nothing is known of it.
    barred: Option<Bar>,
    /// The process ids of sessions that were started for this side and have no channel.
    deaf: Vec<u32>,
    was_online: bool,
    closing: bool,
    role: PhantomData<R>,
}

impl<R: Role> SideActor<R> {
    /// A side that connects as soon as it is started.
    #[must_use]
    pub fn new(wires: Rc<Wires>) -> Self {
        let settle = wires.config().relay.settle;
        SideActor {
            wires,
            connection: Connection::new(settle),
            link: None,
            ended: None,
            epochs: 0,
            orders: VecDeque::new(),
            posting: None,
            spare: Spare::default(),
            stopped_at: None,
            confirming: Vec::new(),
            wake: None,
            barred: None,
            deaf: Vec::new(),
            was_online: false,
            closing: false,
            role: PhantomData,
        }
    }

    fn now(&self) -> Duration {
        self.wires.now().mono
    }

    /// Takes an event of the connection, does what follows, and shows where it stands.
    fn step(&mut self, input: Input, ctx: &mut Context<Self>) {
        let connect = self.connection.step(input, self.now(), fastrand::f64());
        if connect {
            self.connect(ctx);
        }
        self.show();
        self.tell_queue();
        self.begin_next(ctx);
        self.rearm(ctx);
    }

    /// Has `step` called again when time alone changes something.
    fn rearm(&mut self, ctx: &mut Context<Self>) {
        if let Some(handle) = self.wake.take() {
            ctx.cancel_future(handle);
        }
        let confirmed = self.confirming.iter().map(|(_, at)| *at).min();
        let connection = self.connection.wake_at().filter(|_| !self.closing);
        let due = connection.into_iter().chain(confirmed).chain(self.next_waits_until());
        let Some(at) = due.min() else { return };
        let wait = at.saturating_sub(self.now());
        self.wake = Some(ctx.run_later(wait, move |act, ctx| {
            act.wake = None;
            act.confirm_due(at);
            if act.next_waits_until().is_some_and(|until| until <= act.now()) {
                act.return_orders(|_| true);
            }
            act.step(Input::Tick, ctx);
        }));
    }

    /// The websocket is gone, or has to go.
    fn lose(&mut self, why: String, ctx: &mut Context<Self>) {
        self.spare = Spare::default();
        if let Some(link) = self.link.take() {
            ctx.cancel_future(link.reader);
            tracing::info!(side = R::SIDE.name(), why, "the websocket is gone");
        }
        // The queue hears first that the side is away: else it would begin the next push, which comes to nothing.
        self.step(Input::Lost(why.clone()), ctx);
        self.fail_pushes(&why, ctx);
        self.begin_next(ctx);
    }
}

impl<R: Role> Actor for SideActor<R> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.wires.intake(R::SIDE).borrow_mut().give_up_fetches();
        self.wires.intake(R::SIDE).borrow_mut().resend();
        self.send_on();
        self.step(Input::Tick, ctx);
    }
}

impl<R: Role> Handler<ToSide> for SideActor<R> {
    type Result = ();

    fn handle(&mut self, message: ToSide, ctx: &mut Self::Context) {
        match message {
            // Written too late to be given back with the others.
            ToSide::Push { token, behind: Some(behind), .. } if self.stopped_at == Some(behind) => {
                self.word(token, Pushed::NotTried);
            }
            ToSide::Push { token, uploads, .. } => {
                self.orders.push_back(Order { token, uploads });
                self.begin_next(ctx);
                self.rearm(ctx);
            }
            ToSide::Expect => self.open_spare(ctx),
            ToSide::Withdraw(token) => self.return_orders(|order| order.token == token),
            ToSide::Taken(seq) => self.wires.intake(R::SIDE).borrow_mut().done(seq),
            ToSide::Resend => {
                self.wires.intake(R::SIDE).borrow_mut().resend();
                self.send_on();
                self.report();
            }
            ToSide::Seen(seen) => self.seen(*seen, ctx),
            ToSide::Close => {
                self.closing = true;
                self.let_go(ctx);
                self.lose("the bridge stops".to_owned(), ctx);
            }
        }
    }
}

impl<R: Role> Handler<Ping> for SideActor<R> {
    type Result = ();

    fn handle(&mut self, _: Ping, _: &mut Self::Context) {
        self.spare.drop_old(self.now());
        self.wires.answer_ping(R::NAME, false);
    }
}

impl<R: Role> Handler<Reload> for SideActor<R> {
    type Result = ();

    fn handle(&mut self, Reload(config): Reload, ctx: &mut Self::Context) {
        self.connection.set_settle(config.relay.settle);
        // Whoever is there was let in unseen.
        if config.relay.holder == Holder::Session && self.link.as_ref().is_some_and(|link| link.peer.is_none()) {
            self.lose(JUDGED.to_owned(), ctx);
        }
        self.rearm(ctx);
    }
}

#[cfg(debug_assertions)]
impl<R: Role> Handler<Fault> for SideActor<R> {
    type Result = ();

    fn handle(&mut self, fault: Fault, ctx: &mut Self::Context) {
        fault.strike(ctx);
    }
}
