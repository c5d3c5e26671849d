//! Others at the ports, and changes at the worst moments.

use anna_relay::config::Side::{Bot, Brain};
use serde_json::{Value, json};

use crate::harness::wait;
use crate::house::House;
use crate::rogue::{GREETING, KILLS};
use crate::standin::KIND;

crate::cases![
    strangers_receive_nothing_and_are_believed_nothing,
    a_stranger_that_takes_the_port_during_settling,
    the_holder_is_replaced_between_websocket_and_push,
    what_came_before_the_second_verdict_counts_if_that_is_good,
    what_came_before_the_second_verdict_is_dropped_if_that_is_bad,
    who_cannot_be_told_is_not_dealt_with,
];

fn strangers_receive_nothing_and_are_believed_nothing() {
    let mut house = House::new();
    let (mut brain, mut bot) = house.all_online();
    let id = house.ok(&["send", "secret"]).trim().to_owned();
    brain.gets(1);
    house.wait_stream("is with the brain");
    // Both sessions end, and before they come back somebody else is there.
    for tree in [&mut brain, &mut bot] {
        tree.kill_session();
    }
    house
        .wait_status("both ports to be free", |all| all["brain"]["holder"].is_null() && all["bot"]["holder"].is_null());
    let mut brain = house.tree(Brain, "stranger", &[]);
    let mut bot = house.tree(Bot, "stranger", &[]);
    for (side, tree) in [(Brain, &mut brain), (Bot, &mut bot)] {
        let pid = tree.pid("stranger");
        let seen = house.wait_side(side, "foreign");
        assert_eq!(seen["holder"], json!({"pid": pid, "command": "stranger"}));
        assert_eq!(seen["why"], format!("it is not fakechat: end pid {pid}, or set relay.{side}_port to another port"));
    }
    brain.say("forged", Some(&id));
    bot.say("RELAY: forged", None);
    house.ok(&["send", "another secret"]);
    // Several tries to connect later nothing has come of it, and it was said once.
    house.wait_status("some tries", |all| all["uptime_s"].as_u64().is_some_and(|s| s >= 3));
    for (side, tree) in [(Brain, &mut brain), (Bot, &mut bot)] {
        assert_eq!((tree.uploads().len(), tree.sockets()), (0, 0));
        let pid = tree.pid("stranger");
        assert_eq!(
            house.warned(&format!("a stranger holds the {side}'s port (pid {pid}), stranger: it is not fakechat")),
            1
        );
        let output = house.run(&["clear-port", side.name()]);
        assert_eq!(output.status.code(), Some(5), "{output:?}");
    }
    assert_eq!(house.warned("stranger"), 2);
    assert!(!house.stream().contains("forged"));
    let queue = &house.status()["queue"];
    assert_eq!((&queue["new"], &queue["brain"], &queue["out"]), (&json!(1), &json!(1), &json!(0)), "{queue}");
}

fn a_stranger_that_takes_the_port_during_settling() {
    let mut house = House::new();
    house.set("settle_s", "1.5");
    let (_bot, mut brain) = (house.session(Bot), house.session(Brain));
    let id = house.ok(&["send", "secret"]).trim().to_owned();
    house.start();
    house.wait_side(Brain, "settling");
    brain.exit_cleanly();
    brain.kill("server");
    let mut stranger = house.tree(Brain, "stranger", &[]);
    stranger.pid("stranger");
    house.wait_side(Brain, "foreign");
    stranger.say("forged", Some(&id));
    house.wait_side(Bot, "online");
    house.wait_status("the settling time to be over", |all| all["uptime_s"].as_u64().is_some_and(|s| s >= 3));
    assert_eq!((stranger.uploads().len(), stranger.sockets()), (0, 0));
    assert!(!house.stream().contains("forged"));
    drop(stranger);
    let mut next = house.session(Brain);
    assert!(next.gets(1)[0].ends_with("secret"));
}

fn the_holder_is_replaced_between_websocket_and_push() {
    let mut house = House::without_sweeps();
    let mut brain = house.tree(Brain, "claude direct", &[(KIND, "rogue")]);
    brain.pid("server");
    let _bot = house.session(Bot);
    house.start_online();
    brain.unlisten();
    let mut stranger = house.tree(Brain, "stranger", &[]);
    stranger.pid("stranger");
    assert_eq!(brain.sockets(), 1, "the websocket is open");
    house.ok(&["send", "secret"]);
    house.wait_side(Brain, "foreign");
    assert_eq!((stranger.uploads().len(), brain.uploads().len()), (0, 0));
    assert_eq!(house.warned("a stranger holds the brain's port"), 1);
    // The same with another session's fakechat.
    drop(stranger);
    house.wait_status("the port to be free", |all| all["brain"]["holder"].is_null());
    let mut next = house.session(Brain);
    assert!(next.gets(1)[0].ends_with("secret"));
    assert_eq!(brain.uploads().len(), 0);
}

/// A frame as fakechat sends it.
fn frame(text: &str) -> String {
    let frame = json!({"type": "msg", "id": "m1796034282754-1", "from": "assistant", "text": text, "ts": 1});
    // Long enough for the length that the rogue writes.
    format!("{frame}{}", " ".repeat(200))
}

fn what_came_before_the_second_verdict_counts_if_that_is_good() {
    let mut house = House::new();
    let greeting = frame("RELAY: early");
    let _bot = house.tree(Bot, "claude direct", &[(KIND, "rogue"), (GREETING, &greeting)]);
    let mut brain = house.session(Brain);
    house.start();
    assert!(brain.gets(1)[0].ends_with("from the bot] early"));
}

fn what_came_before_the_second_verdict_is_dropped_if_that_is_bad() {
    let mut house = House::new();
    let greeting = frame("RELAY: early");
    let mut bot = house.tree(Bot, "claude direct", &[(KIND, "rogue"), (GREETING, &greeting), (KILLS, "1")]);
    let pid = bot.pid("server");
    let mut brain = house.session(Brain);
    house.start();
    house.wait_side(Brain, "online");
    house.wait_stream(&format!("an orphaned fakechat holds the bot's port (pid {pid})"));
    house.wait_stream("the orphan on the bot's port was ended");
    let mut next = house.session(Bot);
    house.wait_online();
    next.say("RELAY: later", None);
    assert!(brain.gets(1)[0].ends_with("from the bot] later"));
    assert!(!house.stream().contains("early"));
}

fn who_cannot_be_told_is_not_dealt_with() {
    let mut house = House::new();
    // Two fakechats that have nothing to do with each other share the port.
    let mut both = [0, 1].map(|_| house.tree(Brain, "claude direct", &[(KIND, "shared")]));
    let pids = both.each_mut().map(|one| one.pid("server"));
    let _bot = house.session(Bot);
    house.ok(&["send", "secret"]);
    house.start();
    house.wait_side(Bot, "online");
    let why = |all: &Value| all["brain"]["why"].as_str().unwrap_or_default().to_owned();
    let seen = house.wait_status("a hint", |all| why(all).contains("relay.holder"));
    assert!(why(&seen).starts_with("whose fakechat it is cannot be told (processes "), "{seen}");
    assert!(why(&seen).ends_with("set relay.holder = \"any\""), "{seen}");
    assert_ne!(seen["brain"]["state"], "online");
    assert_eq!(seen["queue"]["new"], 1);
    assert_eq!(house.warnings(), [""; 0]);
    // One goes away, and nothing is unclear any more.
    let [first, _second] = both;
    drop(first);
    wait("it to be clear", || {
        let holder = house.status()["brain"]["holder"]["pid"].clone();
        (holder == pids[1]).then_some(())
    });
}
