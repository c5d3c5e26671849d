//! A side's pushes: POSTs one at a time, each then watched for `confirm_ms`.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use actix::prelude::*;
use bytes::Bytes;

use crate::fakechat::connection::Connection;
use crate::fakechat::upload::{self, Body, PostError, UploadFile};
use crate::handoff::words::PartFile;
use crate::message::ToQueue;
use crate::queue::Token;
use crate::queue::event::{Event, Pushed, Upload};

use super::super::wires::Wires;
use super::holder::CHANGED;
use super::{Bar, Order, Peer, Posting, Role, SideActor};

/// A timer that comes later than this after its time says that the process had stood still.
const LATE: Duration = Duration::from_millis(50);

/// How long a push may be waited for by the next one, which counts as pushed meanwhile. A POST takes a millisecond.
const NEXT_WAITS: Duration = Duration::from_millis(250);

/// How the POSTs of a push ended.
enum Posted {
    All,
    Failed {
        why: String,
        permanent: bool,
    },
    /// Somebody else holds the port now: nothing was posted.
    Barred(Option<Bar>),
}

impl<R: Role> SideActor<R> {
    /// Begins the next push, if none is under way.
    pub(super) fn begin_next(&mut self, ctx: &mut Context<Self>) {
        if self.posting.is_some() {
            return;
        }
        let online = self.connection.is_online() && !self.closing;
        let Some(Order { token, uploads }) = self.orders.pop_front() else { return };
        let Some(link) = self.link.as_ref().filter(|_| online) else {
            self.word(token, Pushed::NotTried);
            return self.begin_next(ctx);
        };
        let (peer, spare) = (link.peer, self.spare.take(self.now()));
        let posting = post_all::<R>(Rc::clone(&self.wires), peer, spare, uploads).into_actor(self);
        let handle = ctx.spawn(posting.map(move |posted, act, ctx| {
            act.posting = None;
            match posted {
                Posted::All => {
                    act.word(token, Pushed::Accepted);
                    let now = act.now();
                    act.confirming.push((token, now + act.wires.config().relay.confirm));
                    act.confirm_due(now);
                }
                Posted::Failed { why, permanent } => {
                    act.word(token, Pushed::Failed { why, permanent });
                    // What was to follow it stays behind it.
                    if !permanent {
                        act.return_orders(|_| true);
                    }
                }
                Posted::Barred(bar) => {
                    // First that the side is away: else the Queue has it pushed again at once.
                    match bar {
                        Some(bar) => act.shut_out(bar, ctx),
                        None => act.lose(CHANGED.to_owned(), ctx),
                    }
                    return act.word(token, Pushed::NotTried);
                }
            }
            act.begin_next(ctx);
            act.rearm(ctx);
        }));
        self.posting = Some(Posting { token, since: self.now(), handle });
    }

    /// When what waits for the push that is posted has waited long enough.
    pub(super) fn next_waits_until(&self) -> Option<Duration> {
        self.posting.as_ref().filter(|_| !self.orders.is_empty()).map(|posting| posting.since + NEXT_WAITS)
    }

    /// Gives those back whose turn has not come.
    pub(super) fn return_orders(&mut self, which: impl Fn(&Order) -> bool) {
        let (back, kept): (VecDeque<_>, _) = std::mem::take(&mut self.orders).into_iter().partition(which);
        self.orders = kept;
        for order in back {
            self.word(order.token, Pushed::NotTried);
        }
    }

    /// The websocket stayed up long enough after these, if this comes when it was due. Late, the whole process stood
    /// still, and what the socket has to say of that time is yet unread: then it is watched a little longer.
    pub(super) fn confirm_due(&mut self, due: Duration) {
        let now = self.now();
        if now.saturating_sub(due) > LATE {
            return self.confirming.iter_mut().for_each(|(_, at)| *at = (*at).max(now + LATE));
        }
        let due: Vec<Token> = self.confirming.extract_if(.., |(_, at)| *at <= now).map(|(token, _)| token).collect();
        for token in due {
            self.word(token, Pushed::Confirmed);
        }
    }

    /// The websocket dropped: what was not confirmed failed.
    pub(super) fn fail_pushes(&mut self, why: &str, ctx: &mut Context<Self>) {
        let within = self.wires.config().relay.confirm.as_millis();
        for (token, _) in std::mem::take(&mut self.confirming) {
            let why = format!("the websocket dropped within {within} ms after the 204 ({why})");
            self.word(token, Pushed::Failed { why, permanent: false });
        }
        if let Some(Posting { token, handle, .. }) = self.posting.take() {
            ctx.cancel_future(handle);
            let why = format!("the websocket dropped during the POST ({why})");
            self.word(token, Pushed::Failed { why, permanent: false });
        }
    }

    pub(super) fn word(&mut self, token: Token, pushed: Pushed) {
        if matches!(pushed, Pushed::NotTried | Pushed::Failed { permanent: false, .. }) {
            self.stopped_at = Some(token);
        }
        self.wires.queue.send(ToQueue(Event::Pushed { token, pushed }));
    }
}

/// Posts the uploads one after the other, while the port is still the peer's; the first on the spare connection, if
/// there is one.
async fn post_all<R: Role>(
    wires: Rc<Wires>,
    peer: Option<Peer>,
    mut spare: Option<Connection>,
    uploads: Vec<Upload>,
) -> Posted {
    let config = wires.config();
    for (n, upload) in uploads.into_iter().enumerate() {
        let bar = match SideActor::<R>::verdict(&wires).await {
            Ok(now) if now.is_none() || now == peer => None,
            Ok(_) => Some(None),
            Err(bar) => Some(Some(bar)),
        };
        match bar {
            None => {}
            Some(bar) if n == 0 => return Posted::Barred(bar),
            // A part of it was posted, so it was tried.
            Some(bar) => {
                let why = bar.map_or_else(|| CHANGED.to_owned(), |bar| bar.why);
                return Posted::Failed { why, permanent: false };
            }
        }
        let file = upload.part.file.map(|file| match file {
            PartFile::Text { name, text } => UploadFile { name, body: Body::Bytes(Bytes::from(text)) },
            PartFile::Stored { name, path, .. } => {
                UploadFile { name, body: Body::Path(config.paths.spool().join(path)) }
            }
        });
        let upload = upload::Upload { id: upload.id.to_string(), text: upload.part.text, file };
        if let Err(error) =
            upload::post_on(config.relay.port(R::SIDE), spare.take().filter(Connection::is_unused), &upload).await
        {
            let permanent = matches!(error, PostError::Refused { permanent: true, .. });
            return Posted::Failed { why: error.to_string(), permanent };
        }
    }
    Posted::All
}
