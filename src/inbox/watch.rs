//! Says when something comes into a folder. Only Linux does; elsewhere, or where the kernel has no watch left to give,
//! the folder is looked at now and then.

use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
#[cfg(target_os = "linux")]
use tokio::net::unix::pipe::Receiver;

/// The watch.
#[derive(Debug)]
pub struct Watch {
    /// inotify's descriptor: what the kernel writes there is read as from a pipe.
    #[cfg(target_os = "linux")]
    notices: Receiver,
}

#[cfg(target_os = "linux")]
impl Watch {
    /// Watches a folder from now on.
    ///
    /// # Errors
    /// There is no such folder, or the user has no watch left (`fs.inotify.max_user_watches`, `max_user_instances`).
    pub fn on(folder: &Path) -> io::Result<Self> {
        let notices = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        // What is being written there comes by a rename once it is whole.
        inotify::add_watch(&notices, folder, WatchFlags::MOVED_TO | WatchFlags::ONLYDIR)?;
        Ok(Watch { notices: Receiver::from_owned_fd_unchecked(notices)? })
    }

    /// Waits until something has come since this was last called.
    ///
    /// # Errors
    /// The watch is of no use any more.
    pub async fn came(&self) -> io::Result<()> {
        loop {
            self.notices.readable().await?;
            // What came is not read off it: a look at the folder says that, and also what a full queue has left out.
            match self.notices.try_read(&mut [0; 4096]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read.map(drop),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Watch {
    /// There is none to be had.
    ///
    /// # Errors
    /// Always.
    pub fn on(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// See the other one.
    ///
    /// # Errors
    /// Always.
    pub async fn came(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn what_comes_is_told_once_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let watch = Watch::on(folder.path()).unwrap();
        let (new, there) = (folder.path().join(".new"), folder.path().join("there"));
        for _ in 0..2 {
            fs::write(&new, "x").unwrap();
            let told = timeout(Duration::ZERO, watch.came()).await;
            assert!(told.is_err(), "it is not whole yet");
            fs::rename(&new, &there).unwrap();
            watch.came().await.unwrap();
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_not_watched() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Watch::on(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
