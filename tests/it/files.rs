//! Files, both ways: all of them, each once, or a line that says what became of one.

use std::path::{Path, PathBuf};

use anna_relay::fakechat::server::Received;

use crate::claude::{Session, message, nothing_is_left, quick, reply};
use crate::harness::{World, files_below, wait};

const MIB: usize = 1 << 20;

fn file(world: &World, name: &str, bytes: &[u8]) -> PathBuf {
    let path = world.dir.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The name and content of what came along.
type Along = Option<(String, Vec<u8>)>;

/// What came of a hand-off, with the names and contents of the files.
fn got(all: &[Received], id: &str) -> Vec<(String, Along)> {
    let own = all.iter().filter(|one| one.text.contains(id));
    own.map(|one| (one.text.clone(), one.file.as_ref().map(|file| (file.name.clone(), file.bytes.to_vec())))).collect()
}

fn some(name: &str, bytes: &[u8]) -> Along {
    Some((name.to_owned(), bytes.to_vec()))
}

/// A frame with the first of three files, and the hook with all of them; in this order.
#[track_caller]
fn three(hook_first: bool) {
    let mut world = quick(World::new());
    world.start_online();
    // So it is known that there are hooks.
    Session::new(&world, "bot", "s1").begins();
    Session::new(&world, "brain", "s2").begins();
    let files = [file(&world, "a.txt", b"A"), file(&world, "b.txt", b"BB"), file(&world, "c.txt", b"CCC")];
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let said = |side: &str, text: &str, to: Option<&str>| {
        let double = if side == "bot" { world.bot() } else { world.brain() };
        // As fakechat and its hook: the same id.
        if hook_first {
            reply(&world, side, &message(0, 7), text, to, &files);
        } else {
            let id = double.sayer().say_file(Some(text), to, "a.txt", &b"A"[..]);
            reply(&world, side, &id, text, to, &files);
        }
    };
    said("bot", "RELAY: look at these", None);
    let asked = world.brain_gets(|all| all.len() == 3);
    let id = asked[0].id.clone();
    let head = format!("[relay {id} from the bot]");
    let expected = [
        (format!("{head} look at these\n[file a.txt, 1 bytes]"), some("a.txt", b"A")),
        (format!("{head} [file b.txt, 2 bytes]"), some("b.txt", b"BB")),
        (format!("{head} [file c.txt, 3 bytes]"), some("c.txt", b"CCC")),
    ];
    assert_eq!(got(&asked, &id), expected);
    said("brain", "and at these", Some(&id));
    let told = world.bot_gets(|all| all.len() == 3);
    let head = format!("[relay result for {id}]");
    let expected = [
        (format!("{head} and at these\n[file a.txt, 1 bytes]\n[asked: look at these]"), some("a.txt", b"A")),
        (format!("{head} [file b.txt, 2 bytes]"), some("b.txt", b"BB")),
        (format!("{head} [file c.txt, 3 bytes]"), some("c.txt", b"CCC")),
    ];
    assert_eq!(got(&told, &id), expected);
    world.wait_queue("done", 1);
    nothing_is_left(&world);
    assert_eq!(files_below(&world.spool().join("files")).len(), 6);
    assert_eq!((world.brain().uploads().len(), world.bot().uploads().len()), (3, 3));
}

#[test]
fn all_three_files_go_both_ways() {
    three(false);
}

#[test]
fn all_three_files_go_both_ways_by_the_hook_alone() {
    three(true);
}

#[test]
fn without_hooks_it_is_the_first_only() {
    let mut world = quick(World::new());
    world.start_online();
    world.bot().sayer().say_file(Some("RELAY: look"), None, "a.txt", &b"A"[..]);
    let asked = world.brain_gets(|all| all.len() == 1);
    assert_eq!(got(&asked, &asked[0].id)[0].1, some("a.txt", b"A"));
    nothing_is_left(&world);
}

#[test]
fn a_stored_file_that_vanished_is_said_to_have_and_the_rest_goes_on() {
    let mut world = quick(World::new());
    world.brain_leaves();
    world.start();
    let (a, b) = (file(&world, "a.txt", b"A"), file(&world, "b.txt", b"BB"));
    let id = world.ok(&["send", "look", "--file", a.to_str().unwrap(), "--file", b.to_str().unwrap()]);
    let id = id.trim();
    let stored = world.spool().join("files").join(id);
    let lost = |name: &str| std::fs::remove_file(stored.join(name)).unwrap();
    lost("a.txt");
    world.brain_comes();
    let asked = world.brain_gets(|all| all.len() == 2);
    let head = format!("[relay {id} from a script]");
    let expected = [
        (format!("{head} look\n[file a.txt, 1 bytes: it could not be had]"), None),
        (format!("{head} [file b.txt, 2 bytes]"), some("b.txt", b"BB")),
    ];
    assert_eq!(got(&asked, id), expected);
    world.wait_stream("a file cannot be sent, for it is gone");
    world.bot_leaves();
    world.wait_status("the bot to be away", |status| status["bot"]["state"] != "online");
    world.brain().sayer().say_file(Some("this"), Some(id), "r.txt", &b"R"[..]);
    world.wait_queue("out", 1);
    lost("r.txt");
    world.bot_comes();
    let told = world.bot_gets(|all| all.len() == 1);
    let expected = format!("[relay result for {id}] this\n[file r.txt, 1 bytes: it could not be had]\n[asked: look]");
    assert_eq!(got(&told, id), [(expected, None)]);
    world.wait_queue("done", 1);
    assert_eq!(world.documents("done")[0]["results"][0]["pushes"].as_array().unwrap().len(), 1);
}

#[test]
fn empty_too_large_and_oddly_named_files() {
    let mut world = quick(World::new());
    world.start_online();
    Session::new(&world, "bot", "s1").begins();
    let large = file(&world, "large.bin", b"");
    std::fs::File::options().write(true).open(&large).unwrap().set_len(50 * MIB as u64 + 1).unwrap();
    let odd = file(&world, "a \"b\"\n]\\c.txt", b"odd");
    let all = [file(&world, "empty.txt", b""), large, odd, world.dir.path().join("none.txt")];
    let files: Vec<&Path> = all.iter().map(PathBuf::as_path).collect();
    reply(&world, "bot", &message(0, 1), "RELAY: look", None, &files);
    let asked = world.brain_gets(|all| all.len() == 1);
    let lines: Vec<&str> = asked[0].text.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "[file empty.txt, 0 bytes: empty, so it does not come along]",
            "[file large.bin, 0 bytes: it could not be had]",
            "[file c.txt, 3 bytes]",
            "[file none.txt, 0 bytes: it could not be had]",
        ]
    );
    assert_eq!(got(&asked, &asked[0].id)[0].1, some("c.txt", b"odd"));
    // By the websocket.
    let sayer = world.bot().sayer();
    sayer.say_file(Some("RELAY: empty"), None, "../e.txt", &b""[..]);
    sayer.say_file(Some("RELAY: large"), None, "l.bin", vec![0; 50 * MIB + 1]);
    sayer.say_file(Some("RELAY: fine"), None, "a/b\n\"x\".txt", &b"x"[..]);
    let asked = world.brain_gets(|all| all.len() == 4);
    let last: Vec<&str> = asked[1..].iter().map(|one| one.text.lines().last().unwrap()).collect();
    assert_eq!(
        last,
        [
            "[file e.txt, 0 bytes: empty, so it does not come along]",
            "[file l.bin, 0 bytes: it could not be had]",
            "[file b__x_.txt, 1 bytes]",
        ]
    );
    nothing_is_left(&world);
}

