//! Torn and hostile files in the spool: put aside whole, and the rest goes on.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::harness::{World, files_below};

const ID: &str = "01939f3c-aaaa-7bbb-8ccc-1234567890ab";

/// A hand-off's document as it is when it was accepted.
fn document(id: &str) -> Value {
    json!({"v": 1, "rev": 1, "id": id, "from": "script", "text": "hostile", "created": "2026-08-01T10:00:00Z",
        "source": null, "files": [], "pushes": [], "results": [], "alarmed": null, "failed": null})
}

/// A world whose spool exists, with one good hand-off in it.
fn world() -> (World, String) {
    let world = World::new();
    let id = world.ok(&["send", "good"]).trim().to_owned();
    (world, id)
}

fn put(world: &World, place: &str, document: &Value) {
    fs::write(world.spool().join(place), document.to_string()).unwrap();
}

/// Starts the bridge: the good one goes to the brain, and so much is put aside, each with a word.
#[track_caller]
fn is_put_aside(world: &mut World, good: &str, count: usize) {
    world.start();
    world.wait_queue("corrupt", count);
    assert_eq!(world.brain_gets(|all| !all.is_empty())[0].id, good);
    assert_eq!(world.brain().uploads().len(), 1);
    world.wait_stream("put aside");
    let warned = world.warnings().iter().filter(|line| line.contains("put aside")).count();
    assert_eq!(warned, count, "{}", world.stream());
    assert!(world.stop().success());
    // It stays put aside: the next start finds nothing new.
    world.start();
    world.wait_queue("corrupt", count);
    assert_eq!(world.warnings().iter().filter(|line| line.contains("put aside")).count(), count);
}

#[test]
fn torn_and_foreign_files_are_put_aside_as_they_are() {
    let (mut world, good) = world();
    let whole = document(ID).to_string();
    let name = |n: usize| format!("new/01939f3c-aaaa-7bbb-8ccc-{n:012}.json");
    let with = |n: usize, key: &str, value: Value| {
        let mut document = document(&format!("01939f3c-aaaa-7bbb-8ccc-{n:012}"));
        document[key] = value;
        document.to_string()
    };
    let bad = [
        String::new(),
        whole[..whole.len() / 2].to_owned(),
        "\0".repeat(4096),
        "[".repeat(1 << 20),
        whole.clone(), // another's
        with(5, "v", json!(2)),
        with(6, "from", json!("moon")),
        with(7, "created", json!("yesterday")),
        with(8, "pushes", json!([{"at": "2026-08-01T10:00:00Z", "attempt": -1, "session": null, "outcome": "sent"}])),
        with(9, "rev", json!(u64::MAX)),
        with(10, "files", json!([{"name": "x", "path": "../../lock", "bytes": 1}])),
        with(11, "files", json!([{"name": "x", "path": format!("files/{}/../../lock", ID), "bytes": 1}])),
        with(12, "files", json!([{"name": "x", "path": "/etc/passwd", "bytes": 1}])),
        with(13, "files", json!([{"name": "x", "path": format!("files/{}/x", ID), "bytes": 1}])),
        with(14, "rev", json!(u64::MAX - 1)),
    ];
    for (n, content) in bad.iter().enumerate() {
        fs::write(world.spool().join(name(n)), content).unwrap();
    }
    is_put_aside(&mut world, &good, bad.len());
    for (n, content) in bad.iter().enumerate() {
        let aside = world.spool().join(name(n).replace("new/", "corrupt/"));
        assert_eq!(&fs::read_to_string(aside).unwrap(), content);
    }
}

#[test]
fn nothing_but_a_regular_file_of_the_right_name_is_a_hand_off() {
    let (mut world, good) = world();
    let secret = world.dir.path().join("secret.json");
    fs::write(&secret, document(ID).to_string()).unwrap();
    let spool = world.spool();
    symlink(&secret, spool.join(format!("new/{ID}.json"))).unwrap();
    symlink("nowhere", spool.join("brain/01939f3c-aaaa-7bbb-8ccc-000000000001.json")).unwrap();
    fs::create_dir(spool.join("new/01939f3c-aaaa-7bbb-8ccc-000000000002.json")).unwrap();
    fs::create_dir(spool.join("out/folder")).unwrap();
    fs::write(spool.join("out/folder/x"), "x").unwrap();
    fs::write(spool.join("new/notes.txt"), "x").unwrap();
    fs::write(spool.join("new/.hidden"), "x").unwrap();
    fs::write(spool.join("new/a\u{1b}[2J\nb"), "x").unwrap();
    fs::write(spool.join("new").join(OsStr::from_bytes(b"not-\xff-utf8.json")), "x").unwrap();
    fs::write(spool.join("tmp").join(OsStr::from_bytes(b"not-\xff-utf8")), "x").unwrap();
    let pipe = spool.join("new/01939f3c-aaaa-7bbb-8ccc-000000000003.json");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    put(&world, &format!("new/{}.json", ID.to_uppercase()), &document(ID));
    is_put_aside(&mut world, &good, 10);
    assert_eq!(fs::read_to_string(&secret).unwrap(), document(ID).to_string());
    assert!(fs::symlink_metadata(spool.join(format!("corrupt/{ID}.json"))).unwrap().is_symlink(), "kept as found");
    assert_eq!(files_below(&spool.join("tmp")), [""; 0], "what is not finished is swept");
    assert!(!world.stream().contains('\u{1b}'));
}

