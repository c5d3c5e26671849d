//! `anna-relay bridge`: lock, spool, actors, READY, signals, drain, exit code.

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use sd_notify::NotifyState;
use tokio::net::UnixListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::actor::supervisor::{Stage, Supervisor};
use crate::actor::wires::Wires;
use crate::beat;
use crate::config::{Config, Side, changed_needing_restart};
use crate::control::server;
use crate::control::wire::{SideState, Status};
use crate::error::{During, Error, Kind, Result};
use crate::message::ToSupervisor;
use crate::spool::Store;
use crate::spool::lock::{Lock, Role};
use crate::stream::Stream;
use crate::text::count;
use crate::watchdog::{self, Watchdog};

/// How many threads may wait for the disk or the process table at a time: the Queue needs one, and each of the others
/// one or two. More would come of a burst, and stay.
const WORKERS: usize = 16;
/// How long the last answers at the control socket may take.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// How long what is under way may take to finish at a stop: the whole stop has 5 s.
const DRAIN_WITHIN: Duration = Duration::from_secs(4);
/// How long the stream may take for its last lines.
const FLUSH_WITHIN: Duration = Duration::from_millis(500);
/// However soon systemd wants to hear that all is well, it is not told more often.
const LEAST_TICK: Duration = Duration::from_millis(100);
/// How long a thread that may block is kept for the next one who needs it: over a pause in a conversation, for while
/// nothing happens none is needed.
const KEEP_WORKERS: Duration = Duration::from_secs(10);

/// Runs the bridge until it is told to stop.
///
/// # Errors
/// It could not start, or an actor kept failing.
pub fn run(config: Config, flag: Option<&Path>) -> Result<ExitCode> {
    if !config.relay.enabled {
        let passed_over = config.passed_over.iter().map(|what| format!(" ({what})")).collect::<String>();
        return Err(Error::new(Kind::Config, "starting the bridge: relay.enabled is not true").hint(format!(
            "read the README's section on trust, then set `enabled = true` under [relay] in {}{passed_over}",
            config.file.display()
        )));
    }
    let (spool, _ports) = lock(&config)?;
    let place = spool.place()?;
    let stream = Stream::open(&config.paths.stream)?;
    let watchdog = Watchdog::default();
    let system = System::with_tokio_rt(|| runtime(&watchdog));
    let ended = system.block_on(async {
        watchdog.clone().start(Handle::current(), watchdog::LOOK_EVERY, end_stuck)?;
        let listener = server::listen(&server::path(&config.paths.spool()))?;
        serve(Wires::new(Arc::new(config), stream.clone(), place), flag, listener).await
    });
    // Whatever way it ended, the last lines are written.
    if !stream.flush(FLUSH_WITHIN) {
        tracing::warn!("the stream's last lines could not be written");
    }
    ended.map(|()| ExitCode::SUCCESS)
}

/// The runtime of the actors' thread.
///
/// # Panics
/// The system has no threads or descriptors left to give.
#[expect(clippy::expect_used, reason = "actix takes a function that cannot fail")]
fn runtime(watchdog: &Watchdog) -> Runtime {
    let mut builder = Builder::new_current_thread();
    watchdog.watch(&mut builder);
    beat::start();
    builder.enable_all().thread_keep_alive(KEEP_WORKERS).max_blocking_threads(WORKERS);
    builder.build().expect("starting the runtime")
}

/// Takes the spool and the ports.
fn lock(config: &Config) -> Result<(Lock, Vec<Lock>)> {
    let root = config.paths.spool();
    let store = Store::open(&root)?;
    let spool = Lock::spool(&root, Role::Bridge)?;
    store.sweep()?;
    let ports = Side::BOTH.into_iter().map(|side| Lock::port(config.relay.port(side)));
    Ok((spool, ports.collect::<Result<_>>()?))
}

/// From the actors' start to their end.
async fn serve(wires: Wires, flag: Option<&Path>, listener: UnixListener) -> Result<()> {
    // Before systemd hears that it runs: a signal from then on, or before, must not just kill it.
    let mut signals = Signals::take()?;
    let wires = Rc::new(wires);
    let (stage, mut watch) = watch::channel(Stage::Starting);
    let _at_rest = wires.spool_guard();
    let under_systemd = std::env::var_os("NOTIFY_SOCKET").is_some();
    let alive = move |wires: &Wires, all_well| {
        if all_well && under_systemd {
            tell_systemd(&[NotifyState::Watchdog, NotifyState::Status(&status_line(wires))]);
        }
    };
    // Half the time that systemd waits, as its documentation advises.
    let within = sd_notify::watchdog_enabled().map_or(Duration::MAX, |within| (within / 2).max(LEAST_TICK));
    let supervisor = Supervisor::new(Rc::clone(&wires), listener, stage, alive, within);
    let context = Context::new();
    let address = context.address();
    let mut supervising = actix_rt::spawn(context.into_future(supervisor));
    let running = tokio::select! {
        stage = until(&mut watch, |stage| *stage != Stage::Starting) => stage,
        () = signals.stop() => Stage::Starting,
        _ = &mut supervising => Stage::Failed("supervisor"),
    };
    if running == Stage::Running {
        tell_systemd(&[NotifyState::Ready, NotifyState::Status("running")]);
        wires.stream.note("the bridge runs");
        let relay = &wires.config().relay;
        let (brain_port, bot_port) = (relay.brain_port, relay.bot_port);
        tracing::info!(
            pid = std::process::id(),
            brain_port,
            bot_port,
            "the bridge runs; `anna-relay stream -f` follows it"
        );
        tokio::select! {
            () = obey_signals(&mut signals, flag, &wires, &address) => {}
            _ = until(&mut watch, |stage| matches!(stage, Stage::Failed(_))) => {}
            _ = &mut supervising => return Err(gave_up("supervisor")),
        }
    }
    if let (Stage::Failed(name), _) | (_, Stage::Failed(name)) = (&running, &*watch.borrow()) {
        return Err(gave_up(name));
    }
    tell_systemd(&[NotifyState::Stopping]);
    wires.stopping.set(true);
    address.do_send(ToSupervisor::Drain);
    if timeout(DRAIN_WITHIN, until(&mut watch, |stage| *stage == Stage::Drained)).await.is_err() {
        tracing::warn!("some of what was under way did not finish; it is pushed again at the next start");
        Side::BOTH.into_iter().for_each(|side| tell_of_untaken(&wires, side));
    }
    // Whoever was asking is told what became of it.
    if timeout(ANSWER_WITHIN, wires.answering.wait_for(|asking| *asking == 0)).await.is_err() {
        tracing::warn!("some requests at the control socket got no answer");
    }
    wires.stream.note("the bridge stopped");
    Ok(())
}

