//! A disk in memory that knows what was synced. It can stop at any call, fail any call, and, after a power cut, show
//! any state that the calls made so far allow.
//!
//! What a power cut may do: a file's content that was not synced is absent, torn or whole. An entry of a folder that was
//! not synced since it was made, replaced or removed is as it was after any of the calls that touched it. A rename is
//! undone, done, or half done with both names there, but never half done with neither: all of these, in any subset.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use anna_relay::spool::Fs;

/// No space left.
pub const ENOSPC: i32 = 28;
/// Input or output error.
pub const EIO: i32 = 5;
/// Read-only file system.
pub const EROFS: i32 = 30;
/// Too many open files.
pub const EMFILE: i32 = 24;

/// Picks one of `n` possibilities.
pub type Choose<'a> = &'a mut dyn FnMut(usize) -> usize;

/// A file being written: its number.
#[derive(Clone, Copy, Debug)]
pub struct SimFile(usize);

#[derive(Clone, Debug, Default)]
struct Inode {
    content: Vec<u8>,
    synced: Vec<u8>,
    is_synced: bool,
}

#[derive(Clone, Debug)]
enum Op {
    Link { path: PathBuf, inode: usize },
    Unlink { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf, inode: usize },
    MakeDir { path: PathBuf },
    RemoveDir { path: PathBuf },
}

/// A change of entries that a power cut may undo, as far as its folders were not synced since.
#[derive(Clone, Debug)]
struct Logged {
    op: Op,
    from_synced: bool,
    to_synced: bool,
}

#[derive(Clone, Debug, Default)]
struct Disk {
    dirs: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, usize>,
    inodes: Vec<Inode>,
    base_dirs: BTreeSet<PathBuf>,
    base_files: BTreeMap<PathBuf, usize>,
    log: Vec<Logged>,
    calls: u64,
    crash_at: Option<u64>,
    dead: bool,
    fail_at: Option<(u64, i32)>,
    broken: Option<i32>,
    sync_dir_failed: bool,
}

/// What a call does, for the errors that may strike it.
#[derive(Clone, Copy, PartialEq)]
enum Call {
    /// Looks at a name.
    Look,
    /// Opens something to look into it.
    Open,
    /// Opens a new file.
    Create,
    /// Takes room.
    Grow,
    /// Changes names.
    Change,
    /// Syncs a file.
    Sync,
    /// Opens and syncs a folder.
    SyncDir,
}

impl Call {
    fn can_fail_with(self, errno: i32) -> bool {
        match errno {
            ENOSPC => matches!(self, Call::Create | Call::Grow | Call::Change | Call::Sync),
            EROFS => matches!(self, Call::Create | Call::Grow | Call::Change),
            EMFILE => matches!(self, Call::Open | Call::Create | Call::SyncDir),
            _ => true,
        }
    }
}

/// The disk. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimFs(Arc<Mutex<Disk>>);

impl SimFs {
    /// A disk with these folders on it.
    pub fn with_dirs(dirs: impl IntoIterator<Item = PathBuf>) -> Self {
        let fs = SimFs::default();
        fs.disk().dirs.extend(dirs);
        fs.restart();
        fs
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap()
    }

    /// Another disk, in the same state.
    pub fn copy(&self) -> Self {
        SimFs(Arc::new(Mutex::new(self.disk().clone())))
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.disk().calls
    }

    /// Whether no sync of a folder was made to fail: only then what is promised outlasts a power cut.
    pub fn is_sound(&self) -> bool {
        !self.disk().sync_dir_failed
    }

    /// Stops before the call after `n` further ones: it is not done, nor is any after it.
    pub fn crash_after(&self, n: u64) {
        let mut disk = self.disk();
        disk.crash_at = Some(disk.calls + n);
    }

    /// Whether it has stopped: the process that uses it is no more.
    pub fn is_dead(&self) -> bool {
        self.disk().dead
    }

