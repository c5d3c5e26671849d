//! The processes of the trees. The test program is all of them: it looks at the name it was started under.
//!
//! Each says `<role> <pid>` on standard output once it is up, and ends when its standard input does, which is the
//! test's: whatever becomes of the test, its trees go with it. A fakechat can be spoken to through a socket (see
//! [`control`]).

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use anna_relay::fakechat::server::Double;
use serde_json::{Value, json};

use crate::rogue;

/// The folder of the control sockets.
pub const FOLDER: &str = "STANDIN_FOLDER";
/// Set for a server that does not follow SIGTERM.
pub const STUBBORN: &str = "STANDIN_STUBBORN";
/// What kind of server it is: none for a double, `rogue`, `shared`.
pub const KIND: &str = "STANDIN_KIND";

/// This program under another name.
pub fn command(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg0(words.next().unwrap()).args(words);
    command
}

/// Where the fakechat with that process id listens to the test.
pub fn control_path(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.sock"))
}

/// Plays the part that the name stands for; none for the test itself.
pub fn play() -> Option<ExitCode> {
    let args: Vec<String> = env::args().collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["bun", "server.ts"] => server("server"),
        ["stranger"] => server("stranger"),
        ["bun", "run", .., "start"] => wrapper(),
        ["claude", "direct"] => session("bun server.ts"),
        ["claude", "wrapped"] => session("bun run --cwd x --shell=bun --silent start"),
        ["claude", "real", folder] => crate::real::session(Path::new(folder)),
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

pub fn say(role: &str) {
    let mut out = io::stdout();
    if writeln!(out, "{role} {}", std::process::id()).and_then(|()| out.flush()).is_err() {
        // The test is over already.
        std::process::exit(0);
    }
}

pub fn live_on() {
    io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink()).unwrap();
}

/// As Claude Code: it goes on without its fakechat.
fn session(child: &str) {
    let mut child = command(child).spawn().unwrap();
    std::thread::spawn(move || child.wait());
    say("session");
    live_on();
}

/// As `bun run`: it ends with what it runs.
fn wrapper() {
    let mut child = command("bun server.ts").spawn().unwrap();
    std::thread::spawn(move || {
        let status = child.wait().unwrap();
        std::process::exit(status.code().unwrap_or(1));
    });
    say("wrapper");
    live_on();
}

fn server(role: &str) {
    if env::var_os(STUBBORN).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _guard = runtime.enter();
        let _ignored = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
        std::mem::forget(runtime);
    }
    let port = env::var("FAKECHAT_PORT").unwrap().parse().unwrap();
    match env::var(KIND).as_deref() {
        Ok("rogue") => rogue::serve(role, port),
        Ok("shared") => rogue::share(role, port),
        _ => double(role, port),
    }
}

/// As the real one: on a taken port it ends. A stranger waits for it.
fn double(role: &str, port: u16) {
    let mut started = Double::start(port);
    while role == "stranger" && started.is_err() {
        std::thread::sleep(Duration::from_millis(2));
        started = Double::start(port);
    }
    let Ok(double) = started else {
        say("refused");
        std::process::exit(1);
    };
    let double = Arc::new(double);
    let theirs = Arc::clone(&double);
    control(move |request| {
        let text = |key: &str| request[key].as_str();
        match text("do").unwrap() {
            "uploads" => {
                let file = |file: &anna_relay::fakechat::server::ReceivedFile| json!({"name": file.name, "text": String::from_utf8_lossy(&file.bytes)});
                let upload = |one: &anna_relay::fakechat::server::Received| json!({"id": one.id, "text": one.text, "file": one.file.as_ref().map(file)});
                theirs.uploads().iter().map(upload).collect()
            }
            "sockets" => json!(theirs.sockets()),
            "say" => json!(theirs.say(text("text").unwrap(), text("reply_to"))),
            other => panic!("what is {other}?"),
        }
    });
    say(role);
    live_on();
}

/// Lets the test speak to this process: a JSON line in, a JSON line out, a connection each.
pub fn control(answer: impl Fn(&Value) -> Value + Send + 'static) {
    let folder = env::var_os(FOLDER).unwrap();
    let listener = UnixListener::bind(control_path(Path::new(&folder), std::process::id())).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut line = String::new();
            if BufReader::new(&stream).read_line(&mut line).is_ok_and(|n| n > 0) {
                let answer = answer(&serde_json::from_str(&line).unwrap());
                writeln!(stream, "{answer}").ok();
            }
        }
    });
}
