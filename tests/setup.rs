//! `anna-relay setup` in a home of its own, with a stand-in for Claude Code.

#![allow(clippy::unwrap_used)] // a test that cannot go on stops

mod home;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use home::{Home, Ran};
use serde_json::json;

const PLUGIN: &str = "fakechat@claude-plugins-official";
const BRAIN: &str = "anna-brain-settings.json";
const BOT: &str = "anna-bot-settings.json";

/// Settings as people and editors leave them.
fn settings() -> Vec<(&'static str, String)> {
    vec![
        ("plain", "{\n  \"model\": \"haiku\"\n}\n".to_owned()),
        ("no trailing newline", "{\n    \"b\": 1,\n    \"a\": [1,2]\n}".to_owned()),
        ("CRLF", "{\r\n  \"b\": 1,\r\n  \"a\": {\"c\": 2}\r\n}\r\n".to_owned()),
        ("BOM", "\u{feff}{\n  \"b\": 1\n}\n".to_owned()),
        ("tabs", "{\n\t\"b\": {\n\t\t\"a\": 1\n\t}\n}\n".to_owned()),
        ("one line", "{\"b\":1,\"a\":{}}".to_owned()),
        ("empty object", "{}".to_owned()),
        ("0 bytes", String::new()),
        ("deep", format!("{{\n  \"deep\": {}1{}\n}}\n", "[".repeat(100), "]".repeat(100))),
        ("duplicate keys", "{\n  \"model\": \"a\",\n  \"model\": \"b\"\n}\n".to_owned()),
        ("plugin on", format!("{{\n  \"enabledPlugins\": {{ \"{PLUGIN}\": true, \"x@y\": true }}\n}}\n")),
    ]
}

