//! A fakechat without a session: the double that tests and `demo` speak to.
//!
//! It does what the real one does, as far as the relay can see it, and, turned on by [`Faults`], what the real one
//! has been seen to do wrong. It runs on a thread of its own, so that code without a runtime can use it. What is
//! left out: the web page, and that the real one drops frames for a client that lags more than 16 MiB behind.
//!
//! ```
//! use anna_relay::fakechat::server::Double;
//!
//! let double = Double::start(0)?; // any free port
//! assert!(double.port() != 0 && double.uploads().is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```

mod faults;
mod http;
mod say;
mod state;
mod websocket;

use std::io;
use std::net::TcpListener;
use std::ops::Deref;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;

pub use faults::{Faults, Refusal};
pub use say::Sayer;
use state::{Out, Shared};

use super::address;

/// A message that was put into the session.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its id.
    pub id: String,
    /// What it says, as it came. The session would see an empty one as `(attachment)` or `(<file name>)`.
    pub text: String,
    /// What came along. A file of no bytes did not, as with the real one.
    pub file: Option<ReceivedFile>,
    /// When its body was complete.
    pub at: Instant,
}

/// A file that came along with a message.
#[derive(Clone, Debug)]
pub struct ReceivedFile {
    /// What it is called.
    pub name: String,
    /// What is in it.
    pub bytes: Bytes,
    /// What the real one would call it in its inbox: `<epoch ms><ending>`. Of two with the same name one is lost.
    pub saved_as: String,
}

/// A websocket text frame of a client that became a prompt. The relay must never send one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its id.
    pub id: String,
    /// What it says, trimmed as the real one does.
    pub text: String,
}

/// A fakechat without a session. Ends when dropped; what can be said with it is in [`Sayer`].
pub struct Double {
    sayer: Sayer,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Double {
    /// Starts one on this port of 127.0.0.1, or on any free one for 0. It takes connections when this returns.
    ///
    /// # Errors
    /// The port is taken, or there is no thread to be had.
    pub fn start(port: u16) -> io::Result<Double> {
        let listener = TcpListener::bind(address(port))?;
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared::new(listener.local_addr()?.port()));
        let sayer = Sayer::new(Arc::clone(&shared));
        let (theirs, sayers) = (Arc::clone(&shared), sayer.clone());
        let thread = std::thread::Builder::new().name("fakechat".into()).spawn(move || {
            let system = actix_rt::System::new();
            system.block_on(http::serve(listener, Arc::clone(&theirs), sayers));
            drop(system); // Ends what is left of the connections, so that the port is free when this thread has ended.
            theirs.forget_clients();
        })?;
        Ok(Double { sayer, shared, thread: Some(thread) })
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.shared.port
    }

    /// A handle to speak with, for other threads.
    #[must_use]
    pub fn sayer(&self) -> Sayer {
        self.sayer.clone()
    }

    /// Turns faults on and off, for whatever happens from now on.
    pub fn faults(&self, change: impl FnOnce(&mut Faults)) {
        self.shared.change(|state| change(&mut state.faults));
    }

    /// Calls this for each message from now on, after its 204 was sent: a scripted session. It runs on the double's
    /// own thread, so it must not wait for the double.
    pub fn on_upload(&self, hook: impl Fn(&Sayer, &Received) + Send + 'static) {
        self.shared.change(|state| state.hook = Some(Arc::new(std::sync::Mutex::new(hook))));
    }

    /// When the last text frame began to go out.
    #[must_use]
    pub fn sent(&self) -> Option<Instant> {
        *self.shared.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every message so far, in the order in which their bodies were complete.
    #[must_use]
    pub fn uploads(&self) -> Vec<Received> {
        self.shared.look(|state| state.uploads.clone())
    }

    /// Waits until the messages so far are as wanted, and returns them.
    ///
    /// # Panics
    /// They are not within that time; the panic says what came instead.
    #[track_caller]
    pub fn wait_uploads(&self, within: Duration, wanted: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        match self.shared.wait(within, |state| wanted(&state.uploads).then(|| state.uploads.clone())) {
            Some(uploads) => uploads,
            None => panic!("the uploads are not as wanted after {within:?}; there are {:#?}", self.uploads()),
        }
    }

    /// Forgets the messages so far, and the files that could be got: for whoever sends more than memory holds.
    pub fn forget(&self) {
        self.shared.change(|state| {
            state.uploads.clear();
            state.files.clear();
        });
    }

    /// Every client frame so far that would have become a prompt.
    #[must_use]
    pub fn prompts(&self) -> Vec<Prompt> {
        self.shared.look(|state| state.prompts.clone())
    }

    /// Waits until the prompts so far are as wanted, and returns them.
    ///
    /// # Panics
    /// They are not within that time.
    #[track_caller]
    pub fn wait_prompts(&self, within: Duration, wanted: impl Fn(&[Prompt]) -> bool) -> Vec<Prompt> {
        match self.shared.wait(within, |state| wanted(&state.prompts).then(|| state.prompts.clone())) {
            Some(prompts) => prompts,
            None => panic!("the prompts are not as wanted after {within:?}; there are {:#?}", self.prompts()),
        }
    }

    /// How many websockets are open.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.shared.look(|state| state.clients.len())
    }

    /// Waits until so many websockets are open.
    ///
    /// # Panics
    /// They are not within that time.
    #[track_caller]
    pub fn wait_sockets(&self, count: usize, within: Duration) {
        if self.shared.wait(within, |state| (state.clients.len() == count).then_some(())).is_none() {
            panic!("{} websockets are open, not {count}, after {within:?}", self.sockets());
        }
    }

    /// Cuts all websockets without a close frame, as the death of the process does.
    pub fn drop_sockets(&self) {
        self.shared.broadcast(&Out::Cut);
    }

    /// Closes all websockets with a close frame.
    pub fn close_sockets(&self) {
        self.shared.broadcast(&Out::Close);
    }

    /// Waits until it has gone away by itself (see [`Faults::die_after_answer`]).
    ///
    /// # Panics
    /// It has not within that time.
    #[track_caller]
    pub fn wait_gone(&self, within: Duration) {
        assert!(self.shared.wait(within, |state| state.gone.then_some(())).is_some(), "still there after {within:?}");
    }

    /// Ends it, and returns every message it got. The port is free when this returns.
    pub fn stop(mut self) -> Vec<Received> {
        self.end();
        self.uploads()
    }

    fn end(&mut self) {
        self.shared.stop.notify_one();
        // The hook may end the double from its own thread, which cannot wait for itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic of the double's thread has been printed; there is nothing to add.
            thread.join().ok();
        }
    }
}

impl Deref for Double {
    type Target = Sayer;

    fn deref(&self) -> &Sayer {
        &self.sayer
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
