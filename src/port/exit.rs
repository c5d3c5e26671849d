//! Says when a process ends. Only Linux does, by a descriptor of the process; elsewhere the next sweep finds out.

use std::io;

#[cfg(target_os = "linux")]
use rustix::process::{Pid, PidfdFlags, pidfd_open};
#[cfg(target_os = "linux")]
use tokio::net::unix::pipe::Receiver;

/// Waits until the process of that id has ended, or is not there.
///
/// # Errors
/// The kernel has no descriptor left to give, or gives none of this kind (Linux before 5.3).
#[cfg(target_os = "linux")]
pub async fn exit(pid: u32) -> io::Result<()> {
    #[cfg(debug_assertions)]
    if std::env::var_os("ANNA_RELAY_TEST_NO_EXITS").is_some() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        // It can be read, as a pipe can, once the process has ended. There is nothing in it.
        Ok(process) => Receiver::from_owned_fd_unchecked(process)?.readable().await,
        Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Nobody says so here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub async fn exit(_: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn it_is_told_when_it_ends_and_not_before() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(timeout(Duration::from_millis(20), exit(child.id())).await.is_err(), "it runs");
        // Killed, and not reaped yet.
        child.kill().unwrap();
        exit(child.id()).await.unwrap();
        child.wait().unwrap();
        exit(child.id()).await.unwrap();
    }
}
