//! What setup did, so that `--undo` takes back just that: a file beside the settings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::file::Settings;
use crate::error::{Advise, During, Error, Result};

/// Its name in Claude Code's folder.
const NAME: &str = "anna-relay-setup.json";
/// What to do where it cannot be read.
const MEND: &str = "make it readable; or move it away, and take out by hand what setup put into the settings";
/// The version of its form.
const VERSION: u32 = 1;

/// What setup did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    v: u32,
    /// Whether it made Claude Code's folder.
    pub folder: bool,
    /// Whether it added the marketplace.
    pub marketplace: bool,
    /// Whether it installed the plugin.
    pub plugin: bool,
    /// Whether it downloaded what the plugin needs.
    pub warmed: Option<PathBuf>,
    /// The files that it changed.
    pub files: Vec<Changed>,
}

impl Default for Record {
    fn default() -> Self {
        Record { v: VERSION, folder: false, marketplace: false, plugin: false, warmed: None, files: Vec::new() }
    }
}

/// A file that setup changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The file.
    pub path: PathBuf,
    /// The copy of what was there before; none: no file was there.
    pub backup: Option<PathBuf>,
    /// What setup left there.
    pub sha256: String,
    /// Whether somebody else has changed it between two runs of setup.
    pub mixed: bool,
}

/// The fingerprint of a text.
#[must_use]
pub fn fingerprint(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Record {
    /// Where it lies.
    #[must_use]
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(NAME)
    }

    /// Reads it; none: setup has not run, or was taken back.
    ///
    /// # Errors
    /// It cannot be read or is not understood.
    pub fn load(folder: &Path) -> Result<Option<Record>> {
        let path = Record::path(folder);
        let doing = || format!("reading what setup did from {}", path.display());
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.during(doing()).advise(MEND)?,
        };
        let record: Record = serde_json::from_slice(&bytes).during(doing()).advise(MEND)?;
        match record.v {
            VERSION => Ok(Some(record)),
            v => Err(Error::failed(format!("{}: it is of version {v}", doing())).hint("use the newer anna-relay")),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).during("putting together what setup did")?;
        let file = Settings::read_any(&Record::path(folder))?;
        let text = text + "\n";
        if file.text.as_deref() == Some(text.as_str()) { Ok(()) } else { file.write(&text) }
    }

    /// What it says about a file.
    #[must_use]
    pub fn of(&self, path: &Path) -> Option<&Changed> {
        self.files.iter().find(|changed| changed.path == path)
    }

    /// Notes that a file is about to become `text`; backs up what is there unless that is setup's own work.
    ///
    /// # Errors
    /// The backup cannot be written.
    pub fn note(&mut self, file: &Settings, text: &str) -> Result<Option<PathBuf>> {
        let now = file.text.as_deref().map(fingerprint);
        let sha256 = fingerprint(text);
        if let Some(changed) = self.files.iter_mut().find(|changed| changed.path == file.path) {
            let ours = now.as_deref() == Some(changed.sha256.as_str());
            changed.sha256 = sha256;
            changed.mixed |= !ours;
            return if ours { Ok(None) } else { file.back_up() };
        }
        let backup = file.back_up()?;
        self.files.push(Changed { path: file.path.clone(), backup: backup.clone(), sha256, mixed: false });
        Ok(backup)
    }
}
