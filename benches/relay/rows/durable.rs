//! That what is fast is durable all the same: the system calls of some rounds.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anna_relay::control::wire;

use crate::Run;
use crate::table::Goal;
use crate::world::{PROGRAM, World, wait};

/// The calls that say whether it is.
const CALLS: &str = "trace=fsync,fdatasync,linkat,mkdir,mkdirat,rename,renameat,renameat2,write,writev,sendto,sendmsg";
/// Of a whole round: two durable creations, of two each.
const FLOOR: f64 = 4.0;

/// Counts the fsyncs of a round, and stops if one is missing.
pub fn durable(run: &mut Run) {
    let rounds = run.pick(20, 3);
    let mut world = World::new();
    let (trace, mut strace) = (world.dir.path().join("trace"), Command::new("strace"));
    strace.args(["-f", "-y", "-s", "16", "-e", CALLS, "-o"]).arg(&trace).args([PROGRAM, "bridge"]);
    world.at_home(&mut strace);
    let mut trial = Command::new("strace");
    world.at_home(trial.args(["-o", "/dev/null", "true"]));
    if !trial.status().is_ok_and(|status| status.success()) {
        eprintln!("  there is no strace, or it may not trace: the calls are not looked at");
        return;
    }
    world.start_as(strace);
    world.brain.on_upload(|sayer, asked| {
        sayer.say("done", Some(&asked.id));
    });
    let before = lines(&trace);
    for round in 1..=rounds {
        world.bot.say("RELAY: water the plants", None);
        wait(&world.bot, round);
        // Until the last of it is written, without asking, for that is a call too.
        sleep(Duration::from_secs(1));
    }
    let after = lines(&trace);
    // With a file, and of a script.
    world.bot.say_file(Some("RELAY: look"), None, "a.txt", &b"abc"[..]);
    wait(&world.bot, rounds + 1);
    sleep(Duration::from_secs(1));
    world.ask(wire::Command::Send { text: "water".into(), files: Vec::new(), id: None });
    wait(&world.bot, rounds + 2);
    world.stop();
    let text = std::fs::read_to_string(&trace).unwrap();
    let (renames, words) = check(text.lines().skip(before), &world.spool());
    let least = 2 * (rounds + 2);
    assert!(
        renames >= least && words > least,
        "is the trace understood? {renames} files in their places, {words} words"
    );
    let of_rounds = text.lines().skip(before).take(after - before);
    let syncs = of_rounds.filter(|line| line.contains(" fsync(") || line.contains(" fdatasync(")).count();
    let each = syncs as f64 / rounds as f64;
    run.table.row("fsyncs of a whole round, the confirmations' too", each, Some(FLOOR), "", Goal::None);
}

/// Goes through the calls. A file that comes out of `tmp/` has to have been synced; each folder in which something
/// came to lie, and still lies, has to be before the relay says the next thing: a request to a side, or an answer at its socket.
/// Returns how many files came out of `tmp/`, and how many things it said.
fn check<'a>(lines: impl Iterator<Item = &'a str>, spool: &Path) -> (usize, usize) {
    let (spool, mut begun) = (format!("{}/", spool.display()), HashMap::new());
    let (mut synced, mut owed) = (HashSet::new(), HashSet::new());
    let (mut renames, mut words) = (0, 0);
    for line in lines {
        let (thread, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim_start();
        // What a call does counts from its end, what it says from its beginning.
        let call = match (rest.strip_prefix("<... "), rest.split_once(" <unfinished")) {
            (Some(end), _) => match (begun.remove(thread), end.split_once(')')) {
                (Some(start), Some((_, result))) => format!("{start}){result}"),
                _ => continue,
            },
            (_, Some((start, _))) => {
                begun.insert(thread, start.to_owned());
                words += said(start, &owed);
                continue;
            }
            _ => {
                words += said(rest, &owed);
                rest.to_owned()
            }
        };
        let Some((name, about)) = call.split_once('(').filter(|_| call.ends_with("= 0")) else { continue };
        if name == "fsync" || name == "fdatasync" {
            let (descriptor, path) = about.split_once('<').unwrap();
            let path = path.split('>').next().unwrap_or_default().to_owned();
            owed.retain(|there: &String| there.rsplit_once('/').is_none_or(|(folder, _)| folder != path));
            // One without a name: it gets that by its descriptor.
            let nameless = path.starts_with(&format!("{spool}tmp/#"));
            synced.insert(if nameless { format!("/proc/self/fd/{descriptor}") } else { path });
            continue;
        }
        let paths: Vec<&str> = about.split('"').skip(1).step_by(2).collect();
        if name == "linkat" {
            if synced.remove(paths[0]) {
                synced.insert(paths[1].to_owned());
            }
            continue;
        }
        // What lies in the spool's folder itself is no hand-off's.
        let place = paths.last().copied().unwrap_or_default();
        if place.rsplit_once('/').is_none_or(|(folder, _)| !folder.starts_with(&spool)) {
            continue;
        }
        if name.starts_with("rename") {
            let was_new = paths[0].starts_with(&format!("{spool}tmp/"));
            assert!(!was_new || synced.contains(paths[0]), "{place} was put into its place without an fsync: {line}");
            renames += usize::from(was_new);
            // What left a folder is known for old there, if a power cut brings it back.
            owed.remove(paths[0]);
            owed.insert(place.to_owned());
        } else if name.starts_with("mkdir") {
            owed.insert(place.to_owned());
        }
    }
    assert!(owed.is_empty(), "the folders of these were never synced: {owed:?}");
    (renames, words)
}

/// If the call says something, nothing may be owed. Returns how much it says.
fn said(call: &str, owed: &HashSet<String>) -> usize {
    let says = call.contains("\"POST /upload") || (call.starts_with("send") && call.contains("\"{\\\"v\\\":1,"));
    assert!(!says || owed.is_empty(), "{owed:?} lies in a folder that was not synced before {call}");
    usize::from(says)
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}
