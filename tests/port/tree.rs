//! A tree of stand-ins, as a test sees it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Output, Stdio};
use std::time::{Duration, Instant};

use anna_relay::port::{Judge, Verdict};
use rustix::process::{Pid, Signal, kill_process};

use crate::standin;

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for a condition.
#[track_caller]
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A port that nobody listens on, and that the system gives to nobody who does not ask for it.
pub fn free_port() -> u16 {
    until("a port is free", || {
        Some(fastrand::u16(10_000..30_000)).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
    })
}

/// Sends SIGKILL.
pub fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// A running tree, which ends with this value.
pub struct Tree {
    root: Child,
    lines: BufReader<ChildStdout>,
    seen: HashMap<String, u32>,
    /// The port it listens on.
    pub port: u16,
}

impl Tree {
    /// Starts one on a port of its own.
    pub fn start(line: &str) -> Tree {
        Tree::with(line, free_port(), &[])
    }

    /// Starts one on this port, with these variables; an empty value takes one away.
    pub fn with(line: &str, port: u16, variables: &[(&str, &str)]) -> Tree {
        let mut command = standin::command(line);
        command.env("FAKECHAT_PORT", port.to_string());
        for (name, value) in variables {
            if value.is_empty() {
                command.env_remove(name)
            } else {
                command.env(name, value)
            };
        }
        let mut root = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(root.stdout.take().unwrap());
        Tree { root, lines, seen: HashMap::new(), port }
    }

    /// Waits until that one is up, and says its process id.
    pub fn pid(&mut self, role: &str) -> u32 {
        while !self.seen.contains_key(role) {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the tree ended without a {role}");
            assert!(!line.starts_with("refused"), "the port was taken meanwhile");
            let (role, pid) = line.trim().split_once(' ').unwrap();
            self.seen.insert(role.to_owned(), pid.parse().unwrap());
        }
        self.seen[role]
    }

    /// Kills one of them. The root stays a zombie until [`Tree::reap`].
    pub fn kill(&mut self, role: &str) {
        kill(self.pid(role));
    }

    /// Waits for the root, which was killed.
    pub fn reap(&mut self) {
        let pipe = self.root.stdin.take();
        self.root.wait().unwrap();
        self.root.stdin = pipe;
    }

    /// Waits until the port is held by an orphan.
    #[track_caller]
    pub fn orphan(&self, judge: &mut Judge) -> anna_relay::port::Orphan {
        until("there is an orphan", || match judge.judge(self.port) {
            Verdict::Orphan(orphan) => Some(orphan),
            _ => None,
        })
    }

    /// Whether something accepts connections on the port.
    pub fn answers(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    /// Runs `clear-port` on the port.
    pub fn clear_port(&self, flags: &str) -> Output {
        clear_port(self.port, flags).output().unwrap()
    }
}

/// `clear-port brain` as a program.
pub fn clear_port(port: u16, flags: &str) -> std::process::Command {
    standin::command(format!("clear-port brain {port} {flags}").trim())
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Its standard input ends, so all of them do.
        drop(self.root.stdin.take());
        self.root.wait().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while self.answers() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
