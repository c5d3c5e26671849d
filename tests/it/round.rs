//! The main job: a hand-off goes to the brain and its result comes back.

use crate::harness::World;

#[test]
fn a_hand_off_goes_to_the_brain_and_its_result_to_the_bot() {
    let mut world = World::new();
    world.brain_answers("they are watered");
    world.start_online();
    world.bot().say("RELAY: water\nthe plants \n", None);
    let asked = world.brain_gets(|all| !all.is_empty()).remove(0);
    assert_eq!(asked.text, format!("[relay {} from the bot] water\nthe plants", asked.id));
    let told = world.bot_gets(|all| !all.is_empty()).remove(0);
    assert_eq!(told.text, format!("[relay result for {}] they are watered\n[asked: water the plants]", asked.id));
    assert_ne!(told.id, asked.id, "each push to the bot has an id of its own");
    world.wait_queue("done", 1);
    let done = world.documents("done").remove(0);
    assert_eq!(done["id"], asked.id.as_str());
    assert_eq!(done["from"], "bot");
    assert_eq!(done["pushes"][0]["outcome"], "sent");
    assert_eq!(done["results"][0]["kind"], "result");
    assert_eq!(done["results"][0]["pushes"][0]["outcome"], "sent");
    assert!(done["results"][0]["told"].is_string());
}

#[test]
fn follow_ups_and_corrections_are_told_as_such() {
    let mut world = World::new();
    world.start_online();
    world.bot().say("RELAY: water the plants", None);
    let asked = world.brain_gets(|all| !all.is_empty()).remove(0);
    let first = world.brain().say("half of them", Some(&asked.id));
    world.bot_gets(|all| all.len() == 1);
    let part = &asked.id[..18];
    let second = world.brain().say("all of them", Some(part));
    world.bot_gets(|all| all.len() == 2);
    world.brain().edit(&second, "all but one");
    world.bot_gets(|all| all.len() == 3);
    // The same again changes nothing.
    world.brain().edit(&second, "all but one");
    world.brain().say("half of them", Some(&asked.id));
    world.brain().say_with_id(&first, "something else", Some(&asked.id));
    world.brain().say("the end", Some(&asked.id.to_uppercase()));
    let told = world.bot_gets(|all| all.len() == 4);
    let heads: Vec<&str> = told.iter().map(|one| one.text.split(" for ").next().unwrap()).collect();
    assert_eq!(heads, ["[relay result", "[relay follow-up", "[relay correction", "[relay follow-up"]);
    assert!(told[2].text.contains("] all but one\n[asked: water the plants]"), "{}", told[2].text);
    world.wait_queue("done", 1);
    assert_eq!(world.documents("done")[0]["results"].as_array().unwrap().len(), 4);
}

#[test]
fn a_script_sends_and_waits_for_the_result() {
    let mut world = World::new();
    world.brain_answers("42 %");
    world.start_online();
    let printed = world.ok(&["send", "how full is the disk?", "--wait", "--timeout", "20"]);
    let (id, rest) = printed.split_once('\n').unwrap();
    assert_eq!(rest, "42 %\n");
    let asked = world.brain().uploads().remove(0);
    assert_eq!(asked.text, format!("[relay {id} from a script] how full is the disk?"));
    let told = world.bot_gets(|all| !all.is_empty()).remove(0);
    assert_eq!(told.text, format!("[relay result for {id}] 42 %\n[asked: how full is the disk?]"));
}
