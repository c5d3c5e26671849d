//! A connection for the next push, opened while the disk still writes what will be posted on it.
//!
//! It leads to the websocket's peer: who has the port has it until it ends, and then the websocket ends too. Nothing is
//! sent on it before the push's turn has come, and whose port it is was asked again.

use std::time::Duration;

use actix::prelude::*;

use crate::fakechat::connection::Connection;

use super::{Role, SideActor};

/// How long it is good for: fakechat closes one on which nothing is said after 10 s.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// The connection, if there is one.
#[derive(Debug, Default)]
pub(super) struct Spare {
    opening: bool,
    open: Option<(Connection, Duration)>,
}

impl Spare {
    /// Takes it, if it is still good.
    pub(super) fn take(&mut self, now: Duration) -> Option<Connection> {
        self.drop_old(now);
        self.open.take().map(|(connection, _)| connection)
    }

    /// Closes it, if it is not good any more.
    pub(super) fn drop_old(&mut self, now: Duration) {
        self.open.take_if(|(_, since)| now.saturating_sub(*since) > GOOD_FOR);
    }
}

impl<R: Role> SideActor<R> {
    /// Opens one, if something could be pushed.
    pub(super) fn open_spare(&mut self, ctx: &mut Context<Self>) {
        self.spare.drop_old(self.now());
        let online = self.connection.is_online() && !self.closing;
        let Some(link) = self.link.as_ref().filter(|_| online) else { return };
        if self.spare.open.is_some() || std::mem::replace(&mut self.spare.opening, true) {
            return;
        }
        let (epoch, since) = (link.epoch, self.now());
        let opening = Connection::open(self.wires.config().relay.port(R::SIDE)).into_actor(self);
        ctx.spawn(opening.map(move |opened, act, _| {
            act.spare.opening = false;
            let same_peer = act.link.as_ref().is_some_and(|link| link.epoch == epoch);
            act.spare.open = opened.ok().filter(|_| same_peer).map(|connection| (connection, since));
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    async fn spare(listener: &TcpListener) -> Spare {
        let connection = Connection::open(listener.local_addr().unwrap().port()).await.unwrap();
        Spare { opening: false, open: Some((connection, Duration::from_secs(5))) }
    }

    #[tokio::test]
    async fn it_is_good_for_one_push_within_a_second() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut young = spare(&listener).await;
        assert!(young.take(Duration::from_secs(6)).is_some());
        assert!(young.take(Duration::from_secs(6)).is_none());
        let mut old = spare(&listener).await;
        assert!(old.take(Duration::from_millis(6001)).is_none());
    }
}
