//! The built-in double as a party to the contract.

use anna_relay::fakechat::server::{Double, Prompt, Received};
use serde_json::json;

use crate::{Chat, Got, PATIENCE};

pub struct Session(Double);

impl Session {
    pub fn start() -> Session {
        Session(Double::start(0).unwrap())
    }
}

impl Chat for Session {
    fn port(&self) -> u16 {
        self.0.port()
    }

    fn say(&self, text: Option<&str>, reply_to: Option<&str>) -> String {
        match text {
            Some(text) => self.0.say(text, reply_to),
            None => {
                let id = "m1700000000000-9".to_owned();
                let frame = json!({"type": "msg", "id": id, "from": "assistant", "ts": 1, "replyTo": reply_to});
                self.0.say_frame(frame.to_string());
                id
            }
        }
    }

    fn say_file(&self, text: &str, name: &str, bytes: &[u8]) -> String {
        self.0.say_file(Some(text), None, name, bytes.to_vec())
    }

    fn edit(&self, id: &str, text: &str) {
        self.0.edit(id, text);
    }

    fn got(&self, count: usize) -> Vec<Got> {
        let prompt = |Prompt { id, text }| Got { id, text, file: None };
        let upload = |Received { id, text, file, .. }| Got { id, text, file: file.map(|file| file.bytes) };
        // No clause has both; what is there already is not waited for.
        if self.0.uploads().is_empty() {
            return self.0.wait_prompts(PATIENCE, |got| got.len() >= count).into_iter().map(prompt).collect();
        }
        self.0.wait_uploads(PATIENCE, |got| got.len() >= count).into_iter().map(upload).collect()
    }
}
