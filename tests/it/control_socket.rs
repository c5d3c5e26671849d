//! The control socket: whatever a client does, the bridge and the other clients go on.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use std::time::Duration;

use anna_relay::control::room::{MAX_CLIENTS, Room};
use serde_json::{Value, json};

use crate::harness::{SOON, World, wait};
use crate::supervision::{fault, wait_restarts};

const STATUS: &[u8] = b"{\"v\":1,\"cmd\":\"status\"}\n";

fn connect(world: &World) -> UnixStream {
    let stream = UnixStream::connect(world.spool().join("anna-relay.sock")).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
}

/// One line there, one line back.
fn ask(world: &World, line: &[u8]) -> Value {
    let mut stream = connect(world);
    stream.write_all(line).unwrap();
    answer(&stream)
}

fn answer(stream: &UnixStream) -> Value {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

#[test]
fn one_line_there_and_one_back_as_often_as_wanted() {
    let mut world = World::new();
    world.start();
    let mut stream = connect(&world);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..3 {
        stream.write_all(STATUS).unwrap();
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&answer["v"], &answer["ok"]["running"]), (&json!(1), &json!(true)));
    }
    // In pieces, and two at once.
    for piece in [&b"{\"v\":1,"[..], b"\"cmd\":\"sta", b"tus\"}\n{\"v\":1,\"cmd\":\"status\"}\n"] {
        stream.write_all(piece).unwrap();
    }
    for _ in 0..2 {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with("{\"v\":1,\"ok\":"), "{line}");
    }
}

#[test]
fn junk_gets_an_error_that_says_what_a_request_is() {
    let mut world = World::new();
    world.start();
    for junk in [
        &b"\n"[..],
        b"hello\n",
        b"{}\n",
        b"[1,2]\n",
        b"{\"v\":1}\n",
        b"{\"v\":1,\"cmd\":\"frobnicate\"}\n",
        b"{\"v\":1,\"cmd\":\"cancel\"}\n",
        b"{\"v\":1,\"cmd\":\"cancel\",\"id\":7}\n",
        b"{\"v\":1,\"cmd\":\"cancel\",\"id\":\"../../lock\"}\n",
        b"{\"v\":1,\"cmd\":\"prune\",\"ids\":[\"../x\"]}\n",
        b"{\"v\":1,\"cmd\":\"wait\",\"id\":\"01939f3c-aaaa-7bbb-8ccc-1234567890ab\"}\n",
        b"{\"v\":1,\"cmd\":\"send\",\"text\":\"x\",\"files\":[\"/nowhere/at/all\"]}\n",
        b"{\"v\":1,\"cmd\":\"send\",\"text\":\"x\",\"files\":[\"/dev/zero\"]}\n",
        b"\x00\xff\xfe\n",
    ] {
        let answer = ask(&world, junk);
        assert!(answer["error"]["message"].is_string(), "{junk:?} {answer}");
    }
    let pipe = world.dir.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let answer = ask(&world, format!("{}\n", json!({"v": 1, "cmd": "send", "text": "x", "files": [pipe]})).as_bytes());
    assert!(answer["error"]["message"].is_string(), "{answer}");
    assert!(ask(&world, b"hello\n")["error"]["hint"].as_str().unwrap().contains("one line of JSON"));
    assert_eq!(world.status()["queue"]["new"], 0, "nothing of it was accepted");
}

#[test]
fn another_version_is_told_to_restart_the_older_of_the_two() {
    let mut world = World::new();
    world.start();
    for line in [&b"{\"v\":2,\"cmd\":\"status\"}\n"[..], b"{\"v\":0,\"cmd\":\"status\"}\n", b"{\"v\":9,\"new\":[]}\n"] {
        let answer = ask(&world, line);
        assert!(answer["error"]["hint"].as_str().unwrap().contains("restart the older of the two"), "{answer}");
    }
}

#[test]
fn huge_half_sent_and_idle_clients_hold_up_nobody() {
    let mut world = World::new();
    world.start();
    // Several MiB without an end; it stays open.
    let mut huge = connect(&world);
    huge.write_all(&vec![b'x'; 8 << 20]).unwrap();
    let mut half = connect(&world);
    half.write_all(b"{\"v\":1,\"cmd\":\"sta").unwrap();
    let idle: Vec<UnixStream> = (0..300).map(|_| connect(&world)).collect();
    assert_eq!(world.status()["running"], true);
    let id = world.ok(&["send", "water"]);
    assert_eq!(world.brain_gets(|all| all.len() == 1)[0].id, id.trim());
    // The end of the half-sent one never comes: it gets an error.
    half.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(answer(&half)["error"]["message"].as_str().unwrap().contains("ends in the middle"));
    // Nor does any of them hold up the end.
    assert!(world.stop().success());
    assert_eq!((&idle[0]).read(&mut [0]).unwrap(), 0);
}

#[test]
fn clients_that_do_not_read_or_go_away_hold_up_nobody() {
    let mut world = World::new();
    world.start();
    let mut deaf: Vec<UnixStream> = (0..20).map(|_| connect(&world)).collect();
    for stream in &mut deaf {
        // Far more answers than a socket holds. It may be cut for that.
        for _ in 0..2_000 {
            stream.set_nonblocking(true).unwrap();
            if stream.write_all(STATUS).is_err() {
                break;
            }
        }
    }
    for _ in 0..200 {
        let mut gone = connect(&world);
        gone.write_all(b"{\"v\":1,\"cmd\":\"send\",\"text\":\"x").unwrap();
    }
    assert_eq!(world.status()["running"], true);
    assert_eq!(world.status()["queue"]["new"], 0);
    drop(deaf);
}

