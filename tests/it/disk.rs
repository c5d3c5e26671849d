//! A spool that cannot be written while the bridge runs. `tmp/` is no folder for that: no file can be made then.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::claude::{message, reply};
use crate::crash::hand_off;
use anna_relay::spool::Store;
use anna_relay::spool::lock::{Lock, Role};

use crate::harness::{World, files_below, wait};

/// What the bridge has for a stop, with some room for a busy machine: less than its own limit for finishing.
const PROMPT: Duration = Duration::from_secs(3);

fn break_disk(world: &World) {
    fs::rename(world.spool().join("tmp"), world.spool().join("tmp.away")).unwrap();
    fs::write(world.spool().join("tmp"), "").unwrap();
}

fn mend_disk(world: &World) {
    fs::remove_file(world.spool().join("tmp")).unwrap();
    fs::rename(world.spool().join("tmp.away"), world.spool().join("tmp")).unwrap();
}

#[test]
fn intake_refuses_with_a_reason_and_goes_on_by_itself() {
    let mut world = World::new();
    world.start_online();
    break_disk(&world);
    hand_off(&world, "water");
    let told = world.bot_gets(|all| all.len() == 1).remove(0);
    assert!(told.text.starts_with("[relay] a hand-off was refused"), "{}", told.text);
    assert!(told.text.ends_with("\n[asked: water]"), "{}", told.text);
    let warned = world.wait_stream("hand-off refused");
    assert!(warned.contains('⚠') && warned.contains("water"), "{warned}");
    let warned = world.wait_stream("the spool cannot be written");
    let tmp = world.spool().join("tmp");
    assert!(warned.contains('⚠') && warned.contains(&*tmp.to_string_lossy()), "{warned}");
    assert!(warned.contains("move away what lies in the place of that folder"), "{warned}");
    let script = world.run(&["send", "mow"]);
    assert_eq!(script.status.code(), Some(1), "{script:?}");
    assert!(String::from_utf8_lossy(&script.stderr).contains("\nhint: "), "{script:?}");
    assert_eq!(world.status()["queue"]["new"], 0);
    mend_disk(&world);
    world.wait_stream("the disk takes writes again");
    let id = hand_off(&world, "water again");
    assert_eq!(world.brain_gets(|all| !all.is_empty())[0].id, id);
    let start = Instant::now();
    assert!(world.stop().success());
    assert!(start.elapsed() < PROMPT, "nothing keeps it from stopping: {:?}", start.elapsed());
}

#[test]
fn what_the_brain_says_meanwhile_is_not_lost() {
    let mut world = World::new();
    world.start_online();
    let (first, second) = (hand_off(&world, "one"), hand_off(&world, "two"));
    world.brain_gets(|all| all.len() == 2);
    world.wait_status("both to be confirmed", |_| {
        let all = world.documents("brain");
        all.len() == 2 && all.iter().all(|h| h["pushes"][0]["outcome"] == "sent")
    });
    break_disk(&world);
    world.brain().say("done one", Some(&first));
    world.brain().say("more of one", Some(&first));
    world.brain().say("done two", Some(&second));
    world.wait_stream("the spool cannot be written");
    assert_eq!(world.documents("brain").len(), 2);
    mend_disk(&world);
    let told = world.bot_gets(|all| all.len() == 3);
    for (one, said) in told.iter().zip(["] done one\n", "] more of one\n", "] done two\n"]) {
        assert!(told.iter().any(|one| one.text.contains(said)), "{said:?} {}", one.text);
        assert!(!one.text.contains("sent again"), "{}", one.text);
    }
    world.wait_queue("done", 2);
    for said in ["result from the brain: done one", "follow-up from the brain: more", "brain: done two"] {
        world.wait_stream(said);
    }
    assert_eq!(world.warnings().iter().filter(|line| line.contains("cannot be written")).count(), 1);
    let start = Instant::now();
    assert!(world.stop().success());
    assert!(start.elapsed() < PROMPT, "nothing keeps it from stopping: {:?}", start.elapsed());
    assert!(!world.log().contains("did not finish"), "{}", world.log());
}

/// A world in which a hand-off is with the brain, that is known to be so.
fn with_the_brain() -> (World, String) {
    let mut world = World::new();
    world.start_online();
    let id = hand_off(&world, "water");
    world.wait_status("it to be confirmed", |_| {
        world.documents("brain").first().is_some_and(|h| h["pushes"][0]["outcome"] == "sent")
    });
    (world, id)
}

