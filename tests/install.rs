//! `install.sh` in a home with a space in its name, with stand-ins for what it calls.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What stands in for the program, where it need not be the real one: it says what it was asked to do.
const PROGRAM: &str = r#"#!/bin/sh
case $1 in
--version) echo 'anna-relay 9.9.9' ;;
man) mkdir -p "$2" && echo "page $PAGE" >"$2/anna-relay${PAGE-}.1" ;;
completions) echo "completions for $2" ;;
check) echo "  \"enabled\": ${ENABLED-false}," ;;
setup) echo "setup of $0" && exit "${SETUP-0}" ;;
esac
"#;

/// Says what it was asked to do; there is a user manager, and the service is what `SERVICE` says.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >>"$HOME/../systemctl"
case $2 in is-*) [ "$2" = "is-${SERVICE-}" ] ;; esac
"#;

struct Home {
    dir: tempfile::TempDir,
    env: Vec<(&'static str, String)>,
}

/// Everything in a folder: mode, time and content.
type Snapshot = BTreeMap<PathBuf, (u32, i64, Vec<u8>)>;

fn snapshot(folder: &Path) -> Snapshot {
    let mut all = Snapshot::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let (time, content) = match meta.file_type() {
                kind if kind.is_dir() => (0, Vec::new()),
                kind if kind.is_symlink() => (0, fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()),
                _ => (meta.mtime_nsec(), fs::read(&path).unwrap()),
            };
            if meta.is_dir() {
                folders.push(path.clone());
            }
            all.insert(path, (meta.mode(), time, content));
        }
    }
    all
}

fn write(path: &Path, mode: u32, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Home {
    fn new() -> Home {
        let home = Home { dir: tempfile::tempdir().unwrap(), env: Vec::new() };
        fs::create_dir(home.path()).unwrap();
        write(&home.dir.path().join("built/anna-relay"), 0o755, PROGRAM);
        write(&home.dir.path().join("bin/systemctl"), 0o755, SYSTEMCTL);
        home
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("a home")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    /// What systemctl was asked, the looks aside.
    fn systemctl(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("systemctl")).unwrap_or_default();
        text.lines().filter(|line| !line.contains(" is-") && !line.contains("show-env")).map(str::to_owned).collect()
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("install.sh"));
        command.current_dir(self.dir.path()).env_clear().env("HOME", self.path());
        let bins = [self.dir.path().join("bin"), self.at(".local/bin"), "/usr/bin".into(), "/bin".into()];
        command.env("PATH", std::env::join_paths(bins).unwrap());
        command.envs(self.env.iter().map(|(name, value)| (name, value))).args(args).output().unwrap()
    }

    /// Runs it, and wants it to succeed without a word on standard error.
    #[track_caller]
    fn good(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{args:?}: {said}\n{}", out(&output));
        out(&output)
    }

    /// Installs the stand-in.
    #[track_caller]
    fn install(&self) -> String {
        self.good(&["--binary", "built/anna-relay"])
    }
}

#[test]
fn a_service_is_advised_only_where_systemd_answers() {
    let home = Home::new();
    assert!(
        home.install().contains("\n      4. anna-relay bridge in a third, or as a service: systemctl --user enable")
    );
    write(&home.dir.path().join("bin/systemctl"), 0o755, "#!/bin/sh\nexit 1\n");
    assert!(home.install().ends_with("\n      4. anna-relay bridge in a third\n"));
}

