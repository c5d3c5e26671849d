//! Doing something that may hang, for no longer than it is worth.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};

/// Does it on a thread of its own, so that neither a reader or a disk that hangs nor a panic gets in the way.
///
/// # Errors
/// Those of the work, or that it was not done in time: then the thread stays behind.
pub fn within<T: Send + 'static>(
    time: Duration,
    doing: &str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (done, result) = mpsc::sync_channel(1);
    let start = thread::Builder::new().name("within".into()).spawn(move || done.send(work()));
    start.map_err(|error| Error::failed(format!("{doing}: starting a thread: {error}")))?;
    result.recv_timeout(time).unwrap_or_else(|gone| {
        Err(Error::failed(match gone {
            mpsc::RecvTimeoutError::Timeout => format!("{doing}: not done within {} s", time.as_secs()),
            mpsc::RecvTimeoutError::Disconnected => format!("{doing}: it panicked"),
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_hangs_or_panics_is_left() {
        let hangs = within(Duration::from_millis(20), "waiting", || {
            thread::sleep(Duration::from_secs(60));
            Ok(())
        });
        assert_eq!(hangs.unwrap_err().to_string(), "waiting: not done within 0 s");
        let panics = within(Duration::from_secs(60), "failing", || -> Result<()> { panic!("on purpose") });
        assert_eq!(panics.unwrap_err().to_string(), "failing: it panicked");
        assert_eq!(within(Duration::from_secs(60), "working", || Ok(1)).unwrap(), 1);
    }
}