    /// Lets the call after `n` further ones fail.
    pub fn fail_after(&self, n: u64, errno: i32) {
        let mut disk = self.disk();
        disk.fail_at = Some((disk.calls + n, errno));
    }

    /// Every call that can fail with this does, from now on.
    pub fn break_with(&self, errno: Option<i32>) {
        let mut disk = self.disk();
        (disk.broken, disk.fail_at) = (errno, None);
    }

    /// After `kill -9`: all calls that were made are seen, and what was not synced still may be lost later.
    pub fn revive(&self) {
        let mut disk = self.disk();
        (disk.dead, disk.crash_at, disk.fail_at) = (false, None, None);
    }

    /// After a power cut.
    pub fn power_cut(&self, choose: Choose<'_>) {
        let (dirs, files, inodes) = self.disk().after_power_cut(choose);
        let mut disk = self.disk();
        (disk.dirs, disk.files, disk.inodes) = (dirs, files, inodes);
        drop(disk);
        self.restart();
        self.revive();
    }

    fn restart(&self) {
        let mut disk = self.disk();
        (disk.base_dirs, disk.base_files) = (disk.dirs.clone(), disk.files.clone());
        disk.log.clear();
    }

    /// What is there, with its content.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let disk = self.disk();
        disk.files.iter().map(|(path, inode)| (path.clone(), disk.inodes[*inode].content.clone())).collect()
    }
}

impl Disk {
    fn call(&mut self, call: Call) -> io::Result<()> {
        if self.dead || self.crash_at.is_some_and(|at| self.calls >= at) {
            self.dead = true;
            return Err(io::Error::other("the process is no more"));
        }
        self.calls += 1;
        let once = self.fail_at.filter(|(at, _)| self.calls > *at).map(|(_, errno)| errno);
        let Some(errno) = self.broken.or(once).filter(|errno| call.can_fail_with(*errno)) else { return Ok(()) };
        self.fail_at = None;
        self.sync_dir_failed |= call == Call::SyncDir;
        Err(io::Error::from_raw_os_error(errno))
    }

    fn log(&mut self, op: Op) {
        self.log.push(Logged { op, from_synced: false, to_synced: false });
    }

