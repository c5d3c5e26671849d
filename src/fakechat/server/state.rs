//! What a double knows, shared by its thread and whoever looks on.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use super::{Faults, Prompt, Received, Sayer};

/// What is done with each message.
pub type Hook = Arc<Mutex<dyn Fn(&Sayer, &Received) + Send>>;

/// What a websocket is to do.
#[derive(Clone, Debug)]
pub enum Out {
    /// Send this as a text frame.
    Text(Bytes),
    /// Send this as a binary frame.
    Binary(Bytes),
    /// Send a close frame.
    Close,
    /// Cut the connection.
    Cut,
}

/// What is shared.
pub struct Shared {
    /// The port it listens on.
    pub port: u16,
    /// Asks it to end.
    pub stop: Notify,
    /// When the last text frame began to go out. Apart from the rest: nobody is woken for it.
    pub sent: Mutex<Option<Instant>>,
    state: Mutex<State>,
    changed: Condvar,
}

/// What changes.
#[derive(Default)]
pub struct State {
    pub faults: Faults,
    pub hook: Option<Hook>,
    pub uploads: Vec<Received>,
    pub prompts: Vec<Prompt>,
    /// What `GET /files/<name>` gives.
    pub files: HashMap<String, Bytes>,
    /// The open websockets.
    pub clients: HashMap<u64, UnboundedSender<Out>>,
    /// How many websockets there have been.
    pub opened: u64,
    /// How many messages have been said, as the real one counts.
    pub said: u64,
    /// Whether it has ended.
    pub gone: bool,
}

impl Shared {
    pub fn new(port: u16) -> Shared {
        Shared { port, stop: Notify::new(), sent: Mutex::default(), state: Mutex::default(), changed: Condvar::new() }
    }

    /// A test that panics in a closure must not take the double with it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    /// Changes something, and wakes who waits for it.
    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let out = change(&mut self.lock());
        self.changed.notify_all();
        out
    }

    /// Waits until `check` finds something.
    pub fn wait<T>(&self, within: Duration, check: impl Fn(&State) -> Option<T>) -> Option<T> {
        let end = Instant::now() + within;
        let mut state = self.lock();
        loop {
            if let Some(found) = check(&state) {
                return Some(found);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells all open websockets to do this.
    pub fn broadcast(&self, out: &Out) {
        let state = self.lock();
        for client in state.clients.values() {
            // A client that has just gone hears nothing, as with the real one.
            client.send(out.clone()).ok();
        }
    }

    /// Notes that it has ended, and its websockets with it.
    pub fn forget_clients(&self) {
        self.change(|state| {
            state.clients.clear();
            state.gone = true;
        });
    }
}
