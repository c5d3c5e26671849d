//! A temporary folder, two doubles, the bridge.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anna_relay::control::client::Client;
use anna_relay::control::wire;
use anna_relay::fakechat::server::{Double, Received};
use anna_relay::handoff::Id;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::floor;

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_anna-relay");
/// How long anything is waited for: thousands of hand-offs on a slow disk take minutes.
pub const SOON: Duration = Duration::from_secs(300);
/// What the one before left to do is done by then.
pub const REST: Duration = Duration::from_millis(20);
/// So many at the beginning of a block do not count, of the floors either: a machine that had nothing to do for a
/// while takes several times as long for the first few.
pub const WARM: usize = 4;
/// The relay writes once more to a hand-off `confirm_ms` (500) after its push: a block of measurements is over before
/// the first of these, unless they are meant to fall into it.
pub const BLOCK: Duration = Duration::from_millis(400);
/// And after this long without a push the last of these is written.
const CONFIRMED: Duration = Duration::from_millis(700);

/// One.
pub struct World {
    /// Its folder.
    pub dir: tempfile::TempDir,
    /// The brain's fakechat.
    pub brain: Double,
    /// The bot's.
    pub bot: Double,
    bridge: Option<(Child, u32)>,
}

impl World {
    /// The bridge does not run yet.
    pub fn new() -> World {
        let (brain, bot) = (Double::start(0).unwrap(), Double::start(0).unwrap());
        // Beside the build, for a folder in memory would make the floor of a durable write a fairy tale.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let config = format!(
            "[paths]\nstate = {:?}\n[relay]\nenabled = true\nholder = \"any\"\nbrain_port = {}\nbot_port = {}\n\
             settle_s = 0.1\nbreaker_count = 10000\nbreaker_window_s = 1\n",
            dir.path().join("state"),
            brain.port(),
            bot.port()
        );
        std::fs::write(dir.path().join("anna.toml"), config).unwrap();
        World { dir, brain, bot, bridge: None }
    }

    /// The bridge runs, and both sides are online.
    pub fn online() -> World {
        let mut world = World::new();
        world.start();
        world
    }

    /// The spool's folder.
    pub fn spool(&self) -> PathBuf {
        self.dir.path().join("state/relay")
    }

    /// The bridge's process id.
    pub fn pid(&self) -> u32 {
        self.bridge.as_ref().unwrap().1
    }

    /// A command of the program.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args);
        self.at_home(&mut command);
        command
    }

    /// Has a command live in this world.
    pub fn at_home(&self, command: &mut Command) {
        command.env("ANNA_CONFIG", self.dir.path().join("anna.toml")).env("HOME", self.dir.path());
        command.env_remove("NOTIFY_SOCKET").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    }

    /// Starts the bridge, and waits until both sides are online.
    pub fn start(&mut self) {
        self.start_as(self.command(&["bridge"]));
    }

    /// Starts it by this command.
    pub fn start_as(&mut self, command: Command) {
        self.spawn(command);
        let online = |side: &Value| side["state"] == "online";
        let status = self.until(|status| online(&status["brain"]) && online(&status["bot"]));
        self.bridge.as_mut().unwrap().1 = status["pid"].as_u64().and_then(|pid| pid.try_into().ok()).unwrap();
    }

    /// Only starts it.
    pub fn spawn(&mut self, mut command: Command) {
        let child = command.spawn().unwrap();
        let pid = child.id();
        self.bridge = Some((child, pid));
    }

    /// A connection to its control socket.
    pub fn client(&self) -> Option<Client> {
        Client::connect(&self.spool()).ok().flatten()
    }

    /// Asks the bridge.
    pub fn ask(&self, command: wire::Command) -> Value {
        self.client().unwrap().ask(command).unwrap()
    }

    /// Waits until the status is as wanted, and returns it.
    pub fn until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let status = self.client().and_then(|mut client| client.ask(wire::Command::Status).ok());
            if let Some(status) = status.as_ref().filter(|status| wanted(status)) {
                return status.clone();
            }
            assert!(Instant::now() < deadline, "waited in vain; the status is {status:?}");
            sleep(Duration::from_millis(2));
        }
    }

    /// Waits until all is pushed, confirmed and written.
    pub fn quiet(&self) {
        sleep(CONFIRMED);
        self.until(|status| status["queue"]["new"] == 0 && status["queue"]["out"] == 0);
        sleep(REST);
    }

    /// Waits until nothing is open, either.
    pub fn empty(&self) {
        self.until(|status| status["queue"]["brain"] == 0);
        self.quiet();
    }

    /// Has so many lie in a folder, copies under other ids of the one that is there: as the relay wrote it.
    pub fn copy(&self, folder: &str, n: usize) {
        let folder = self.spool().join(folder);
        let one = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let mut document: Value = serde_json::from_slice(&std::fs::read(one).unwrap()).unwrap();
        for i in 1..n {
            let (id, at) = (Id::now().to_string(), 1_700_000_000_000_u64 + i as u64);
            document["id"] = json!(id);
            document["source"]["message"] = json!(format!("m{at}-{i}"));
            if let Some(result) = document["results"].get_mut(0) {
                result["message"] = json!(format!("m{}-{i}", at + 1_000));
            }
            std::fs::write(folder.join(format!("{id}.json")), format!("{document}\n")).unwrap();
        }
    }

    /// Ends the bridge.
    pub fn stop(&mut self) {
        if let Some((mut bridge, pid)) = self.bridge.take() {
            let pid = Pid::from_raw(pid.cast_signed()).unwrap();
            kill_process(pid, Signal::TERM).ok();
            bridge.wait().unwrap();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits for so many requests of the relay at a double.
pub fn wait(double: &Double, count: usize) -> Vec<Received> {
    let ours = |one: &&Received| one.id != floor::ID;
    let enough = |all: &[Received]| all.len() >= count && all.iter().filter(ours).count() >= count;
    let all = double.wait_uploads(SOON, enough);
    all.iter().filter(ours).cloned().collect()
}
