//! Standard output: whoever reads it may go away at any time, as `head` does.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use serde_json::Value;

use crate::error::{During, Result};

/// What is written at a time of long output, bytes: what a pipe takes in one go.
const PIECE: usize = 64 * 1024;

/// Prints the text as it is.
///
/// # Errors
/// Where it cannot be written; that the reader has gone is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    quiet(out.write_all(text.as_bytes()).and_then(|()| out.flush())).map(|_| ())
}

/// Prints these one after the other, without putting them together before.
///
/// # Errors
/// Those of [`print()`].
pub fn print_all<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let mut out = BufWriter::with_capacity(PIECE, io::stdout().lock());
    let written = parts.into_iter().try_for_each(|part| out.write_all(part.as_bytes()));
    quiet(written.and_then(|()| out.flush())).map(|_| ())
}

/// Prints the text and a line feed.
///
/// # Errors
/// Those of [`print()`].
pub fn print_line(text: &str) -> Result<()> {
    print_all([text, "\n"])
}

/// Prints one JSON document.
///
/// # Errors
/// Those of [`print()`].
pub fn print_json(document: &Value) -> Result<()> {
    print_line(&format!("{document:#}"))
}

/// Says something on standard error. Where that cannot be written either, there is nobody to tell.
pub fn say(text: &str) {
    writeln!(io::stderr().lock(), "{text}").unwrap_or_default();
}

/// Whether a person looks at standard output.
#[must_use]
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The columns that a line on standard output may have, where a person looks.
#[must_use]
pub fn width() -> Option<usize> {
    /// What a terminal is taken to have that does not say.
    const COLUMNS: usize = 80;
    if !is_terminal() {
        return None;
    }
    Some(match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => COLUMNS,
    })
}

/// What became of writing to standard output; `None`: the reader has gone, which is its right.
pub(super) fn quiet<T>(written: io::Result<T>) -> Result<Option<T>> {
    match written {
        Ok(value) => Ok(Some(value)),
        Err(cause) if cause.kind() == ErrorKind::BrokenPipe => Ok(None),
        Err(cause) => Err(cause).during("writing to standard output"),
    }
}
