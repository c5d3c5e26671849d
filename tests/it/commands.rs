//! The queries, with a bridge and without one, and what a command line may look like.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::crash::hand_off;
use crate::harness::World;

fn keys(document: &Value) -> BTreeSet<&str> {
    document.as_object().unwrap_or_else(|| panic!("{document}")).keys().map(String::as_str).collect()
}

#[track_caller]
fn has_keys(document: &Value, wanted: &[&str]) {
    assert_eq!(keys(document), wanted.iter().copied().collect(), "{document:#}");
}

/// `status --json` has the keys of the contract, no more and no fewer.
#[track_caller]
fn is_status(status: &Value) {
    has_keys(
        status,
        &[
            "running",
            "pid",
            "version",
            "uptime_s",
            "paused",
            "breaker",
            "brain",
            "bot",
            "queue",
            "recovering",
            "oldest_waiting_s",
            "alarms",
            "actors",
        ],
    );
    has_keys(&status["breaker"], &["tripped", "recent", "refused", "limit", "window_s"]);
    for side in ["brain", "bot"] {
        has_keys(&status[side], &["port", "state", "why", "since", "holder", "session"]);
    }
    has_keys(&status["queue"], &["new", "brain", "out", "done", "failed", "corrupt"]);
    if status["paused"] != Value::Null {
        has_keys(&status["paused"], &["since", "reason"]);
    }
    for actor in status["actors"].as_array().unwrap() {
        has_keys(actor, &["name", "state", "restarts"]);
    }
}

#[test]
fn status_has_the_same_keys_with_a_bridge_and_without() {
    let mut world = World::new();
    let none = world.run(&["status"]);
    assert_eq!(none.status.code(), Some(3));
    let said = String::from_utf8(none.stdout).unwrap();
    assert!(said.contains("not running") && said.contains("spool"), "{said}");
    assert!(none.stderr.is_empty(), "{:?}", none.stderr);
    world.ok(&["send", "water"]);
    world.ok(&["pause", "--reason", "night"]);
    let status = world.status();
    is_status(&status);
    assert_eq!((&status["running"], &status["pid"]), (&Value::Bool(false), &Value::Null));
    assert_eq!((&status["brain"]["state"], &status["bot"]["state"]), (&"offline".into(), &"offline".into()));
    assert_eq!((&status["queue"]["new"], &status["oldest_waiting_s"]), (&1.into(), &0.into()));
    assert_eq!(status["paused"]["reason"], "night");
    assert_eq!(world.run(&["status", "--check"]).status.code(), Some(3));

    world.start_online();
    let status = world.status();
    is_status(&status);
    assert_eq!((&status["pid"], &status["queue"]["new"]), (&world.pid().into(), &1.into()));
    assert_eq!(status["paused"]["reason"], "night");
    assert_eq!(status["brain"]["port"], world.brain_port);
    let names: Vec<&str> = status["actors"].as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["orphan_reaper", "queue", "guard", "brain_side", "bot_side", "witness", "control"]);
    assert_eq!(world.run(&["status"]).status.code(), Some(0));
}

#[test]
fn status_check_tells_degraded_from_a_brain_that_may_be_away() {
    let mut world = World::new().with("breaker_count", "1");
    world.start_online();
    let check = |world: &World| world.run(&["status", "--check"]).status.code();
    let said = |world: &World| String::from_utf8(world.run(&["status", "--check"]).stderr).unwrap();
    assert_eq!((check(&world), &*said(&world)), (Some(0), ""));
    world.brain_leaves();
    world.wait_status("the brain to be away", |status| status["brain"]["state"] != "online");
    assert_eq!(check(&world), Some(1));
    assert_eq!(world.run(&["status"]).status.code(), Some(0), "without --check it only tells");
    world.ok(&["pause"]);
    assert_eq!(check(&world), Some(0), "it may be away while paused");
    world.bot_leaves();
    world.wait_status("the bot to be away", |status| status["bot"]["state"] == "offline");
    assert_eq!(check(&world), Some(1));
    assert_eq!(said(&world), "anna-relay: checking how things stand: the bot is offline\n");
    world.bot_comes();
    world.wait_status("the bot to be back", |status| status["bot"]["state"] == "online");
    assert_eq!(check(&world), Some(0));
    hand_off(&world, "one");
    hand_off(&world, "two");
    world.wait_status("the breaker to trip", |status| status["breaker"]["tripped"] == true);
    assert_eq!(check(&world), Some(1));
    assert!(said(&world).ends_with(": the breaker has tripped\n"), "{}", said(&world));
    world.ok(&["reset-breaker"]);
    assert_eq!(check(&world), Some(0));
}

