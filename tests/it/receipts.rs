//! What the sessions' transcripts prove.

use serde_json::{Value, json};

use crate::claude::{Session, quick};
use crate::harness::{World, wait};
use crate::supervision::{fault, wait_restarts};

fn world() -> World {
    quick(World::new())
}

fn listed(world: &World, id: &str) -> Value {
    let all = world.json(&["list", "--all"]);
    all.as_array().unwrap().iter().find(|one| one["id"] == id).unwrap_or(&Value::Null).clone()
}

#[track_caller]
fn wait_listed(world: &World, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for _ in 0..300 {
        last = listed(world, id);
        if wanted(&last) {
            return last;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{last:#}\n{}", world.stream());
}

/// Hands something off; returns the id once it is surely with the brain.
#[track_caller]
fn pushed(world: &World, text: &str) -> String {
    let id = world.ok(&["send", text]).trim().to_owned();
    world.wait_stream(&format!("{}: is with the brain (attempt 1)", &id[28..]));
    id
}

fn strangers(world: &World) -> Vec<String> {
    world.warnings().into_iter().filter(|line| line.contains("something other than the relay")).collect()
}

/// Has the bridge read the transcript to its end.
#[track_caller]
fn read_to_the_end(world: &World, session: &Session) {
    let len = || std::fs::metadata(&session.transcript).unwrap().len();
    wait("the transcript to be read", || {
        let kept: Value = serde_json::from_slice(&std::fs::read(world.spool().join("receipts.json")).ok()?).ok()?;
        let sides = kept.as_array()?;
        let own = sides.iter().find(|side| side["position"]["path"] == json!(session.transcript))?;
        (own["position"]["offset"] == len()).then_some(())
    });
}

#[test]
fn a_hand_off_that_the_brain_has_is_seen_and_so_is_a_result_that_the_bot_has() {
    let mut world = world();
    world.start_online();
    let brain = Session::new(&world, "brain", "s1").begins();
    let bot = Session::new(&world, "bot", "s2").begins();
    let id = pushed(&world, "water the plants");
    assert_eq!(listed(&world, &id)["stage"], "pushed");
    brain.has(&id);
    let seen = wait_listed(&world, &id, |one| one["stage"] == "seen");
    assert_eq!(seen["pushes"][0]["outcome"], "seen");
    world.brain().say("watered", Some(&id));
    world.wait_queue("done", 1);
    let told = world.bot_gets(|all| all.len() == 1);
    assert_eq!(listed(&world, &id)["results"][0]["pushes"][0]["id"], told[0].id);
    bot.has(&told[0].id);
    wait_listed(&world, &id, |one| one["results"][0]["pushes"][0]["outcome"] == "seen");
    assert_eq!(world.status()["queue"]["done"], 1, "it stays where it is");
    // Told before a restart, and seen after it.
    let other = pushed(&world, "feed the cat");
    world.brain().say("fed", Some(&other));
    world.wait_queue("done", 2);
    let told = world.bot_gets(|all| all.len() == 2);
    drop((brain, bot));
    world.stop();
    world.start_online();
    Session::new(&world, "bot", "s2").has(&told[1].id);
    wait_listed(&world, &other, |one| one["results"][0]["pushes"][0]["outcome"] == "seen");
    assert_eq!(world.warnings(), [""; 0]);
    let again = (world.brain().uploads().len(), world.bot().uploads().len());
    assert_eq!(again, (2, 2));
}

#[test]
fn what_the_transcript_had_before_it_was_named_counts_for_our_own_only() {
    let mut world = world();
    world.start_online();
    let id = pushed(&world, "water the plants");
    let session = Session::new(&world, "brain", "s1");
    session.had("someone-else", 60.0);
    session.has(&id);
    let session = session.begins();
    wait_listed(&world, &id, |one| one["stage"] == "seen");
    read_to_the_end(&world, &session);
    assert_eq!(strangers(&world), [""; 0]);
}

#[test]
fn the_alarm_says_which_and_nothing_is_pushed_again() {
    let mut world = world().with("alarm_min", "0.05");
    world.start_online();
    let session = Session::new(&world, "brain", "s1").begins();
    let (unseen, seen) = (pushed(&world, "one"), pushed(&world, "two"));
    session.has(&seen);
    let word = |id: &str| world.wait_stream(&format!("{}: no result after 3 s: ", &id[28..]));
    assert!(word(&unseen).contains("pushed and not seen"), "{}", world.stream());
    assert!(word(&seen).contains("seen and unanswered"), "{}", world.stream());
    assert_eq!(world.brain().uploads().len(), 2);
    session.has(&unseen);
    wait_listed(&world, &unseen, |one| one["stage"] == "seen");
    assert_eq!(world.brain().uploads().len(), 2);
}

#[test]
fn a_stranger_is_told_once_and_our_own_words_are_none() {
    let mut world = world().with("breaker_count", "1");
    world.start_online();
    let (pid, id);
    {
        let (world, brain) = (&world, Session::new(&world, "brain", "s1").begins());
        let bot = Session::new(world, "bot", "s2").begins();
        id = pushed(world, "water the plants");
        brain.has(&id);
        brain.has("u1796-1");
        let told = world.wait_stream("something other than the relay prompted the brain at ");
        assert!(told.contains("message u1796-1, 1 bytes"), "{told}");
        bot.has("01939f3c-aaaa-7bbb-8ccc-000000000001");
        world.wait_stream("something other than the relay prompted the bot at ");
        // A take-back, a notice, a result.
        world.ok(&["cancel", &id]);
        let other = pushed(world, "feed the cat");
        world.brain().say("fed", Some(&other));
        world.bot().say("RELAY: 1", None);
        world.bot().say("RELAY: 2", None);
        world.bot_gets(|all| all.iter().any(|one| one.text.contains("breaker tripped")));
        world.bot_gets(|all| all.iter().any(|one| one.text.contains("fed")));
        world.brain_gets(|all| all.iter().any(|one| one.text.contains("cancelled: stop")));
        for (double, session) in [(world.brain(), &brain), (world.bot(), &bot)] {
            double.uploads().iter().for_each(|one| session.has(&one.id));
            read_to_the_end(world, session);
        }
        wait_listed(world, &other, |one| one["results"][0]["pushes"][0]["outcome"] == "seen");
        assert_eq!(strangers(world).len(), 2, "{}", world.stream());
        pid = world.pid();
    }
    // A file that is read anew shows them all again; the secret tells which are ours.
    world.stop();
    std::fs::remove_file(world.spool().join("receipts.json")).unwrap();
    world.start_online();
    assert_ne!(world.pid(), pid);
    let brain = Session::new(&world, "brain", "s1").begins();
    let bot = Session::new(&world, "bot", "s2").begins();
    for (double, session) in [(world.brain(), &brain), (world.bot(), &bot)] {
        double.uploads().iter().for_each(|one| session.has(&one.id));
        read_to_the_end(&world, session);
    }
    brain.has("u1796-2");
    world.wait_stream("message u1796-2");
    assert_eq!(strangers(&world).len(), 3, "{}", world.stream());
}

#[test]
fn clear_is_followed_and_a_restart_reads_on() {
    let mut world = world();
    world.start_online();
    let first = pushed(&world, "one");
    {
        let old = Session::new(&world, "brain", "s1").begins();
        old.has(&first);
        wait_listed(&world, &first, |one| one["stage"] == "seen");
        old.has("stranger-1");
        world.wait_stream("stranger-1");
        old.tells("SessionEnd", &json!({"reason": "clear"}));
    }
    let new = Session::new(&world, "brain", "s3");
    new.tells("SessionStart", &json!({"source": "clear"}));
    let second = pushed(&world, "two");
    new.has(&second);
    wait_listed(&world, &second, |one| one["stage"] == "seen");
    new.has("stranger-2");
    world.wait_stream("stranger-2");
    let third = pushed(&world, "three");
    let transcript = new.transcript.clone();
    read_to_the_end(&world, &new);
    world.stop();
    let new = Session::new(&world, "brain", "s3");
    assert_eq!(new.transcript, transcript);
    new.has(&third);
    new.has("stranger-3");
    world.start_online();
    wait_listed(&world, &third, |one| one["stage"] == "seen");
    world.wait_stream("stranger-3");
    assert_eq!(strangers(&world).len(), 3, "{}", world.stream());
}

#[test]
fn a_receipt_for_one_that_is_over_or_was_retried_does_nothing_wrong() {
    let mut world = world();
    world.start_online();
    let session = Session::new(&world, "brain", "s1").begins();
    let (cancelled, retried) = (pushed(&world, "one"), pushed(&world, "two"));
    world.ok(&["cancel", &cancelled]);
    world.wait_queue("failed", 1);
    session.has(&cancelled);
    wait_listed(&world, &cancelled, |one| one["pushes"][0]["outcome"] == "seen");
    assert_eq!(listed(&world, &cancelled)["stage"], "failed");
    // Seen, and pushed again because a person wants it.
    session.has(&retried);
    wait_listed(&world, &retried, |one| one["stage"] == "seen");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    world.ok(&["retry", &retried]);
    world.wait_stream(&format!("{}: is with the brain (attempt 2)", &retried[28..]));
    session.had(&retried, 1.4);
    read_to_the_end(&world, &session);
    assert_eq!(listed(&world, &retried)["stage"], "pushed", "that was the first");
    session.has(&retried);
    wait_listed(&world, &retried, |one| one["stage"] == "seen" && one["pushes"][1]["outcome"] == "seen");
    world.ok(&["retry", &cancelled]);
    world.brain_gets(|all| all.iter().filter(|one| one.id == cancelled).count() == 2);
    world.brain().say("done", Some(&cancelled));
    world.brain().say("done", Some(&retried));
    world.wait_queue("done", 2);
    session.has(&cancelled);
    session.has(&retried);
    read_to_the_end(&world, &session);
    assert_eq!(world.status()["queue"]["done"], 2);
    let uploads = world.brain().uploads();
    let takes = uploads.iter().filter(|one| one.text.contains("cancelled: stop")).count();
    assert_eq!((uploads.len(), takes), (5, 1), "{uploads:#?}");
}

#[test]
fn a_receipt_outlives_falls_of_those_it_goes_through() {
    let mut world = world();
    world.start_online();
    let session = Session::new(&world, "brain", "s1").begins();
    for (n, actor) in [(1, "queue"), (1, "witness"), (2, "queue"), (2, "witness")] {
        let id = pushed(&world, &format!("{n} of {actor}"));
        session.has(&id);
        fault(&world, actor, "panic");
        wait_restarts(&world, actor, n);
        wait_listed(&world, &id, |one| one["stage"] == "seen");
    }
    assert_eq!(strangers(&world), [""; 0]);
}

#[test]
fn a_session_of_another_channel_and_odd_lines_prove_nothing() {
    let mut world = world();
    world.start_online();
    let session = Session::new(&world, "brain", "s1").begins();
    let id = pushed(&world, "one");
    let odd = include_str!("../fixtures/transcripts/unseen.jsonl").replace("forged", &id);
    std::fs::write(&session.transcript, odd).unwrap();
    read_to_the_end(&world, &session);
    assert_eq!(listed(&world, &id)["stage"], "pushed");
    assert_eq!(strangers(&world), [""; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_transcript_is_read_when_it_has_grown_and_not_at_the_next_tick() {
    let mut world = World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "3600000");
    world.start_online();
    let seen = |id: &str| drop(wait_listed(&world, id, |one| one["stage"] == "seen"));
    let session = Session::new(&world, "brain", "s1").begins();
    // It comes, it grows, another one takes its place.
    for text in ["one", "two"] {
        let id = pushed(&world, text);
        session.has(&id);
        seen(&id);
    }
    let id = pushed(&world, "three");
    let other = Session::new(&world, "brain", "s2");
    other.has(&id);
    std::fs::rename(&other.transcript, &session.transcript).unwrap();
    seen(&id);
    // The next sessions' had theirs before a hook named them; they are in another folder.
    let folder = world.dir.path().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    for name in ["s3", "s4"] {
        let mut next = Session::new(&world, "brain", name);
        next.transcript = folder.join(format!("{name}.jsonl"));
        let id = pushed(&world, &format!("before {name}"));
        next.has(&id);
        let next = next.begins();
        seen(&id);
        let id = pushed(&world, &format!("after {name}"));
        next.has(&id);
        seen(&id);
    }
}
