//! The processes of the trees. The test program is all of them: it looks at the name it was started under.
//!
//! Each says `<role> <pid>` on standard output once it is up, and ends when its standard input does, which is the
//! test's: whatever becomes of the test, its trees go with it.

use std::env;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anna_relay::config::Side;

/// Where a server listens, where that is not what `FAKECHAT_PORT` says.
pub const LISTEN: &str = "STANDIN_LISTEN";
/// Set for a server that does not follow SIGTERM.
pub const STUBBORN: &str = "STANDIN_STUBBORN";
/// The user that a session starts its fakechat as.
pub const AS_UID: &str = "STANDIN_AS_UID";

/// This program under another name.
pub fn command(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg0(words.next().unwrap()).args(words);
    command
}

/// Plays the part that the name stands for; none for the test itself.
pub fn play() -> Option<ExitCode> {
    let args: Vec<String> = env::args().collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["bun", "server.ts"] => listen("server"),
        ["bun", "run", .., "start"] => parent("wrapper", "bun server.ts"),
        ["claude", "direct"] => parent("session", "bun server.ts"),
        ["claude", "wrapped"] => parent("session", "bun run --cwd x --shell=bun --silent start"),
        ["claude", "real", folder] => real(Path::new(folder)),
        ["reaper", kind] => reaper(&format!("claude {kind}")),
        ["systemd", "--user"] => reaper("claude wrapped"),
        ["stranger"] => listen("stranger"),
        ["clear-port", side, port, flags @ ..] => return Some(clear_port(side, port, flags)),
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

fn say(role: &str) {
    let mut out = io::stdout();
    if writeln!(out, "{role} {}", std::process::id()).and_then(|()| out.flush()).is_err() {
        // The test is over already.
        std::process::exit(0);
    }
}

fn live_on() {
    io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink()).unwrap();
}

/// Adopts what its descendants leave behind.
fn reaper(child: &str) {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    parent("reaper", child);
}

fn parent(role: &str, child: &str) {
    let mut child = command(child);
    if let Ok(uid) = env::var(AS_UID) {
        child.uid(uid.parse().unwrap());
    }
    spawn(&mut child, role);
}

#[allow(clippy::zombie_processes, reason = "a child that ends first shall be a zombie")]
fn spawn(child: &mut Command, role: &str) {
    let _child = child.spawn().unwrap();
    say(role);
    live_on();
}

fn real(folder: &Path) {
    let mut bun = Command::new("bun");
    bun.args(["run", "--cwd"]).arg(folder).args(["--shell=bun", "--silent", "start"]);
    spawn(bun.stdout(io::stderr()), "session");
}

fn listen(role: &str) {
    let port = env::var(LISTEN).or_else(|_| env::var("FAKECHAT_PORT")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if env::var_os(STUBBORN).is_some() {
        let _guard = runtime.enter();
        let _ignored = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    }
    let listener = TcpListener::bind(("127.0.0.1", port.parse().unwrap()));
    say(if listener.is_ok() { role } else { "refused" });
    live_on();
}

fn clear_port(side: &str, port: &str, flags: &[&str]) -> ExitCode {
    let side = if side == "bot" { Side::Bot } else { Side::Brain };
    let has = |flag| flags.contains(&flag);
    match anna_relay::cli::clear_port::run(side, port.parse().unwrap(), has("--dry-run"), has("--json")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}\nhint: {}", error.advice().unwrap_or_default());
            ExitCode::from(error.kind().exit_code())
        }
    }
}