#[test]
fn commands_say_so_and_change_nothing() {
    let (world, id) = with_the_brain();
    break_disk(&world);
    for command in [&["cancel", &id][..], &["retry", &id], &["pause"]] {
        let output = world.run(command);
        assert_eq!(output.status.code(), Some(1), "{command:?} {output:?}");
    }
    assert_eq!(world.status()["paused"], serde_json::Value::Null);
    mend_disk(&world);
    world.wait_stream("the disk takes writes again");
    world.brain().say("watered", Some(&id));
    world.wait_queue("done", 1);
    assert_eq!(world.brain().uploads().len(), 1);
}

#[test]
fn a_brain_that_talks_on_through_a_restart_loses_nothing_that_is_on_disk() {
    let (mut world, id) = with_the_brain();
    break_disk(&world);
    world.brain().say("watered", Some(&id));
    world.wait_stream("the spool cannot be written");
    // Told to stop while it cannot write: it stops all the same, within its 5 s.
    let start = Instant::now();
    assert!(world.stop().success());
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    let told = world.wait_stream("1 message of the brain could not be accepted before the stop");
    assert!(told.contains('⚠') && told.contains("it has to say again"), "{told}");
    mend_disk(&world);
    world.start_online();
    assert_eq!(world.json(&["show", &id])["stage"], "pushed", "it waits, and is seen to");
}

#[test]
fn folders_that_are_removed_are_made_again_with_what_was_in_them() {
    use std::os::unix::fs::PermissionsExt;
    let mut world = World::new();
    world.start_online();
    let before = hand_off(&world, "before");
    world.brain_gets(|all| all.len() == 1);
    world.brain().say("done", Some(&before));
    world.wait_queue("done", 1);
    world.ok(&["pause"]);
    let waiting = hand_off(&world, "water");
    world.wait_queue("new", 1);
    for folder in ["tmp", "new", "done"] {
        fs::remove_dir_all(world.spool().join(folder)).unwrap();
    }
    let next = hand_off(&world, "mow");
    for folder in ["tmp", "new", "done"] {
        let path = world.spool().join(folder);
        let said = world.wait_stream(&format!("a folder of the spool was gone and was made again: {}", path.display()));
        assert!(said.contains('⚠'), "{said}");
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
    }
    // Both lie there once more: a crash would lose neither.
    world.wait_status("what is gone to be counted no more", |status| {
        status["queue"]["new"] == 2 && status["queue"]["done"] == 0
    });
    wait("both to be written", || (world.documents("new").len() == 2).then_some(()));
    world.ok(&["resume"]);
    let asked = world.brain_gets(|all| all.len() == 3);
    assert_eq!([&asked[1].id, &asked[2].id], [&waiting, &next]);
    for id in [waiting, next] {
        world.brain().say("done", Some(&id));
    }
    world.wait_queue("done", 2);
    assert!(!world.stream().contains("cannot be written"), "{}", world.stream());
}

/// What is said to the bridge while its spool is not there: refused, with where that was.
fn refused(world: &World, on: &Path, why: &str) {
    hand_off(world, "water");
    let told = world.bot_gets(|all| !all.is_empty()).remove(0);
    let why = format!("{}: {why}", on.display());
    assert!(told.text.contains("a hand-off was refused") && told.text.contains(&why), "{}", told.text);
    let warned = world.wait_stream("the spool cannot be written");
    assert!(warned.contains(&why) && warned.contains("put the spool back as it was"), "{warned}");
}

#[test]
fn a_spool_that_is_moved_away_is_waited_for_and_not_begun_anew() {
    let mut world = World::new();
    world.start_online();
    let away = world.dir.path().join("away");
    fs::rename(world.spool(), &away).unwrap();
    refused(&world, &world.spool(), "the spool is gone");
    fs::rename(&away, world.spool()).unwrap();
    world.wait_stream("the disk takes writes again");
    let id = hand_off(&world, "water again");
    assert_eq!(world.brain_gets(|all| !all.is_empty())[0].id, id);
}

#[test]
fn nothing_is_written_into_another_spool_in_its_place() {
    let mut world = World::new();
    world.start_online();
    let away = world.dir.path().join("away");
    fs::rename(world.spool(), &away).unwrap();
    // Another bridge's.
    Store::open(&world.spool()).unwrap();
    let _lock = Lock::spool(&world.spool(), Role::Bridge).unwrap();
    let before = files_below(&world.spool());
    refused(&world, &world.spool().join("lock"), "it is not this bridge's any more");
    assert_eq!(files_below(&world.spool()), before);
}

