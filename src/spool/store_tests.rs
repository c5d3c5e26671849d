use time::macros::datetime;

use super::super::attach::MAX_NAME;
use super::super::replaced::MAX_REPLACED;
use super::*;
use crate::handoff::{Attachment, Origin, Push};

const NOW: time::OffsetDateTime = datetime!(2026-11-30 10:00 UTC);

fn hand_off() -> HandOff {
    HandOff::new(Id::now(), Origin::Bot, "water the plants".into(), NOW)
}

fn open() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("relay")).unwrap();
    (dir, store)
}

/// All files in all folders, as `folder/name`.
fn tree(store: &Store) -> Vec<String> {
    let folders = State::ALL.map(State::name).into_iter().chain([CORRUPT, TMP]);
    let mut all: Vec<String> = folders
        .flat_map(|folder| {
            let names = RealFs.list(&store.dir(folder)).unwrap();
            names.into_iter().map(move |name| format!("{folder}/{name}"))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn folders_and_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, store) = open();
    store.prepare();
    let (mut h, mut other) = (hand_off(), hand_off());
    store.put(&mut h, None).unwrap();
    store.put(&mut other, None).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(store.root()), 0o700);
    assert_eq!(mode(&store.dir("new")), 0o700);
    assert_eq!(mode(&store.path(State::New, h.id)), 0o600);
    assert_eq!(mode(&store.path(State::New, other.id)), 0o600);
}

#[test]
fn a_hand_off_is_in_one_folder_at_a_time() {
    let (_dir, store) = open();
    let mut h = hand_off();
    assert_eq!(store.put(&mut h, None).unwrap(), Placed(State::New));
    h.pushes.push(Push::begin(1, None, NOW));
    assert_eq!(store.put(&mut h, Some(State::New)).unwrap(), Placed(State::Brain));
    assert_eq!(tree(&store), [format!("brain/{}.json", h.id), format!("tmp/{}.2.old", h.id)]);
    store.tidy();
    assert_eq!(tree(&store), [format!("brain/{}.json", h.id)]);
    assert_eq!(store.load(h.id, &State::ALL).unwrap(), Some((h, State::Brain)));
}

#[test]
fn a_file_made_beforehand_has_no_name_until_it_is_whole() {
    let (_dir, store) = open();
    for n in 0..3 {
        assert!(!store.is_prepared());
        store.prepare();
        assert!(store.is_prepared() && tree(&store).len() == n, "{:?}", tree(&store));
        let mut h = hand_off();
        store.put(&mut h, None).unwrap();
        assert_eq!(store.load(h.id, &[State::New]).unwrap(), Some((h, State::New)));
    }
}

#[test]
fn where_none_can_be_made_it_is_not_tried_again_until_one_was_needed() {
    let (_dir, store) = open();
    std::fs::remove_dir(store.dir(TMP)).unwrap();
    store.prepare();
    assert!(store.is_prepared());
    std::fs::create_dir(store.dir(TMP)).unwrap();
    store.put(&mut hand_off(), None).unwrap();
    assert!(!store.is_prepared());
}

#[test]
fn what_was_replaced_is_kept_for_later_up_to_a_limit() {
    let (_dir, store) = open();
    let mut h = hand_off();
    store.put(&mut h, None).unwrap();
    assert!(!store.is_untidy(), "nothing was replaced");
    for _ in 0..2 * MAX_REPLACED {
        store.put(&mut h, Some(State::New)).unwrap();
    }
    assert_eq!((tree(&store).len(), store.is_untidy()), (1 + MAX_REPLACED, true));
    let root = store.root().to_owned();
    drop(store);
    assert_eq!(std::fs::read_dir(root.join(TMP)).unwrap().count(), 0, "the last one out tidies up");
}

