//! `anna-relay doctor` in a home of its own.

#![allow(clippy::unwrap_used)] // a test that cannot go on stops

mod home;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use home::Home;
use serde_json::Value;

/// The findings of a check.
fn findings(home: &Home, args: &[&str], code: i32) -> Vec<Value> {
    let mut all = vec!["doctor", "--json"];
    all.extend(args);
    let ran = home.run(&all);
    assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
    let list: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    for one in &list {
        let keys: Vec<&String> = one.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["check", "fix", "level", "what", "why"]);
        let told = one["level"] == "ok" || (one["why"].is_string() && one["fix"].is_string());
        assert!(told && ["ok", "warn", "fail"].contains(&one["level"].as_str().unwrap()), "{one}");
    }
    list
}

fn levels<'a>(list: &'a [Value], check: &str) -> Vec<&'a str> {
    list.iter().filter(|one| one["check"] == check).map(|one| one["level"].as_str().unwrap()).collect()
}

/// A home with all set up, and ports that nobody has.
fn ready() -> Home {
    let mut home = Home::new();
    let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = home.path().join("anna.toml");
    let ports = format!("brain_port = {}\nbot_port = {}", port(), port());
    fs::write(&config, format!("[relay]\nenabled = true\n{ports}\n")).unwrap();
    fs::set_permissions(&config, fs::Permissions::from_mode(0o644)).unwrap();
    home.env.push(("ANNA_CONFIG".to_owned(), config.to_string_lossy().into_owned()));
    home.program("systemctl", "#!/bin/sh\ncase \"$2\" in is-enabled) echo enabled ;; *) echo active ;; esac\n");
    home.program("loginctl", "#!/bin/sh\necho yes\n");
    home.good(&["setup"]);
    home
}

#[test]
fn a_home_that_is_set_up_has_no_failure() {
    let home = ready();
    let before = home.snapshot();
    let list = findings(&home, &[], 0);
    assert_eq!(home.snapshot(), before, "it only looks");
    for check in
        ["config", "claude", "bun", "plugin", "plugin-off", "environment", "unit", "lingering", "folders", "trust"]
    {
        assert_eq!(levels(&list, check), ["ok"], "{check}: {list:?}");
    }
    assert_eq!(levels(&list, "plugin-on"), ["ok", "ok"]);
    assert_eq!(levels(&list, "hooks"), ["ok", "ok"]);
    assert_eq!(levels(&list, "port"), ["warn", "warn"], "nobody listens");
    assert_eq!(levels(&list, "bridge"), ["warn"], "no bridge runs");
    assert_eq!(levels(&list, "disk").len(), 1);
    let ran = home.good(&["doctor"]);
    assert!(ran.out.contains("✓ claude 2.1.332\n") && ran.out.ends_with("warnings\n"), "{}", ran.out);
}

#[test]
fn a_home_with_nothing_says_what_to_do() {
    let home = Home::new();
    home.without("claude");
    home.program("systemctl", "#!/bin/sh\necho no bus >&2\nexit 1\n");
    let list = findings(&home, &[], 1);
    assert_eq!(levels(&list, "config"), ["warn"]);
    assert_eq!(levels(&list, "claude"), ["fail"]);
    assert_eq!(levels(&list, "plugin"), ["fail"]);
    assert_eq!(levels(&list, "plugin-on"), ["fail", "fail"]);
    assert_eq!(levels(&list, "unit"), ["warn"]);
    if !Path::new("/run/systemd/system").is_dir() {
        assert_eq!(levels(&list, "lingering"), [""; 0], "there are no logins that systemd would end it with");
        let unit = list.iter().find(|one| one["check"] == "unit").unwrap();
        assert_eq!(unit["what"], "no systemd user manager runs here");
        let named = |one: &&Value| one["fix"].as_str().is_some_and(|fix| fix.contains("systemctl"));
        assert_eq!(list.iter().find(named), None, "what is not there is no advice");
    }
    assert!(list.iter().filter(|one| one["check"] == "plugin-on").all(|one| one["fix"] == "run `anna-relay setup`"));
}

#[test]
fn a_unit_that_is_not_there_has_to_be_installed_first() {
    for script in ["echo not-found; exit 4", "echo 'Failed to get unit file state: No such file' >&2; exit 1"] {
        let home = ready();
        let script = format!("#!/bin/sh\ncase \"$2\" in is-enabled) {script} ;; *) echo inactive; exit 3 ;; esac\n");
        home.program("systemctl", &script);
        let list = findings(&home, &[], 0);
        let unit = list.iter().find(|one| one["check"] == "unit").unwrap();
        assert_eq!(unit["what"], "there is no anna-relay.service");
        assert!(unit["fix"].as_str().unwrap().starts_with("install it with ./install.sh"), "{unit}");
    }
}

