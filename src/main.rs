//! The program: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    anna_relay::cli::run::run()
}
