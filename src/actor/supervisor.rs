//! The Supervisor: starts the actors, starts one again that fell or froze, and gives up when that happens too often.
//!
//! actix's own supervisor does not see a panic: the actor is gone, and what is sent to it vanishes. So each actor runs
//! as a task whose end is waited for here, and a fresh one is made by its factory. What was in its mailbox is lost, so
//! those that had sent something are told to send it again; the truth is on disk, and in [`Wires`].

mod start;
mod tick;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::{Config, Side};
use crate::control::wire::ActorStatus;
use crate::message::{Reload, ToControl, ToQueue, ToSide, ToSupervisor, ToWitness};
use crate::queue::Event;

use super::bot_side::Bot;
use super::brain_side::Brain;
use super::control;
use super::guard;
use super::orphan_reaper;
use super::queue;
use super::side::Role;
use super::wires::Wires;
use super::witness;
use start::Running;

/// The wait before an actor's first restart; it doubles.
const BACK_OFF: Duration = Duration::from_millis(100);
/// The longest wait before a restart.
const MAX_BACK_OFF: Duration = Duration::from_secs(5);
/// While the bridge stops: how soon the Queue is asked again, if a side still has something that it took.
const DRAIN_AGAIN: Duration = Duration::from_millis(20);
/// More restarts than this within [`BUDGET_WINDOW`] and the process ends, for systemd to start it again.
const BUDGET: usize = 5;
/// See [`BUDGET`].
const BUDGET_WINDOW: Duration = Duration::from_secs(60);

/// How far the bridge has come. The daemon waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The actors are being started.
    Starting,
    /// The spool is recovered, and all run.
    Running,
    /// All that was under way is finished.
    Drained,
    /// An actor fell too often: its name.
    Failed(&'static str),
}

/// One actor, as the Supervisor sees it.
struct Child {
    name: &'static str,
    start: fn(&Supervisor) -> (JoinHandle<()>, Running),
    running: Option<Running>,
    /// Ticks since it last answered.
    silent: u32,
    /// It has to look soon.
    soon: bool,
    restarts: u32,
}

/// Told at each tick whether all actors had answered.
type Alive = dyn Fn(&Wires, bool);

/// The actor.
pub struct Supervisor {
    wires: Rc<Wires>,
    listener: Arc<UnixListener>,
    desk: Rc<RefCell<control::Desk>>,
    children: Vec<Child>,
    /// When actors were started again, lately.
    restarts: VecDeque<Duration>,
    stage: watch::Sender<Stage>,
    alive: Box<Alive>,
    tick: Duration,
    /// The time between ticks when nothing has to be done soon.
    rest: Duration,
    /// Whether the next tick comes only after that.
    rests: bool,
    next: Option<SpawnHandle>,
}

impl Supervisor {
    /// A supervisor that starts all actors when it is started. `alive` is told at each tick whether all is well, and at
    /// least once `within` that time.
    #[must_use]
    pub fn new(
        wires: Rc<Wires>,
        listener: UnixListener,
        stage: watch::Sender<Stage>,
        alive: impl Fn(&Wires, bool) + 'static,
        within: Duration,
    ) -> Self {
        let tick = tick::tick();
        let child = |name, start| Child { name, start, running: None, silent: 0, soon: true, restarts: 0 };
        // Those that others send to come first.
        let children = vec![
            child(orphan_reaper::NAME, start::reaper),
            child(queue::NAME, start::queue),
            child(guard::NAME, start::guard),
            child(Brain::NAME, start::brain),
            child(Bot::NAME, start::bot),
            child(witness::NAME, start::witness),
            child(control::NAME, start::control),
        ];
        Supervisor {
            wires,
            listener: Arc::new(listener),
            desk: Rc::default(),
            children,
            restarts: VecDeque::new(),
            stage,
            alive: Box::new(alive),
            tick: tick.min(within),
            rest: (tick * tick::REST).min(within),
            rests: false,
            next: None,
        }
    }

    fn start(&mut self, at: usize, ctx: &mut Context<Self>) {
        let (task, running) = (self.children[at].start)(self);
        let waiting = task.into_actor(self).map(move |ended, act, ctx| {
            let why = match ended {
                Ok(()) => "it stopped",
                Err(error) if error.is_panic() => "it panicked",
                Err(_) => "it did not answer",
            };
            act.ended(at, why, ctx);
        });
        ctx.spawn(waiting);
        let child = &mut self.children[at];
        (child.running, child.silent, child.soon) = (Some(running), 0, true);
        self.show();
    }

