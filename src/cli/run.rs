//! From the command line to the command.

use std::process::ExitCode;

use rustix::fs::Mode;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::spool::store::LOG;
use crate::{daemon, telemetry};

use super::{
    Cli, Command, check, clear_port, completions, demo, doctor, hook, launch, list, man, manage, out, render, send,
    setup, status, stream, usage,
};

/// Carries out what was typed, and says what went wrong.
#[must_use]
pub fn run() -> ExitCode {
    // Whatever is made is for this user alone; a session that is started has the person's own mask again.
    let umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let cli = match usage::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && hook::is_meant(std::env::args_os()) && !is_typed() => {
            return hook::misused(&error);
        }
        Err(error) => error.exit(),
    };
    match carry_out(cli, umask) {
        Ok(code) => code,
        Err(error) => {
            if !error.is_silent() {
                out::say(&render::error(&error));
            }
            ExitCode::from(error.kind().exit_code())
        }
    }
}

/// Whether a person is at the keyboard.
fn is_typed() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stdin())
}

fn carry_out(cli: Cli, umask: Mode) -> Result<ExitCode, Error> {
    let flag = cli.config.as_deref();
    let config = || Config::load_once(flag);
    let done = match cli.command {
        Command::Bridge => return bridge(config()?, flag),
        Command::Status(args) => status::run(&config()?, args.check, args.output.json),
        Command::List(args) => list::list(&config()?, &args),
        Command::Show(args) => list::show(&config()?, &args.which.id, args.output.json),
        Command::Send(args) => send::run(&config()?, &args),
        Command::Pause(args) => manage::pause(&config()?, args.reason),
        Command::Resume => manage::resume(&config()?),
        Command::Retry(args) => manage::retry(&config()?, &args.id),
        Command::Cancel(args) => manage::cancel(&config()?, &args.id),
        Command::Prune(args) => manage::prune(&config()?, &args),
        Command::ResetBreaker => manage::reset_breaker(&config()?),
        Command::ClearPort(args) => {
            clear_port::run(args.side, config()?.relay.port(args.side), args.dry_run, args.output.json)
        }
        Command::Launch(args) => launch::run(&Config::load(flag)?, flag, &args, umask),
        Command::Stream(args) => stream::run(&config()?, args.lines, args.follow),
        Command::Check(args) => check::run(&config()?, args.output.json),
        Command::Demo => demo::run(),
        Command::Setup(args) => setup::run(&args, flag),
        Command::Doctor(args) => doctor::run(&args, flag),
        Command::Hook(args) => return Ok(hook::run(args.side, flag)),
        Command::Completions(args) => completions::run(args.shell),
        Command::Man(args) => man::run(args.dir.as_deref()),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn bridge(config: Config, flag: Option<&std::path::Path>) -> Result<ExitCode> {
    let log = config.paths.spool().join(LOG);
    let color = render::Style::detect(std::io::IsTerminal::is_terminal(&std::io::stderr())).has_color();
    let _log = telemetry::init(config.relay.enabled.then_some(log.as_path()), color);
    daemon::run(config, flag)
}