#[test]
fn status_check_tells_of_open_alarms() {
    let mut world = World::new().with("alarm_min", "0.002");
    world.start_online();
    let id = world.ok(&["send", "water"]);
    let id = id.trim();
    let alarm = world.wait_stream("no result after");
    assert!(alarm.contains('⚠') && alarm.contains(&id[28..]), "{alarm}");
    let status = world.wait_status("the alarm", |status| status["alarms"] == 1);
    assert_eq!(status["queue"]["brain"], 1);
    assert_eq!(world.run(&["status", "--check"]).status.code(), Some(1));
    assert!(world.ok(&["list"]).contains('⚠'));
    world.kill();
    assert_eq!(world.status()["alarms"], 1, "also without a bridge");
    world.start_online();
    world.brain().say("watered", Some(id));
    world.wait_queue("done", 1);
    assert_eq!(world.run(&["status", "--check"]).status.code(), Some(0));
}

#[test]
fn every_command_takes_the_configuration_that_it_is_told() {
    let mut world = World::new();
    let id = world.ok(&["send", "water"]).trim().to_owned();
    let config = world.config();
    let told = |world: &World, args: &[&str]| {
        let mut command = world.command(args);
        command.env("ANNA_CONFIG", "/nowhere/anna.toml").arg("--config").arg(&config).output().unwrap()
    };
    let commands: [&[&str]; 10] = [
        &["list"],
        &["show", &id],
        &["pause"],
        &["resume"],
        &["cancel", &id],
        &["retry", &id],
        &["prune", "--older-than", "1d"],
        &["reset-breaker"],
        &["stream"],
        &["check"],
    ];
    for args in commands {
        let output = told(&world, args);
        assert!(output.status.success(), "{args:?} {output:?}");
    }
    world.start();
    assert!(told(&world, &["status"]).status.success());
    let without = world.command(&["status"]).env("ANNA_CONFIG", "/nowhere/anna.toml").output().unwrap();
    assert_eq!(without.status.code(), Some(78), "one that is named has to be there: {without:?}");
}

#[test]
fn list_filters_and_has_the_files_documents() {
    let mut world = World::new();
    assert_eq!(world.json(&["list"]), Value::Array(Vec::new()));
    assert_eq!(world.ok(&["list"]), "no hand-offs to show\n");
    world.start_online();
    let done = hand_off(&world, "first");
    world.brain_gets(|all| all.len() == 1);
    world.brain().say("ready", Some(&done));
    world.wait_queue("done", 1);
    let pushed = hand_off(&world, "second");
    world.brain_gets(|all| all.len() == 2);
    world.ok(&["pause"]);
    let waiting = hand_off(&world, "third");
    world.wait_queue("new", 1);
    let cancelled = hand_off(&world, "fourth");
    world.wait_queue("new", 2);
    world.ok(&["cancel", &cancelled]);
    world.wait_queue("failed", 1);

    let ids = |args: &[&str]| -> Vec<String> {
        let listed = world.json(args);
        listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&["list"]), [&cancelled, &waiting, &pushed].map(String::clone), "newest first, not the done ones");
    let hidden = |args: &[&str]| String::from_utf8(world.run(args).stderr).unwrap();
    assert_eq!(hidden(&["list"]), "not shown: 1 done (all: anna-relay list --all)\n");
    for args in [&["list", "--all"][..], &["list", "--json"], &["list", "--state", "new"]] {
        assert_eq!(hidden(args), "", "{args:?}");
    }
    assert_eq!(ids(&["list", "--all"]), [&cancelled, &waiting, &pushed, &done].map(String::clone));
    assert_eq!(ids(&["list", "--all", "--limit", "2"]), [&cancelled, &waiting].map(String::clone));
    assert_eq!(ids(&["list", "--state", "done"]), std::slice::from_ref(&done));
    assert_eq!(ids(&["list", "--state", "new", "--state", "brain"]), [&waiting, &pushed].map(String::clone));
    assert_eq!(ids(&["list", "--state", "failed", "--limit", "0"]), [""; 0]);
    let all = world.json(&["list", "--all"]);
    let stages: Vec<(&str, &str)> = all.as_array().unwrap().iter().map(stage).collect();
    assert_eq!(stages, [("failed", "failed"), ("new", "queued"), ("brain", "pushed"), ("done", "handed to the bot")]);
    for one in all.as_array().unwrap() {
        let keys = keys(one);
        for key in ["v", "id", "from", "text", "created", "source", "files", "pushes", "results", "alarmed", "failed"] {
            assert!(keys.contains(key), "{key} in {one:#}");
        }
        assert!(one["age_s"].as_u64().unwrap() < 60);
        assert_eq!(*one, with_age(world.json(&["show", one["id"].as_str().unwrap()]), one));
    }
    let text = world.ok(&["list"]);
    assert!(text.starts_with("ID ") && text.lines().count() == 4, "{text}");
    assert!(text.contains(" failed  cancelled "), "{text}");
    assert!(!text.contains('\u{1b}'), "no colour where no person looks");
}