#[test]
fn a_closed_folder_that_is_gone_holds_up_no_reply() {
    for folder in ["done", "failed", "corrupt"] {
        let (world, id) = with_the_brain();
        fs::remove_dir_all(world.spool().join(folder)).unwrap();
        world.brain().edit("m123-4", "an edit of something else");
        world.brain().say("watered", Some(&id[id.len() - 12..]));
        assert!(world.bot_gets(|all| !all.is_empty())[0].text.contains("] watered\n"));
        world.wait_queue("done", 1);
        world.wait_stream("an edit of the brain names no known hand-off");
        let path = world.spool().join(folder);
        let said = world.wait_stream(&format!("a folder of the spool was gone and was made again: {}", path.display()));
        assert!(said.contains('⚠') && !world.stream().contains("a reply of the brain waits"), "{}", world.stream());
    }
}

#[test]
fn a_closed_document_that_is_none_holds_up_no_reply_to_others() {
    let (world, old) = with_the_brain();
    world.brain().say("watered", Some(&old));
    world.wait_queue("done", 1);
    let next = hand_off(&world, "mow");
    world.brain_gets(|all| all.len() == 2);
    let path = world.spool().join("done").join(format!("{old}.json"));
    fs::remove_file(&path).unwrap();
    let _socket = UnixListener::bind(&path).unwrap();
    world.brain().say("more", Some(&old));
    world.brain().say("mown", Some(&next));
    let told = world.bot_gets(|all| all.len() == 2);
    assert!(told[1].text.contains("] mown\n"), "{}", told[1].text);
    let said = world.wait_stream("a reply of the brain names no known hand-off");
    assert!(said.contains('⚠') && said.contains("more"), "{said}");
}

#[test]
fn nothing_is_believed_of_another_spool_in_its_place() {
    for edit in [false, true] {
        let (mut world, id) = with_the_brain();
        let said = world.brain().say("watered", Some(&id));
        world.wait_queue("done", 1);
        world.stop();
        world.start_online();
        world.wait_queue("done", 1);
        let [away, other] = ["away", "other"].map(|name| world.dir.path().join(name));
        fs::rename(world.spool(), &away).unwrap();
        Store::open(&world.spool()).unwrap();
        let lock = Lock::spool(&world.spool(), Role::Bridge).unwrap();
        let say = |text: &str| match edit {
            true => world.brain().edit(&said, text),
            false => drop(world.brain().say(text, Some(&id[id.len() - 12..]))),
        };
        say("first");
        let warned = world.wait_stream("a reply of the brain waits");
        assert!(warned.contains("it is not this bridge's any more"), "{warned}");
        drop(lock);
        fs::rename(world.spool(), other).unwrap();
        fs::rename(&away, world.spool()).unwrap();
        say("second");
        let told = world.bot_gets(|all| all.iter().any(|one| one.text.contains("] second\n")));
        assert!(told.iter().any(|one| one.text.contains("] first\n")), "{told:#?}");
        world.wait_queue("done", 1);
    }
}

#[test]
fn what_is_put_aside_while_it_runs_is_counted() {
    let mut world = World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "100");
    world.start_online();
    world.wait_queue("corrupt", 0);
    fs::write(world.spool().join("inbox/0-s.json"), "").unwrap();
    reply(&world, "bot", &message(0, 1), "RELAY: water", None, &[]);
    world.brain_gets(|all| all.len() == 1);
    world.wait_queue("corrupt", 1);
}

#[test]
fn a_prune_that_cannot_delete_one_says_which_and_deletes_the_others() {
    let mut world = World::new();
    world.start_online();
    world.brain_answers("done");
    let ids: Vec<String> = (1..=3).map(|n| hand_off(&world, &format!("{n}"))).collect();
    world.wait_queue("done", 3);
    fs::write(world.spool().join("files").join(&ids[1]), "x").unwrap();
    let pruned = wait("all to be old", || {
        let listed = world.run(&["prune", "--older-than", "1s", "--dry-run"]);
        String::from_utf8_lossy(&listed.stdout)
            .contains("3 hand-offs")
            .then(|| world.run(&["prune", "--older-than", "1s"]))
    });
    let said = String::from_utf8_lossy(&pruned.stderr).into_owned();
    assert_eq!(pruned.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&ids[1]) && said.contains("2 of 3 were deleted") && !said.contains("nothing was changed"),
        "{said}"
    );
    assert_eq!(world.documents("done").len(), 1);
    assert_eq!(world.status()["queue"]["done"], 1);
}
