//! From what was typed to what is meant, or what to do about it where it makes no sense.

use std::ffi::OsString;

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Cli, command, help};

/// Reads a command line.
///
/// # Errors
/// It makes no sense, or asks for help.
pub fn read(args: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Cli, clap::Error> {
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let mut parser = help::with_pages(command());
    let matches = parser.try_get_matches_from_mut(&args);
    let read = matches.and_then(|mut found| Cli::from_arg_matches_mut(&mut found));
    read.map_err(|error| advise(error.format(&mut parser), &args))
}

/// The command that a command line names.
#[must_use]
pub fn command_in(args: impl IntoIterator<Item = OsString>) -> Option<String> {
    let mut args = args.into_iter().skip(1);
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--config") => drop(args.next()),
            Some(option) if option.starts_with('-') => {}
            word => return word.map(str::to_owned),
        }
    }
    None
}

/// Adds what to do about a text that was typed without quotes.
fn advise(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    let is_word = |value: &ContextValue| matches!(value, ContextValue::String(word) if !word.starts_with('-'));
    if error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::InvalidArg).is_some_and(is_word) {
        let is_time = |value: &ContextValue| matches!(value, ContextValue::String(word) if word.parse::<f64>().is_ok());
        let timed = args.iter().any(|arg| arg == "--wait") && error.get(ContextKind::InvalidArg).is_some_and(is_time);
        let tip = match command_in(args.iter().cloned()).as_deref() {
            Some("send") if timed => "say how long to wait with --timeout, in seconds: --timeout 60",
            Some("send") => "put the text in quotes: anna-relay send \"water the plants\"",
            Some("pause") => "say why with --reason, in quotes: anna-relay pause --reason \"back at eight\"",
            _ => return error,
        };
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_quotes_is_told_of_them() {
        let said = |line: &str| read(line.split(' ')).unwrap_err().to_string();
        for line in ["anna-relay send water the plants", "anna-relay --config x send water --wait plants"] {
            assert!(said(line).contains("put the text in quotes: anna-relay send "), "{line}: {}", said(line));
        }
        let waits = said("anna-relay send water --wait 2");
        assert!(waits.contains("--timeout 60") && !waits.contains("quotes"), "{waits}");
        for line in ["anna-relay pause night", "anna-relay pause --reason good night"] {
            assert!(said(line).contains("anna-relay pause --reason \""), "{line}: {}", said(line));
        }
        for line in ["anna-relay send water --soon", "anna-relay status now"] {
            assert!(!said(line).contains("quotes"), "{line}: {}", said(line));
        }
    }
}
