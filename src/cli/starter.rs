//! What starts the bridge on this machine: systemd, or, in a container or on macOS, a person.

use std::path::Path;

/// Who starts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// The user's systemd.
    Systemd,
    /// Nobody but a person, or what they have for it.
    Person,
}

impl Starter {
    /// Who it is here.
    #[must_use]
    pub fn here() -> Starter {
        // As sd_booted(3) has it: the folder is there exactly where systemd runs the machine.
        if Path::new("/run/systemd/system").is_dir() { Starter::Systemd } else { Starter::Person }
    }

    /// How to start a bridge.
    #[must_use]
    pub fn start(self) -> &'static str {
        match self {
            Starter::Systemd => "systemctl --user start anna-relay (here and now: anna-relay bridge)",
            Starter::Person => "anna-relay bridge, in a terminal of its own",
        }
    }

    /// How to end the one that runs, and start another.
    #[must_use]
    pub fn restart(self) -> &'static str {
        match self {
            Starter::Systemd => "systemctl --user restart anna-relay",
            Starter::Person => "end it, then start it again: anna-relay bridge",
        }
    }
}