#[test]
fn a_folder_is_no_settings_file() {
    let home = ready();
    let folder = home.path();
    let list = findings(&home, &["--settings", folder.to_str().unwrap()], 1);
    assert!(list.iter().any(|one| one["fix"] == "give --settings the path of a settings file"), "{list:#?}");
}

#[test]
fn programs_that_are_too_old_or_silent_are_named() {
    let mut home = ready();
    home.env.push(("CLAUDE_VERSION".to_owned(), "2.1.127".to_owned()));
    home.program("bun", "#!/bin/sh\necho hello\n");
    let list = findings(&home, &[], 1);
    assert_eq!(levels(&list, "claude"), ["fail"]);
    assert_eq!(levels(&list, "bun"), ["warn"]);
    assert!(list.iter().any(|one| one["what"] == "claude is 2.1.127, and 2.1.128 or later is needed"));
}

/// Makes something go wrong in a home.
type Spoil = dyn Fn(&mut Home);

#[test]
fn each_thing_that_is_amiss_is_found() {
    let cases: [(&str, &str, &Spoil); 13] = [
        ("config", "fail", &|home| fs::write(home.path().join("anna.toml"), "[relay]\nport = 1\n").unwrap()),
        ("environment", "warn", &|home| home.env.push(("DO_NOT_TRACK".to_owned(), "1".to_owned()))),
        ("environment", "fail", &|home| {
            home.write(
                "anna-bot-settings.json",
                &home.read("anna-bot-settings.json").replacen("\"env\": {", "\"env\": {\"DISABLE_TELEMETRY\": 1,", 1),
            );
        }),
        ("plugin-off", "fail", &|home| {
            drop(home.write("settings.json", &home.read("settings.json").replace("false", "true")))
        }),
        ("plugin-off", "fail", &|home| drop(home.write("settings.json", "{ // mine\n}"))),
        ("plugin-on", "fail", &|home| drop(home.write("anna-brain-settings.json", "{}"))),
        ("hooks", "warn", &|home| {
            drop(home.write(
                "anna-bot-settings.json",
                &home.read("anna-bot-settings.json").replace("hook bot", "hook brain"),
            ))
        }),
        ("hooks", "fail", &|home| {
            let text =
                home.read("anna-bot-settings.json").replace(env!("CARGO_BIN_EXE_anna-relay"), "/gone/anna-relay");
            home.write("anna-bot-settings.json", &text);
        }),
        ("unit", "fail", &|home| {
            home.program(
                "systemctl",
                "#!/bin/sh\ncase \"$2\" in is-enabled) echo enabled ;; *) echo failed; exit 3 ;; esac\n",
            )
        }),
        ("lingering", "warn", &|home| home.program("loginctl", "#!/bin/sh\necho no\n")),
        ("folders", "fail", &|home| {
            fs::set_permissions(home.claude().join("settings.json"), fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("folders", "fail", &|home| {
            let spool = home.path().join(".local/state/anna/relay");
            fs::create_dir_all(spool.join("new")).unwrap();
            fs::set_permissions(spool, fs::Permissions::from_mode(0o700)).unwrap();
        }),
        ("hooks", "warn", &|home| {
            home.write("settings.json", &home.read("settings.json").replacen('{', "{\"disableAllHooks\": true,", 1));
        }),
    ];
    for (check, level, spoil) in cases {
        let mut home = ready();
        spoil(&mut home);
        let list = findings(&home, &[], i32::from(level == "fail"));
        assert!(levels(&list, check).contains(&level), "{check} {level}: {list:#?}");
    }
}

#[test]
fn a_stranger_on_a_port_is_a_failure() {
    let home = ready();
    let config = fs::read_to_string(home.path().join("anna.toml")).unwrap();
    let port: u16 = config.lines().find_map(|line| line.strip_prefix("bot_port = ")?.parse().ok()).unwrap();
    let _stranger = TcpListener::bind(("127.0.0.1", port)).unwrap();
    assert_eq!(levels(&findings(&home, &[], 1), "port"), ["warn", "fail"]);
}

/// fakechat's listener, by what can be seen of it.
const SERVER: &str = "import os, socket, time\ns = socket.socket()\ns.bind((\"127.0.0.1\", int(os.environ[\"FAKECHAT_PORT\"])))\n\
    s.listen()\nprint(\"up\", flush=True)\ntime.sleep(60)\n";
/// A session that starts it, by what can be seen of it, and ends it when its standard input closes.
const SESSION: &str =
    "python3 -c 'import os; os.execvp(\"python3\", [\"bun\", \"server.ts\"])' &\nread end\nkill $!\nwait\n";

#[test]
fn a_live_session_is_looked_at_as_it_was_started() {
    let home = ready();
    let config = fs::read_to_string(home.path().join("anna.toml")).unwrap();
    let port = config.lines().find_map(|line| line.strip_prefix("bot_port = ")).unwrap();
    fs::write(home.beside("server.ts"), SERVER).unwrap();
    fs::write(home.beside("session"), SESSION).unwrap();
    let telegram = "plugin:telegram@claude-plugins-official";
    for (channels, env, levels_of_both) in [
        (vec!["plugin:fakechat@claude-plugins-official", telegram], "HARMLESS", [["ok"], ["ok"]]),
        (vec![telegram], "DISABLE_TELEMETRY", [["fail"], ["fail"]]),
    ] {
        let mut session = home.command("/bin/sh".as_ref());
        session.arg0("claude").arg("session").arg("--channels").args(channels).args(["--allowedTools", "Bash(curl *)"]);
        session.env("FAKECHAT_PORT", port).env(env, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut session = session.spawn().unwrap();
        let mut up = String::new();
        BufReader::new(session.stdout.take().unwrap()).read_line(&mut up).unwrap();
        if up.is_empty() {
            session.wait().unwrap();
            return eprintln!("skipped: there is no python3");
        }
        let list = findings(&home, &[], 1);
        drop(session.stdin.take());
        session.wait().unwrap();
        assert_eq!(levels(&list, "port"), ["warn", "ok"], "{list:#?}");
        assert_eq!([levels(&list, "channels"), levels(&list, "environment")], levels_of_both, "{list:#?}");
        assert_eq!(levels(&list, "trust"), ["fail"], "its command line allows curl: {list:#?}");
    }
}

#[test]
fn the_permissions_are_held_against_the_rules_for_the_bot() {
    let home = ready();
    let allow = |rules: &str| format!("{{\"permissions\": {{\"allow\": [{rules}]}}}}");
    let elsewhere = home.beside("other.json");
    fs::write(&elsewhere, allow("\"Read\", \"Bash(python3 *)\", \"Bash(ls:*)\"")).unwrap();
    assert_eq!(levels(&findings(&home, &[], 0), "trust"), ["ok"]);
    let pointed = findings(&home, &["--settings", elsewhere.to_str().unwrap()], 1);
    assert_eq!(levels(&pointed, "trust"), ["fail"]);
    let found = pointed.iter().find(|one| one["check"] == "trust").unwrap();
    assert!(
        found["what"].as_str().unwrap().ends_with("other.json: the rule Bash(python3 *) admits python3"),
        "{found}"
    );
    home.write("settings.local.json", &allow("\"Bash(curl:*)\""));
    assert_eq!(levels(&findings(&home, &[], 1), "trust"), ["fail"]);
    home.write("settings.local.json", "{}");
    let here = home.beside(".claude");
    fs::create_dir(&here).unwrap();
    fs::write(here.join("settings.json"), allow("\"WebFetch\"")).unwrap();
    assert_eq!(levels(&findings(&home, &[], 0), "trust"), ["warn"], "it may not be the bot's folder");
    assert_eq!(levels(&findings(&home, &["--settings", "/gone.json"], 1), "trust"), ["fail", "warn"]);
}

#[test]
fn with_the_real_claude_code() {
    let real = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|dir| dir.join("claude")).find(|file| file.is_file()));
    let Some(real) = real else { return eprintln!("skipped: there is no claude on the PATH") };
    let home = Home::new();
    home.without("claude");
    home.program("claude", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", real.display()));
    let list = findings(&home, &[], 1);
    assert_ne!(levels(&list, "claude"), ["warn"], "its version is understood: {list:#?}");
    let plugin = list.iter().find(|one| one["check"] == "plugin").unwrap();
    assert_eq!(plugin["what"], "fakechat@claude-plugins-official is not installed", "its list is understood");
}
