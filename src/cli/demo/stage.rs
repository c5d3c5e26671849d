//! What the demo stands on: a temporary folder, two doubles, a bridge as a process of its own.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::select_all;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::control::client::Client;
use crate::control::wire;
use crate::error::{Advise, During, Error, Result};
use crate::fakechat::server::{Double, Received};
use crate::spool::fs::private_dir;
use crate::text::visible;

use super::{WITHIN, out};

/// How often what is waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The stage. What it made is gone once it is cleared or dropped, also at an interrupt.
pub(super) struct Stage {
    started: Instant,
    pub(super) bot: Double,
    brain: Option<Double>,
    brain_port: u16,
    props: Arc<Mutex<Props>>,
    dir: PathBuf,
}

/// What has to be cleared away.
struct Props {
    dir: PathBuf,
    bridge: Option<Child>,
}

impl Stage {
    pub(super) fn set() -> Result<Stage> {
        let dir = std::env::temp_dir().join(format!("anna-relay-demo-{}", std::process::id()));
        let props = Arc::new(Mutex::new(Props { dir: dir.clone(), bridge: None }));
        clear_at_interrupt(Arc::clone(&props))?;
        let made = private_dir(&dir).during(format_args!("making the folder {}", dir.display()));
        made.advise("set $TMPDIR to a folder that this user may write")?;
        let bot = Double::start(0).during("starting the bot's fakechat")?;
        // A port that is free now, for the brain that comes later.
        let brain_port = Double::start(0).during("finding a port for the brain's fakechat")?.port();
        let config = format!(
            "[paths]\nstate = {:?}\n[relay]\nenabled = true\nholder = \"any\"\nbrain_port = {brain_port}\n\
             bot_port = {}\nsettle_s = 0.5\nconfirm_ms = 200\n",
            dir.join("state"),
            bot.port()
        );
        std::fs::write(dir.join("anna.toml"), config).during("writing the demo's anna.toml")?;
        Ok(Stage { started: Instant::now(), bot, brain: None, brain_port, props, dir })
    }

    /// Prints a step with the time since the start.
    pub(super) fn say(&self, text: &str) -> Result<()> {
        out::print_line(&format!("{:6.2} s  {}", self.started.elapsed().as_secs_f64(), visible(text)))
    }

    pub(super) fn start_bridge(&mut self) -> Result<u32> {
        let program = std::env::current_exe().during("finding this program")?;
        let errors = File::create(self.dir.join("bridge.log")).during("making the bridge's log")?;
        let mut command = Command::new(program);
        command.arg("--config").arg(self.dir.join("anna.toml")).arg("bridge");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM"] {
            command.env_remove(name);
        }
        let pid = {
            // An interrupt waits until it is known what there is to clear.
            let mut props = self.props();
            let child = command.spawn().during("starting the bridge")?;
            props.bridge.insert(child).id()
        };
        self.wait_status("the bridge to run", |status| status["running"] == true)?;
        Ok(pid)
    }

    pub(super) fn start_brain(&mut self, answer: &'static str) -> Result<u16> {
        let brain = Double::start(self.brain_port).during("starting the brain's fakechat")?;
        brain.on_upload(move |sayer, received| {
            sayer.say(answer, Some(&received.id));
        });
        self.brain = Some(brain);
        Ok(self.brain_port)
    }

    pub(super) fn received_by_brain(&self, within: Duration) -> Result<Received> {
        let got = |all: &[Received]| !all.is_empty();
        let first = self.brain.as_ref().and_then(|brain| self.received(brain, within, got)?.into_iter().next());
        first.ok_or_else(|| self.late("the hand-off to reach the brain"))
    }

    pub(super) fn received_by_bot(
        &self,
        within: Duration,
        wanted: impl Fn(&[Received]) -> bool,
    ) -> Result<Vec<Received>> {
        self.received(&self.bot, within, wanted).ok_or_else(|| self.late("the result to reach the bot"))
    }

    fn received(&self, by: &Double, within: Duration, wanted: impl Fn(&[Received]) -> bool) -> Option<Vec<Received>> {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            let all = by.uploads();
            if wanted(&all) {
                return Some(all);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        None
    }

    pub(super) fn wait_status(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<()> {
        let spool = self.dir.join("state/relay");
        self.wait(what, || {
            let mut client = Client::connect(&spool).ok().flatten()?;
            client.ask(wire::Command::Status).ok().filter(&wanted).map(|_| ())
        })
    }

    /// The first line of the stream with that in it.
    pub(super) fn wait_stream(&self, what: &str, part: &str) -> Result<String> {
        let stream = self.dir.join("state/stream.log");
        self.wait(what, || {
            let text = std::fs::read_to_string(&stream).ok()?;
            let line = text.lines().find(|line| line.contains(part))?;
            Some(line.split_once("relay: ").map_or(line, |(_, rest)| rest).to_owned())
        })
    }

    fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + WITHIN;
        while Instant::now() < deadline {
            if let Some(found) = look() {
                return Ok(found);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(self.late(what))
    }

    fn late(&self, what: &str) -> Error {
        let log = std::fs::read_to_string(self.dir.join("bridge.log")).unwrap_or_default();
        let error = Error::failed(format!("showing the demo: waited {} s for {what}", WITHIN.as_secs()));
        match log.trim() {
            "" => error,
            log => error.hint(format!("the bridge said: {log}")),
        }
    }

    fn props(&self) -> std::sync::MutexGuard<'_, Props> {
        self.props.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves nothing behind.
    pub(super) fn clear(&mut self) {
        self.brain = None;
        self.props().clear();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Props {
    fn clear(&mut self) {
        if let Some(mut bridge) = self.bridge.take() {
            stop(&mut bridge);
        }
        if let Err(error) = std::fs::remove_dir_all(&self.dir)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            out::say(&format!("anna-relay: removing {}: {error}", self.dir.display()));
        }
    }
}

/// Ends the bridge as systemd does.
fn stop(bridge: &mut Child) {
    if let Some(pid) = rustix::process::Pid::from_raw(bridge.id().cast_signed()) {
        // It may have ended by itself; then there is nothing to signal, only to wait for.
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap_or_default();
    }
    if let Err(error) = bridge.wait() {
        out::say(&format!("anna-relay: waiting for the bridge to end: {error}"));
    }
}

/// Clears the stage when the person has seen enough.
fn clear_at_interrupt(props: Arc<Mutex<Props>>) -> Result<()> {
    /// What a shell adds to the number of the signal that ended a program.
    const BY_SIGNAL: i32 = 128;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().during("taking signals")?;
    let mut interrupts = {
        // Taken from here on, not only once the thread runs.
        let _entered = runtime.enter();
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        kinds
            .into_iter()
            .map(|kind| Ok((kind, signal(kind)?)))
            .collect::<io::Result<Vec<_>>>()
            .during("taking signals")?
    };
    let waiting = std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        let kind = runtime.block_on(async {
            let each = interrupts.iter_mut().map(|(kind, came)| {
                Box::pin(async move {
                    came.recv().await;
                    *kind
                })
            });
            select_all(each).await.0
        });
        props.lock().unwrap_or_else(PoisonError::into_inner).clear();
        std::process::exit(BY_SIGNAL + kind.as_raw_value());
    });
    waiting.map(drop).during("taking signals")
}
