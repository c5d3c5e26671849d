//! The seam between the spool and the disk: each method is one system call or a few that change nothing, so that
//! tests can stop, fail or reorder them one by one.

use std::ffi::OsString;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;
#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, CWD};

/// The largest hand-off file that is read. A frame has at most 128 MiB, and JSON can make six bytes of one.
pub const MAX_DOCUMENT: u64 = 1 << 30;

/// What the spool needs of a file system.
pub trait Fs: Send + Sync + 'static {
    /// A file being written.
    type File: fmt::Debug + Send;

    /// Makes a folder with mode 0700, and those above it, if it is not there.
    fn make_dir(&self, path: &Path) -> io::Result<()>;
    /// Creates a file with mode 0600; one that is there already is an error.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    /// Creates a file with mode 0600 that has no name, where that folder is; closed without one it is gone. Not every
    /// file system can.
    fn create_nameless(&self, _: &Path) -> io::Result<Self::File> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Gives a file without a name one that nothing has.
    fn name(&self, _: &Self::File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Writes all of it.
    fn write(&self, file: &mut Self::File, bytes: &[u8]) -> io::Result<()>;
    /// Brings a file's content to the disk.
    fn sync(&self, file: &Self::File) -> io::Result<()>;
    /// Brings a folder's entries to the disk.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Renames, replacing what is there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file (a symbolic link: the link).
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder and all in it; links are not followed.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// The names in a folder that are text; those of the spool's own files are.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// All names in a folder.
    fn entries(&self, path: &Path) -> io::Result<Vec<OsString>> {
        Ok(self.list(path)?.into_iter().map(OsString::from).collect())
    }
    /// When a name came into a folder or left it, as far as that is known.
    fn changed(&self, _: &Path) -> Option<SystemTime> {
        None
    }
    /// Whether anything has that name.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// A regular file's content; anything else at that name is an error of kind `InvalidInput`.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Whether a file is surely not there to be sent: nothing has that name, or nothing that can be read, or it is
    /// empty. What the disk does not say is not so.
    fn is_lost(&self, path: &Path) -> bool {
        self.exists(path).is_ok_and(|there| !there)
    }
}

/// The disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFs;

impl Fs for RealFs {
    type File = File;

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    }

    #[cfg(target_os = "linux")]
    fn create_nameless(&self, folder: &Path) -> io::Result<File> {
        let flags = OFlags::TMPFILE.bits().cast_signed();
        OpenOptions::new().write(true).mode(0o600).custom_flags(flags).open(folder)
    }

    #[cfg(target_os = "linux")]
    fn name(&self, file: &File, path: &Path) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        // By way of /proc, for to name a bare descriptor needs a privilege.
        let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, nameless, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Ok(self.entries(path)?.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    fn entries(&self, path: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn changed(&self, path: &Path) -> Option<SystemTime> {
        std::fs::metadata(path).and_then(|meta| meta.modified()).ok()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match std::fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let (file, len) = open_sized(path)?;
        if len > MAX_DOCUMENT {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is larger than any hand-off can be"));
        }
        // With room for one byte more the end is seen at once.
        let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default() + 1);
        file.take(MAX_DOCUMENT).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn is_lost(&self, path: &Path) -> bool {
        match open_sized(path) {
            Ok((_, len)) => len == 0,
            Err(error) => super::document::is_its_own_fault(&error),
        }
    }
}

/// Opens a regular file of this user for reading: no link is followed, and no pipe or device waited for.
///
/// # Errors
/// Those of `open`; of kind `InvalidInput` where it is something else.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_sized(path).map(|(file, _)| file)
}

/// The same, with its length in bytes.
fn open_sized(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::LOOP) => io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link"),
        // A socket.
        Some(rustix::io::Errno::NXIO) => io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"),
        _ => error,
    })?;
    match file.metadata()? {
        meta if !meta.is_file() => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        meta if meta.uid() != rustix::process::geteuid().as_raw() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it belongs to another user"))
        }
        meta => Ok((file, meta.len())),
    }
}

/// Makes a private folder, or checks that the one that is there is a folder of this user, and closes it to others.
///
/// # Errors
/// Says what stands in the way.
pub fn private_dir(path: &Path) -> io::Result<PathBuf> {
    RealFs.make_dir(path)?;
    let meta = std::fs::symlink_metadata(path)?;
    if !meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a folder"));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it belongs to another user"));
    }
    if meta.mode() & 0o077 != 0 {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    }
    Ok(path.to_owned())
}
