mod closed;
mod unreadable;

use std::collections::BTreeSet;
use std::path::Path;

use time::macros::datetime;

use super::*;
use crate::config::Side;
use crate::handoff::{HandOff, Origin, Push, PushOutcome};
use crate::queue::Incoming;
use crate::queue::event::{Arrival, Reply, Sighted};
use crate::spool::closed::Listed;
use crate::spool::lock::{Lock, Role};
use crate::spool::store::TMP;

const NOW: Now = Now { mono: Duration::from_secs(100), wall: datetime!(2026-11-30 10:00 UTC) };

fn open(root: &Path) -> Spooler {
    open_on(Store::open(root).unwrap())
}

fn open_on<F: Fs>(store: Store<F>) -> Spooler<F> {
    let settings = Settings {
        alarm: Duration::from_secs(1800),
        max_attempts: 5,
        gap: Duration::from_secs(10),
        inline_bytes: 1024,
    };
    Spooler::open(store, settings, 0, NOW).unwrap()
}

/// What a listing of the closed folders finds now.
fn list(root: &Path) -> Listed {
    Listed::read(&RealFs, root, None).unwrap()
}

/// Has what waits for a listing get it.
fn be_listed(spooler: &mut Spooler, root: &Path) -> Outcome {
    spooler.process([Event::Listed(Ok(list(root)))], NOW)
}

/// A hand-off that lies in `done/` only.
fn done(root: &Path) -> HandOff {
    let mut h = HandOff::new(Id::now(), Origin::Bot, "x".into(), NOW.wall);
    h.pushes.push(Push { outcome: PushOutcome::Sent, ..Push::begin(1, None, NOW.wall) });
    h.record_reply("m1-1", "done".into(), vec![], NOW.wall);
    h.results[0].told = Some(NOW.wall);
    Store::open(root).unwrap().put(&mut h, None).unwrap();
    h
}

fn reply(part: &str, message: &str, files: Vec<Incoming>) -> Event {
    let receipt = Receipt::Frame(Side::Brain, 1);
    let (message, reply_to, text) = (message.to_owned(), Some(part.to_owned()), format!("said in {message}"));
    Event::Reply(Reply { message, reply_to, edit: false, text, files, found: None, receipt })
}

fn accept(id: Id) -> Event {
    let receipt = Receipt::Frame(Side::Bot, 1);
    Event::Accept(Arrival { id, from: Origin::Bot, text: "x".into(), message: None, files: vec![], receipt })
}

fn fetched(root: &Path, name: &str) -> Incoming {
    let path = root.join(TMP).join(Id::now().to_string());
    std::fs::write(&path, "abc").unwrap();
    Incoming::Fetched { name: name.into(), path, bytes: 3 }
}

#[test]
fn a_follow_up_to_one_that_lies_in_done_only_is_found_by_a_part_of_its_id() {
    let dir = tempfile::tempdir().unwrap();
    let h = done(dir.path());
    let mut spooler = open(dir.path());
    let out = spooler.process([reply(&h.id.to_string()[20..], "m1-2", vec![])], NOW);
    assert!(matches!(out.effects[..], [Effect::List]) && !out.snapshot.idle, "{:?}", out.effects);
    let out = be_listed(&mut spooler, dir.path());
    assert!(matches!(out.effects.last(), Some(Effect::Done(_))), "{:?}", out.effects);
    assert_eq!((out.snapshot.counts.done, out.snapshot.counts.out), (0, 1));
    let edit = |message: &str| Reply {
        message: message.into(),
        reply_to: None,
        edit: true,
        text: "better".into(),
        files: vec![],
        found: None,
        receipt: Receipt::None,
    };
    spooler.process([Event::Reply(edit("m1-1"))], NOW);
    let (found, lies) = spooler.store.load(h.id, &State::ALL).unwrap().unwrap();
    assert_eq!((found.results.len(), lies), (3, State::Out));
}

#[test]
fn a_spool_that_is_away_is_not_taken_for_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let [root, away] = ["relay", "away"].map(|name| dir.path().join(name));
    let h = done(&root);
    let lock = Lock::spool(&root, Role::Bridge).unwrap();
    let mut spooler = open_on(Store::open_locked(&root, lock.place().unwrap()).unwrap());
    spooler.process([Event::Pause { reason: None, receipt: Receipt::None }], NOW);
    std::fs::rename(&root, &away).unwrap();
    let out = spooler.process([Event::Tick, reply(&h.id.to_string(), "m1-2", vec![])], NOW);
    assert!(out.snapshot.paused.is_some() && !out.snapshot.idle, "{:?}", out.effects);
    let waits = |effect: &Effect| matches!(effect, Effect::Warn { text, .. } if text.contains("a reply of the brain waits") && text.contains("the spool is gone; put"));
    assert!(out.effects.iter().any(waits), "{:?}", out.effects);
    let retried = spooler.process([Event::Retry { id: h.id, receipt: Receipt::Request(1) }], NOW);
    assert!(matches!(retried.effects[..], [Effect::Answer(_, Err(_))]), "{:?}", retried.effects);
    assert!(Store::open_locked(&root, lock.place().unwrap()).is_err() && !root.exists());
    std::fs::rename(&away, &root).unwrap();
    let later = Now { mono: out.wake_at.unwrap(), ..NOW };
    assert!(spooler.process([Event::Tick], later).snapshot.idle);
    assert_eq!(spooler.store.load(h.id, &State::ALL).unwrap().unwrap().0.results.len(), 2);
}

