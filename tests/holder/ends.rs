//! Sessions live and end.

use std::cell::RefCell;

use anna_relay::config::Side::{Bot, Brain};
use serde_json::json;

use crate::harness::wait;
use crate::house::{House, id_of};
use crate::standin::STUBBORN;
use crate::tree::{Tree, runs};

crate::cases![
    live_sessions_are_dealt_with_and_shown,
    a_session_killed_with_one_waiting_and_one_in_it,
    a_session_that_exits_cleanly_with_one_in_it,
    what_a_session_said_before_it_ended_is_read,
    a_push_finds_that_the_session_has_ended,
    an_open_websocket_of_an_orphan_is_let_go_of,
    the_relay_restarts_between_two_sessions,
    the_bots_session_is_replaced,
    a_hand_off_that_no_session_survives_is_given_up,
];

fn live_sessions_are_dealt_with_and_shown() {
    let mut house = House::new();
    let (mut brain, mut bot) = house.all_online();
    bot.say("RELAY: water the plants", None);
    let asked = brain.gets(1).remove(0);
    brain.say("done", Some(&id_of(&asked)));
    assert!(bot.gets(1)[0].contains("] done\n"));
    house.wait_queue("done", 1);
    let push = &house.documents("done")[0]["pushes"][0];
    assert_eq!(push["session"]["pid"], brain.pid("session"));
    house.register(brain.pid("session"), "waiting", Some("permission prompt"), 1);
    let status = house.wait_status("the session to wait", |all| all["brain"]["session"]["status"] == "waiting");
    assert_eq!(status["brain"]["holder"], json!({"pid": brain.pid("server"), "command": "bun server.ts"}));
    let session = json!({"pid": brain.pid("session"), "status": "waiting", "waiting_for": "permission prompt"});
    assert_eq!((&status["brain"]["session"], &status["brain"]["why"]), (&session, &json!(null)));
    assert_eq!(status["bot"]["session"], json!({"pid": bot.pid("session"), "status": null, "waiting_for": null}));
    assert_eq!(house.warnings(), [""; 0]);
}

/// Sends a hand-off from a script, and says its id.
fn send(house: &House, text: &str) -> String {
    house.ok(&["send", text]).trim().to_owned()
}

/// The words for a further attempt at it.
fn again(id: &str, attempt: u32, text: &str) -> String {
    format!(
        "[relay {id} from a script, attempt {attempt}: an earlier try may have done part of this; check before acting, \
         and if it is done only answer] {text}"
    )
}

fn a_session_killed_with_one_waiting_and_one_in_it() {
    ended_with_one_waiting_and_one_in_it(Tree::kill_session, true);
}

fn a_session_that_exits_cleanly_with_one_in_it() {
    ended_with_one_waiting_and_one_in_it(Tree::exit_cleanly, false);
}

fn ended_with_one_waiting_and_one_in_it(ends: fn(&mut Tree), wrapped: bool) {
    let mut house = House::new();
    let (mut brain, _bot) = house.all_online();
    let inside = send(&house, "one");
    brain.gets(1);
    house.wait_stream("is with the brain");
    house.ok(&["pause"]);
    let waiting = send(&house, "two");
    let (server, wrapper) = (brain.pid("server"), brain.pid("wrapper"));
    ends(&mut brain);
    assert!(runs(server));
    house.wait_stream("the orphan on the brain's port was ended");
    assert!(!runs(server) && !runs(wrapper), "the orphan is gone");
    house.wait_side(Brain, "offline");
    house.ok(&["resume"]);
    let mut next = house.session(Brain);
    assert_eq!(next.gets(2), [again(&inside, 2, "one"), format!("[relay {waiting} from a script] two")]);
    next.say("1", Some(&inside));
    next.say("2", Some(&waiting));
    house.wait_queue("done", 2);
    assert_eq!(house.warned("an orphaned fakechat holds the brain's port"), 1);
    assert_eq!(house.warnings().len(), 1, "{wrapped} {:?}", house.warnings());
}

fn what_a_session_said_before_it_ended_is_read() {
    for mut house in [House::without_sweeps(), House::new()] {
        let (mut brain, _bot) = house.all_online();
        let id = send(&house, "one");
        brain.gets(1);
        house.wait_stream("is with the brain");
        brain.say(&format!("last words{}", "!".repeat(1 << 20)), Some(&id));
        brain.kill_session();
        house.wait_stream("the orphan on the brain's port was ended");
        assert_eq!(house.json(&["show", &id])["results"].as_array().unwrap().len(), 1, "{}", house.stream());
    }
}