#[test]
fn a_long_text_of_a_script_goes_through() {
    let mut world = World::new();
    world.start_online();
    let text = "ä\n\"".repeat(1 << 19);
    let mut child = world.command(&["send", "-"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let pushed = world.brain_gets(|all| all.len() == 1).remove(0);
    assert_eq!(pushed.file.unwrap().bytes.len(), text.trim().len());
}

#[test]
fn more_clients_than_there_is_room_for_keep_nobody_out() {
    let mut world = World::new();
    world.start();
    let idle: Vec<UnixStream> = (0..MAX_CLIENTS + 8).map(|_| connect(&world)).collect();
    assert_eq!(ask(&world, STATUS)["ok"]["running"], true);
    // Those that came first had to go; the last one is served.
    let mut byte = [0];
    assert_eq!((&idle[0]).read(&mut byte).unwrap(), 0);
    (&idle[MAX_CLIENTS]).write_all(STATUS).unwrap();
    assert_eq!(answer(&idle[MAX_CLIENTS])["ok"]["running"], true);
}

/// A client that waits for the result of that hand-off.
fn waiter(world: &World, id: &str) -> UnixStream {
    let mut stream = connect(world);
    stream.write_all(format!("{}\n", json!({"v": 1, "cmd": "wait", "id": id})).as_bytes()).unwrap();
    stream
}

#[test]
fn clients_that_wait_keep_nobody_else_out() {
    let mut world = World::new();
    world.brain().on_upload(|sayer, received| {
        if received.text.ends_with("now") {
            sayer.say("done", Some(&received.id));
        }
    });
    world.start_online();
    let id = world.ok(&["send", "later"]);
    let mut waiting: Vec<UnixStream> = (0..MAX_CLIENTS).map(|_| waiter(&world, id.trim())).collect();
    let refused = wait("one wait too many", || {
        let one = waiter(&world, id.trim());
        one.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut line = String::new();
        let came = BufReader::new(&one).read_line(&mut line).is_ok();
        waiting.push(one);
        came.then(|| serde_json::from_str::<Value>(&line).ok())?
    });
    let says = format!("{} others wait already", Room::here().waits);
    assert!(refused["error"]["message"].as_str().unwrap().ends_with(&says), "{refused}");
    assert!(refused["error"]["hint"].as_str().unwrap().contains("anna-relay show"), "{refused}");
    assert_eq!(world.status()["running"], true);
    world.ok(&["pause"]);
    world.ok(&["resume"]);
    // Whoever cannot be told looks for himself.
    let said = world.ok(&["send", "--wait", "--timeout", "60", "now"]);
    assert!(said.ends_with("done\n"), "{said}");
    // Those who go make room.
    drop(waiting);
    wait("a wait that is taken", || {
        let one = waiter(&world, id.trim());
        world.brain().say("done", Some(id.trim()));
        (answer(&one)["ok"]["id"] == id.trim()).then_some(())
    });
}

#[test]
fn clients_of_a_control_that_fell_are_answered_and_counted_by_the_next() {
    let mut world = World::new();
    world.start_online();
    let id = world.ok(&["send", "later"]).trim().to_owned();
    let waits = waiter(&world, &id);
    let mut early = connect(&world);
    early.write_all(STATUS).unwrap();
    assert_eq!(answer(&early)["ok"]["running"], true);
    fault(&world, "control", "panic");
    wait_restarts(&world, "control", 1);
    let late: Vec<UnixStream> = (0..MAX_CLIENTS).map(|_| connect(&world)).collect();
    assert_eq!(ask(&world, STATUS)["ok"]["running"], true);
    // It came first, and asks nothing.
    let closed = early.write_all(STATUS).is_err() || matches!((&early).read(&mut [0]), Ok(0) | Err(_));
    assert!(closed, "one client more than there is room for");
    world.brain().say("done", Some(&id));
    assert_eq!(answer(&waits)["ok"]["id"], id.as_str());
    drop(late);
}

#[cfg(target_os = "linux")]
#[test]
fn want_of_descriptors_keeps_nobody_out() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let mut world = World::new();
    world.start_online();
    let open = std::fs::read_dir(format!("/proc/{}/fd", world.pid())).unwrap().count() as u64;
    let few = Rlimit { current: Some(open + 8), maximum: Some(open + 8) };
    prlimit(Pid::from_raw(world.pid().cast_signed()), Resource::Nofile, few).unwrap();
    let idle: Vec<UnixStream> = (0..50).map(|_| connect(&world)).collect();
    assert_eq!(ask(&world, STATUS)["ok"]["running"], true);
    assert_eq!((&idle[0]).read(&mut [0]).unwrap(), 0, "the first that asks nothing had to go");
    assert_eq!(world.log().matches("letting a client in").count(), 0, "{}", world.log());
    drop(idle);
    world.ok(&["send", "water the plants"]);
    world.brain_gets(|all| all.len() == 1);
}
