//! A side's websocket: opening it, and taking what comes out of it.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use actix::prelude::*;
use tokio::time::{Instant, sleep};

use crate::config::Side;
use crate::fakechat::download::fetch;
use crate::fakechat::frame::Frame;
use crate::fakechat::socket::{self, Socket};
use crate::handoff::Id;
use crate::inbox::files_of;
use crate::queue::Incoming;
use crate::side::Input;
use crate::spool::store::{MAX_FILE, TMP};

use super::super::wires::Wires;
use super::holder::CHANGED;
use super::{Bar, Concern, Link, Peer, Role, SideActor};

/// How long the hook of a message with a file is waited for: it copies up to 200 MiB.
const HOOK_WITHIN: Duration = Duration::from_secs(3);
/// How often it is looked for meanwhile: a folder has no wait.
const HOOK_LOOK: Duration = Duration::from_millis(100);
/// After so many frames in one go the reader lets the others have a turn.
const BURST: u32 = 64;

/// What the reader brings.
#[derive(Message)]
#[rtype(result = "()")]
struct Heard {
    epoch: u64,
    event: socket::Event,
}

/// Why there is no websocket.
enum NoLink {
    Barred(Bar),
    Failed(String),
}

impl<R: Role> SideActor<R> {
    /// Opens the websocket, if its holder may be dealt with, before and after.
    pub(super) fn connect(&mut self, ctx: &mut Context<Self>) {
        let opening = open::<R>(Rc::clone(&self.wires)).into_actor(self);
        ctx.spawn(opening.map(|opened, act, ctx| match opened {
            Ok((socket, peer)) => act.connected(socket, peer, ctx),
            Err(NoLink::Barred(bar)) => {
                let why = bar.why.clone();
                act.bar(bar);
                act.step(Input::Lost(why), ctx);
            }
            Err(NoLink::Failed(why)) => {
                act.barred = None;
                act.step(Input::Lost(why), ctx);
            }
        }));
    }

    fn connected(&mut self, socket: Socket, peer: Option<Peer>, ctx: &mut Context<Self>) {
        self.epochs += 1;
        self.barred = None;
        self.deaf.clear();
        let reading = read(socket, self.epochs, ctx.address());
        let reader = ctx.spawn(reading.into_actor(self));
        self.link = Some(Link { epoch: self.epochs, since: self.now(), peer, reader });
        self.step(Input::Connected, ctx);
        // Without a time to settle it is online at once.
        self.step(Input::Tick, ctx);
    }

    fn take(&mut self, frame: Frame, ctx: &mut Context<Self>) {
        let concern = R::concern(&frame);
        let file = match &frame {
            Frame::Message { id, file: Some(file), .. } if concern == Concern::Take => Some((id.clone(), file.clone())),
            _ => None,
        };
        if concern == Concern::None {
            self.wires.board.borrow_mut().side(R::SIDE).passed_over += 1;
            return;
        }
        let taken = self.wires.intake(R::SIDE).borrow_mut().take(frame, file.is_some());
        let Some(seq) = taken else {
            self.wires.stream.warn(&format!("a frame of the {} was dropped: too much waits for the disk", R::SIDE));
            return;
        };
        if let Some((message, file)) = file {
            let config = self.wires.config();
            let (port, to) = (config.relay.port(R::SIDE), config.paths.spool().join(TMP).join(Id::now().to_string()));
            let (wires, peer) = (Rc::clone(&self.wires), self.link.as_ref().and_then(|link| link.peer));
            let hooked = self.wires.hooked[R::SIDE as usize].get();
            let fetching = async move {
                // What another one has under that name is not the session's file.
                let fetched = match Self::verdict(&wires).await {
                    Ok(now) if now.is_none() || now == peer => {
                        fetch(port, &file.url, &to, MAX_FILE).await.map_err(|e| e.to_string())
                    }
                    Ok(_) => Err(CHANGED.to_owned()),
                    Err(bar) => Err(bar.why),
                };
                let named = if hooked { named_by_hook(config.paths.spool(), R::SIDE, message).await } else { None };
                (file.name, to, fetched, named)
            };
            ctx.spawn(fetching.into_actor(self).map(move |(name, path, fetched, named), act, _| {
                let mut named = named.into_iter().flatten();
                // The one that came is the first of those that were named.
                let first = match (fetched, named.next()) {
                    (Ok(bytes), _) => Incoming::Fetched { name, path, bytes },
                    (Err(_), Some(copy @ Incoming::Fetched { .. })) => copy,
                    (Err(error), _) => {
                        act.wires.stream.warn(&format!("a file of the {} could not be had: {error}", R::SIDE));
                        Incoming::Lost { name }
                    }
                };
                let files = std::iter::once(first).chain(named).collect();
                act.wires.intake(R::SIDE).borrow_mut().fetched(seq, files);
                act.send_on();
            }));
        }
        self.send_on();
    }

    /// Sends on what is ready.
    pub(super) fn send_on(&self) {
        let mut intake = self.wires.intake(R::SIDE).borrow_mut();
        for taken in intake.ready() {
            R::send_on(&self.wires, taken);
        }
    }
}

impl<R: Role> Handler<Heard> for SideActor<R> {
    type Result = ();

    fn handle(&mut self, Heard { epoch, event }: Heard, ctx: &mut Self::Context) {
        let is = |link: &Option<Link>| link.as_ref().is_some_and(|link| link.epoch == epoch);
        let ended = is(&self.ended);
        if !ended && !is(&self.link) {
            return;
        }
        match event {
            socket::Event::Frame(frame) => self.take(frame, ctx),
            socket::Event::Malformed(malformed) => {
                self.wires.board.borrow_mut().side(R::SIDE).malformed += 1;
                tracing::warn!(side = R::SIDE.name(), %malformed, "a frame that makes no sense was passed over");
            }
            socket::Event::Closed(_) if ended => self.let_go(ctx),
            socket::Event::Closed(why) => self.lose(why, ctx),
        }
    }
}

/// All the files of a message, as its hook names them: that runs right after the message was said.
async fn named_by_hook(spool: PathBuf, side: Side, message: String) -> Option<Vec<Incoming>> {
    let deadline = Instant::now() + HOOK_WITHIN;
    while Instant::now() < deadline {
        let (spool, message) = (spool.clone(), message.clone());
        let named = tokio::task::spawn_blocking(move || files_of(&spool, side, &message)).await.ok().flatten();
        if named.is_some() {
            return named;
        }
        sleep(HOOK_LOOK).await;
    }
    None
}

/// Opens the websocket, asking before and after whose it is. Only the same answer twice says who is at the other end.
async fn open<R: Role>(wires: Rc<Wires>) -> Result<(Socket, Option<Peer>), NoLink> {
    let port = wires.config().relay.port(R::SIDE);
    let before = SideActor::<R>::verdict(&wires).await.map_err(NoLink::Barred)?;
    let socket = socket::connect(port).await.map_err(|error| NoLink::Failed(error.to_string()))?;
    let after = SideActor::<R>::verdict(&wires).await.map_err(NoLink::Barred)?;
    if after != before {
        return Err(NoLink::Failed(CHANGED.to_owned()));
    }
    Ok((socket, after))
}

/// Takes from the websocket until it ends.
async fn read<R: Role>(mut socket: Socket, epoch: u64, to: Addr<SideActor<R>>) {
    for burst in 1_u32.. {
        let event = socket.next().await;
        let closed = matches!(event, socket::Event::Closed(_));
        to.do_send(Heard { epoch, event });
        if closed {
            return;
        }
        if burst % BURST == 0 {
            tokio::task::yield_now().await;
        }
    }
}
