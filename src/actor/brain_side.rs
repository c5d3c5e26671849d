//! The brain's side: hand-offs go to it, and what it answers goes to the Queue.

use crate::config::Side;
use crate::fakechat::frame::Frame;
use crate::message::ToQueue;
use crate::queue::Receipt;
use crate::queue::event::{Event, Reply};

use super::intake::Taken;
use super::side::{Concern, Role, SideActor};
use super::wires::Wires;

/// The actor.
pub type BrainSide = SideActor<Brain>;

/// What makes a side the brain's.
pub enum Brain {}

impl Role for Brain {
    const SIDE: Side = Side::Brain;
    const NAME: &'static str = "brain_side";

    fn concern(frame: &Frame) -> Concern {
        match frame {
            Frame::Message { reply_to: Some(_), .. } => Concern::Take,
            Frame::Message { .. } | Frame::Edit { .. } => Concern::TakeText,
        }
    }

    fn send_on(wires: &Wires, taken: &mut Taken) {
        let receipt = Receipt::Frame(Side::Brain, taken.seq);
        let files = taken.files.clone().unwrap_or_default();
        let reply = match &taken.frame {
            Frame::Message { id, text, reply_to, .. } => Reply {
                message: id.clone(),
                reply_to: reply_to.clone(),
                edit: false,
                text: text.clone().unwrap_or_default(),
                files,
                found: None,
                receipt,
            },
            Frame::Edit { id, text } => Reply {
                message: id.clone(),
                reply_to: None,
                edit: true,
                text: text.clone(),
                files,
                found: None,
                receipt,
            },
        };
        wires.queue.send(ToQueue(Event::Reply(reply)));
    }
}
