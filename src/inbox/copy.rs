//! Copies of the files that a reply names: they may be gone or changed by the time the bridge looks.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::hook::NamedFile;
use crate::spool::store::{MAX_FILE, safe_name};
use crate::spool::{Fs, RealFs};

/// How many files of one reply are copied.
pub const MAX_FILES: usize = 16;
/// How many bytes of one reply's files are copied.
pub const MAX_TOTAL: u64 = 200 * 1024 * 1024;
/// No copy is begun after this long: the session waits for its hook.
const WITHIN: Duration = Duration::from_secs(10);

/// Copies the files into that folder, which is made if there is anything to copy, and brings them to the disk. Each
/// file says what its copy is called, or why there is none.
pub(super) fn keep(files: &mut [NamedFile], folder: &Path) {
    let begun = Instant::now();
    let mut left = MAX_TOTAL;
    for (n, file) in files.iter_mut().enumerate() {
        let copied = if n >= MAX_FILES {
            Err(format!("it is past the first {MAX_FILES} files of the reply"))
        } else if begun.elapsed() > WITHIN {
            Err("there was no time left to copy it".to_owned())
        } else {
            copy(n + 1, file, folder, left).map_err(|error| error.to_string())
        };
        match copied {
            Ok((name, bytes)) => {
                left -= bytes;
                (file.kept, file.bytes) = (Some(name), bytes);
            }
            Err(why) => file.why = Some(why),
        }
    }
    if left < MAX_TOTAL
        && let Err(error) = RealFs.sync_dir(folder)
    {
        tracing::warn!(%error, "syncing a folder of copies");
    }
}

/// Copies one file, of at most `left` bytes. Returns what the copy is called, and its size.
fn copy(n: usize, file: &NamedFile, folder: &Path, left: u64) -> io::Result<(String, u64)> {
    let refuse = |why: String| Err(refusal(why));
    if !file.named.is_absolute() {
        return refuse("its name does not say in which folder it is".into());
    }
    // Links are followed, as fakechat does. Looked at before it is opened, for to open a device may do something.
    if !fs::metadata(&file.named)?.is_file() {
        return refuse("it is not a regular file".into());
    }
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let from = File::options().read(true).custom_flags(flags).open(&file.named)?;
    let meta = from.metadata()?;
    if !meta.is_file() {
        return refuse("it is not a regular file".into());
    }
    let too_large = |bytes| match bytes {
        bytes if bytes > MAX_FILE => Some(format!("it is larger than {MAX_FILE} bytes")),
        bytes if bytes > left => Some(format!("the files of the reply are larger than {MAX_TOTAL} bytes")),
        _ => None,
    };
    if let Some(why) = too_large(meta.len()) {
        return refuse(why);
    }
    RealFs.make_dir(folder)?;
    let called = file.named.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = format!("{n}-{}", safe_name(&called));
    let to = folder.join(&name);
    // It may grow while it is read, or say less than it has, as those in /proc do.
    let copied = RealFs.create(&to).and_then(|mut to| {
        let bytes = io::copy(&mut from.take(MAX_FILE.min(left) + 1), &mut to)?;
        if let Some(why) = too_large(bytes) {
            return Err(refusal(why));
        }
        RealFs.sync(&to)?;
        Ok(bytes)
    });
    if copied.is_err() {
        RealFs.remove(&to).unwrap_or_default();
    }
    copied.map(|bytes| (name, bytes))
}

fn refusal(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