#[test]
fn a_file_larger_than_any_hand_off_is_not_read() {
    let (mut world, good) = world();
    let huge = fs::File::create(world.spool().join(format!("new/{ID}.json"))).unwrap();
    huge.set_len(3 << 30).unwrap(); // Takes no room on the disk.
    is_put_aside(&mut world, &good, 1);
}

#[test]
fn a_name_that_is_taken_in_corrupt_is_not_overwritten() {
    let (mut world, good) = world();
    let name = format!("corrupt/{ID}.json");
    fs::write(world.spool().join(&name), "the first").unwrap();
    fs::write(world.spool().join(format!("new/{ID}.json")), "the second").unwrap();
    world.start();
    world.wait_queue("corrupt", 2);
    assert_eq!(world.brain_gets(|all| !all.is_empty())[0].id, good);
    assert_eq!(fs::read_to_string(world.spool().join(name)).unwrap(), "the first");
}

#[test]
fn an_attachment_that_is_a_link_or_gone_is_not_sent() {
    let (mut world, good) = world();
    world.brain_gets(|all| all.is_empty());
    let secret = world.dir.path().join("secret");
    fs::write(&secret, "the secret").unwrap();
    for (n, make) in [true, false].into_iter().enumerate() {
        let id = format!("01939f3c-aaaa-7bbb-8ccc-{n:012}");
        let mut document = document(&id);
        document["files"] = json!([{"name": "x", "path": format!("files/{id}/x"), "bytes": 10}]);
        let folder = world.spool().join(format!("files/{id}"));
        fs::create_dir(&folder).unwrap();
        if make {
            symlink(&secret, folder.join("x")).unwrap();
        }
        put(&world, &format!("new/{id}.json"), &document);
    }
    world.start();
    let pushed = world.brain_gets(|all| all.len() == 3);
    let (own, others): (Vec<_>, Vec<_>) = pushed.iter().partition(|one| one.id == good);
    assert_eq!((own.len(), others.len()), (1, 2));
    for one in others {
        assert!(one.file.is_none() && one.text.ends_with("\n[file x, 10 bytes: it could not be had]"), "{one:?}");
    }
}

#[test]
fn queries_and_commands_live_with_a_torn_file_too() {
    let (world, good) = world();
    fs::write(world.spool().join(format!("done/{ID}.json")), "{").unwrap();
    let output = world.run(&["list", "--all", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert!(String::from_utf8_lossy(&output.stderr).contains(ID), "{output:?}");
    let shown = world.run(&["show", ID]);
    assert_eq!(shown.status.code(), Some(1), "{shown:?}");
    assert_eq!(world.status()["queue"]["done"], 1);
    world.ok(&["cancel", &good]);
}

/// Whatever stands in the way, it is said what is to be done about it.
#[test]
fn errors_have_a_hint_on_a_line_of_its_own() {
    let (world, _) = world();
    let says = |world: &World, args: &[&str]| {
        let output = world.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?} {said}");
        assert!(said.starts_with("anna-relay: ") || said.contains("\nanna-relay: "), "{args:?} {said}");
        assert!(said.contains("\nhint: "), "{args:?} {said}");
    };
    let spool = world.spool();
    fs::write(spool.join(format!("done/{ID}.json")), "{").unwrap();
    says(&world, &["show", ID]);
    says(&world, &["send", ""]);
    says(&world, &["send", "x", "--file", "/nowhere/at/all"]);
    says(&world, &["send", "x", "--file", "/dev/zero"]);
    says(&world, &["man", "/dev/null/man"]);
    fs::create_dir(spool.join("paused")).unwrap();
    says(&world, &["resume"]);
    fs::create_dir(spool.join("anna-relay.sock")).unwrap();
    says(&world, &["bridge"]);
    fs::remove_file(spool.join("lock")).unwrap();
    fs::create_dir(spool.join("lock")).unwrap();
    says(&world, &["send", "x"]);
    says(&world, &["bridge"]);
    fs::remove_dir_all(spool.join("new")).unwrap();
    symlink("/etc", spool.join("new")).unwrap();
    says(&world, &["send", "x"]);
    says(&world, &["bridge"]);
    fs::remove_dir_all(&spool).unwrap();
    fs::write(&spool, "x").unwrap();
    for args in [&["send", "x"][..], &["list"], &["status"], &["show", "abcd"], &["pause"], &["bridge"]] {
        says(&world, args);
    }
}

#[test]
fn a_name_with_no_room_for_a_number_is_put_aside_under_another() {
    let (mut world, id) = world();
    let long = "x".repeat(254);
    fs::write(world.spool().join("new").join(&long), "one").unwrap();
    fs::write(world.spool().join("brain").join(&long), "two").unwrap();
    world.start_online();
    world.wait_queue("corrupt", 2);
    assert!(world.brain_gets(|all| !all.is_empty())[0].id == id);
}