    fn require_dir(&self, path: &Path) -> io::Result<()> {
        let there = path.parent().is_some_and(|dir| self.dirs.contains(dir));
        if there { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn give_name(&mut self, inode: usize, path: &Path) -> io::Result<()> {
        self.require_dir(path)?;
        if self.files.contains_key(path) || self.dirs.contains(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.files.insert(path.to_owned(), inode);
        self.log(Op::Link { path: path.to_owned(), inode });
        Ok(())
    }

    fn after_power_cut(&self, choose: Choose<'_>) -> (BTreeSet<PathBuf>, BTreeMap<PathBuf, usize>, Vec<Inode>) {
        let (mut dirs, mut files) = (self.base_dirs.clone(), self.base_files.clone());
        for Logged { op, from_synced, to_synced } in &self.log {
            match op {
                Op::Link { path, inode } if *to_synced || choose(2) == 1 => drop(files.insert(path.clone(), *inode)),
                Op::Unlink { path } if *from_synced || choose(2) == 1 => drop(files.remove(path)),
                Op::MakeDir { path } if *to_synced || choose(2) == 1 => drop(dirs.insert(path.clone())),
                Op::RemoveDir { path } if *from_synced || choose(2) == 1 => drop(dirs.remove(path)),
                Op::Rename { from, to, inode } => {
                    let done = match (from_synced, to_synced) {
                        (true, _) => 2,
                        (false, true) => 1 + choose(2),
                        (false, false) => choose(3),
                    };
                    if done > 0 {
                        files.insert(to.clone(), *inode);
                    }
                    if done > 1 {
                        files.remove(from);
                    }
                }
                _ => {}
            }
        }
        files.retain(|path, _| path.parent().is_some_and(|dir| dirs.contains(dir)));
        let mut inodes = self.inodes.clone();
        for inode in files.values().copied().collect::<BTreeSet<_>>() {
            let inode = &mut inodes[inode];
            if !inode.is_synced {
                match choose(3) {
                    0 => inode.content = inode.synced.clone(),
                    1 => inode.content.truncate(inode.content.len() / 2),
                    _ => {}
                }
            }
            (inode.synced, inode.is_synced) = (inode.content.clone(), true);
        }
        (dirs, files, inodes)
    }
}

fn is_in(path: &Path, dir: &Path) -> bool {
    path.parent() == Some(dir)
}

impl Fs for SimFs {
    type File = SimFile;

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call(Call::Change)?;
        if disk.dirs.insert(path.to_owned()) {
            disk.log(Op::MakeDir { path: path.to_owned() });
        }
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<SimFile> {
        let mut disk = self.disk();
        disk.call(Call::Create)?;
        let inode = disk.inodes.len();
        disk.give_name(inode, path)?;
        disk.inodes.push(Inode::default());
        Ok(SimFile(inode))
    }

    fn create_nameless(&self, folder: &Path) -> io::Result<SimFile> {
        let mut disk = self.disk();
        disk.call(Call::Create)?;
        if !disk.dirs.contains(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        disk.inodes.push(Inode::default());
        Ok(SimFile(disk.inodes.len() - 1))
    }

    fn name(&self, file: &SimFile, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call(Call::Change)?;
        disk.give_name(file.0, path)
    }

    fn write(&self, file: &mut SimFile, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk();
        let result = disk.call(Call::Grow);
        // One that fails, or is cut short, has written a part.
        let part = if result.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        let inode = &mut disk.inodes[file.0];
        inode.content.extend_from_slice(part);
        inode.is_synced = false;
        result
    }

    fn sync(&self, file: &SimFile) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call(Call::Sync)?;
        let inode = &mut disk.inodes[file.0];
        (inode.synced, inode.is_synced) = (inode.content.clone(), true);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call(Call::SyncDir)?;
        for logged in &mut disk.log {
            let (from, to) = match &logged.op {
                Op::Link { path: to, .. } | Op::MakeDir { path: to } => (true, is_in(to, path)),
                Op::Unlink { path: from } | Op::RemoveDir { path: from } => (is_in(from, path), true),
                Op::Rename { from, to, .. } => (is_in(from, path), is_in(to, path)),
            };
            logged.from_synced |= from;
            logged.to_synced |= to;
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call(Call::Change)?;
        disk.require_dir(to)?;
        let inode = disk.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.files.insert(to.to_owned(), inode);
        disk.log(Op::Rename { from: from.to_owned(), to: to.to_owned(), inode });
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call(Call::Change)?;
        let inode = *disk.files.get(from).ok_or(io::ErrorKind::NotFound)?;
        disk.give_name(inode, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call(Call::Change)?;
        disk.files.remove(path).ok_or(io::ErrorKind::NotFound)?;
        disk.log(Op::Unlink { path: path.to_owned() });
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        let inside: Vec<PathBuf> = disk.files.keys().filter(|file| is_in(file, path)).cloned().collect();
        for file in inside {
            disk.call(Call::Change)?;
            disk.files.remove(&file);
            disk.log(Op::Unlink { path: file });
        }
        disk.call(Call::Change)?;
        if !disk.dirs.remove(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        disk.log(Op::RemoveDir { path: path.to_owned() });
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut disk = self.disk();
        disk.call(Call::Open)?;
        if !disk.dirs.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let names = disk.files.keys().chain(&disk.dirs).filter(|name| is_in(name, path));
        Ok(names.filter_map(|name| Some(name.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let mut disk = self.disk();
        disk.call(Call::Look)?;
        Ok(disk.files.contains_key(path) || disk.dirs.contains(path))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut disk = self.disk();
        disk.call(Call::Open)?;
        match disk.files.get(path) {
            Some(inode) => Ok(disk.inodes[*inode].content.clone()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}