#[test]
fn files_of_what_comes_to_nothing_do_not_stay() {
    let mut world = quick(World::new()).with("breaker_count", "1");
    world.start_online();
    Session::new(&world, "bot", "s1").begins();
    Session::new(&world, "brain", "s2").begins();
    let a = file(&world, "a.txt", b"A");
    let (bot, brain) = (world.bot().sayer(), world.brain().sayer());
    let id = world.ok(&["send", "one"]).trim().to_owned();
    let gone = world.ok(&["send", "two"]).trim().to_owned();
    world.brain_gets(|all| all.len() == 2);
    world.ok(&["cancel", &gone]);
    let unknown = "01939f3c-aaaa-7bbb-8ccc-000000000001";
    for to in [Some(unknown), Some(gone.as_str()), None] {
        let said = brain.say_file(Some("nothing"), to, "a.txt", &b"A"[..]);
        reply(&world, "brain", &said, "nothing", to, &[&a]);
    }
    let said = bot.say_file(Some("RELAY: refused"), Some("m1-1"), "a.txt", &b"A"[..]);
    reply(&world, "bot", &said, "RELAY: refused", Some("m1-1"), &[&a]);
    for _ in 0..2 {
        let said = brain.say_file(Some("done"), Some(&id), "a.txt", &b"A"[..]);
        reply(&world, "brain", &said, "done", Some(&id), &[&a]);
    }
    world.bot_gets(|all| all.iter().filter(|one| one.text.contains(&id)).count() == 2);
    for line in ["names no known hand-off", "is for the cancelled hand-off", "to nobody", "is a reply to something"] {
        world.wait_stream(line);
    }
    nothing_is_left(&world);
    assert_eq!(files_below(&world.spool().join("files")), [format!("{id}/2-a.txt"), format!("{id}/a.txt")]);
}