#[test]
fn from_nothing_to_a_pair_and_back() {
    let home = Home::new();
    let before = home.snapshot();
    home.good(&["setup"]);
    assert_eq!(
        home.calls(),
        [
            "plugin list --json",
            "plugin marketplace add anthropics/claude-plugins-official",
            "plugin install fakechat@claude-plugins-official",
            "plugin list --json",
            "plugin disable fakechat@claude-plugins-official -s user",
            "bun install --no-summary",
        ]
    );
    assert_eq!(home.json("settings.json")["enabledPlugins"][PLUGIN], false);
    for (name, side, count) in [(BRAIN, "brain", 2), (BOT, "bot", 1)] {
        let settings = home.json(name);
        assert_eq!(settings["enabledPlugins"][PLUGIN], true);
        assert_eq!(settings["permissions"]["allow"].as_array().unwrap().len(), count);
        let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
        assert_eq!(command, format!("{} hook {side}", env!("CARGO_BIN_EXE_anna-relay")));
        let mode = fs::metadata(home.claude().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let after = home.snapshot();
    let again = home.good(&["setup"]);
    assert!(again.out.contains("nothing to do"), "{}", again.out);
    assert_eq!(home.snapshot(), after, "the second time changes nothing");
    assert_eq!(home.calls(), ["plugin list --json"]);
    home.good(&["setup", "--undo"]);
    assert_eq!(home.snapshot(), before, "the home is as before");
    assert!(home.good(&["setup", "--undo"]).out.contains("nothing to take back"));
}

#[test]
fn settings_of_every_form_keep_it_and_come_back_to_the_byte() {
    for (form, text) in settings() {
        let home = Home::new();
        let path = home.write("settings.json", &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let before = home.snapshot();
        home.good(&["setup"]);
        let now = home.read("settings.json");
        let trimmed = text.trim_end_matches(['}', '\n', '\r', ' ']);
        if form != "one line" && form != "plugin on" {
            assert!(now.starts_with(trimmed), "{form}: {now:?}");
        }
        if form == "CRLF" {
            assert_eq!(now.matches('\n').count(), now.matches("\r\n").count(), "{now:?}");
        }
        if !text.is_empty() {
            assert_eq!(now.ends_with('\n'), text.ends_with('\n'), "{form}: {now:?}");
        }
        let value: serde_json::Value = serde_json::from_str(now.trim_start_matches('\u{feff}')).unwrap();
        assert_eq!(value["enabledPlugins"][PLUGIN], false, "{form}: {now}");
        let backups = fs::read_dir(home.claude()).unwrap().flatten();
        assert_eq!(backups.filter(|entry| entry.file_name().to_string_lossy().contains(".bak-")).count(), 1, "{form}");
        let after = home.snapshot();
        assert_eq!(after[&path].0 & 0o777, 0o640, "{form}: the mode stays");
        home.good(&["setup"]);
        assert_eq!(home.snapshot(), after, "{form}: the second time changes nothing");
        home.good(&["setup", "--undo"]);
        assert_eq!(home.snapshot(), before, "{form}: the home is as before");
    }
}

/// Runs it, and makes sure that nothing at all was done.
fn refused(home: &Home) -> Ran {
    let before = home.snapshot();
    let ran = home.run(&["setup"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert_eq!(home.snapshot(), before);
    assert!(home.calls().is_empty());
    ran
}

#[test]
fn what_cannot_be_edited_is_refused_before_anything_is_begun() {
    for name in ["settings.json", BRAIN, BOT] {
        for (text, says) in [
            ("{\n  // mine\n  \"a\": 1\n}\n", "line 2, column 3: it has a comment"),
            ("{\"a\": 1,}", "line 1, column 9: trailing comma"),
            ("{\"a\": 1", "line 1, column 7: EOF"),
            ("[]", "its top is not an object"),
            ("{\"enabledPlugins\": []}", "enabledPlugins is not an object"),
        ] {
            let home = Home::new();
            home.write(name, text);
            let ran = refused(&home);
            assert!(ran.err.contains(says) && ran.err.contains(name), "{}", ran.err);
            assert!(ran.err.contains("hint: correct the file by hand; it was not changed"), "{}", ran.err);
        }
    }
    let home = Home::new();
    fs::write(home.write("settings.json", ""), b"{\n\"a\": \"\xff\"}").unwrap();
    assert!(refused(&home).err.contains("line 2: it is not UTF-8"));
}

#[test]
fn a_read_only_file_is_left_alone() {
    let home = Home::new();
    let path = home.write("settings.json", "{}\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let ran = refused(&home);
    assert!(ran.err.contains("it is read-only") && ran.err.contains("chmod u+w"), "{}", ran.err);
}

#[test]
fn a_link_stays_a_link_and_its_file_is_edited() {
    let home = Home::new();
    let file = home.path().join("dotfiles/claude.json");
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, "{\n  \"model\": \"haiku\"\n}\n").unwrap();
    fs::create_dir(home.claude()).unwrap();
    symlink("../dotfiles/claude.json", home.claude().join("settings.json")).unwrap();
    let before = home.snapshot();
    home.good(&["setup"]);
    assert_eq!(fs::read_link(home.claude().join("settings.json")).unwrap().to_str(), Some("../dotfiles/claude.json"));
    assert!(fs::read_to_string(&file).unwrap().contains(PLUGIN));
    home.good(&["setup", "--undo"]);
    assert_eq!(home.snapshot(), before);
    home.calls();
    fs::remove_file(file).unwrap();
    assert!(refused(&home).err.contains("a link to a file that is not there"));
}

#[test]
fn the_owner_of_a_file_stays() {
    let home = Home::new();
    let path = home.write("settings.json", "{}\n");
    if chown(&path, Some(12_345), Some(12_345)).is_err() {
        return eprintln!("skipped: only root can give files away");
    }
    home.good(&["setup"]);
    let about = fs::metadata(&path).unwrap();
    assert_eq!((about.uid(), about.gid()), (12_345, 12_345));
}

#[test]
fn a_dry_run_shows_the_difference_and_touches_nothing() {
    let home = Home::new();
    home.write("settings.json", "{\n  \"model\": \"haiku\"\n}\n");
    let before = home.snapshot();
    let ran = home.good(&["setup", "--dry-run"]);
    assert_eq!(home.snapshot(), before);
    assert!(home.calls().is_empty(), "the real one writes to its folder whatever it is asked");
    for line in [
        "would run: claude plugin install fakechat@claude-plugins-official",
        "@@ -1,3 +1,6 @@",
        "-  \"model\": \"haiku\"",
        "+  \"model\": \"haiku\",",
        "+    \"fakechat@claude-plugins-official\": false",
        "--- /dev/null",
        "+    \"ENABLE_TOOL_SEARCH\": \"false\"",
    ] {
        assert!(ran.out.lines().any(|one| one == line), "{line}: {}", ran.out);
    }
    home.good(&["setup"]);
    let set_up = home.snapshot();
    assert!(home.good(&["setup", "--dry-run"]).out.contains("nothing to do"));
    // As where only Claude Code itself knows of it.
    let list = home.claude().join("plugins/installed_plugins.json");
    let aside = home.beside("installed_plugins.json");
    fs::rename(&list, &aside).unwrap();
    let dry = home.good(&["setup", "--dry-run"]).out;
    assert!(
        dry.contains("setup asks `claude plugin list`") && dry.contains("\nwould run: claude plugin install"),
        "{dry}"
    );
    assert!(!dry.contains("nothing to do") && dry.ends_with("nothing was changed: this was a dry run\n"), "{dry}");
    fs::rename(&aside, &list).unwrap();
    let undo = home.good(&["setup", "--undo", "--dry-run"]);
    assert!(undo.out.contains("-    \"fakechat@claude-plugins-official\": false"), "{}", undo.out);
    assert_eq!(home.snapshot(), set_up);
}

#[test]
fn the_folder_may_lie_elsewhere() {
    let mut home = Home::new();
    let folder = home.path().join("work/claude");
    home.env.push(("CLAUDE_CONFIG_DIR".to_owned(), folder.to_string_lossy().into_owned()));
    home.good(&["setup"]);
    assert!(folder.join(BRAIN).exists() && folder.join("settings.json").exists() && !home.claude().exists());
}

#[test]
fn the_bot_may_look_when_that_is_asked_for() {
    let home = Home::new();
    home.good(&["setup"]);
    home.good(&["setup", "--bot-commands"]);
    let allow = home.json(BOT)["permissions"]["allow"].take();
    let rules = ["status", "list", "show", "cancel"].map(|name| format!("Bash(anna-relay {name}:*)"));
    assert_eq!(allow, json!(["mcp__plugin_fakechat_fakechat__reply", rules[0], rules[1], rules[2], rules[3]]));
    home.good(&["setup"]);
    assert_eq!(home.json(BOT)["permissions"]["allow"], allow, "it stays");
    home.good(&["setup", "--undo"]);
    assert!(!home.claude().exists());
}

#[test]
fn without_claude_the_settings_are_written_and_the_rest_is_said() {
    let home = Home::new();
    home.without("claude");
    let before = home.snapshot();
    let dry = home.run(&["setup", "--dry-run"]);
    assert_eq!((dry.code, home.snapshot()), (1, before.clone()));
    assert!(
        dry.out.starts_with("would fail: claude plugin list --json: there is no claude on the PATH\n"),
        "{}",
        dry.out
    );
    assert!(!dry.out.contains("would run: claude"), "{}", dry.out);
    assert!(
        dry.err.contains("dry run\nhint: do by hand") && dry.err.contains("npm install -g @anthropic"),
        "{}",
        dry.err
    );
    let ran = home.run(&["setup"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("there is no claude on the PATH"), "{}", ran.out);
    assert!(
        ran.err.contains("npm install -g @anthropic-ai/claude-code; claude plugin marketplace add https://github.com/anthropics/claude-plugins-official.git; claude plugin install")
    );
    assert_eq!(home.json(BOT)["enabledPlugins"][PLUGIN], true);
    home.good(&["setup", "--undo"]);
    assert_eq!(home.snapshot(), before);
}

#[test]
fn a_marketplace_that_does_not_come_by_ssh_is_to_be_added_by_https() {
    let mut home = Home::new();
    home.env.push(("FAIL".to_owned(), "plugin marketplace add anthropics/claude-plugins-official".to_owned()));
    let ran = home.run(&["setup"]);
    assert_eq!(ran.code, 1);
    let by_hand = "claude plugin marketplace add https://github.com/anthropics/claude-plugins-official.git; \
                   claude plugin install";
    assert!(ran.err.contains(by_hand) && !ran.err.contains("add anthropics/"), "{}", ran.err);
}

#[test]
fn a_step_that_fails_is_said_and_done_the_next_time() {
    let mut home = Home::new();
    home.env.push(("FAIL".to_owned(), format!("plugin install {PLUGIN}")));
    let before = home.snapshot();
    let ran = home.run(&["setup"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("no luck today") && ran.err.contains(&format!("claude plugin install {PLUGIN}")),
        "{}",
        ran.err
    );
    home.env.clear();
    home.good(&["setup"]);
    home.good(&["setup", "--undo"]);
    assert_eq!(home.snapshot(), before);
}

#[test]
fn what_a_person_changed_afterwards_stays() {
    let home = Home::new();
    home.write("settings.json", "{\n  \"model\": \"haiku\"\n}\n");
    home.good(&["setup"]);
    for name in ["settings.json", BOT] {
        home.write(name, &home.read(name).replacen('{', "{\n  \"mine\": [1,2],", 1));
    }
    let bot = home.read(BOT).replacen(
        "\"Stop\": [",
        "\"Stop\": [{\"hooks\":[{\"type\":\"command\",\"command\":\"say\"}]},",
        1,
    );
    home.write(BOT, &bot);
    home.good(&["setup"]);
    home.good(&["setup", "--undo"]);
    assert_eq!(home.json("settings.json"), json!({"mine": [1, 2], "model": "haiku"}));
    assert!(home.read("settings.json").contains("\"mine\": [1,2]"), "in its own form");
    let hooks = json!({"Stop": [{"hooks": [{"type": "command", "command": "say"}]}]});
    assert_eq!(home.json(BOT), json!({"mine": [1, 2], "hooks": hooks}));
    assert!(!home.claude().join(BRAIN).exists());
}

#[test]
fn the_hooks_command_holds_for_a_shell_wherever_the_program_lies() {
    let home = Home::new();
    let folder = home.beside("it's a $HOME");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("anna-relay");
    let built = env!("CARGO_BIN_EXE_anna-relay");
    fs::hard_link(built, &program).or_else(|_| fs::copy(built, &program).map(drop)).unwrap();
    let config = home.path().join("my config.toml");
    fs::write(&config, "[relay]\nenabled = true\n").unwrap();
    let output = home.command(&program).args(["setup", "--config"]).arg(&config).output().unwrap();
    assert_eq!(Ran::from(&output).code, 0);
    let command = home.json(BOT)["hooks"]["SessionStart"][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
    let mut shell = home.command("/bin/sh".as_ref());
    let output =
        shell.args(["-c", &command]).env("ANNA_LOG", "debug").stdin(std::process::Stdio::null()).output().unwrap();
    let ran = Ran::from(&output);
    assert_eq!(ran.code, 0);
    assert!(ran.err.starts_with("hook bot: "), "it was reached: {command}: {}", ran.err);
}
