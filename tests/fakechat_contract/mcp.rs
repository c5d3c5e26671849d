//! The least of an MCP client over stdio: what a session does with the real fakechat.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

/// A machine under load is slow; nothing here takes this long if all is well.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came out of its stdout.
type Lines = Arc<(Mutex<Vec<Value>>, Condvar)>;

/// A running fakechat with its session.
pub struct Mcp {
    process: Child,
    stdin: Mutex<ChildStdin>,
    lines: Lines,
    calls: AtomicU64,
}

impl Mcp {
    /// Starts it, shakes hands, and waits until it listens.
    pub fn start(command: &mut Command) -> Mcp {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("bun must be installed");
        let (stdin, stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let lines = Lines::default();
        let theirs = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                theirs.0.lock().unwrap().push(serde_json::from_str(&line).unwrap());
                theirs.1.notify_all();
            }
        });
        let (up, is_up) = mpsc::channel();
        let stderr = process.stderr.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                eprintln!("{line}");
                if line.starts_with("fakechat: http://") {
                    up.send(()).ok();
                }
            }
        });
        let mcp = Mcp { process, stdin: Mutex::new(stdin), lines, calls: AtomicU64::new(0) };
        mcp.call(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}),
        );
        mcp.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        is_up.recv_timeout(PATIENCE).expect("fakechat did not open its port");
        mcp
    }

    fn write(&self, message: &Value) {
        let mut stdin = self.stdin.lock().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Waits until `find` finds something in what came.
    pub fn wait<T>(&self, what: &str, find: impl Fn(&[Value]) -> Option<T>) -> T {
        let guard = self.lines.0.lock().unwrap();
        let missing = |lines: &mut Vec<Value>| find(lines).is_none();
        let (lines, _) = self.lines.1.wait_timeout_while(guard, PATIENCE, missing).unwrap();
        find(&lines).unwrap_or_else(|| panic!("no {what} among {} lines", lines.len()))
    }

    /// Calls a method and waits for its result.
    pub fn call(&self, method: &str, params: &Value) -> Value {
        let id = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.wait(method, |lines| lines.iter().find(|line| line["id"] == id).cloned());
        assert!(answer["error"].is_null() && answer["result"]["isError"] != true, "{answer}");
        answer["result"].clone()
    }

    /// Calls the tool `reply`; the message id.
    pub fn reply(&self, arguments: &Value) -> String {
        let result = self.call("tools/call", &json!({"name": "reply", "arguments": arguments}));
        let text = result["content"][0]["text"].as_str().unwrap();
        text.strip_prefix("sent (").unwrap().strip_suffix(')').unwrap().to_owned()
    }

    /// What was put into the session, in the words of the channel, once `enough` finds it so.
    pub fn channel(&self, enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        self.wait("message", |lines| {
            let channel = lines.iter().filter(|line| line["method"] == "notifications/claude/channel");
            let got: Vec<Value> = channel.map(|line| line["params"].clone()).collect();
            enough(&got).then_some(got)
        })
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
