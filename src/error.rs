//! What can go wrong, how a person is told, and the exit code a script sees.
//!
//! Every error says what was being done and to what, then why, then, on a line of its own, what to do
//! about it (`spec.md`, "Commands").

use std::fmt;

/// What sort of failure this is. It decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The command could not do what it was asked.
    Failed,
    /// The command line makes no sense.
    Usage,
    /// `status`: no bridge runs.
    NotRunning,
    /// `clear-port`: a live session holds the port.
    LiveSession,
    /// `clear-port`: something that is not fakechat holds the port.
    Stranger,
    /// A part of the bridge kept failing; systemd should start it again.
    PartFailed,
    /// Another bridge has this spool or one of these ports.
    Busy,
    /// The configuration cannot be used.
    Config,
    /// `send --wait`: no result in time.
    TimedOut,
}

impl Kind {
    /// The exit code of the process (`spec.md`, "Commands"; 70, 75 and 78 are those of `sysexits.h`).
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::NotRunning => 3,
            Kind::LiveSession => 4,
            Kind::Stranger => 5,
            Kind::PartFailed => 70,
            Kind::Busy => 75,
            Kind::Config => 78,
            Kind::TimedOut => 124,
        }
    }
}

/// An error that a person can act on.
#[derive(Clone, Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

/// The result of anything that can fail in a way a person should hear of.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this kind. `message`: lower case, no full stop, what was being done, to what, the cause.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), hint: None }
    }

    /// A failure of which all has been said: only the exit code is left.
    #[must_use]
    pub fn silent(kind: Kind) -> Self {
        Error::new(kind, "")
    }

    /// Whether all has been said.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.message.is_empty()
    }

    /// The common kind: the command could not do what it was asked.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Error::new(Kind::Failed, message)
    }

    /// Adds what to do about it, in the imperative.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What sort of failure this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What to do about it, where there is something.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// It and what to do about it, for the stream, where all stands on one line.
    #[must_use]
    pub fn with_advice(&self) -> String {
        self.advice().map_or_else(|| self.to_string(), |advice| format!("{self}; {advice}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Turns an I/O error into one that says what was being done: `read_it().during("reading /x")?`.
pub trait During<T> {
    /// Says what was being done when the error came.
    ///
    /// # Errors
    /// The same failure, as an [`Error`] of kind [`Kind::Failed`].
    fn during(self, doing: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> During<T> for std::result::Result<T, E> {
    fn during(self, doing: impl fmt::Display) -> Result<T> {
        self.map_err(|cause| Error::failed(format!("{doing}: {cause}")))
    }
}

/// Adds what to do about it to whatever failed: `read_it().during("reading /x").advise("mend the disk")?`.
pub trait Advise {
    /// Adds what to do about it, in the imperative.
    #[must_use]
    fn advise(self, hint: &str) -> Self;
}

impl<T> Advise for Result<T> {
    fn advise(self, hint: &str) -> Self {
        self.map_err(|error| error.hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_the_exit_code_of_the_contract() {
        let table = [
            (Kind::Failed, 1),
            (Kind::Usage, 2),
            (Kind::NotRunning, 3),
            (Kind::LiveSession, 4),
            (Kind::Stranger, 5),
            (Kind::PartFailed, 70),
            (Kind::Busy, 75),
            (Kind::Config, 78),
            (Kind::TimedOut, 124),
        ];
        for (kind, code) in table {
            assert_eq!(kind.exit_code(), code, "{kind:?}");
        }
    }

    #[test]
    fn a_cause_is_put_behind_what_was_being_done() {
        let cause: std::result::Result<(), _> = Err(std::io::Error::other("no such luck"));
        let error = cause.during("opening /x").unwrap_err().hint("try again");
        assert_eq!(error.to_string(), "opening /x: no such luck");
        assert_eq!(error.advice(), Some("try again"));
        assert_eq!(error.with_advice(), "opening /x: no such luck; try again");
        let failed: Result<()> = Err(error);
        assert_eq!(failed.advise("or not").unwrap_err().advice(), Some("or not"));
    }
}