#[test]
fn one_of_which_only_the_first_part_arrived_goes_again_also_if_that_was_seen() {
    let mut world = quick(World::new());
    world.start_online();
    let transcript = Session::new(&world, "brain", "s1").begins().transcript;
    let (a, b) = (file(&world, "a.txt", b"A"), file(&world, "b.txt", b"BB"));
    world.brain().faults(|faults| faults.answer_after = std::time::Duration::from_secs(2));
    let id = world.ok(&["send", "look", "--file", a.to_str().unwrap(), "--file", b.to_str().unwrap()]);
    let id = id.trim().to_owned();
    world.brain_gets(|all| all.len() == 1);
    Session { transcript, ..Session::new(&world, "brain", "s1") }.has(&id);
    let outcome = || world.documents("brain").pop().map(|one| one["pushes"][0]["outcome"].clone());
    wait("the first part to be seen", || (outcome()? == "seen").then_some(()));
    assert_eq!(world.brain().uploads().len(), 1);
    world.brain_leaves();
    world.brain_comes();
    let asked = world.brain_gets(|all| all.len() == 2);
    assert!(asked[0].text.starts_with(&format!("[relay {id} from a script, attempt 2: ")), "{asked:#?}");
    assert_eq!(got(&asked, &id)[1].1, some("b.txt", b"BB"));
}

/// The most memory that the bridge ever had, in bytes.
fn peak(world: &World) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
fn a_large_file_goes_each_way_in_little_memory() {
    let mut world = quick(World::new()).with("confirm_ms", "500");
    world.start_online();
    world.bot().sayer().say_file(Some("RELAY: keep this"), None, "l.bin", vec![7; 50 * MIB]);
    let asked = world.brain_gets(|all| all.len() == 1);
    assert_eq!(asked[0].file.as_ref().unwrap().bytes.len(), 50 * MIB);
    let id = asked[0].id.clone();
    world.brain().sayer().say_file(Some("and this"), Some(&id), "m.bin", vec![8; 50 * MIB]);
    let told = world.bot_gets(|all| all.len() == 1);
    assert_eq!(told[0].file.as_ref().unwrap().bytes.len(), 50 * MIB);
    let path = file(&world, "n.bin", &vec![9; 50 * MIB]);
    world.ok(&["send", "a third", "--file", path.to_str().unwrap()]);
    wait("the third", || (world.brain().uploads().len() == 2).then_some(()));
    println!("at most {} MiB", peak(&world) / MIB);
    assert!(peak(&world) < 3 * 50 * MIB, "{} MiB", peak(&world) / MIB);
}
