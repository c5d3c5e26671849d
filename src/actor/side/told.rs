//! What others are told of where a side stands.

use crate::control::wire::SideState;
use crate::message::ToQueue;
use crate::queue::event::Event;

use super::{Role, SideActor};

impl<R: Role> SideActor<R> {
    /// Puts where it stands onto the board.
    pub(super) fn show(&self) {
        let mut board = self.wires.board.borrow_mut();
        let side = board.side(R::SIDE);
        let (mut state, mut why) = (self.connection.state(), self.connection.why().map(str::to_owned));
        if let Some(bar) = self.barred.as_ref().filter(|_| !self.connection.is_up()) {
            why = Some(bar.why.clone());
            if bar.state != SideState::Offline {
                state = bar.state;
            }
        }
        if let (Some(pid), SideState::Offline | SideState::Connecting) = (self.deaf.first(), state) {
            why = Some(format!(
                "the session there is (pid {pid}) has no channel: its fakechat found the port taken, or ended; restart it"
            ));
        }
        // Trying again and again is one state to a person.
        let settled = |state| if state == SideState::Connecting { SideState::Offline } else { state };
        if side.since.is_none() || settled(side.state) != settled(state) {
            side.since = Some(self.wires.now().wall);
        }
        (side.state, side.why) = (state, why);
    }

    /// Tells the Queue and the stream when it comes online, or goes.
    pub(super) fn tell_queue(&mut self) {
        let online = self.connection.is_online() && self.link.is_some() && !self.closing;
        if online == self.was_online {
            return;
        }
        self.was_online = online;
        if online {
            tracing::info!(side = R::SIDE.name(), "online");
            self.wires.stream.note(&format!("the {} is online", R::SIDE));
        } else if !self.closing {
            let why = self.connection.why().unwrap_or("no reason given");
            self.wires.stream.note(&format!("the {} is away: {why}", R::SIDE));
        }
        self.report();
    }

    /// Tells the Queue whether it is online, and with which session.
    pub(super) fn report(&self) {
        let session = self.link.as_ref().and_then(|link| link.peer).map(|peer| peer.session);
        self.wires.queue.send(ToQueue(Event::Side { side: R::SIDE, online: self.was_online, session }));
    }
}
