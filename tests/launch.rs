//! `anna-relay launch` and the scripts over it, with a stand-in for `claude` that writes down how it was started.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anna_relay::cli::launch::SWITCH_OFF;

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A home with a space in its name, the two settings files, and `claude` on the PATH.
struct Home {
    dir: tempfile::TempDir,
    brain_port: u16,
    bot_port: u16,
}

/// A port that nobody listens on, and that the system gives to nobody who does not ask for it.
fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(10_000..30_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn write(path: &Path, mode: u32, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

impl Home {
    /// `claude` ends once the file `stay` in the home is not there.
    fn new() -> Home {
        let home = Home { dir: tempfile::tempdir().unwrap(), brain_port: free_port(), bot_port: free_port() };
        let claude = "#!/bin/sh\n\
            record=$HOME/record-$FAKECHAT_PORT\n\
            { echo $$; umask; env; } >\"$record.env\"\n\
            : >\"$record.new\"\n\
            for arg; do printf '%s\\n' \"$arg\" >>\"$record.new\"; done\n\
            mv \"$record.new\" \"$record.args\"\n\
            while [ -e \"$HOME/stay\" ]; do sleep 0.05; done\n";
        write(&home.at("stand ins/claude"), 0o755, claude);
        for side in ["brain", "bot"] {
            write(&home.at(&format!(".claude/anna-{side}-settings.json")), 0o600, "{}");
        }
        write(&home.at(PLUGIN), 0o600, "// the server");
        home.config("");
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join("a home").join(name)
    }

    fn config(&self, more: &str) {
        let (brain, bot) = (self.brain_port, self.bot_port);
        let text = format!("[relay]\nbrain_port = {brain}\nbot_port = {bot}\n{more}");
        write(&self.at(".config/anna/anna.toml"), 0o600, &text);
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.at(""))
            .env("PATH", format!("{}:/usr/bin:/bin", self.at("stand ins").display()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn launch(&self, line: &str) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_anna-relay"));
        command.arg("launch").args(line.split(' '));
        command
    }

    /// What `claude` was given on that port; none where it was not started.
    fn args(&self, port: u16) -> Option<Vec<String>> {
        let text = fs::read_to_string(self.at(&format!("record-{port}.args"))).ok()?;
        Some(text.lines().map(str::to_owned).collect())
    }

    fn env(&self, port: u16) -> Vec<String> {
        fs::read_to_string(self.at(&format!("record-{port}.env"))).unwrap().lines().map(str::to_owned).collect()
    }

    fn settings(&self, side: &str) -> String {
        self.at(&format!(".claude/anna-{side}-settings.json")).to_string_lossy().into_owned()
    }
}

/// What is there of the plugin once it is installed.
const PLUGIN: &str = ".claude/plugins/cache/claude-plugins-official/fakechat/0.0.1/server.ts";
const FAKECHAT: &str = "plugin:fakechat@claude-plugins-official";
const TELEGRAM: &str = "plugin:telegram@claude-plugins-official";

#[test]
fn each_side_gets_its_settings_its_port_and_its_channels() {
    let home = Home::new();
    let brain = home.launch("brain good -- morning").output().unwrap();
    assert!(brain.status.success() && brain.stderr.is_empty(), "{}", stderr(&brain));
    let settings = home.settings("brain");
    assert_eq!(
        home.args(home.brain_port).unwrap(),
        ["good", "--settings", &settings, "--channels", FAKECHAT, "--", "morning"]
    );
    assert!(home.launch("bot --model haiku").status().unwrap().success());
    let settings = home.settings("bot");
    assert_eq!(
        home.args(home.bot_port).unwrap(),
        ["--model", "haiku", "--settings", &settings, "--channels", FAKECHAT, TELEGRAM]
    );
    assert!(home.env(home.bot_port).contains(&format!("FAKECHAT_PORT={}", home.bot_port)));
}

#[test]
fn claude_takes_the_launchers_place_with_the_persons_own_umask() {
    let home = Home::new();
    let mut command = home.command("/bin/sh");
    command.args(["-c", "umask 027; exec \"$0\" launch brain"]).arg(env!("CARGO_BIN_EXE_anna-relay"));
    let child = command.spawn().unwrap();
    let pid = child.id();
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(home.env(home.brain_port)[..2], [pid.to_string(), "0027".to_owned()]);
    assert_eq!(fs::metadata(home.at(".local/state/anna/relay")).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn variables_that_switch_channels_off_are_taken_out_and_it_says_so() {
    let home = Home::new();
    let mut command = home.launch("brain");
    for name in SWITCH_OFF {
        command.env(name, "1");
    }
    let said = stderr(&command.env("KEPT", "1").output().unwrap());
    let env = home.env(home.brain_port);
    for name in SWITCH_OFF {
        assert!(said.contains(&format!("taking {name} out of the session's environment")), "{said}");
        assert!(!env.iter().any(|line| line.starts_with(name)), "{env:?}");
    }
    assert!(env.contains(&"KEPT=1".to_owned()));
}

#[test]
fn another_folder_of_claude_and_another_configuration_are_honoured() {
    let home = Home::new();
    write(&home.at("cc/anna-brain-settings.json"), 0o600, "{}");
    let port = free_port();
    let config = home.at("other.toml");
    write(&config, 0o600, &format!("[relay]\nbrain_port = {port}\nbrain_channels = [\"plugin:a@b\"]\n"));
    let mut command = home.launch("brain");
    command.env("CLAUDE_CONFIG_DIR", home.at("cc")).arg("--config").arg(&config);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let settings = home.at("cc/anna-brain-settings.json").to_string_lossy().into_owned();
    assert_eq!(home.args(port).unwrap(), ["--settings", &settings, "--channels", "plugin:a@b"]);
    assert!(home.env(port).contains(&format!("ANNA_CONFIG={}", config.display())));
}

#[test]
fn what_is_missing_is_named() {
    let home = Home::new();
    fs::remove_file(home.settings("bot")).unwrap();
    let output = home.launch("bot").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let wanted = format!("launching the bot: there is no {}", home.settings("bot"));
    assert!(stderr(&output).contains(&wanted) && stderr(&output).contains("anna-relay setup"), "{}", stderr(&output));

    fs::remove_file(home.at("stand ins/claude")).unwrap();
    let output = home.launch("brain").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no program `claude` on the PATH"), "{}", stderr(&output));

    write(&home.at("stand ins/claude"), 0o755, "#!/no/such/interpreter\n");
    let output = home.launch("brain").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("stand ins/claude: No such file"), "{}", stderr(&output));
    assert_eq!(fs::read(home.at(".local/state/anna/relay/launching")).unwrap(), b"", "the next one need not wait");

    let output = home.launch("brain --channels x").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("relay.brain_channels"), "{}", stderr(&output));
}

#[test]
fn a_stranger_on_the_port_is_left_alone() {
    let home = Home::new();
    let _stranger = TcpListener::bind(("127.0.0.1", home.brain_port)).unwrap();
    let output = home.launch("brain").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains(&format!("pid {}", std::process::id())), "{}", stderr(&output));
    assert_eq!(home.args(home.brain_port), None);
}

#[test]
fn a_dry_run_prints_the_command_line_and_touches_nothing() {
    let home = Home::new();
    let mut command = home.launch("bot --dry-run it's me");
    let output = command.env("DO_NOT_TRACK", "1").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let port = home.bot_port;
    let expected = format!(
        "env -u DO_NOT_TRACK FAKECHAT_PORT={port} claude 'it'\\''s' me --settings '{}' --channels {FAKECHAT} {TELEGRAM}\n\
         the bot's port {port} is free\n",
        home.settings("bot")
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(home.args(port), None);
    assert!(!home.at(".local").exists());
    assert!(!stderr(&home.launch("bot --dry-run").output().unwrap()).contains("installed"));
    fs::remove_file(home.at(PLUGIN)).unwrap();
    for line in ["bot --dry-run", "bot"] {
        let output = home.launch(line).output().unwrap();
        let wanted = "launching the bot: fakechat@claude-plugins-official does not seem to be installed\nhint: run ";
        assert!(output.status.success() && stderr(&output).contains(wanted), "{line}: {}", stderr(&output));
    }
    fs::remove_file(home.settings("bot")).unwrap();
    fs::remove_file(home.at("stand ins/claude")).unwrap();
    let output = home.launch("bot --dry-run").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    for wanted in ["no program `claude` on the PATH\nhint: install Claude Code", "settings.json\nhint: run `anna-relay"]
    {
        assert!(stderr(&output).contains(wanted), "{wanted}: {}", stderr(&output));
    }
}

#[test]
fn the_second_launcher_waits_for_the_firsts_port() {
    let home = Home::new();
    write(&home.at("stay"), 0o600, "");
    let first = home.launch("brain").spawn().unwrap();
    until("the first one runs", || home.args(home.brain_port).is_some());
    let second = home.launch("bot").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(home.args(home.bot_port), None);
    let open = TcpListener::bind(("127.0.0.1", home.brain_port)).unwrap();
    until("the second one runs", || home.args(home.bot_port).is_some());
    drop(open);
    fs::remove_file(home.at("stay")).unwrap();
    let pid = first.id();
    assert!(first.wait_with_output().unwrap().status.success());
    let output = second.wait_with_output().unwrap();
    let wanted = format!("the brain (pid {pid}) is starting: waiting up to 60 s for its port {}\n", home.brain_port);
    assert_eq!(stderr(&output), wanted);
}

#[test]
fn it_does_not_wait_for_one_that_has_ended_or_takes_too_long() {
    let home = Home::new();
    assert!(home.launch("brain").status().unwrap().success());
    assert!(stderr(&home.launch("bot").output().unwrap()).is_empty(), "the brain's claude has ended");

    // A minute ago, and still no port.
    let at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() - 59;
    let start =
        format!("{{\"side\":\"brain\",\"port\":{},\"pid\":{},\"at\":{at}}}", home.brain_port, std::process::id());
    let mark = home.at(".local/state/anna/relay/launching");
    fs::write(&mark, start).unwrap();
    let began = Instant::now();
    assert!(home.launch("bot").status().unwrap().success());
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn the_scripts_start_the_program_beside_them() {
    let home = Home::new();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/bin");
    fs::create_dir_all(home.at("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_anna-relay"), home.at("bin/anna-relay")).unwrap();
    for (name, port, channel) in [("anna-brain", home.brain_port, FAKECHAT), ("anna-tg", home.bot_port, TELEGRAM)] {
        fs::copy(scripts.join(name), home.at("bin").join(name)).unwrap();
        let output = home.command(home.at("bin").join(name)).arg("hello there").output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let args = home.args(port).unwrap();
        assert_eq!((&*args[0], &*args[args.len() - 1]), ("hello there", channel));
    }
}
