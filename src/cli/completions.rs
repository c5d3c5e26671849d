//! `anna-relay completions`: what a shell needs to complete the command line.

use clap_complete::{Shell, generate};

use super::{PROGRAM, command, out};
use crate::error::Result;

/// Prints the completions for that shell.
///
/// # Errors
/// Where they cannot be printed.
pub fn run(shell: Shell) -> Result<()> {
    out::print(&text(shell))
}

fn text(shell: Shell) -> String {
    // Into memory first, for the generators panic where the reader has gone.
    let mut out = Vec::new();
    generate(shell, &mut command(), PROGRAM, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_completes_every_command() {
        for shell in Shell::value_variants() {
            let text = text(*shell);
            for name in command().get_subcommands().map(clap::Command::get_name) {
                assert!(text.contains(name), "{shell}: {name}");
            }
        }
    }
}
