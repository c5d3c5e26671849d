//! Every message from actor to actor, by who receives it. But for [`Judge`], an answer is a message too, so that
//! nobody waits for a mailbox.

use std::sync::Arc;
use std::time::Duration;

use actix::Message;

use crate::config::{Config, Side};
use crate::error::Error;
use crate::port::Verdict;
use crate::queue::event::{Event, Token, Upload};
use crate::queue::{Incoming, Receipt};

/// To the Queue, from all: something happened.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ToQueue(pub Event);

/// To the Guard.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum ToGuard {
    /// From BotSide or the Witness: a `RELAY:` came. Answered by [`ToSide::Taken`] or [`ToWitness::Taken`], from the
    /// Queue or the Guard.
    Admit(Candidate),
    /// From Control: let hand-offs in again. Answered by [`ToControl`].
    ResetBreaker(Receipt),
}

/// A message of the bot that may be a hand-off.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Who waits for it to be dealt with.
    pub receipt: Receipt,
    /// fakechat's id of it.
    pub message: String,
    /// What it says.
    pub text: Option<String>,
    /// What it answers.
    pub reply_to: Option<String>,
    /// What came along.
    pub files: Vec<Incoming>,
}

/// To BrainSide or BotSide.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum ToSide {
    /// From the Queue: post these, one after the other. Answered by [`Event::Pushed`], twice if all goes well.
    Push {
        /// To be named in the answers.
        token: Token,
        /// The one it follows, if that had not ended when this was begun.
        behind: Option<Token>,
        /// What to post.
        uploads: Vec<Upload>,
    },
    /// From the Queue: what is being written will most likely be pushed here.
    Expect,
    /// From the Queue: do not post that one, if its turn has not come. Answered by [`Event::Pushed`] if so.
    Withdraw(Token),
    /// From the Queue or the Guard: that frame was dealt with; it need not be kept any more.
    Taken(u64),
    /// From the Supervisor: an actor that frames go to was started again, and what it had not dealt with is lost.
    Resend,
    /// From the OrphanReaper, at each sweep: who holds the port.
    Seen(Box<Seen>),
    /// From the Supervisor: the bridge stops; let go of the websocket.
    Close,
}

/// What a sweep saw at a side's port.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When it was looked, by the clock of [`Now::mono`](crate::queue::Now).
    pub at: Duration,
    /// Who holds it.
    pub verdict: Verdict,
    /// The process ids of sessions that were started for it and have no channel.
    pub deaf: Vec<u32>,
}

/// To the OrphanReaper, from a side: who holds its port?
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Verdict")]
pub struct Judge(pub Side);

/// To the Witness.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum ToWitness {
    /// From the Queue or the Guard: what a hook brought was dealt with; it need not be kept any more.
    Taken(u64),
    /// From the Supervisor: an actor that it goes to was started again, and what it had not dealt with is lost.
    Resend,
}

/// To Control.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum ToControl {
    /// From the Queue or the Guard: what a request comes to.
    Answer(u64, Result<serde_json::Value, Error>),
    /// From the Supervisor: the Queue or the Guard was started again; ask it again what it had not answered.
    Resend,
}

/// To the Supervisor.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum ToSupervisor {
    /// From every actor: the answer to a [`Ping`].
    Pong {
        /// Its name.
        name: &'static str,
        /// Whether it has to look at the next beat: it waits for something of which nothing else would tell it.
        soon: bool,
    },
    /// From the Queue: there is something to do again. From Control: somebody asks. From the Witness: it is not told of
    /// what comes next.
    Stir,
    /// From the Queue: the spool is recovered.
    Recovered,
    /// From the daemon: the configuration was read again.
    Reload(Arc<Config>),
    /// From the daemon: finish what is under way, then stop.
    Drain,
    /// From the Queue, while the bridge stops: nothing is under way any more.
    Drained,
}

/// To every actor, from the Supervisor, now and then: are you there? Answered by [`ToSupervisor::Pong`].
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Ping;

/// To every actor, from the Supervisor: the configuration was read again.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct Reload(pub Arc<Config>);

/// To any actor, from Control, in test builds: fail.
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub enum Fault {
    /// Panic.
    Panic,
    /// Never deal with a message again.
    Hang,
}

#[cfg(debug_assertions)]
impl Fault {
    /// Fails.
    ///
    /// # Panics
    /// If that is what was asked for.
    pub fn strike<A: actix::Actor<Context = actix::Context<A>>>(self, ctx: &mut actix::Context<A>) {
        use actix::AsyncContext;
        match self {
            Fault::Panic => panic!("as a test wanted"),
            Fault::Hang => ctx.wait(actix::fut::wrap_future(std::future::pending::<()>())),
        }
    }
}