#[test]
fn the_real_program_is_installed_twice_and_taken_back() {
    let home = Home::new();
    write(&home.at(".config/anna/anna.toml"), 0o600, "[other]\nkey = 1\n");
    write(&home.at(".local/bin/mine"), 0o755, "#!/bin/sh\n");
    let before = snapshot(&home.path());
    let install = ["--binary", env!("CARGO_BIN_EXE_anna-relay")];
    let dry = home.good(&["--dry-run", install[0], install[1]]);
    assert!(dry.starts_with("would install ") && dry.contains("/share/man/man1/anna-relay-launch.1\n"), "{dry}");
    assert!(!dry.lines().any(|line| line.starts_with("install ")), "{dry}");
    assert_eq!(snapshot(&home.path()), before, "a dry run touches nothing");

    let said = home.good(&install);
    assert!(said.contains("\nnext: 1. set enabled = true under [relay] in "), "{said}");
    assert_eq!(home.read(".config/anna/anna.toml"), "[other]\nkey = 1\n");
    for (name, mode) in [
        (".local/bin/anna-relay", 0o755),
        (".local/bin/anna-brain", 0o755),
        (".local/bin/anna-tg", 0o755),
        (".local/bin/anna-day", 0o755),
        (".local/share/man/man1/anna-relay-launch.1", 0o644),
        (".local/share/bash-completion/completions/anna-relay", 0o644),
        (".local/share/zsh/site-functions/_anna-relay", 0o644),
        (".local/share/fish/vendor_completions.d/anna-relay.fish", 0o644),
        (".local/share/anna-relay/prompts/brain.md", 0o644),
        (".config/systemd/user/anna-relay.service", 0o644),
    ] {
        assert_eq!(fs::metadata(home.at(name)).expect(name).mode() & 0o777, mode, "{name}");
    }
    assert_eq!(fs::metadata(home.at(".local/state/anna")).unwrap().mode() & 0o777, 0o700);
    assert_eq!(home.read(".config/systemd/user/anna-relay.service"), unit());

    let after = snapshot(&home.path());
    let said = home.good(&install);
    assert!(said.starts_with("all is installed already\n"), "{said}");
    assert!(snapshot(&home.path()) == after, "the second time changes nothing");

    home.good(&["--uninstall", "--dry-run"]);
    assert!(snapshot(&home.path()) == after, "a dry run touches nothing");
    home.good(&["--uninstall"]);
    assert_eq!(snapshot(&home.path()), before);
    assert!(home.good(&["--uninstall"]).starts_with("nothing to take back"));
    assert_eq!(home.systemctl(), ["--user daemon-reload", "--user daemon-reload"], "nothing is started");
}

fn unit() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/systemd/anna-relay.service")).unwrap()
}

