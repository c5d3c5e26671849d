//! A spool that cannot be written while the bridge runs. `tmp/` is moved away for that: no file can be made then.

use std::fs;
use std::time::{Duration, Instant};

use crate::crash::hand_off;
use crate::harness::World;

/// What the bridge has for a stop, with some room for a busy machine: less than its own limit for finishing.
const PROMPT: Duration = Duration::from_secs(3);

fn break_disk(world: &World) {
    fs::rename(world.spool().join("tmp"), world.spool().join("tmp.away")).unwrap();
}

fn mend_disk(world: &World) {
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
    assert!(world.wait_stream("the spool cannot be written").contains('⚠'));
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
