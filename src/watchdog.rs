//! Tells when the actors' thread gets stuck, in a way that no actor can see from within.
//!
//! The thread says when it waits for something to happen: then it is not stuck, and need not be woken to find out. Only
//! where it does not wait is it asked to answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};

use crate::error::{During, Result};

/// How often it is looked at.
pub const LOOK_EVERY: Duration = Duration::from_secs(30);

/// So many looks at which it owes an answer are one too many: far above any wait that a busy machine makes. Two may be
/// a process that was stopped as a whole, and has just been let go on.
const STUCK: u32 = 3;

/// What is known of the thread.
#[derive(Clone, Debug, Default)]
pub struct Watchdog {
    waits: Arc<AtomicBool>,
    answered: Arc<AtomicBool>,
}

impl Watchdog {
    /// Watches the thread of the runtime that this builds.
    pub fn watch(&self, runtime: &mut Builder) {
        let says = |waits| {
            let flag = Arc::clone(&self.waits);
            move || flag.store(waits, Ordering::Relaxed)
        };
        runtime.on_thread_park(says(true)).on_thread_unpark(says(false));
    }

    /// Looks at it that often, on a thread of its own; does that when it is stuck.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(self, runtime: Handle, every: Duration, stuck: impl FnOnce() + Send + 'static) -> Result<()> {
        let watching = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            let mut owed = 0;
            while owed < STUCK {
                std::thread::sleep(every);
                owed = self.look(owed, &runtime);
            }
            stuck();
        });
        watching.map(drop).during("starting the watchdog")
    }

    /// Looks; says at how many looks in a row it has owed an answer.
    fn look(&self, owed: u32, runtime: &Handle) -> u32 {
        if self.waits.load(Ordering::Relaxed) {
            return 0;
        }
        if owed == 0 || self.answered.load(Ordering::Relaxed) {
            self.answered.store(false, Ordering::Relaxed);
            let answered = Arc::clone(&self.answered);
            runtime.spawn(async move { answered.store(true, Ordering::Relaxed) });
            return 1;
        }
        owed + 1
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Has a watched thread do that; gives its runtime.
    fn doing(work: impl Future<Output = ()> + Send + 'static) -> (Watchdog, Handle, thread::JoinHandle<()>) {
        let (watchdog, mut builder) = (Watchdog::default(), Builder::new_current_thread());
        watchdog.watch(&mut builder);
        let runtime = builder.build().unwrap();
        let handle = runtime.handle().clone();
        (watchdog, handle, thread::spawn(move || runtime.block_on(work)))
    }

    fn wait_until(mut is: impl FnMut() -> bool) {
        while !is() {
            thread::yield_now();
        }
    }

    #[test]
    fn one_that_waits_is_not_stuck_and_is_not_woken() {
        let (end, ended) = tokio::sync::oneshot::channel();
        let (watchdog, runtime, thread) = doing(async { ended.await.unwrap() });
        wait_until(|| watchdog.waits.load(Ordering::Relaxed));
        assert_eq!(watchdog.look(2, &runtime), 0);
        assert!(!watchdog.answered.load(Ordering::Relaxed), "it was not asked");
        end.send(()).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn one_that_never_waits_is_asked_and_answers() {
        let (end, ended) = mpsc::channel();
        let (watchdog, runtime, thread) = doing(async move {
            while ended.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
        });
        let mut owed = 0;
        for _ in 0..5 {
            owed = watchdog.look(owed, &runtime);
            assert_eq!(owed, 1);
            wait_until(|| watchdog.answered.load(Ordering::Relaxed));
        }
        end.send(()).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn one_that_does_not_come_back_is_stuck() {
        let (free, freed) = mpsc::channel();
        let (watchdog, runtime, thread) = doing(async move { freed.recv().unwrap() });
        let (tell, told) = mpsc::channel();
        watchdog.start(runtime, Duration::from_millis(1), move || tell.send(()).unwrap()).unwrap();
        told.recv().unwrap();
        free.send(()).unwrap();
        thread.join().unwrap();
    }
}