#[test]
fn the_first_configuration_is_written_once_and_stays() {
    let home = Home::new();
    assert!(home.install().contains("write a first "));
    let config = home.read(".config/anna/anna.toml");
    assert_eq!(config, fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/anna.toml")).unwrap());
    write(&home.at(".local/state/anna/relay/new/x.json"), 0o600, "{}");
    let said = home.good(&["--uninstall"]);
    assert!(
        said.contains("anna.toml stays\n") && said.contains(".local/state/anna stays, the hand-offs in it\n"),
        "{said}"
    );
    let left: Vec<_> = snapshot(&home.path()).into_keys().filter(|path| path.is_file()).collect();
    assert_eq!(left, [home.at(".config/anna/anna.toml"), home.at(".local/state/anna/relay/new/x.json")]);
}

#[test]
fn setup_runs_where_the_relay_is_enabled() {
    let mut home = Home::new();
    home.env = vec![("ENABLED", "true".to_owned())];
    let setup = format!("\nsetup of {}\n", home.at(".local/bin/anna-relay").display());
    let said = home.install();
    assert!(said.contains(&format!("run anna-relay setup{setup}")), "{said}");
    assert!(!home.good(&["--dry-run", "--binary", "built/anna-relay"]).contains(&setup));
    home.env.push(("SETUP", "3".to_owned()));
    let output = home.run(&["--binary", "built/anna-relay"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: setting up the two sessions\nhint: "));
}

#[test]
fn an_update_replaces_what_is_its_own_and_nothing_else() {
    let mut home = Home::new();
    write(&home.at(".local/bin/anna-day"), 0o755, "#!/bin/sh\n# mine\n");
    let program = home.dir.path().join("elsewhere");
    write(&program, 0o755, "#!/bin/sh\n");
    symlink(&program, home.at(".local/bin/anna-tg")).unwrap();
    let said = home.install();
    assert!(said.contains(".local/bin/anna-day is not from here: left as it is"), "{said}");
    assert!(said.contains(".local/bin/anna-tg is not from here: left as it is"), "{said}");

    // The person changes one, and there is a new version, which has another page.
    let unit = home.at(".config/systemd/user/anna-relay.service");
    fs::write(&unit, "# changed\n").unwrap();
    write(&home.dir.path().join("built/anna-relay"), 0o755, &format!("{PROGRAM}# new\n"));
    home.env = vec![("PAGE", "-new".to_owned())];
    let said = home.install();
    assert!(said.contains("anna-relay.service was changed since it was installed: left as it is"), "{said}");
    assert!(home.read(".local/bin/anna-relay").ends_with("# new\n"));
    assert!(home.at(".local/share/man/man1/anna-relay-new.1").exists());
    assert!(!home.at(".local/share/man/man1/anna-relay.1").exists(), "the old page is gone");
    assert_eq!(fs::read_to_string(&unit).unwrap(), "# changed\n");

    let said = home.good(&["--uninstall"]);
    assert!(said.contains("anna-relay.service was changed since it was installed: left as it is"), "{said}");
    let left: Vec<_> = snapshot(&home.at(".local")).into_keys().filter(|path| !path.is_dir()).collect();
    assert_eq!(left, [home.at(".local/bin/anna-day"), home.at(".local/bin/anna-tg")]);
}

#[test]
fn what_force_replaces_is_put_back() {
    let home = Home::new();
    write(&home.at(".config/anna/anna.toml"), 0o600, "");
    write(&home.at(".local/bin/anna-day"), 0o700, "#!/bin/sh\n# mine\n");
    symlink("nowhere", home.at(".local/bin/anna-tg")).unwrap();
    let before = snapshot(&home.path());
    for _ in 0..2 {
        home.good(&["--force", "--binary", "built/anna-relay"]);
        assert!(home.read(".local/bin/anna-day").contains("anna-relay pause"));
        assert!(home.at(".local/bin/anna-tg").is_file());
    }
    home.good(&["--uninstall"]);
    assert_eq!(snapshot(&home.path()), before);
}

#[test]
fn another_prefix_and_other_folders_are_honoured() {
    let mut home = Home::new();
    let at = |name: &str| home.at(name).display().to_string();
    let env = vec![
        ("XDG_CONFIG_HOME", at("c 100%")),
        ("XDG_STATE_HOME", at("s")),
        ("XDG_DATA_HOME", at("d")),
        ("CLAUDE_CONFIG_DIR", at("claude \"x\"")),
    ];
    home.env = env;
    home.good(&["--binary", "built/anna-relay", "--prefix", "a home/p q"]);
    for name in ["p q/bin/anna-relay", "p q/share/man/man1/anna-relay.1", "p q/share/zsh/site-functions/_anna-relay"] {
        assert!(home.at(name).exists(), "{name}");
    }
    assert!(home.at("s/anna/install.manifest").exists() && home.at("c 100%/anna/anna.toml").exists());
    let unit = home.read("c 100%/systemd/user/anna-relay.service");
    let root = home.path().display().to_string();
    for line in [
        format!("ExecStart=\"{root}/p q/bin/anna-relay\" bridge\n"),
        format!("Environment=\"XDG_CONFIG_HOME={root}/c 100%%\"\n"),
        format!("Environment=\"XDG_STATE_HOME={root}/s\"\n"),
        format!("Environment=\"CLAUDE_CONFIG_DIR={root}/claude \\\"x\\\"\"\n"),
    ] {
        assert!(unit.contains(&line), "{line}{unit}");
    }
    verify(&home.at("c 100%/systemd/user/anna-relay.service"));

    // It is known where it is, and there is one place for it.
    assert!(home.install().starts_with("all is installed already"));
    let output = home.run(&["--binary", "built/anna-relay", "--prefix", "other"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/p q already\nhint: "));
    home.good(&["--uninstall"]);
    let left: Vec<_> = snapshot(&home.path()).into_keys().filter(|path| !path.is_dir()).collect();
    assert_eq!(left, [home.at("c 100%/anna/anna.toml")]);

    // In the usual place, data has a folder of its own.
    home.install();
    assert!(home.at(".local/bin/anna-relay").exists() && home.at(".local/share/man/man1/anna-relay.1").exists());
    assert!(home.at("d/bash-completion/completions/anna-relay").exists());
}

/// What systemd itself says of a unit.
#[track_caller]
fn verify(unit: &Path) {
    let runtime = tempfile::tempdir().unwrap();
    let mut command = Command::new("systemd-analyze");
    command.args(["--user", "verify", "--man=no"]).arg(unit).env("XDG_RUNTIME_DIR", runtime.path());
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            // It may say something of other units too, which are not ours.
            assert!(output.status.success() && !said.contains("anna-relay"), "{said}");
        }
        Err(error) => println!("skipped: systemd-analyze does not run here: {error}"),
    }
}

#[test]
fn the_service_is_stopped_before_it_is_taken_away() {
    let mut home = Home::new();
    home.install();
    home.env = vec![("SERVICE", "active".to_owned())];
    assert!(home.install().contains("to have it run this version: systemctl --user restart anna-relay"));
    home.good(&["--uninstall"]);
    let asked = ["--user daemon-reload", "--user disable --now anna-relay", "--user daemon-reload"];
    assert_eq!(home.systemctl(), asked);
}

/// The tools of the system that the script calls, and nothing else.
fn tools(home: &Home, names: &[&str]) -> String {
    let folder = home.dir.path().join("tools");
    fs::create_dir(&folder).unwrap();
    for name in names {
        let found = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists());
        symlink(found.expect(name), folder.join(name)).unwrap();
    }
    folder.display().to_string()
}

const TOOLS: [&str; 20] = [
    "awk", "cat", "chmod", "cksum", "cmp", "cp", "dirname", "echo", "grep", "mkdir", "mktemp", "mv", "rm", "rmdir",
    "sed", "sh", "sort", "tail", "printf", "id",
];

#[test]
fn without_systemd_there_is_no_unit_and_without_rust_no_build() {
    let mut home = Home::new();
    let path = tools(&home, &TOOLS);
    home.env = vec![("PATH", path.clone())];
    let said = home.install();
    assert!(said.contains("note: there is no systemd here, so no unit: "), "{said}");
    assert!(said.contains(".local/bin is not on your PATH"), "{said}");
    assert!(!home.at(".config/systemd").exists());

    let output = home.run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.starts_with("error: building anna-relay: there is no Rust toolchain\nhint: install Rust 1."),
        "{said}"
    );

    write(&Path::new(&path).join("cargo"), 0o755, "#!/bin/sh\necho built\n");
    write(&Path::new(&path).join("rustc"), 0o755, "#!/bin/sh\necho 'rustc 1.9.0 (x 2016-05-23)'\n");
    let said = String::from_utf8_lossy(&home.run(&[]).stderr).into_owned();
    assert!(
        said.contains("error: building anna-relay: it needs Rust 1.") && said.contains(", and this is 1.9\n"),
        "{said}"
    );
    write(&Path::new(&path).join("rustc"), 0o755, "#!/bin/sh\necho 'rustc 2.0.0-nightly (x 2030-05-23)'\n");
    let said = home.good(&["--dry-run"]);
    assert!(said.starts_with("would build the program: cargo build --release --locked\nwould install "), "{said}");
}

#[test]
fn what_it_cannot_use_is_named() {
    let home = Home::new();
    for (args, code, wanted) in [
        (&["--frob"][..], 2, "there is no option --frob"),
        (&["--prefix"], 2, "--prefix needs a path"),
        (&["--binary", "/bin/true"], 1, "installing /bin/true: it is not the program anna-relay"),
        (&["--binary", "nowhere"], 1, "/nowhere: it is not the program anna-relay"),
    ] {
        let output = home.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(wanted) && said.contains("\nhint: "), "{said}");
    }
    assert!(home.good(&["--help"]).starts_with("usage: ./install.sh "));
    assert!(snapshot(&home.path()).is_empty());
    fs::create_dir_all(home.at(".local/bin/anna-tg")).unwrap();
    let output = home.run(&["--binary", "built/anna-relay"]);
    assert_eq!(output.status.code(), Some(1));
    // What it had put there until then is known, and taken back.
    home.good(&["--uninstall"]);
    assert_eq!(snapshot(&home.path()).into_keys().filter(|path| path.is_file()).count(), 0);
}
