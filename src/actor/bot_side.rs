//! The bot's side: its `RELAY:` messages go to the Guard, and results come to it.

use crate::config::Side;
use crate::fakechat::frame::Frame;
use crate::guard::{Verdict, judge};
use crate::message::{Candidate, ToGuard};
use crate::queue::Receipt;

use super::intake::Taken;
use super::side::{Concern, Role, SideActor};
use super::wires::Wires;

/// The actor.
pub type BotSide = SideActor<Bot>;

/// What makes a side the bot's.
pub enum Bot {}

impl Role for Bot {
    const SIDE: Side = Side::Bot;
    const NAME: &'static str = "bot_side";

    /// Most of what the bot says is its conversation: that is passed over here, and kept by nobody.
    fn concern(frame: &Frame) -> Concern {
        match frame {
            Frame::Message { text, reply_to, file, .. } => {
                match judge(text.as_deref(), reply_to.as_deref(), file.is_some()) {
                    Verdict::NotForUs => Concern::None,
                    Verdict::HandOff(_) => Concern::Take,
                    Verdict::HasReplyTo | Verdict::Empty | Verdict::NearMiss => Concern::TakeText,
                }
            }
            Frame::Edit { .. } => Concern::None,
        }
    }

    fn send_on(wires: &Wires, taken: &mut Taken) {
        if let Frame::Message { id, text, reply_to, .. } = &taken.frame {
            wires.guard.send(ToGuard::Admit(Candidate {
                receipt: Receipt::Frame(Side::Bot, taken.seq),
                message: id.clone(),
                text: text.clone(),
                reply_to: reply_to.clone(),
                files: taken.files.clone().unwrap_or_default(),
            }));
        }
    }
}
