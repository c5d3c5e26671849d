//! A tree of stand-ins, as a test sees it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use anna_relay::port::{Judge, Verdict};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::wait;
use crate::standin::{self, control_path};

/// A port that nobody listens on, and that the system gives to nobody who does not ask for it.
pub fn free_port() -> u16 {
    wait("a port to be free", || {
        Some(fastrand::u16(10_000..30_000)).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
    })
}

fn process(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

/// Sends SIGKILL.
pub fn kill(pid: u32) {
    kill_process(process(pid), Signal::KILL).unwrap();
}

/// Whether that process runs. One that nobody has reaped yet does not.
pub fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// A running tree, which ends with this value.
pub struct Tree {
    root: Child,
    lines: BufReader<ChildStdout>,
    seen: HashMap<String, u32>,
    folder: PathBuf,
    port: u16,
}

impl Tree {
    /// Starts one for this port, with these variables.
    pub fn start(line: &str, folder: &Path, port: u16, variables: &[(&str, &str)]) -> Tree {
        let mut command = standin::command(line);
        command.env("FAKECHAT_PORT", port.to_string()).env(standin::FOLDER, folder).envs(variables.iter().copied());
        command.env("HOME", folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut root = command.spawn().unwrap();
        let lines = BufReader::new(root.stdout.take().unwrap());
        Tree { root, lines, seen: HashMap::new(), folder: folder.to_owned(), port }
    }

    /// Waits until that one is up, and says its process id.
    #[track_caller]
    pub fn pid(&mut self, role: &str) -> u32 {
        while !self.seen.contains_key(role) {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the tree ended without a {role}");
            let (role, pid) = line.trim().split_once(' ').unwrap();
            self.seen.insert(role.to_owned(), pid.parse().unwrap());
        }
        self.seen[role]
    }

    /// Kills one of them.
    #[track_caller]
    pub fn kill(&mut self, role: &str) {
        kill(self.pid(role));
    }

    /// Kills the session and waits for it, as its shell would.
    pub fn kill_session(&mut self) {
        self.pid("server");
        self.kill("session");
        let pipe = self.root.stdin.take();
        self.root.wait().unwrap();
        self.root.stdin = pipe;
    }

    /// Ends the session as it ends when all is well: its wrapper goes with it, the server stays.
    pub fn exit_cleanly(&mut self) {
        self.pid("server");
        self.kill("wrapper");
        self.kill_session();
    }

    /// Says something to the fakechat of this tree; none if it is gone.
    pub fn try_ask(&self, role: &str, request: &Value) -> Option<Value> {
        let mut stream = UnixStream::connect(control_path(&self.folder, *self.seen.get(role)?)).ok()?;
        writeln!(stream, "{request}").ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    #[track_caller]
    fn ask(&mut self, request: &Value) -> Value {
        let role = ["server", "stranger", "real"].into_iter().find(|role| self.seen.contains_key(*role));
        self.try_ask(role.expect("a fakechat"), request).expect("an answer")
    }

    /// What was put into the session.
    #[track_caller]
    pub fn uploads(&mut self) -> Vec<Value> {
        self.ask(&json!({"do": "uploads"})).as_array().unwrap().clone()
    }

    /// Waits until so much was put into the session, and returns its texts.
    #[track_caller]
    pub fn gets(&mut self, count: usize) -> Vec<String> {
        let all = wait(&format!("{count} uploads"), || Some(self.uploads()).filter(|all| all.len() >= count));
        all.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
    }

    /// How many websockets are open.
    #[track_caller]
    pub fn sockets(&mut self) -> u64 {
        self.ask(&json!({"do": "sockets"})).as_u64().unwrap()
    }

    /// The session says something. Returns the message id.
    #[track_caller]
    pub fn say(&mut self, text: &str, reply_to: Option<&str>) -> String {
        self.ask(&json!({"do": "say", "text": text, "reply_to": reply_to})).as_str().unwrap().to_owned()
    }

    /// It lets go of its port, and keeps its websocket.
    #[track_caller]
    pub fn unlisten(&mut self) {
        self.ask(&json!({"do": "unlisten"}));
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Its standard input ends, so all of them do.
        drop(self.root.stdin.take());
        self.root.wait().unwrap();
        // But for the real fakechat, which takes no notice of that.
        let left = Judge::of_this_user().judge(self.port);
        if self.seen.contains_key("real")
            && let Verdict::Orphan(orphan) = left
        {
            anna_relay::port::end::end(&orphan, self.port).unwrap();
        }
    }
}