    fn ended(&mut self, at: usize, why: &str, ctx: &mut Context<Self>) {
        let now = self.wires.now().mono;
        let child = &mut self.children[at];
        child.running = None;
        child.restarts += 1;
        let name = child.name;
        self.wires.stream.warn(&format!("a part of the relay failed ({name}: {why}); it is started again"));
        tracing::error!(actor = name, why, "an actor failed");
        // At once: else the Queue goes on giving it pushes, and has to take each for begun.
        for side in Side::BOTH.into_iter().filter(|side| name_of(*side) == name) {
            self.wires.queue.send(ToQueue(Event::SideReset(side)));
        }
        self.restarts.push_back(now);
        self.restarts.retain(|at| now.saturating_sub(*at) <= BUDGET_WINDOW);
        if self.restarts.len() > BUDGET {
            self.stage.send_replace(Stage::Failed(name));
            return;
        }
        let doublings = u32::try_from(self.restarts.len() - 1).unwrap_or_default();
        let wait = (BACK_OFF * 2_u32.pow(doublings)).min(MAX_BACK_OFF);
        self.show();
        self.tick_again(false, ctx);
        ctx.run_later(wait, move |act, ctx| {
            act.start(at, ctx);
            act.tell_of_restart(name);
        });
    }

    /// Those that had sent something to an actor that fell send it again.
    fn tell_of_restart(&self, name: &str) {
        let wires = &self.wires;
        match name {
            queue::NAME => {
                wires.side(Side::Brain).send(ToSide::Resend);
                wires.side(Side::Bot).send(ToSide::Resend);
                wires.witness.send(ToWitness::Resend);
                wires.control.send(ToControl::Resend);
            }
            guard::NAME => {
                wires.side(Side::Bot).send(ToSide::Resend);
                wires.witness.send(ToWitness::Resend);
                wires.control.send(ToControl::Resend);
            }
            control::NAME => wires.control.send(ToControl::Resend),
            _ => {}
        }
    }

    fn show(&self) {
        let status = |child: &Child| ActorStatus {
            name: child.name.to_owned(),
            state: if child.running.is_some() { "running" } else { "restarting" }.to_owned(),
            restarts: child.restarts,
        };
        self.wires.board.borrow_mut().actors = self.children.iter().map(status).collect();
    }

    fn reload(&self, config: &Arc<Config>) {
        self.wires.set_config(Arc::clone(config));
        for running in self.children.iter().filter_map(|child| child.running.as_ref()) {
            running.reload.do_send(Reload(Arc::clone(config)));
        }
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.wires.supervisor.fill(ctx.address().recipient());
        for at in 0..self.children.len() {
            self.start(at, ctx);
        }
        self.tick(ctx);
    }
}

impl Handler<ToSupervisor> for Supervisor {
    type Result = ();

    fn handle(&mut self, message: ToSupervisor, ctx: &mut Self::Context) {
        match message {
            ToSupervisor::Pong { name, soon } => self.answered(name, soon, ctx),
            ToSupervisor::Stir => self.stir(ctx),
            ToSupervisor::Recovered => {
                self.stage.send_if_modified(|stage| {
                    let starting = *stage == Stage::Starting;
                    if starting {
                        *stage = Stage::Running;
                    }
                    starting
                });
            }
            ToSupervisor::Reload(config) => {
                self.reload(&config);
                self.stir(ctx);
            }
            ToSupervisor::Drain => self.wires.queue.send(ToQueue(Event::Drain)),
            ToSupervisor::Drained => {
                let all_taken = Side::BOTH.into_iter().all(|side| self.wires.intake(side).borrow().is_empty());
                if all_taken {
                    for side in Side::BOTH {
                        self.wires.side(side).send(ToSide::Close);
                    }
                    self.stage.send_replace(Stage::Drained);
                } else {
                    // What was taken is on its way to the Queue, or dealt with by now.
                    ctx.run_later(DRAIN_AGAIN, |act, _| act.wires.queue.send(ToQueue(Event::Drain)));
                }
            }
        }
    }
}

/// The name of a side's actor.
fn name_of(side: Side) -> &'static str {
    match side {
        Side::Brain => Brain::NAME,
        Side::Bot => Bot::NAME,
    }
}
