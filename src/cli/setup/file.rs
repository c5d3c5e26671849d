//! A settings file: read with care, written in one step, its mode and the link to it kept.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use time::OffsetDateTime;
use time::macros::format_description;

use super::json::{self, Document};
use crate::error::{Advise, During, Error, Result};
use crate::spool::{Fs, RealFs};

/// The most that is read of a settings file, bytes: a person's has a few thousand.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The mode of a settings file that was not there before.
const NEW_MODE: u32 = 0o600;
/// What to do where it cannot be read.
const READABLE: &str = "make it a file that this user can read";
/// What to do where something cannot be written or removed.
pub(super) const WRITABLE: &str = "see that this user may write in its folder, and that the disk has room";
/// How many backups of one second are told apart.
const MAX_BACKUPS: usize = 100;

/// A settings file as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where it is looked for.
    pub path: PathBuf,
    /// Where it lies: elsewhere if `path` is a link.
    real: PathBuf,
    /// Its text; `None`: there is no such file.
    pub text: Option<String>,
    mode: u32,
    /// Whose it is, where it is there.
    owner: Option<(u32, u32)>,
}

impl Settings {
    /// Reads it, and makes sure that it can be edited.
    ///
    /// # Errors
    /// It cannot be read, or is not JSON whose top is an object.
    pub fn read(path: &Path) -> Result<Settings> {
        let settings = Settings::read_any(path)?;
        settings.document()?;
        Ok(settings)
    }

    /// Reads it, whatever text is in it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_any(path: &Path) -> Result<Settings> {
        let doing = || format!("reading {}", path.display());
        let none = |real: PathBuf| Settings { path: path.to_owned(), real, text: None, mode: NEW_MODE, owner: None };
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
                return Ok(none(path.to_owned()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::failed(format!("{}: it is a link to a file that is not there", doing()))
                    .hint("create the file that it links to, or remove the link"));
            }
            Err(error) => return Err(error).during(doing()).advise(READABLE),
        };
        let about = fs::metadata(&real).during(doing()).advise(READABLE)?;
        if !about.is_file() {
            return Err(Error::failed(format!("{}: it is not a regular file", doing())).hint("move it out of the way"));
        }
        if about.len() > MAX_BYTES {
            return Err(Error::failed(format!("{}: it has {} bytes, which no settings have", doing(), about.len()))
                .hint("move it out of the way"));
        }
        let bytes = fs::read(&real).during(doing()).advise(READABLE)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let before = &error.as_bytes()[..good];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            Error::failed(format!("{}: line {line}: it is not UTF-8", doing())).hint("save it as UTF-8")
        })?;
        let owner = Some((about.uid(), about.gid()));
        Ok(Settings { path: path.to_owned(), real, text: Some(text), mode: about.mode() & 0o7777, owner })
    }

    /// The same file with another text, which is not written.
    #[must_use]
    pub fn with_text(&self, text: String) -> Settings {
        Settings { text: Some(text), ..self.clone() }
    }

    /// Its text, taken up for editing.
    ///
    /// # Errors
    /// It is not JSON whose top is an object.
    pub fn document(&self) -> Result<Document> {
        let text = self.text.as_deref().unwrap_or_default();
        Document::open(text).map_err(|refusal| self.refused(&refusal))
    }

    /// The error for a file that cannot be edited.
    #[must_use]
    pub fn refused(&self, refusal: &json::Refusal) -> Error {
        Error::failed(format!("editing {}: {refusal}", self.path.display()))
            .hint("correct the file by hand; it was not changed")
    }

    /// Makes sure that it may be written, so that nothing else is begun where it may not.
    ///
    /// # Errors
    /// It is read-only.
    pub fn check_writable(&self) -> Result<()> {
        let allowed = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
        if self.text.is_some() && (self.mode & 0o222 == 0 || !allowed(&self.real)) {
            let hint = format!("make it writable (chmod u+w {}), or edit what makes the file", self.real.display());
            return Err(Error::failed(format!("editing {}: it is read-only", self.path.display())).hint(hint));
        }
        match self.real.parent().filter(|folder| folder.is_dir() && !allowed(folder)) {
            Some(folder) => Err(Error::failed(format!(
                "editing {}: the folder {} is read-only",
                self.path.display(),
                folder.display()
            ))
            .hint("make it writable, for the file is replaced in one step")),
            None => Ok(()),
        }
    }

    /// Copies what was there beside it. Gives the copy's name; none where there was nothing.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn back_up(&self) -> Result<Option<PathBuf>> {
        let Some(text) = &self.text else { return Ok(None) };
        let stamp = format_description!("[year][month][day]T[hour][minute][second]Z");
        let time = OffsetDateTime::now_utc().format(stamp).during("putting a backup's name together")?;
        for n in 0..MAX_BACKUPS {
            let more = if n == 0 { String::new() } else { format!("-{n}") };
            let copy = with_suffix(&self.path, &format!(".bak-{time}{more}"));
            match self.write_new(&copy, text) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                written => {
                    let written = written.during(format_args!("writing the backup {}", copy.display()));
                    return written.advise(WRITABLE).map(|()| Some(copy));
                }
            }
        }
        Err(Error::failed(format!(
            "backing up {}: there are {MAX_BACKUPS} backups of this second",
            self.path.display()
        ))
        .hint("remove some of them, and do it again"))
    }

    /// Writes it anew in one step, if nobody else has changed it since it was read.
    ///
    /// # Errors
    /// It cannot be written, or somebody has.
    pub fn write(&self, text: &str) -> Result<()> {
        self.check_writable()?;
        self.check_unchanged()?;
        let doing = || format!("writing {}", self.path.display());
        let temporary = with_suffix(&self.real, &format!(".anna-relay-{}", std::process::id()));
        let written = self
            .write_new(&temporary, text)
            .and_then(|()| fs::rename(&temporary, &self.real))
            .and_then(|()| sync_folder(&self.real));
        if written.is_err() {
            fs::remove_file(&temporary).unwrap_or_default();
        }
        written.during(doing()).advise(WRITABLE)
    }

    /// Removes it, if nobody else has changed it since it was read.
    ///
    /// # Errors
    /// It cannot be removed, or somebody has.
    pub fn delete(&self) -> Result<()> {
        self.check_unchanged()?;
        fs::remove_file(&self.path).during(format_args!("removing {}", self.path.display())).advise(WRITABLE)
    }

    /// Writes a file that is not there yet, down to the disk, with the mode and the owner of this one.
    fn write_new(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(NEW_MODE).open(path)?;
        let made = file.metadata()?;
        if let Some((user, group)) = self.owner.filter(|owner| *owner != (made.uid(), made.gid())) {
            std::os::unix::fs::fchown(&file, Some(user), Some(group))?;
        }
        file.set_permissions(Permissions::from_mode(self.mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    fn check_unchanged(&self) -> Result<()> {
        if Settings::read_any(&self.path)? == *self {
            return Ok(());
        }
        Err(Error::failed(format!("writing {}: another program has changed it meanwhile", self.path.display()))
            .hint("do it again"))
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Makes the folder of the settings if it is not there, and says whether it did.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(folder: &Path) -> Result<bool> {
    if folder.is_dir() {
        return Ok(false);
    }
    RealFs.make_dir(folder).during(format_args!("making the folder {}", folder.display())).advise(WRITABLE)?;
    Ok(true)
}