#[test]
fn recovery_puts_aside_what_it_cannot_read_and_follows_no_link() {
    let (dir, store) = open();
    let mut good = hand_off();
    store.put(&mut good, None).unwrap();
    let secret = dir.path().join("secret");
    std::fs::write(&secret, "x").unwrap();
    let torn = Id::now();
    std::fs::write(store.path(State::New, torn), "{\"v\":1,").unwrap();
    std::fs::write(store.dir("out").join("notes.txt"), "hello").unwrap();
    std::os::unix::fs::symlink(&secret, store.path(State::Brain, Id::now())).unwrap();
    std::fs::create_dir(store.path(State::New, Id::now())).unwrap();
    let other = Id::now();
    std::fs::copy(store.path(State::New, good.id), store.path(State::Out, other)).unwrap();
    let mut escaping = hand_off();
    escaping.files.push(Attachment {
        name: "x".into(),
        path: Some(format!("files/{}/../../lock", escaping.id)),
        bytes: 1,
        unknown: Default::default(),
    });
    store.put(&mut escaping, None).unwrap();
    std::fs::write(store.dir(TMP).join("half"), "x").unwrap();
    std::os::unix::fs::symlink(dir.path(), store.dir(TMP).join("link")).unwrap();

    store.sweep().unwrap();
    let found = store.recover().unwrap();
    assert_eq!(found.open, [(good.clone(), State::New)]);
    assert_eq!(found.quarantined.len(), 6, "{:#?}", found.quarantined);
    assert!(secret.exists() && store.recover().unwrap().quarantined.is_empty());
    let count = |folder| RealFs.entries(&store.dir(folder)).unwrap().len();
    assert_eq!((count(CORRUPT), count(TMP)), (6, 0));
}

#[test]
fn a_later_format_is_put_aside_whole() {
    let (_dir, store) = open();
    let mut h = hand_off();
    h.v = 2;
    store.put(&mut h, None).unwrap();
    let before = std::fs::read(store.path(State::New, h.id)).unwrap();
    let found = store.recover().unwrap();
    assert!(found.quarantined[0].why.contains("version 2"), "{:?}", found.quarantined);
    assert_eq!(std::fs::read(&found.quarantined[0].path).unwrap(), before);
}

#[test]
fn of_two_copies_the_newer_stays() {
    for closed in [false, true] {
        let (_dir, store) = open();
        let mut h = hand_off();
        store.put(&mut h, None).unwrap();
        let old = std::fs::read(store.path(State::New, h.id)).unwrap();
        h.pushes.push(Push::begin(1, None, NOW));
        if closed {
            h.record_reply("m1-1", "done".into(), vec![], NOW);
            h.results[0].told = Some(NOW);
        }
        let Placed(state) = store.put(&mut h, Some(State::New)).unwrap();
        std::fs::write(store.path(State::New, h.id), old).unwrap();
        let found = store.recover().unwrap();
        assert_eq!(found.open.len(), usize::from(!closed));
        store.tidy();
        assert_eq!(tree(&store), [format!("{}/{}.json", state.name(), h.id)]);
    }
}

#[test]
fn a_file_in_the_wrong_folder_is_moved() {
    let (_dir, store) = open();
    let mut h = hand_off();
    h.pushes.push(Push::begin(1, None, NOW));
    store.put(&mut h, None).unwrap();
    std::fs::rename(store.path(State::Brain, h.id), store.path(State::Out, h.id)).unwrap();
    assert_eq!(store.recover().unwrap().open, [(h, State::Brain)]);
}

#[test]
fn names_are_made_safe_and_keep_their_ending() {
    for (name, safe) in [
        ("a.png", "a.png"),
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\b.txt", "b.txt"),
        (".bashrc", "bashrc"),
        ("a\n[x]\u{202e}.txt", "a__x__.txt"),
        ("", "file"),
        ("..", "file"),
    ] {
        assert_eq!(safe_name(name), safe, "{name:?}");
    }
    let long = format!("{}.tar", "ü".repeat(500));
    assert!(safe_name(&long).len() <= MAX_NAME && safe_name(&long).ends_with(".tar"));
    assert_eq!(safe_name(&safe_name(&long)), safe_name(&long));
}

#[test]
fn a_file_of_the_same_name_keeps_its_name_for_people() {
    let (_dir, store) = open();
    let id = Id::now();
    let mut paths = Vec::new();
    for _ in 0..2 {
        let from = store.scratch();
        std::fs::write(&from, "x").unwrap();
        let kept = store.adopt(id, "a.png", &from, 1).unwrap();
        assert_eq!(kept.name, "a.png");
        paths.push(kept.path.unwrap());
    }
    assert_eq!(paths, [format!("files/{id}/a.png"), format!("files/{id}/2-a.png")]);
}

#[test]
fn what_is_long_is_freed_as_soon_as_it_is_replaced() {
    let (_dir, store) = open();
    for (len, kept) in [(1, true), (MAX_REPLACED_LEN, false)] {
        let mut h = HandOff { text: "x".repeat(len), ..hand_off() };
        store.put(&mut h, None).unwrap();
        h.pushes.push(Push::begin(1, None, NOW));
        store.put(&mut h, Some(State::New)).unwrap();
        assert_eq!(store.is_untidy(), kept);
        store.tidy();
    }
}
