//! What the session of a double says.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde_json::{Value, json};

use super::state::{Out, Shared};

/// Says things in the name of a double's session, to the websockets that are open at that instant.
#[derive(Clone)]
pub struct Sayer {
    shared: Arc<Shared>,
}

impl Sayer {
    pub(super) fn new(shared: Arc<Shared>) -> Sayer {
        Sayer { shared }
    }

    /// A reply. Returns its message id, `m<epoch ms>-<n>`.
    pub fn say(&self, text: &str, reply_to: Option<&str>) -> String {
        let id = self.next_id();
        self.say_with_id(&id, text, reply_to);
        id
    }

    /// A reply under a message id of one's own: one from another time, or one that was used before.
    pub fn say_with_id(&self, id: &str, text: &str, reply_to: Option<&str>) {
        self.message(id, Some(text), reply_to, None);
    }

    /// A reply with a file, which `GET /files/…` then has until the double is told to forget. Returns its message id.
    pub fn say_file(&self, text: Option<&str>, reply_to: Option<&str>, name: &str, bytes: impl Into<Bytes>) -> String {
        let url = self.keep_file(name, bytes);
        let id = self.next_id();
        self.message(&id, text, reply_to, Some(json!({"url": url, "name": name})));
        id
    }

    /// Has a file to be got, of which nobody is told. Returns its url, `/files/…`.
    pub fn keep_file(&self, name: &str, bytes: impl Into<Bytes>) -> String {
        let stored = format!("{}-{:06x}{}", epoch_ms(), fastrand::u32(..1 << 24), ending(name));
        let url = format!("/files/{stored}");
        self.shared.change(|state| state.files.insert(stored, bytes.into()));
        url
    }

    /// A reply whose text is so many bytes long: past what a client takes, say. Returns its message id.
    pub fn say_long(&self, bytes: usize) -> String {
        self.say(&"x".repeat(bytes), None)
    }

    /// An edit of a message.
    pub fn edit(&self, id: &str, text: &str) {
        self.say_frame(json!({"type": "edit", "id": id, "text": text}).to_string());
    }

    /// Any text frame.
    pub fn say_frame(&self, raw: impl Into<Bytes>) {
        self.shared.broadcast(&Out::Text(raw.into()));
    }

    /// A binary frame. Real: not seen yet.
    pub fn say_binary(&self, raw: impl Into<Bytes>) {
        self.shared.broadcast(&Out::Binary(raw.into()));
    }

    fn message(&self, id: &str, text: Option<&str>, reply_to: Option<&str>, file: Option<Value>) {
        let mut frame = json!({"type": "msg", "id": id, "from": "assistant", "ts": epoch_ms()});
        let given = [("text", text.map(Value::from)), ("replyTo", reply_to.map(Value::from)), ("file", file)];
        for (key, value) in given {
            if let Some(value) = value {
                frame[key] = value;
            }
        }
        self.say_frame(frame.to_string());
    }

    fn next_id(&self) -> String {
        let count = self.shared.change(|state| {
            state.said += 1;
            state.said
        });
        format!("m{}-{count}", epoch_ms())
    }
}

/// The ending of a file's name with its dot, in small letters; empty without one.
pub(super) fn ending(name: &str) -> String {
    match name.rfind('.') {
        Some(at) if at > 0 => name[at..].to_lowercase(),
        _ => String::new(),
    }
}

/// The clock that fakechat makes its names from.
pub(super) fn epoch_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}