#[test]
fn whatever_first_needs_a_folder_that_is_gone_makes_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("there.txt");
    std::fs::write(&file, "x").unwrap();
    let root = dir.path().join("relay");
    let mut spooler = open(&root);
    let arrival = Arrival {
        id: Id::now(),
        from: Origin::Script,
        text: "x".into(),
        message: None,
        files: vec![Incoming::Copy(file)],
        receipt: Receipt::Request(1),
    };
    for event in [
        Event::Pause { reason: None, receipt: Receipt::Request(1) },
        Event::Resume { receipt: Receipt::Request(1) },
        Event::Accept(arrival),
        accept(Id::now()),
    ] {
        std::fs::remove_dir_all(root.join(TMP)).unwrap();
        let out = spooler.process([event], NOW);
        let done = |effect: &Effect| matches!(effect, Effect::Answer(_, Ok(_)) | Effect::Done(_));
        let said = |effect: &Effect| matches!(effect, Effect::Warn { text, .. } if text.contains("made again"));
        assert!(out.effects.iter().any(done) && out.effects.iter().any(said), "{:?}", out.effects);
    }
}

#[test]
fn a_file_fetched_before_the_queue_was_started_again_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let h = done(dir.path());
    drop(open(dir.path()));
    let file = fetched(dir.path(), "a\n.png");
    let mut spooler = open(dir.path());
    spooler.process([reply(&h.id.to_string(), "m1-2", vec![file])], NOW);
    let (found, _) = spooler.store.load(h.id, &State::ALL).unwrap().unwrap();
    assert_eq!(found.results[1].files[0].path, Some(format!("files/{}/a_.png", h.id)));
}

#[test]
fn a_file_that_is_gone_is_said_to_be_and_one_for_nobody_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let h = done(dir.path());
    let mut spooler = open(dir.path());
    let gone = Incoming::Fetched { name: "a.png".into(), path: dir.path().join(TMP).join("gone"), bytes: 3 };
    let out = spooler.process([reply(&h.id.to_string(), "m1-2", vec![gone])], NOW);
    assert!(out.effects.iter().any(|effect| matches!(effect, Effect::Warn { text, .. } if text.contains("a.png"))));
    let (found, _) = spooler.store.load(h.id, &State::ALL).unwrap().unwrap();
    assert_eq!((found.results[1].files[0].path.as_deref(), found.results[1].files[0].name.as_str()), (None, "a.png"));

    let nobody = Id::now();
    let file = fetched(dir.path(), "b.png");
    spooler.process([reply(&nobody.to_string(), "m1-3", vec![file])], NOW);
    assert!(!dir.path().join("files").join(nobody.to_string()).exists());
}

#[test]
fn a_script_whose_file_cannot_be_had_is_told_and_nothing_stays_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut spooler = open(dir.path());
    let there = dir.path().join("there.txt");
    std::fs::write(&there, "x").unwrap();
    let id = Id::now();
    let arrival = Arrival {
        id,
        from: Origin::Script,
        text: "x".into(),
        message: None,
        files: vec![Incoming::Copy(there), Incoming::Copy(dir.path().join("not there"))],
        receipt: Receipt::Request(1),
    };
    let out = spooler.process([Event::Accept(arrival)], NOW);
    assert!(matches!(out.effects[..], [Effect::Answer(Receipt::Request(1), Err(_))]), "{:?}", out.effects);
    assert!(!dir.path().join("files").join(id.to_string()).exists());
    assert_eq!(std::fs::read_dir(dir.path().join(TMP)).unwrap().count(), 0);
}

#[test]
fn a_name_that_is_not_text_does_not_stop_a_start() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    Store::open(dir.path()).unwrap();
    std::fs::write(dir.path().join("new").join(std::ffi::OsStr::from_bytes(b"\xff.json")), "x").unwrap();
    open(dir.path());
}

#[test]
fn the_pause_file_may_be_made_and_removed_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let mut spooler = open(dir.path());
    std::fs::write(dir.path().join("paused"), "").unwrap();
    assert!(spooler.process([Event::Tick], NOW).snapshot.paused.is_some());
    std::fs::remove_file(dir.path().join("paused")).unwrap();
    assert!(spooler.process([Event::Tick], NOW).snapshot.paused.is_none());
    spooler.process([Event::Pause { reason: None, receipt: Receipt::None }], NOW);
    std::fs::remove_file(dir.path().join("paused")).unwrap();
    let out = spooler.process([Event::Resume { receipt: Receipt::Request(1) }], NOW);
    assert!(out.effects.iter().any(|effect| matches!(effect, Effect::Answer(_, Ok(_)))), "{:?}", out.effects);
}
