//! A temporary folder, two doubles, the bridge.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anna_relay::control::client::Client;
use anna_relay::control::wire;
use anna_relay::fakechat::server::Double;
use serde_json::Value;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_anna-relay");
const SOON: Duration = Duration::from_secs(60);

pub struct World {
    pub dir: tempfile::TempDir,
    pub brain: Double,
    pub bot: Double,
    bridge: Option<Child>,
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

    pub fn spool(&self) -> PathBuf {
        self.dir.path().join("state/relay")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).env("ANNA_CONFIG", self.dir.path().join("anna.toml")).env("HOME", self.dir.path());
        command.env_remove("NOTIFY_SOCKET").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub fn start(&mut self) {
        self.bridge = Some(self.command(&["bridge"]).spawn().unwrap());
        self.until(|status| status["running"] == true);
    }

    pub fn start_online(&mut self) {
        self.start();
        self.until(|status| status["brain"]["state"] == "online" && status["bot"]["state"] == "online");
    }

    pub fn until(&self, wanted: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + SOON;
        loop {
            let mut client = Client::connect(&self.spool()).ok().flatten();
            let status = client.as_mut().and_then(|client| client.ask(wire::Command::Status).ok());
            if status.is_some_and(|status| wanted(&status)) {
                return;
            }
            assert!(Instant::now() < deadline, "waited in vain");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn stop(&mut self) {
        if let Some(mut bridge) = self.bridge.take() {
            bridge.kill().unwrap();
            bridge.wait().unwrap();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop();
    }
}
