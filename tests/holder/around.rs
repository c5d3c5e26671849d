//! What is around it: sessions without a channel, sessions that wait for a person, `clear-port` beside the bridge, and
//! what a look costs.

use std::time::Instant;

use anna_relay::config::Side::{Bot, Brain};
use anna_relay::port::{Judge, Verdict, without_channel};
use serde_json::Value;

use crate::harness::wait;
use crate::house::House;
use crate::standin::STUBBORN;
use crate::tree::runs;

crate::cases![
    a_session_that_came_up_beside_an_orphan_has_no_channel,
    a_brain_that_waits_for_a_permission,
    what_a_session_does_is_seen_without_a_look,
    an_alarm_says_that_the_session_waits_for_a_person,
    clear_port_beside_the_bridge,
    what_a_look_costs,
];

fn a_session_that_came_up_beside_an_orphan_has_no_channel() {
    let mut house = House::new();
    let mut brain = house.tree(Brain, "claude wrapped", &[(STUBBORN, "1")]);
    brain.pid("server");
    let _bot = house.session(Bot);
    house.start_online();
    brain.kill_session();
    let mut next = house.tree(Brain, "claude wrapped", &[]);
    next.pid("refused");
    let pid = next.pid("session");
    house.wait_stream("the orphan on the brain's port was ended");
    house.wait_stream(&format!(
        "a session that was started for the brain's port has no channel (pid {pid}, claude wrapped)"
    ));
    let why = format!(
        "the session there is (pid {pid}) has no channel: its fakechat found the port taken, or ended; restart it"
    );
    house.wait_status("the status to say so", |all| all["brain"]["why"] == why.as_str());
    let shown = house.ok(&["status"]);
    assert!(shown.contains("restart it") && !shown.contains("start the brain's session"), "{shown}");
    drop(next);
    house.wait_status("another reason", |all| all["brain"]["why"] == "nobody listens on the port");
    let _next = house.session(Brain);
    house.wait_online();
    assert_eq!(house.warned("has no channel"), 1);
}

fn a_brain_that_waits_for_a_permission() {
    let mut house = House::new();
    let (mut brain, mut bot) = house.all_online();
    let session = brain.pid("session");
    // With nothing in it nobody has to know.
    house.register(session, "waiting", Some("permission prompt"), 1);
    house.wait_status("it to wait", |all| all["brain"]["session"]["status"] == "waiting");
    house.register(session, "idle", None, 2);
    house.wait_status("it to be idle", |all| all["brain"]["session"]["status"] == "idle");
    house.ok(&["send", "one"]);
    brain.gets(1);
    house.register(session, "waiting", Some("permission prompt"), 3);
    let said =
        "[relay] the brain waits for a person (permission prompt): its hand-off goes on once that is answered there";
    assert_eq!(bot.gets(1), [said]);
    // The next wait is told of anew, and this one is not told of again.
    house.register(session, "waiting", Some("question"), 4);
    assert_eq!(bot.gets(2)[1], said.replace("permission prompt", "question"));
    house.register(session, "busy", None, 5);
    house.wait_status("it to be busy", |all| all["brain"]["session"]["status"] == "busy");
    house.register(session, "waiting", None, 6);
    assert_eq!(bot.gets(3)[2], said.replace(" (permission prompt)", ""));
    assert_eq!(bot.uploads().len(), 3);
    // What cannot be understood says nothing.
    std::fs::write(house.dir.path().join(format!(".claude/sessions/{session}.json")), "[]").unwrap();
    house.wait_status("nothing to be known", |all| {
        all["brain"]["session"]["status"].is_null() && all["brain"]["session"]["pid"] == session
    });
}

fn what_a_session_does_is_seen_without_a_look() {
    // Where the kernel tells of it.
    let mut house = if cfg!(target_os = "linux") { House::without_sweeps() } else { House::new() };
    let (mut brain, _bot) = (house.session(Brain), house.session(Bot));
    house.register(brain.pid("session"), "idle", None, 1);
    house.start_online();
    for (n, does) in ["busy", "waiting", "idle"].into_iter().cycle().enumerate().take(6) {
        house.register(brain.pid("session"), does, None, 2 + n as u64);
        house.wait_status(does, |all| all["brain"]["session"]["status"] == does);
    }
}

fn an_alarm_says_that_the_session_waits_for_a_person() {
    let mut house = House::new();
    house.set("alarm_min", "0.05");
    let (mut brain, _bot) = house.all_online();
    house.register(brain.pid("session"), "waiting", Some("permission prompt"), 1);
    house.wait_status("it to wait", |all| all["brain"]["session"]["status"] == "waiting");
    house.ok(&["send", "one"]);
    brain.gets(1);
    house.wait_stream("no result after 3 s: the session waits for a person (permission prompt)");
}

fn clear_port_beside_the_bridge() {
    let mut house = House::new();
    let (mut brain, _bot) = house.all_online();
    let output = house.run(&["clear-port", "brain", "--json"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    for _ in 0..3 {
        let server = brain.pid("server");
        brain.kill_session();
        // A launcher does not wait for the bridge.
        let dry = house.run(&["clear-port", "brain", "--dry-run"]);
        assert_eq!(dry.status.code(), Some(0), "{dry:?}");
        let output = house.run(&["clear-port", "brain", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(said["free"] == true && !runs(server), "{said}");
        brain = house.session(Brain);
        house.wait_online();
    }
    assert_eq!(house.warned("could not be ended"), 0);
}

fn what_a_look_costs() {
    let house = House::new();
    let mut brain = house.session(Brain);
    let mut judge = Judge::of_this_user();
    let begun = Instant::now();
    assert!(matches!(judge.judge(house.brain_port), Verdict::Live { .. }));
    let cold = begun.elapsed();
    let mut looks: Vec<_> = (0..1_000)
        .map(|_| {
            let begun = Instant::now();
            assert!(judge.still(house.brain_port).is_some());
            begun.elapsed()
        })
        .collect();
    looks.sort();
    let steady = looks[looks.len() / 2];
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let count =
        processes.filter(|one| one.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok())).count();
    println!("a look costs {cold:?} among {count} processes, and {steady:?} while nothing changes");
    assert!(steady.as_micros() < 1_000);
    let begun = Instant::now();
    assert_eq!(without_channel(house.brain_port).unwrap().len(), 1);
    println!("looking at all of them for sessions without a channel costs {:?}", begun.elapsed());
    brain.kill_session();
    wait("the change to be seen", || judge.still(house.brain_port).is_none().then_some(()));
}
