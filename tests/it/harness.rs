//! A world for one test: a folder, two doubles with fault knobs, the real program.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use anna_relay::fakechat::server::{Double, Received};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde_json::Value;

/// How long a condition is waited for: far longer than a loaded machine needs, for a test that passes never waits
/// that long.
pub const SOON: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub struct World {
    pub dir: tempfile::TempDir,
    pub brain: Option<Double>,
    pub bot: Option<Double>,
    pub brain_port: u16,
    pub bot_port: u16,
    _ports: [OwnedFd; 2],
    settings: Vec<(String, String)>,
    env: Vec<(String, String)>,
    bridge: Option<Child>,
}

/// A port on which nobody listens.
pub fn free_port() -> u16 {
    let (kept, port) = reserve_port();
    // For as long as the tests run.
    std::mem::forget(kept);
    port
}

/// A port that is given to no other test while nobody listens on it: the kernel hands out none to which a socket is
/// bound. Whoever asks for it by number has it all the same.
fn reserve_port() -> (OwnedFd, u16) {
    let kept = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::sockopt::set_socket_reuseaddr(&kept, true).unwrap();
    rustix::net::bind(&kept, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = SocketAddrV4::try_from(rustix::net::getsockname(&kept).unwrap()).unwrap().port();
    (kept, port)
}

impl World {
    /// Both doubles are there, the bridge is not yet.
    pub fn new() -> World {
        let [(brain_kept, brain_port), (bot_kept, bot_port)] = [reserve_port(), reserve_port()];
        let (brain, bot) = (Double::start(brain_port).unwrap(), Double::start(bot_port).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let world = World {
            dir,
            brain: Some(brain),
            bot: Some(bot),
            brain_port,
            bot_port,
            _ports: [brain_kept, bot_kept],
            settings: Vec::new(),
            env: Vec::new(),
            bridge: None,
        };
        world.with("settle_s", "0.2").with("confirm_ms", "100").with("holder", "\"any\"")
    }

    /// Sets a key of `[relay]`, given as TOML.
    pub fn with(mut self, key: &str, value: &str) -> World {
        self.set(key, value);
        self
    }

    /// Sets it for the next start or reload.
    pub fn set(&mut self, key: &str, value: &str) {
        self.settings.retain(|(known, _)| known != key);
        self.settings.push((key.to_owned(), value.to_owned()));
        self.write_config();
    }

    /// Sets an environment variable of the program.
    pub fn with_env(mut self, name: &str, value: &str) -> World {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn write_config(&self) {
        let mut text = format!("[paths]\nstate = {:?}\n[relay]\nenabled = true\n", self.dir.path().join("state"));
        text += &format!("brain_port = {}\nbot_port = {}\n", self.brain_port, self.bot_port);
        for (key, value) in &self.settings {
            text += &format!("{key} = {value}\n");
        }
        std::fs::write(self.config(), text).unwrap();
    }

    pub fn config(&self) -> PathBuf {
        self.dir.path().join("anna.toml")
    }

    pub fn spool(&self) -> PathBuf {
        self.dir.path().join("state/relay")
    }

    pub fn brain(&self) -> &Double {
        self.brain.as_ref().expect("the brain is there")
    }

    pub fn bot(&self) -> &Double {
        self.bot.as_ref().expect("the bot is there")
    }

    /// The brain goes away.
    pub fn brain_leaves(&mut self) {
        self.brain = None;
    }

    /// The brain comes, on its old port.
    pub fn brain_comes(&mut self) {
        self.brain = Some(start_again(self.brain_port));
    }

    /// The bot goes away.
    pub fn bot_leaves(&mut self) {
        self.bot = None;
    }

    /// The bot comes, on its old port.
    pub fn bot_comes(&mut self) {
        self.bot = Some(start_again(self.bot_port));
    }

    /// The brain answers each hand-off with this, at once.
    pub fn brain_answers(&self, answer: &'static str) {
        self.brain().on_upload(move |sayer, received| {
            if received.text.contains(" from ") {
                sayer.say(answer, Some(&received.id));
            }
        });
    }

    /// A command of the program in this world.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anna-relay"));
        command.args(args).env_clear().env("HOME", self.dir.path()).env("ANNA_CONFIG", self.config());
        command.env("XDG_RUNTIME_DIR", self.dir.path()).envs(self.env.iter().map(|(k, v)| (k, v)));
        command.stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs it, which has to succeed, and returns what it printed.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a query with `--json`, which has to succeed.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let mut args = args.to_vec();
        args.push("--json");
        serde_json::from_str(&self.ok(&args)).unwrap()
    }

    /// Starts the bridge and waits until it runs.
    #[track_caller]
    pub fn start(&mut self) {
        self.spawn();
        self.wait_status("the bridge to run", |status| status["running"] == true);
    }

    /// Starts the bridge.
    pub fn spawn(&mut self) {
        let errors = std::fs::File::options().append(true).create(true).open(self.log_path()).unwrap();
        let child = self.command(&["bridge"]).stdout(Stdio::null()).stderr(errors).spawn().unwrap();
        assert!(self.bridge.replace(child).is_none(), "a bridge runs already");
    }

    /// Starts the bridge and waits until both sides are online.
    #[track_caller]
    pub fn start_online(&mut self) {
        self.start();
        self.wait_online();
    }

    #[track_caller]
    pub fn wait_online(&self) {
        self.wait_status("both sides to be online", |status| {
            status["brain"]["state"] == "online" && status["bot"]["state"] == "online"
        });
    }

    /// What the bridge says on standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("bridge.log")
    }

    pub fn pid(&self) -> u32 {
        self.bridge.as_ref().expect("a bridge runs").id()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// SIGTERM, and how it ended.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        self.wait_exit()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.wait_exit();
    }

    /// How the bridge ended, if it has by itself.
    #[allow(dead_code)] // the soak asks
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.bridge.as_mut()?.try_wait().unwrap()
    }

    /// How the bridge ended; it has to end soon.
    #[track_caller]
    pub fn wait_exit(&mut self) -> ExitStatus {
        let mut bridge = self.bridge.take().expect("a bridge runs");
        wait("the bridge to end", || bridge.try_wait().unwrap())
    }

    /// The status of the bridge, or of the spool without one.
    pub fn status(&self) -> Value {
        let output = self.run(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    #[track_caller]
    pub fn wait_status(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = try_wait(|| {
            last = self.status();
            wanted(&last).then(|| last.clone())
        });
        found.unwrap_or_else(|| panic!("waited for {what}; the status is {last:#}\n{}\n{}", self.log(), self.stream()))
    }

    /// Waits until so many hand-offs lie in that folder.
    #[track_caller]
    pub fn wait_queue(&self, folder: &str, count: usize) -> Value {
        self.wait_status(&format!("{count} in {folder}/"), |status| status["queue"][folder] == count)
    }

    pub fn stream(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("state/stream.log")).unwrap_or_default()
    }

    /// The lines of the stream with a `⚠`.
    pub fn warnings(&self) -> Vec<String> {
        self.stream().lines().filter(|line| line.contains('⚠')).map(str::to_owned).collect()
    }

    #[track_caller]
    pub fn wait_stream(&self, part: &str) -> String {
        let found = try_wait(|| self.stream().lines().find(|line| line.contains(part)).map(str::to_owned));
        found.unwrap_or_else(|| panic!("waited for {part:?} in the stream: {}\n{}", self.stream(), self.log()))
    }

    /// The hand-offs' files in a folder.
    pub fn documents(&self, folder: &str) -> Vec<Value> {
        let Ok(entries) = std::fs::read_dir(self.spool().join(folder)) else { return Vec::new() };
        let mut all: Vec<Value> = entries
            .filter_map(|entry| std::fs::read(entry.unwrap().path()).ok())
            .map(|bytes| serde_json::from_slice(&bytes).unwrap())
            .collect();
        all.sort_by_key(|document| document["created"].as_str().map(str::to_owned));
        all
    }

    /// Waits for uploads at the brain.
    #[track_caller]
    pub fn brain_gets(&self, wanted: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        self.brain().wait_uploads(SOON, wanted)
    }

    /// Waits for uploads at the bot.
    #[track_caller]
    pub fn bot_gets(&self, wanted: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        self.bot().wait_uploads(SOON, wanted)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut bridge) = self.bridge.take() {
            bridge.kill().unwrap();
            bridge.wait().unwrap();
        }
    }
}

/// A double on a port that one had before.
fn start_again(port: u16) -> Double {
    wait("the port to be free", || Double::start(port).ok())
}

/// Waits for a condition.
#[track_caller]
pub fn wait<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    try_wait(look).unwrap_or_else(|| panic!("waited for {what}"))
}

fn try_wait<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The files below a folder, relative to it.
pub fn files_below(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                all.push(entry.path().strip_prefix(dir).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    all.sort();
    all
}
