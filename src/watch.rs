//! Tells when something happens in a folder. Only Linux does; elsewhere, or where the kernel has no watch left to give,
//! the folder is looked at now and then.

use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
use {
    rustix::fs::inotify::{self, CreateFlags, WatchFlags},
    std::cell::{Cell, RefCell},
    std::time::Duration,
    tokio::net::unix::pipe::Receiver,
    tokio::time::{Instant, sleep_until},
};

/// So long nothing more is told of files that go on being written to.
#[cfg(target_os = "linux")]
const PAUSE: Duration = Duration::from_secs(1);

/// What is told of the files in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// One came by a rename: whole.
    Came,
    /// One came by a rename, or was written to; at most once a second.
    Changed,
}

/// The watch.
#[derive(Debug)]
pub struct Watch {
    /// inotify's descriptor: what the kernel writes there is read as from a pipe.
    #[cfg(target_os = "linux")]
    notices: Receiver,
    #[cfg(target_os = "linux")]
    flags: WatchFlags,
    #[cfg(target_os = "linux")]
    pause: Duration,
    /// Nothing is told before.
    #[cfg(target_os = "linux")]
    earliest: Cell<Instant>,
    /// The kernel's numbers of the folders.
    #[cfg(target_os = "linux")]
    watched: RefCell<Vec<i32>>,
    /// None was left out.
    #[cfg(target_os = "linux")]
    whole: Cell<bool>,
}

#[cfg(target_os = "linux")]
impl Watch {
    /// Watches no folder yet.
    ///
    /// # Errors
    /// The user has none left (`fs.inotify.max_user_instances`).
    pub fn new(news: News) -> io::Result<Self> {
        let notices = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let (flags, pause) = match news {
            News::Came => (WatchFlags::MOVED_TO, Duration::ZERO),
            News::Changed => (WatchFlags::MOVED_TO | WatchFlags::MODIFY, PAUSE),
        };
        let notices = Receiver::from_owned_fd_unchecked(notices)?;
        // The folder's own going too: another may have come in its place.
        let flags = flags | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::ONLYDIR;
        let earliest = Cell::new(Instant::now());
        Ok(Watch { notices, flags, pause, earliest, watched: RefCell::default(), whole: Cell::default() })
    }

    /// Watches these folders from now on, and no other. Whether one of them was not watched before: what happened there
    /// is not told. One that cannot be watched is left out: it is not there, or the user has no watch left
    /// (`fs.inotify.max_user_watches`).
    pub fn set<'a>(&self, folders: impl IntoIterator<Item = &'a Path>) -> bool {
        let watch = |folder: &Path| {
            let watched = inotify::add_watch(&self.notices, folder, self.flags);
            watched.inspect_err(|error| tracing::debug!(%error, "watching {}", folder.display())).ok()
        };
        // A folder that is watched already keeps its number; one that was made anew gets another.
        let now: Vec<Option<i32>> = folders.into_iter().map(watch).collect();
        self.whole.set(now.iter().all(Option::is_some));
        let now: Vec<i32> = now.into_iter().flatten().collect();
        let before = self.watched.replace(now.clone());
        for gone in before.iter().filter(|number| !now.contains(number)) {
            // It fails where the folder is gone, and its watch with it.
            inotify::remove_watch(&self.notices, *gone).unwrap_or_default();
        }
        now.iter().any(|number| !before.contains(number))
    }

    /// Whether each of the folders that were to be watched last is.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.whole.get()
    }

    /// Waits until something has happened since this last returned.
    ///
    /// # Errors
    /// The watch is of no use any more.
    pub async fn told(&self) -> io::Result<()> {
        loop {
            self.notices.readable().await?;
            sleep_until(self.earliest.get()).await;
            if self.take()? {
                self.earliest.set(Instant::now() + self.pause);
                return Ok(());
            }
        }
    }

    /// Whether there was a notice. What it says is not read: a look at the folder says that, and also what a full queue
    /// has left out.
    fn take(&self) -> io::Result<bool> {
        let mut any = false;
        loop {
            match self.notices.try_read(&mut [0; 4096]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(any),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => any |= read? > 0,
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
    pub fn new(_: News) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// See the other one.
    pub fn set<'a>(&self, _: impl IntoIterator<Item = &'a Path>) -> bool {
        false
    }

    /// See the other one.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        false
    }

    /// See the other one.
    ///
    /// # Errors
    /// Always.
    pub async fn told(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use tokio::time::timeout;

    use super::*;

    /// Whether something has happened, told or yet to be told.
    async fn is_told(watch: &Watch) -> bool {
        let told = async {
            loop {
                watch.notices.readable().await?;
                if watch.take()? {
                    return io::Result::Ok(());
                }
            }
        };
        timeout(Duration::ZERO, told).await.is_ok()
    }

    #[tokio::test]
    async fn what_comes_is_told_once_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let watch = Watch::new(News::Came).unwrap();
        assert!(watch.set([folder.path()]));
        let (new, there) = (folder.path().join(".new"), folder.path().join("there"));
        for _ in 0..2 {
            fs::write(&new, "x").unwrap();
            assert!(!is_told(&watch).await, "it is not whole yet");
            fs::rename(&new, &there).unwrap();
            watch.told().await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_written_is_told_no_sooner_than_wanted_and_all_of_it_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let watch = Watch::new(News::Changed).unwrap();
        watch.set([folder.path()]);
        let begun = Instant::now();
        for earliest in [begun, begun + Duration::from_secs(1), begun + Duration::from_secs(2)] {
            for n in 0..500 {
                fs::write(folder.path().join(format!("{n}.jsonl")), "x").unwrap();
            }
            watch.told().await.unwrap();
            assert!(Instant::now() >= earliest);
            assert!(!is_told(&watch).await);
        }
    }

    #[tokio::test]
    async fn other_folders_take_the_place_of_those_before() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        let watch = Watch::new(News::Changed).unwrap();
        assert!(!watch.set([one.as_path()]), "it is not there");
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        assert!(watch.set([one.as_path(), &two]));
        assert!(!watch.set([one.as_path(), &two, &two]), "it was watched");
        fs::remove_dir(&one).unwrap();
        fs::create_dir(&one).unwrap();
        assert!(watch.set([one.as_path()]), "it is another one");
        watch.told().await.unwrap();
        fs::write(two.join("x"), "x").unwrap();
        assert!(!is_told(&watch).await);
        fs::write(one.join("x"), "x").unwrap();
        watch.told().await.unwrap();
    }

    #[tokio::test]
    async fn that_a_folder_goes_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        let watch = Watch::new(News::Came).unwrap();
        fs::create_dir(&one).unwrap();
        watch.set([one.as_path()]);
        fs::rename(&one, &two).unwrap();
        watch.told().await.unwrap();
        fs::remove_dir(&two).unwrap();
        watch.told().await.unwrap();
    }
}
