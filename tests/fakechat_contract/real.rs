//! The real fakechat as a party to the contract, with this test as its session: an MCP client over its stdio.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};

use bytes::Bytes;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Chat, Got, PATIENCE};

/// What came out of its stdout.
type Lines = Arc<(Mutex<Vec<Value>>, Condvar)>;

pub struct Session {
    process: Child,
    port: u16,
    stdin: Mutex<ChildStdin>,
    lines: Lines,
    calls: AtomicU64,
    /// It writes its inbox and its outbox below here.
    home: TempDir,
}

impl Session {
    pub fn start(folder: &Path) -> Session {
        let home = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new("bun")
            .arg("server.ts")
            .current_dir(folder)
            .env("HOME", home.path())
            .env("FAKECHAT_PORT", port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("bun must be installed");
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
                    up.send(()).unwrap();
                }
            }
        });
        let calls = AtomicU64::new(0);
        let session = Session { process, port, stdin: Mutex::new(stdin), lines, calls, home };
        session.call(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}),
        );
        session.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        is_up.recv_timeout(PATIENCE).expect("fakechat did not open its port");
        session
    }

    fn write(&self, message: &Value) {
        let mut stdin = self.stdin.lock().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Waits until `find` finds something in what came.
    fn wait<T>(&self, what: &str, find: impl Fn(&[Value]) -> Option<T>) -> T {
        let guard = self.lines.0.lock().unwrap();
        let missing = |lines: &mut Vec<Value>| find(lines).is_none();
        let (lines, _) = self.lines.1.wait_timeout_while(guard, PATIENCE, missing).unwrap();
        find(&lines).unwrap_or_else(|| panic!("no {what} among {} lines", lines.len()))
    }

    fn call(&self, method: &str, params: &Value) -> Value {
        let id = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.wait(method, |lines| lines.iter().find(|line| line["id"] == id).cloned());
        assert!(answer["error"].is_null() && answer["result"]["isError"] != true, "{answer}");
        answer["result"].clone()
    }

    fn reply(&self, arguments: &Value) -> String {
        let result = self.call("tools/call", &json!({"name": "reply", "arguments": arguments}));
        let text = result["content"][0]["text"].as_str().unwrap();
        text.strip_prefix("sent (").unwrap().strip_suffix(')').unwrap().to_owned()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Chat for Session {
    fn port(&self) -> u16 {
        self.port
    }

    fn say(&self, text: Option<&str>, reply_to: Option<&str>) -> String {
        let mut arguments = json!({});
        if let Some(text) = text {
            arguments["text"] = text.into();
        }
        if let Some(reply_to) = reply_to {
            arguments["reply_to"] = reply_to.into();
        }
        self.reply(&arguments)
    }

    fn say_file(&self, text: &str, name: &str, bytes: &[u8]) -> String {
        let path = self.home.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        self.reply(&json!({"text": text, "files": [path]}))
    }

    fn edit(&self, id: &str, text: &str) {
        self.call("tools/call", &json!({"name": "edit_message", "arguments": {"message_id": id, "text": text}}));
    }

    fn got(&self, count: usize) -> Vec<Got> {
        self.wait("message", |lines| {
            let channel = |line: &&Value| line["method"] == "notifications/claude/channel";
            let got = lines.iter().filter(channel).map(|line| {
                let (content, meta) = (&line["params"]["content"], &line["params"]["meta"]);
                let file = meta["file_path"].as_str().map(|path| Bytes::from(std::fs::read(path).unwrap()));
                let id = meta["message_id"].as_str().unwrap().to_owned();
                Got { id, text: content.as_str().unwrap().to_owned(), file }
            });
            let got: Vec<Got> = got.collect();
            (got.len() >= count).then_some(got)
        })
    }
}