fn a_push_finds_that_the_session_has_ended() {
    let mut house = House::blind();
    let mut brain = house.tree(Brain, "claude wrapped", &[(STUBBORN, "1")]);
    brain.pid("server");
    let _bot = house.session(Bot);
    house.start_online();
    brain.kill_session();
    assert_eq!(brain.sockets(), 1, "the orphan's websocket is open");
    let id = send(&house, "one");
    house.wait_side(Brain, "orphan");
    assert_eq!(brain.uploads().len(), 0);
    house.wait_stream("took SIGKILL");
    let mut next = house.session(Brain);
    assert_eq!(next.gets(1), [format!("[relay {id} from a script] one")], "nothing was posted before");
    next.say("1", Some(&id));
    house.wait_queue("done", 1);
}

fn an_open_websocket_of_an_orphan_is_let_go_of() {
    // By its session's end alone, where the kernel tells of that.
    let mut house = if cfg!(target_os = "linux") { House::without_sweeps() } else { House::new() };
    let mut brain = house.tree(Brain, "claude wrapped", &[(STUBBORN, "1")]);
    brain.pid("server");
    let mut bot = house.session(Bot);
    house.start_online();
    brain.kill_session();
    let seen = house.wait_side(Brain, "orphan");
    assert_eq!(seen["holder"]["pid"], brain.pid("server"));
    assert_eq!(seen["session"], json!(null));
    let why =
        format!("the session of the fakechat on the port (pid {}) has ended; the bridge ends it", brain.pid("server"));
    assert_eq!(seen["why"], why);
    wait("the side to let go of it", || (brain.sockets() == 0).then_some(()));
    assert!(house.stream().contains("the brain is away: the session of the fakechat"));
    // It stays an orphan until its port is free: two seconds, for it does not follow SIGTERM.
    let states = RefCell::new(Vec::new());
    let free = house.wait_status("the port to be free", |all| {
        states.borrow_mut().push(all["brain"]["state"].as_str().unwrap().to_owned());
        all["brain"]["holder"].is_null()
    });
    let mut states = states.into_inner();
    states.dedup();
    assert!(states == ["orphan", "offline"] || states == ["orphan", "connecting"], "{states:?}");
    assert!(free["brain"]["why"].as_str().unwrap().contains("nobody listens on the port"), "{free}");
    assert_eq!(house.warned("an orphaned fakechat holds"), 1);
    // The other side noticed nothing.
    bot.say("RELAY: x", None);
    house.wait_queue("new", 1);
}

fn the_relay_restarts_between_two_sessions() {
    let mut house = House::new();
    let (mut brain, _bot) = house.all_online();
    let id = send(&house, "one");
    brain.gets(1);
    house.wait_stream("is with the brain");
    // Restarted beside the same session, it pushes nothing again.
    assert!(house.stop().success());
    house.start_online();
    let second = send(&house, "two");
    assert_eq!(brain.gets(2).len(), 2);
    assert!(brain.uploads()[1]["text"].as_str().unwrap().ends_with("two"));
    brain.say("2", Some(&second));
    house.wait_queue("done", 1);
    house.kill();
    brain.kill_session();
    assert!(house.run(&["clear-port", "brain"]).status.success());
    let mut next = house.session(Brain);
    house.start_online();
    assert_eq!(next.gets(1), [again(&id, 2, "one")]);
}

fn the_bots_session_is_replaced() {
    let mut house = House::new();
    let (mut brain, mut bot) = house.all_online();
    let id = send(&house, "one");
    brain.gets(1);
    bot.kill_session();
    house.wait_stream("the orphan on the bot's port was ended");
    brain.say("1", Some(&id));
    house.wait_queue("out", 1);
    let mut next = house.session(Bot);
    assert_eq!(next.gets(1), [format!("[relay result for {id}] 1\n[asked: one]")]);
    house.wait_queue("done", 1);
}

fn a_hand_off_that_no_session_survives_is_given_up() {
    let mut house = House::new();
    house.set("max_attempts", "2");
    let (mut brain, mut bot) = house.all_online();
    let id = send(&house, "bad");
    for attempt in 1..=2 {
        assert_eq!(brain.gets(1).len(), 1);
        house.wait_stream(&format!("is with the brain (attempt {attempt})"));
        brain.kill_session();
        house.wait_side(Brain, "offline");
        brain = house.session(Brain);
    }
    let told = bot.gets(1).remove(0);
    let expected = format!(
        "[relay] hand-off {id} was given up after 2 attempts: the sessions that had it ended without an answer"
    );
    assert!(told.starts_with(&expected), "{told}");
    house.wait_queue("failed", 1);
    assert_eq!(brain.uploads().len(), 0);
}
