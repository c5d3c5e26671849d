//! The real fakechat as a party to the contract, with this test as its session.

use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use serde_json::json;
use tempfile::TempDir;

use crate::mcp::Mcp;
use crate::{Chat, Got};

pub struct Session {
    mcp: Mcp,
    port: u16,
    /// It writes its inbox and its outbox below here.
    home: TempDir,
}

impl Session {
    pub fn start(folder: &Path) -> Session {
        let home = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut bun = Command::new("bun");
        bun.arg("server.ts").current_dir(folder);
        let mcp = Mcp::start(bun.env("HOME", home.path()).env("FAKECHAT_PORT", port.to_string()));
        Session { mcp, port, home }
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
        self.mcp.reply(&arguments)
    }

    fn say_file(&self, text: &str, name: &str, bytes: &[u8]) -> String {
        let path = self.home.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        self.mcp.reply(&json!({"text": text, "files": [path]}))
    }

    fn edit(&self, id: &str, text: &str) {
        self.mcp.call("tools/call", &json!({"name": "edit_message", "arguments": {"message_id": id, "text": text}}));
    }

    fn got(&self, count: usize) -> Vec<Got> {
        let got = self.mcp.channel(|got| got.len() >= count);
        let got = got.iter().map(|params| {
            let (content, meta) = (&params["content"], &params["meta"]);
            let file = meta["file_path"].as_str().map(|path| Bytes::from(std::fs::read(path).unwrap()));
            let id = meta["message_id"].as_str().unwrap().to_owned();
            Got { id, text: content.as_str().unwrap().to_owned(), file }
        });
        got.collect()
    }
}