/// Says what a side has said that could not be accepted before the stop: nothing else keeps it here.
fn tell_of_untaken(wires: &Wires, side: Side) {
    let untaken = wires.intake(side).borrow().len();
    if untaken == 0 {
        return;
    }
    let again = match wires.hooked[side as usize].get() {
        true => "its hooks bring again at the next start what was for the relay",
        false => "without hooks (`anna-relay setup`) it has to say again what was for the relay",
    };
    let messages = count(untaken, "message");
    wires.stream.warn(&format!("{messages} of the {side} could not be accepted before the stop; {again}"));
}

/// The signals that are obeyed.
struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
    /// A file that grew past a limit is an error of its write, and does not end the process.
    _xfsz: Signal,
}

impl Signals {
    /// From now on they are obeyed here, and do not end the process by themselves.
    fn take() -> Result<Signals> {
        let on = |kind| signal(kind).during("taking signals");
        Ok(Signals {
            term: on(SignalKind::terminate())?,
            int: on(SignalKind::interrupt())?,
            hup: on(SignalKind::hangup())?,
            _xfsz: on(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for one that says to stop.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

/// Waits for a signal to stop; reads the configuration again at SIGHUP.
async fn obey_signals(signals: &mut Signals, flag: Option<&Path>, wires: &Wires, supervisor: &Addr<Supervisor>) {
    loop {
        let Signals { term, int, hup, .. } = signals;
        tokio::select! {
            _ = term.recv() => return,
            _ = int.recv() => return,
            _ = hup.recv() => reload(flag, wires, supervisor),
        }
    }
}

/// What was there at the start has to be there still: the defaults are not what a person wants who lost the file.
fn read_again(flag: Option<&Path>) -> Result<Config> {
    let config = Config::load(flag)?;
    if config.found {
        return Ok(config);
    }
    let why = format!("reading the configuration {}: it is gone", config.file.display());
    Err(Error::new(Kind::Config, why).hint("put it back"))
}

fn reload(flag: Option<&Path>, wires: &Wires, supervisor: &Addr<Supervisor>) {
    let old = wires.config();
    match read_again(flag) {
        Err(error) => {
            let why = error.with_advice();
            tracing::error!("reading the configuration again; the old one stays in force: {why}");
            wires.stream.warn(&format!("the configuration cannot be used, the old one stays in force: {why}"));
        }
        Ok(mut new) => {
            let kept = changed_needing_restart(&old, &new);
            if !kept.is_empty() {
                let text = format!(
                    "the configuration was read again; a restart of the bridge is needed for {}",
                    kept.join(", ")
                );
                tracing::warn!("{text}");
                wires.stream.warn(&text);
            } else {
                tracing::info!("the configuration was read again");
                wires.stream.note("the configuration was read again");
            }
            new.paths = old.paths.clone();
            (new.relay.brain_port, new.relay.bot_port) = (old.relay.brain_port, old.relay.bot_port);
            supervisor.do_send(ToSupervisor::Reload(Arc::new(new)));
        }
    }
}

async fn until(watch: &mut watch::Receiver<Stage>, wanted: impl Fn(&Stage) -> bool) -> Stage {
    match watch.wait_for(wanted).await {
        Ok(stage) => stage.clone(),
        Err(_) => Stage::Failed("supervisor"),
    }
}

fn gave_up(name: &str) -> Error {
    Error::new(Kind::PartFailed, format!("running the bridge: a part of it, {name}, kept failing"))
        .hint("nothing is lost: what was accepted is in the spool. The log and `anna-relay stream` say why it failed")
}

/// Tells systemd; where it cannot be told, that is no reason to stop.
fn tell_systemd(state: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "telling systemd");
    }
}

/// What `systemctl status` shows.
fn status_line(wires: &Wires) -> String {
    let status = wires.status();
    if status.recovering {
        return "still reading the spool".to_owned();
    }
    let Status { brain, bot, queue, .. } = &status;
    let side = |state: SideState| if state == SideState::Online { "online" } else { "away" };
    let mut line = format!(
        "brain {}, bot {}; {} waiting, {} with the brain, {} for the bot",
        side(brain.state),
        side(bot.state),
        queue.new,
        queue.brain,
        queue.out
    );
    if status.paused.is_some() {
        line.push_str("; paused");
    }
    if status.breaker.tripped {
        line.push_str("; breaker tripped");
    }
    line
}

/// Ends a process that is stuck, for systemd to start it again.
fn end_stuck() {
    tracing::error!("the bridge is stuck; it ends, to be started again");
    std::process::exit(i32::from(Kind::PartFailed.exit_code()));
}
