//! Settling: nothing is pushed to a side before its websocket has been up for `settle_s`.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{SOON, World, wait};

#[test]
fn nothing_is_pushed_while_a_side_settles_but_frames_are_taken() {
    let mut world = World::new().with("settle_s", "3600");
    world.start();
    world.wait_status("both to settle", |status| {
        status["brain"]["state"] == "settling" && status["bot"]["state"] == "settling"
    });
    world.bot().say("RELAY: water the plants", None);
    world.wait_queue("new", 1);
    let id = world.ok(&["send", "feed the cat"]).trim().to_owned();
    world.brain().say("fed already", Some(&id));
    world.wait_queue("out", 1);
    assert_eq!((world.brain().uploads().len(), world.bot().uploads().len()), (0, 0));
    world.set("settle_s", "0.1");
    world.signal(Signal::HUP);
    let asked = world.brain_gets(|all| !all.is_empty());
    assert!(asked[0].text.ends_with("] water the plants"), "{asked:#?}");
    let told = world.bot_gets(|all| !all.is_empty());
    assert!(told[0].text.starts_with(&format!("[relay result for {id}] fed already")), "{told:#?}");
}

#[test]
fn flapping_never_adds_up() {
    let settle = Duration::from_secs(2);
    let mut world = World::new().with("settle_s", "2");
    world.start();
    world.ok(&["send", "water the plants"]);
    let mut up = Duration::ZERO;
    while up <= settle + Duration::from_millis(200) {
        world.brain().wait_sockets(1, SOON);
        let since = Instant::now();
        wait("the websocket to have been up for a part of the time", || {
            (since.elapsed() > settle * 2 / 5).then_some(())
        });
        up += since.elapsed();
        world.brain().drop_sockets();
        world.brain().wait_sockets(0, SOON);
        assert_eq!(world.brain().uploads().len(), 0, "after {up:?} in pieces");
    }
    let asked = world.brain_gets(|all| !all.is_empty());
    assert_eq!(asked.len(), 1);
}
