//! Taking files into the spool.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::{Advise, During, Error, Result};
use crate::handoff::words::PartFile;
use crate::handoff::{Attachment, Id};
use crate::queue::{Effect, Incoming};
use crate::spool::Fs;
use crate::spool::store::{MAX_FILE, safe_name};
use crate::spool::trouble::{Explain, On};

use super::Spooler;

/// What to do where a file cannot be taken.
const GIVE_A_FILE: &str = "give the path of a file that this user can read";

impl<F: Fs> Spooler<F> {
    /// Takes files into the hand-off's folder.
    pub(super) fn bring_in(&mut self, id: Id, files: Vec<Incoming>) -> Result<Vec<Incoming>> {
        files.into_iter().map(|file| self.bring_one_in(id, file)).collect()
    }

    /// The same, but a file that cannot be taken is said to be lost: the words it came with go on without it.
    pub(super) fn bring_in_or_lose(&mut self, id: Id, files: Vec<Incoming>) -> Vec<Incoming> {
        let mut kept = Vec::new();
        for file in files {
            let file = self.moved_before(id, file, &kept);
            let name = match &file {
                Incoming::Fetched { name, .. } => safe_name(name),
                _ => String::new(),
            };
            kept.push(self.bring_one_in(id, file).unwrap_or_else(|error| {
                self.effects.push(Effect::Warn { text: error.to_string(), of: Some(id) });
                Incoming::Lost { name }
            }));
        }
        kept
    }

    /// A file that was moved into the hand-off's folder by one who then fell, before anything named it there: a hook's
    /// record brings it once more.
    fn moved_before(&mut self, id: Id, file: Incoming, before: &[Incoming]) -> Incoming {
        let Incoming::Fetched { name, path, bytes } = &file else { return file };
        if !self.store.fs().exists(path).is_ok_and(|there| !there) {
            return file;
        }
        let h = self.queue.entry_mut(id).map(|entry| &entry.h);
        let of_results = h.iter().flat_map(|h| h.results.iter().flat_map(|result| &result.files));
        let recorded = h.iter().flat_map(|h| &h.files).chain(of_results);
        let of_batch = before.iter().filter_map(|file| match file {
            Incoming::Kept(attachment) => Some(attachment),
            _ => None,
        });
        let named: Vec<&str> = recorded.chain(of_batch).filter_map(|file| file.path.as_deref()).collect();
        self.store.unnamed(id, name, *bytes, &named).map_or(file, Incoming::Kept)
    }

    /// Has a push do without those of its files that are gone: else it would fail each time it is made.
    pub(super) fn drop_lost_files(&mut self, effect: &mut Effect) {
        let Effect::Push { uploads, .. } = effect else { return };
        for upload in uploads {
            let Some(PartFile::Stored { path, .. }) = &upload.part.file else { continue };
            let path = self.store.root().join(path);
            if self.store.fs().is_lost(&path) {
                let text = format!("a file cannot be sent, for it is gone: {}", path.display());
                self.effects.push(Effect::Warn { text, of: None });
                upload.part.lose_file();
            }
        }
    }

    /// Deletes what was fetched into `tmp/` for something that comes to nothing. What lies with a hook's record goes
    /// with that.
    pub(super) fn discard(&self, files: &mut Vec<Incoming>) {
        for file in files.drain(..) {
            if let Incoming::Fetched { path, .. } = file
                && self.store.is_scratch(&path)
            {
                self.store.clear_away(&path);
            }
        }
    }

    fn bring_one_in(&mut self, id: Id, file: Incoming) -> Result<Incoming> {
        let (name, path, bytes) = match file {
            Incoming::Fetched { name, path, bytes } => (name, path, bytes),
            Incoming::Copy(from) => self.copy(&from)?,
            Incoming::Lost { name } => return Ok(Incoming::Lost { name: safe_name(&name) }),
            kept @ Incoming::Kept(_) => return Ok(kept),
        };
        let kept: Attachment =
            self.store.adopt(id, &name, &path, bytes).explain(format_args!("keeping the file {name:?}"))?;
        Ok(Incoming::Kept(kept))
    }

    /// Copies a person's file into `tmp/`, since it may be gone or changed by the time it is sent.
    fn copy(&mut self, from: &Path) -> Result<(String, PathBuf, u64)> {
        let doing = || format!("taking the file {}", from.display());
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).custom_flags(flags).open(from).during(doing()).advise(GIVE_A_FILE)?;
        let meta = file.metadata().during(doing())?;
        if !meta.is_file() {
            return Err(Error::failed(format!("{}: it is not a regular file", doing())).hint(GIVE_A_FILE));
        }
        if meta.len() > MAX_FILE {
            return Err(Error::failed(format!(
                "{}: it has {} bytes, and fakechat takes {MAX_FILE}",
                doing(),
                meta.len()
            ))
            .hint("send where it lies instead"));
        }
        let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let to = self.store.scratch();
        let copy = self.with_folders(|store| store.fs().create(&to).on(&to)).explain(doing())?;
        let written = self.write_copy(file, copy).on(&to).inspect_err(|_| self.store.clear_away(&to));
        let bytes = written.explain(doing())?;
        Ok((name, to, bytes))
    }

    fn write_copy(&self, from: File, mut to: F::File) -> io::Result<u64> {
        let mut from = from.take(MAX_FILE);
        let mut buffer = vec![0; 64 * 1024];
        let mut bytes = 0;
        loop {
            let n = from.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            self.store.fs().write(&mut to, &buffer[..n])?;
            bytes += n as u64;
        }
        self.store.fs().sync(&to)?;
        Ok(bytes)
    }
}
