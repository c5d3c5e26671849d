//! `kill -9` at every moment of a hand-off's way: nothing is lost, and what is pushed again says so.

use anna_relay::config::Side;
use anna_relay::handoff::Id;

use crate::harness::World;

/// Far longer than it takes to be killed: nothing is confirmed before.
const NEVER_CONFIRMED: &str = "20000";

/// The bot hands this off. Returns the hand-off's id.
pub fn hand_off(world: &World, text: &str) -> String {
    let message = world.bot().say(&format!("RELAY: {text}"), None);
    Id::derive(Side::Bot, &message).to_string()
}

/// A hand-off as it is pushed for the `n`th time.
pub fn again(id: &str, n: usize, text: &str) -> String {
    format!(
        "[relay {id} from the bot, attempt {n}: an earlier try may have done part of this; check before acting, and \
         if it is done only answer] {text}"
    )
}

#[test]
fn killed_while_it_waits_for_the_brain() {
    let mut world = World::new();
    world.brain_leaves();
    world.start();
    world.wait_status("the bot to be online", |status| status["bot"]["state"] == "online");
    let id = hand_off(&world, "water");
    world.wait_queue("new", 1);
    world.kill();
    let listed = world.json(&["list"]);
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&id.as_str().into(), &"new".into()));
    world.brain_comes();
    world.start();
    assert_eq!(world.brain_gets(|all| all.len() == 1)[0].text, format!("[relay {id} from the bot] water"));
}

#[test]
fn killed_during_the_post_and_before_it_was_confirmed() {
    let mut world = World::new().with("max_attempts", "1").with("confirm_ms", NEVER_CONFIRMED);
    world.brain().faults(|faults| faults.hang = true);
    world.start_online();
    let id = hand_off(&world, "water");
    // Killed during the POST, twice: one that was cut short by the relay's own end counts for nothing.
    for pushes in 1..=2 {
        world.wait_status("the push", |_| {
            world.documents("brain").first().is_some_and(|h| h["pushes"].as_array().unwrap().len() == pushes)
        });
        world.kill();
        assert_eq!(world.documents("brain")[0]["pushes"][0]["outcome"], "unknown");
        world.start_online();
    }
    world.kill();
    world.brain().faults(|faults| faults.hang = false);
    world.start_online();
    let pushed = world.brain_gets(|all| !all.is_empty());
    assert!(pushed[0].text.contains(", attempt "), "{}", pushed[0].text);
    // Killed between the 204 and its confirmation.
    world.kill();
    let pushes = world.documents("brain")[0]["pushes"].as_array().unwrap().len();
    world.start();
    let last = again(&id, pushes + 1, "water");
    world.brain_gets(|all| all.iter().any(|one| one.text == last && one.id == id));
    world.brain().say("watered", Some(&id));
    assert!(world.bot_gets(|all| all.len() == 1)[0].text.starts_with("[relay result for"));
    assert_eq!(world.documents("failed").len(), 0);
}

#[test]
fn the_second_try_says_so_to_the_letter() {
    let mut world = World::new().with("confirm_ms", NEVER_CONFIRMED);
    world.start_online();
    let id = hand_off(&world, "water\nthe plants");
    world.brain_gets(|all| all.len() == 1);
    world.kill();
    world.start();
    assert_eq!(world.brain_gets(|all| all.len() == 2)[1].text, again(&id, 2, "water\nthe plants"));
}

#[test]
fn killed_with_a_result_that_the_bot_was_not_there_for() {
    let mut world = World::new();
    world.start_online();
    let id = hand_off(&world, "water");
    world.brain_gets(|all| all.len() == 1);
    world.bot_leaves();
    world.wait_status("the bot to be away", |status| status["bot"]["state"] != "online");
    world.brain().say("watered", Some(&id));
    world.wait_queue("out", 1);
    world.kill();
    assert_eq!(world.json(&["show", &id])["stage"], "answered");
    world.bot_comes();
    world.start();
    let told = world.bot_gets(|all| all.len() == 1);
    assert_eq!(told[0].text, format!("[relay result for {id}] watered\n[asked: water]"));
    world.wait_queue("done", 1);
    assert_eq!(world.brain().uploads().len(), 1, "what is answered is not pushed again");
}

#[test]
fn killed_while_the_bot_is_being_told() {
    let mut world = World::new().with("confirm_ms", NEVER_CONFIRMED);
    world.start_online();
    let id = hand_off(&world, "water");
    world.brain_gets(|all| all.len() == 1);
    let first = world.brain().say("watered", Some(&id));
    world.bot_gets(|all| all.len() == 1);
    // These wait for the word that the first one arrived.
    world.brain().say("and the lawn", Some(&id));
    world.brain().edit(&first, "not watered");
    world.wait_status("all to be on disk", |_| {
        world.documents("out").first().is_some_and(|h| h["results"].as_array().unwrap().len() == 3)
    });
    world.kill();
    world.set("confirm_ms", "50");
    world.start();
    let told = world.bot_gets(|all| all.len() == 4);
    let again = format!("[relay result for {id}, sent again: if already told, say nothing] watered\n[asked: water]");
    assert_eq!(told[1].text, again);
    assert_eq!(told[2].text, format!("[relay follow-up for {id}] and the lawn\n[asked: water]"));
    assert_eq!(told[3].text, format!("[relay correction for {id}] not watered\n[asked: water]"));
    let mut ids: Vec<_> = told.iter().map(|one| &one.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4, "each push to the bot has an id of its own");
}

#[test]
fn killed_again_and_again_under_way() {
    const COUNT: usize = 12;
    let mut world = World::new().with("breaker_count", "100").with("max_attempts", "2");
    world.start_online();
    let ids: Vec<String> = (0..COUNT).map(|n| hand_off(&world, &format!("task {n}"))).collect();
    world.wait_status("all to be accepted", |status| {
        let queue = &status["queue"];
        queue["new"].as_u64().unwrap() + queue["brain"].as_u64().unwrap() == COUNT as u64
    });
    for _ in 0..4 {
        let before = world.brain().uploads().len();
        world.kill();
        world.start();
        world.wait_status("the next push, or that there is none", |status| {
            world.brain().uploads().len() > before || status["queue"]["new"] == 0
        });
    }
    world.brain_gets(|all| ids.iter().all(|id| all.iter().any(|one| one.id == *id)));
    for (n, id) in ids.iter().enumerate() {
        world.brain().say(&format!("done {n}"), Some(id));
        if n % 3 == 2 {
            world.bot_gets(|all| all.iter().any(|one| one.text.contains(&format!("] done {n}\n"))));
            world.kill();
            world.start_online();
        }
    }
    world.wait_queue("done", COUNT);
    let pushed = world.brain().uploads();
    for (n, id) in ids.iter().enumerate() {
        let mine: Vec<_> = pushed.iter().filter(|one| one.id == *id).collect();
        assert!(mine.iter().skip(1).all(|one| one.text.contains(", attempt ")), "{mine:#?}");
        let told = world.bot().uploads();
        let told: Vec<_> = told.iter().filter(|one| one.text.contains(&format!("] done {n}\n"))).collect();
        assert!(!told.is_empty());
        assert!(told.iter().skip(1).all(|one| one.text.contains(", sent again: ")), "{told:#?}");
    }
    let first: Vec<&String> = ids.iter().collect();
    let mut order: Vec<&String> = Vec::new();
    for one in &pushed {
        if !order.contains(&&one.id) {
            order.push(&one.id);
        }
    }
    assert_eq!(order, first, "in the order they were accepted");
}
