//! Files that come along with hand-offs: `files/<id>/`.

use std::io;
use std::path::Path;

use crate::handoff::{Attachment, Id};

use super::fs::Fs;
use super::store::{FILES, Store};
use super::trouble::On;

/// The longest name of a kept file, in bytes: file systems take 255.
pub(super) const MAX_NAME: usize = 120;

impl<F: Fs> Store<F> {
    /// Takes a file into `files/<id>/`, by moving it there, and returns how it is named from now on.
    ///
    /// # Errors
    /// It stays where it was.
    pub fn adopt(&self, id: Id, name: &str, from: &Path, bytes: u64) -> io::Result<Attachment> {
        self.check_lock()?;
        let folder = self.dir(FILES).join(id.to_string());
        self.fs().make_dir(&folder).on(&folder)?;
        let safe = safe_name(name);
        let mut n = 1;
        while self.fs().exists(&folder.join(numbered(n, &safe)))? {
            n += 1;
        }
        let kept = numbered(n, &safe);
        self.fs().rename(from, &folder.join(&kept)).on(from)?;
        for dir in [&folder, &self.dir(FILES)] {
            self.sync(dir);
        }
        let path = format!("{FILES}/{id}/{kept}");
        Ok(Attachment { name: safe, path: Some(path), bytes, unknown: Default::default() })
    }

    /// The first file of that name in `files/<id>/` that is not among those `named` already.
    #[must_use]
    pub fn unnamed(&self, id: Id, name: &str, bytes: u64, named: &[&str]) -> Option<Attachment> {
        let safe = safe_name(name);
        for n in 1.. {
            let kept = numbered(n, &safe);
            let path = format!("{FILES}/{id}/{kept}");
            if !self.fs().exists(&self.root().join(&path)).ok()? {
                break;
            }
            if !named.contains(&path.as_str()) {
                return Some(Attachment { name: safe, path: Some(path), bytes, unknown: Default::default() });
            }
        }
        None
    }

    /// Deletes what came along with a hand-off that was not accepted.
    pub fn forget_files(&self, id: Id) {
        let folder = self.dir(FILES).join(id.to_string());
        match self.fs().remove_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%id, %error, "deleting its files, for it was not accepted");
            }
            _ => {}
        }
    }
}

/// What the `n`th file of a name is called in its folder.
fn numbered(n: usize, safe: &str) -> String {
    if n == 1 { safe.to_owned() } else { format!("{n}-{safe}") }
}

/// A file name that is safe in a folder, a message and a terminal: no separators, no control characters, no
/// leading dot, and not too long; its ending is kept.
#[must_use]
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let clean: String = last
        .chars()
        .map(|c| if c.is_control() || crate::text::is_hidden(c) || "[]\"".contains(c) { '_' } else { c })
        .collect();
    let clean = clean.trim().trim_start_matches('.');
    if clean.is_empty() {
        return "file".to_owned();
    }
    let mut start = clean.len().saturating_sub(MAX_NAME);
    while !clean.is_char_boundary(start) {
        start += 1;
    }
    match clean[start..].trim_start_matches('.') {
        "" => "file".to_owned(),
        name => name.to_owned(),
    }
}