fn stage(one: &Value) -> (&str, &str) {
    (one["state"].as_str().unwrap(), one["stage"].as_str().unwrap())
}

/// The document as of the same second.
fn with_age(mut document: Value, of: &Value) -> Value {
    document["age_s"] = of["age_s"].clone();
    document
}

#[test]
fn show_takes_a_unique_prefix_or_suffix() {
    let mut world = World::new();
    world.start_online();
    world.ok(&["pause"]);
    world.bot().say_with_id("m1796031734360-1", "RELAY: one", None);
    world.bot().say_with_id("m1796031734361-2", "RELAY: two", None);
    world.wait_queue("new", 2);
    let listed = world.json(&["list"]);
    let id = |n: usize| listed[n]["id"].as_str().unwrap().to_owned();
    let one = id(1);
    for running in [true, false] {
        for part in [&one[..], &one[28..], &one[32..], &one.to_uppercase(), &one[28..].to_uppercase(), &one[..24]] {
            assert!(world.ok(&["show", part]).contains(&one), "{running} {part}");
        }
        let fails = |part: &str, why: &str| {
            let output = world.run(&["show", part]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{part}: {said}");
            assert!(said.contains(why) && said.contains("\nhint: "), "{part}: {said}");
        };
        fails(&one[..8], "2 start or end so");
        fails("01939f3c-aaaa-7bbb-8ccc-1234567890ab", "none of that id");
        fails("zzzzzz", "none starts or ends so");
        fails(&one[33..], "too short");
        fails("", "too short");
        fails(&one[10..20], "none starts or ends so");
        if running {
            assert!(world.stop().success());
        }
    }
}

#[test]
fn the_stream_is_shown_and_followed() {
    use std::io::{BufRead, BufReader};
    let mut world = World::new();
    let nothing = world.run(&["stream"]);
    assert!(nothing.status.success() && nothing.stdout.is_empty(), "{nothing:?}");
    world.ok(&["send", "one"]);
    world.ok(&["send", "two"]);
    let all = world.ok(&["stream"]);
    assert_eq!(all, world.stream());
    assert_eq!(all.lines().count(), 2, "{all}");
    assert_eq!(world.ok(&["stream", "-n", "1"]), format!("{}\n", all.lines().last().unwrap()));
    let mut following = world.command(&["stream", "-f", "-n", "0"]);
    let mut following = following.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    world.start();
    // Whatever it may have missed before it looked, the next ones come.
    let send = std::thread::scope(|scope| {
        let first = scope.spawn(|| lines.next().unwrap().unwrap());
        crate::harness::wait("a line", || {
            world.ok(&["send", "three"]);
            first.is_finished().then_some(())
        });
        first.join().unwrap()
    });
    assert!(send.contains(" relay: "), "{send}");
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn check_prints_the_configuration_and_names_what_is_wrong() {
    let mut world = World::new();
    let said = world.ok(&["check"]);
    assert!(said.contains("alarm_min = 30") && said.contains(&format!("brain_port = {}", world.brain_port)), "{said}");
    let document = world.json(&["check"]);
    assert_eq!(document["relay"]["max_attempts"], 5, "{document:#}");
    world.set("max_atempts", "3");
    for command in [&["check"][..], &["status"], &["bridge"], &["send", "x"]] {
        let output = world.run(command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{command:?} {said}");
        assert!(said.contains("max_atempts") && said.contains("max_attempts"), "{said}");
        assert!(said.contains("line "), "{said}");
    }
}

#[test]
fn completions_and_man_pages_are_there() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(world.ok(&["completions", shell]).contains("reset-breaker"), "{shell}");
    }
    assert!(world.ok(&["man"]).contains(".TH"));
    let dir = world.dir.path().join("man");
    world.ok(&["man", dir.to_str().unwrap()]);
    let pages: Vec<String> = crate::harness::files_below(&dir);
    assert!(pages.contains(&"anna-relay.1".to_owned()) && pages.contains(&"anna-relay-send.1".to_owned()), "{pages:?}");
    assert!(world.ok(&["--help"]).contains("demo"));
    assert!(world.ok(&["--version"]).starts_with("anna-relay "));
}

#[test]
fn usage_errors_exit_with_2() {
    let world = World::new();
    for args in [
        &[][..],
        &["frobnicate"],
        &["show"],
        &["send"],
        &["list", "--state", "corrupt"],
        &["list", "--limit", "-1"],
        &["prune"],
        &["prune", "--older-than", "30"],
        &["clear-port", "both"],
        &["status", "extra"],
        &["completions", "sh"],
        &["stream", "-n", "x"],
    ] {
        let output = world.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?} {output:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{args:?} {output:?}");
    }
}
