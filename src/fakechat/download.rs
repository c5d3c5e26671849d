//! A file that came with a message: `GET /files/<name>`.

use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use awc::error::{ConnectError, SendRequestError};
use awc::http::{StatusCode, header};
use futures_util::StreamExt;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::address;
use super::connection::client;

/// Where fakechat keeps what it hands out.
const FOLDER: &str = "/files/";

/// The longest name, in bytes; fakechat's own are about 25.
const MAX_URL: usize = 512;

/// How long a download of next to nothing may take.
const BASE: Duration = Duration::from_secs(30);

/// How much longer it may take for each further MiB that is allowed. As for uploads.
const PER_MIB: Duration = Duration::from_secs(1);

/// Why there is no file.
#[derive(Debug)]
pub enum FetchError {
    /// The url is none that fakechat gives.
    BadUrl,
    /// It is longer than it may be, in bytes.
    TooLong(u64),
    /// It was answered with this HTTP status.
    Refused(u16),
    /// The connection failed, or was cut before the end.
    Connection(String),
    /// It could not be written.
    File(io::Error),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::BadUrl => f.write_str("not a path below /files/"),
            FetchError::TooLong(limit) => write!(f, "longer than {limit} bytes"),
            FetchError::Refused(status) => write!(f, "refused with HTTP status {status}"),
            FetchError::Connection(why) => f.write_str(why),
            FetchError::File(why) => write!(f, "writing it: {why}"),
        }
    }
}

impl std::error::Error for FetchError {}

impl From<io::Error> for FetchError {
    fn from(error: io::Error) -> Self {
        FetchError::File(error)
    }
}

/// Brings the file at `url` (a path, as a [`FileRef`](super::frame::FileRef) has it) of the fakechat on this port to
/// a new file `to`, readable for this user only and on disk when this returns its length. The folder is not synced.
///
/// # Errors
/// See [`FetchError`]; nothing is left at `to`, but for a file that was there before.
pub async fn fetch(port: u16, url: &str, to: &Path, limit: u64) -> Result<u64, FetchError> {
    if !acceptable(url) {
        return Err(FetchError::BadUrl);
    }
    let within = BASE + PER_MIB * u32::try_from(limit >> 20).unwrap_or(u32::MAX);
    match timeout(within, transfer(port, url, to, limit)).await {
        Ok(result) => result,
        Err(_) => Err(FetchError::Connection(format!("not complete within {} s", within.as_secs()))),
    }
}

/// Whether this is the path of one file in fakechat's folder, with nothing that could lead elsewhere.
fn acceptable(url: &str) -> bool {
    let Some(name) = url.strip_prefix(FOLDER) else { return false };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~!$'()*+,;=:@&".contains(c);
    !name.is_empty() && url.len() <= MAX_URL && !name.contains("..") && name.chars().all(plain)
}

async fn transfer(port: u16, url: &str, to: &Path, limit: u64) -> Result<u64, FetchError> {
    let request = client(port, None).get(format!("http://{}{url}", address(port))).force_close();
    let mut answer = request.send().await.map_err(|error| match error {
        SendRequestError::Url(_) | SendRequestError::Http(_) => FetchError::BadUrl,
        SendRequestError::Connect(ConnectError::Disconnected) => {
            FetchError::Connection("the connection was closed without an answer".into())
        }
        error => FetchError::Connection(error.to_string()),
    })?;
    if answer.status() != StatusCode::OK {
        return Err(FetchError::Refused(answer.status().as_u16()));
    }
    // Without it, a connection that was cut looks like the end of the file.
    let length =
        answer.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let Some(length) = length else { return Err(FetchError::Connection("the answer has no length".into())) };
    if length > limit {
        return Err(FetchError::TooLong(limit));
    }
    let (mut file, partial) = create(to).await?;
    let mut got: u64 = 0;
    while let Some(piece) = answer.next().await {
        let piece = piece.map_err(|error| FetchError::Connection(format!("receiving: {error}")))?;
        got += piece.len() as u64;
        if got > limit {
            return Err(FetchError::TooLong(limit));
        }
        file.write_all(&piece).await?;
    }
    if got != length {
        return Err(FetchError::Connection(format!("cut off after {got} of {length} bytes")));
    }
    file.flush().await?;
    file.sync_all().await?;
    partial.keep();
    Ok(got)
}

/// Makes the file and its guard in one go, so that giving up in between leaves nothing either.
async fn create(to: &Path) -> io::Result<(File, Partial)> {
    let to = to.to_owned();
    let made = spawn_blocking(move || {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to)?;
        Ok((file, Partial(Some(to))))
    });
    let (file, partial) = made.await.unwrap_or_else(|error| Err(io::Error::other(error)))?;
    Ok((File::from_std(file), partial))
}

/// A file that is removed unless it is kept: also when the download is given up half-way.
struct Partial(Option<PathBuf>);

impl Partial {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // It is new and ours. If it cannot be removed, there is nobody here to tell.
            std::fs::remove_file(path).ok();
        }
    }
}

#[cfg(test)]
mod tests;
