//! One file at a time may become complete at a fakechat.
//!
//! fakechat names an uploaded file by the millisecond at which its body was complete, and both sessions of a
//! user share one folder: of two in the same millisecond only one is left. So the last bytes of a body with a
//! file are sent inside a gate that this whole process shares.

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until, timeout};

/// How long to wait for the gate. A peer that hangs while it is inside must not hold up the other side; by then
/// its file has long been given its name, or never will be.
const WAIT: Duration = Duration::from_secs(2);

/// How long the gate stays closed after an answer: two turns of the clock that names the files.
const REST: Duration = Duration::from_millis(2);

/// When the last one went out.
static GATE: Mutex<Option<Instant>> = Mutex::const_new(None);

/// Being inside.
pub struct Pass(Option<MutexGuard<'static, Option<Instant>>>);

/// Waits to go in. Whoever waited in vain goes ahead all the same.
pub async fn enter() -> Pass {
    let Ok(last) = timeout(WAIT, GATE.lock()).await else { return Pass(None) };
    if let Some(last) = *last {
        sleep_until(last + REST).await;
    }
    Pass(Some(last))
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(last) = &mut self.0 {
            **last = Some(Instant::now());
        }
    }
}
