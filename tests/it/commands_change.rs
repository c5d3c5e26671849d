//! The commands that change something, with a bridge and without one.

use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::crash::hand_off;
use crate::harness::{World, files_below};

fn send_stdin(world: &World, text: &[u8]) -> Output {
    let mut command = world.command(&["send", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn send_takes_text_from_where_it_is_told_to() {
    let mut world = World::new();
    let first = world.ok(&["send", "one"]);
    let second = send_stdin(&world, b"\ntwo\nlines \n\n");
    assert!(second.status.success(), "{second:?}");
    let third = world.run(&["send", "--json", "--", "-5 degrees"]);
    let third: Value = serde_json::from_slice(&third.stdout).unwrap();
    let third = third["id"].as_str().unwrap().to_owned();
    assert_eq!(world.status()["queue"]["new"], 3);
    for nothing in [world.run(&["send", " \n"]), send_stdin(&world, b" \n"), send_stdin(&world, b"\xff\xfe")] {
        assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
        assert!(nothing.stdout.is_empty(), "{nothing:?}");
    }
    let too_long = send_stdin(&world, &vec![b'x'; (128 << 20) + 1]);
    assert_eq!(too_long.status.code(), Some(1), "it is not cut without a word: {:?}", too_long.stderr);
    assert_eq!(world.status()["queue"]["new"], 3);
    world.start();
    let fourth = world.ok(&["send", "four"]);
    let pushed = world.brain_gets(|all| all.len() == 4);
    let text = |id: &str, text: &str| format!("[relay {} from a script] {text}", id.trim());
    assert_eq!(pushed[0].text, text(&first, "one"));
    assert_eq!(pushed[1].text, text(&String::from_utf8(second.stdout).unwrap(), "two\nlines"));
    assert_eq!(pushed[2].text, text(&third, "-5 degrees"));
    assert_eq!(pushed[3].text, text(&fourth, "four"));
}

#[test]
fn send_wait_prints_the_result_or_says_why_there_is_none() {
    let mut world = World::new().with("max_attempts", "1");
    let start = Instant::now();
    let late = world.run(&["send", "nobody is there", "--wait", "--timeout", "0.3"]);
    assert_eq!(late.status.code(), Some(124), "{late:?}");
    assert!(start.elapsed() >= Duration::from_millis(300));
    let id = String::from_utf8(late.stdout).unwrap();
    assert_eq!(world.json(&["show", id.trim()])["state"], "new", "it stays");
    world.ok(&["cancel", id.trim()]);

    world.start_online();
    let late = world.run(&["send", "the brain says nothing", "--timeout", "0.3"]);
    assert_eq!(late.status.code(), Some(124), "--timeout means --wait: {late:?}");
    world.brain_answers("here");
    let document = world.json(&["send", "and now", "--wait", "--timeout", "20"]);
    assert_eq!(document["results"][0]["text"], "here");
    world.brain().on_upload(|_, _| {});
    let late = world.run(&["send", "in time?", "--timeout", "0.3", "--json"]);
    assert_eq!(late.status.code(), Some(124), "{late:?}");
    let late: Value = serde_json::from_slice(&late.stdout).unwrap();
    assert_eq!(late["results"], json!([]), "{late:#}");
    let keys = |one: &Value| one.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&late), keys(&document));
    // A bridge that goes away meanwhile, and comes back.
    world.brain().on_upload(|_, _| {});
    let command = world.command(&["send", "patience", "--wait"]).stdout(Stdio::piped()).spawn().unwrap();
    let before = world.brain_gets(|all| all.iter().any(|one| one.text.ends_with("patience")));
    world.kill();
    world.start_online();
    world.brain().say("at last", Some(&before.last().unwrap().id));
    let output = command.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("\nat last\n"), "{output:?}");
    // One that is given up.
    let refusal = anna_relay::fakechat::server::Refusal { status: 413, times: None };
    world.brain().faults(|faults| faults.refuse_uploads = Some(refusal));
    let refused = world.run(&["send", "too much", "--wait", "--timeout", "20"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("refused"), "{refused:?}");
    let refused = world.run(&["send", "too much", "--timeout", "20", "--json"]);
    let document: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!((refused.status.code(), &document["failed"]["reason"]), (Some(1), &json!("refused")), "{document:#}");
}

/// What a command says on standard error; it has to succeed.
#[track_caller]
fn said(world: &World, args: &[&str]) -> String {
    let output = world.run(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_would_be_waited_for_without_knowing_is_said() {
    let mut world = World::new();
    let id = world.ok(&["send", "one"]).trim().to_owned();
    for args in [&["send", "two"][..], &["retry", &id], &["resume"]] {
        let said = said(&world, args);
        assert!(said.contains(": no bridge runs\nhint: start it: ") && said.contains("anna-relay bridge"), "{said}");
    }
    let waiting = world.run(&["send", "three", "--wait", "--timeout", "0.1"]);
    let waits = String::from_utf8(waiting.stderr).unwrap();
    assert!(waits.contains("it is kept, and waits: no bridge runs\nhint: "), "{waits}");
    assert_eq!(waits.matches("no bridge runs").count(), 1, "once: {waits}");
    let at_once = world.run(&["send", "four", "--timeout", "0"]);
    let waits = String::from_utf8(at_once.stderr).unwrap();
    assert_eq!((at_once.status.code(), waits.matches("it is kept, and waits: no bridge runs").count()), (Some(124), 1));
    let cancelled = world.ok(&["cancel", &id]);
    assert!(
        cancelled.contains("until the bot has been told (the bot is told of those from a script too)"),
        "{cancelled}"
    );
    let mut command = world.command(&["stream", "-f"]);
    let mut follows = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(follows.stderr.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "anna-relay: the sessions are not heard: no bridge runs\n");
    follows.kill().unwrap();
    follows.wait().unwrap();

    world.start_online();
    assert_eq!(said(&world, &["send", "four"]), "");
    world.ok(&["pause", "--reason", "night"]);
    let paused = said(&world, &["send", "five"]);
    assert!(
        paused.contains(": the relay is paused: night\nhint: ") && paused.contains("anna-relay resume"),
        "{paused}"
    );
    world.brain_leaves();
    world.wait_status("the brain to be away", |status| status["brain"]["state"] == "offline");
    let resumed = said(&world, &["resume"]);
    assert!(resumed.contains(": the brain is offline") && resumed.contains("anna-relay launch brain"), "{resumed}");
    assert!(said(&world, &["send", "six"]).contains(": the brain is offline"));
}

#[test]
fn a_person_who_sends_is_told_who_hears_of_it() {
    let world = World::new();
    let told = "accepted; the bot is told its result too";
    assert!(!said(&world, &["send", "one"]).contains(told), "a script is not");
    let mut command = std::process::Command::new("script");
    let line = format!("{} send two", env!("CARGO_BIN_EXE_anna-relay"));
    command.args(["-qec", &line, "/dev/null"]).env("ANNA_CONFIG", world.config()).stdin(Stdio::null());
    match command.output() {
        Ok(output) => assert!(String::from_utf8_lossy(&output.stdout).contains(told), "{output:?}"),
        Err(error) => eprintln!("skipped: no terminal to be had from `script`: {error}"),
    }
}

#[test]
fn a_path_of_the_wrong_sort_is_named_with_what_to_give_instead() {
    let world = World::new();
    let (folder, file) = (world.dir.path().join("folder"), world.dir.path().join("file"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&file, "x").unwrap();
    let (folder, file, below) = (folder.to_str().unwrap(), file.to_str().unwrap(), file.join("below"));
    let cases: [(&[&str], i32, &str); 6] = [
        (&["send", "x", "--file", folder], 1, "it is a folder\nhint: give a file"),
        (&["send", "--file", "/no/such"], 1, "No such file or directory (os error 2)\nhint: give the path of a file"),
        (&["man", file], 1, "\nhint: give a folder, not a file"),
        (&["man", below.to_str().unwrap()], 1, "\nhint: give a folder, not a file"),
        (&["setup"], 1, "is not a folder\nhint: correct $CLAUDE_CONFIG_DIR"),
        (&["status", "--config", folder], 78, "it is a folder\nhint: name the file in it"),
    ];
    for (args, code, expected) in cases {
        let output = world.command(args).env("CLAUDE_CONFIG_DIR", file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn pause_and_resume_with_a_bridge_and_without() {
    let mut world = World::new();
    world.ok(&["pause", "--reason", "closing"]);
    let again = world.ok(&["pause"]);
    assert!(again.starts_with("paused already, for ") && again.contains(" s: closing\npaused: "), "{again}");
    assert_eq!(world.status()["paused"]["reason"], "closing", "a second pause forgets nothing");
    assert!(world.ok(&["pause", "--reason", "night"]).contains(": closing\nthe reason is now: night\n"));
    world.ok(&["send", "one"]);
    world.start_online();
    world.ok(&["send", "two"]);
    assert_eq!(world.status()["queue"]["new"], 2);
    assert!(world.ok(&["resume"]).contains("2 waiting"));
    world.brain_gets(|all| all.len() == 2);
    assert_eq!(world.ok(&["resume"]), "it was not paused: nothing waits\n", "twice does no harm");
    assert_eq!(world.status()["paused"], Value::Null);
    world.ok(&["pause"]);
    assert!(world.spool().join("paused").exists());
    assert!(world.stop().success());
    assert!(world.status()["paused"].is_object());
    world.ok(&["resume"]);
    assert!(!world.spool().join("paused").exists());
    world.ok(&["send", "three"]);
    assert_eq!(world.ok(&["resume"]), "it was not paused: 1 waiting\n");
    let brain = world.brain().uploads();
    assert!(brain[0].text.ends_with("] one") && brain[1].text.ends_with("] two"), "{brain:?}");
}

/// A done one with a file, a cancelled one, and one that waits; all made 40 days ago, but for the last.
fn old_ones(world: &mut World) -> [String; 3] {
    world.start_online();
    world.bot().say_file(Some("RELAY: with a file"), None, "a.bin", vec![1; 10]);
    let done = world.brain_gets(|all| all.len() == 1)[0].id.clone();
    world.brain().say_file(Some("and one back"), Some(&done), "b.bin", vec![2; 10]);
    world.wait_queue("done", 1);
    world.ok(&["pause"]);
    let cancelled = hand_off(world, "never mind");
    world.wait_queue("new", 1);
    world.ok(&["cancel", &cancelled]);
    world.wait_queue("failed", 1);
    let waits = hand_off(world, "still open");
    world.wait_queue("new", 1);
    let old = (time::OffsetDateTime::now_utc() - time::Duration::days(40))
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap();
    for path in [format!("done/{done}.json"), format!("failed/{cancelled}.json")] {
        let path = world.spool().join(path);
        let mut document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        document["created"] = json!(old);
        std::fs::write(&path, document.to_string()).unwrap();
    }
    [done, cancelled, waits]
}

#[test]
fn prune_deletes_old_closed_ones_with_their_files_and_nothing_else() {
    for running in [true, false] {
        let mut world = World::new();
        let [done, cancelled, waits] = old_ones(&mut world);
        if !running {
            assert!(world.stop().success());
        }
        let files = |world: &World| files_below(&world.spool().join("files"));
        assert_eq!(files(&world).len(), 2);
        let would = world.json(&["prune", "--older-than", "30d", "--dry-run"]);
        let told = world.ok(&["prune", "--older-than", "30d", "--dry-run"]);
        assert!(told.contains("  done    40 days ago  with a file\n"), "{told}");
        assert!(told.contains("  failed  40 days ago  never mind\n"), "{told}");
        let mut ids: Vec<&str> = would["pruned"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        ids.sort_unstable();
        let mut both = [done.as_str(), cancelled.as_str()];
        both.sort_unstable();
        assert_eq!((ids.as_slice(), &would["dry_run"]), (&both[..], &json!(true)));
        assert_eq!(world.documents("done").len(), 1, "only said");
        assert!(world.ok(&["prune", "--older-than", "50d"]).contains("0 hand-offs deleted"));
        let only_failed = world.json(&["prune", "--older-than", "30d", "--state", "failed"]);
        assert_eq!(only_failed["pruned"], json!([cancelled]));
        assert_eq!((world.documents("done").len(), world.documents("failed").len()), (1, 0));
        assert!(world.ok(&["prune", "--older-than", "30d"]).contains("1 hand-off deleted"));
        assert_eq!(files(&world), [""; 0], "its files went with it");
        assert!(!world.spool().join(format!("files/{done}")).exists());
        let left = world.status();
        assert_eq!((&left["queue"]["done"], &left["queue"]["failed"]), (&json!(0), &json!(0)), "{running}");
        assert_eq!(world.json(&["show", &waits])["state"], "new", "what is open stays");
    }
}

#[test]
fn reset_breaker_with_a_bridge_and_without() {
    let mut world = World::new().with("breaker_count", "1");
    assert!(world.ok(&["reset-breaker"]).contains("no bridge runs"));
    world.start_online();
    assert!(world.ok(&["reset-breaker"]).contains("had not tripped"));
    hand_off(&world, "one");
    let refused = hand_off(&world, "two");
    world.wait_queue("failed", 1);
    assert!(world.ok(&["reset-breaker"]).contains("1 had been refused"));
    world.bot_gets(|all| all.iter().any(|one| one.text.contains("the breaker was reset")));
    // What was refused can be brought back, also after a restart.
    assert!(world.stop().success());
    world.ok(&["retry", &refused]);
    world.start();
    let pushed = world.brain_gets(|all| all.len() == 2).remove(1);
    assert_eq!(pushed.text, format!("[relay {refused} from the bot] two"));
}

#[test]
fn a_stream_that_cannot_be_written_is_said_before_anything_is_done() {
    let world = World::new();
    std::fs::create_dir_all(world.dir.path().join("state/stream.log")).unwrap();
    let output = world.run(&["send", "water"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("stream"), "{output:?}");
    assert!(world.documents("new").is_empty());
}
