//! It stays up: any one actor may fall or freeze, the others go on, and nothing is lost.

use anna_relay::control::client::Client;
use anna_relay::control::wire::Command;
use anna_relay::fakechat::server::Received;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;

use crate::harness::{World, wait};
use crate::stop::Systemd;

/// The brain answers all but these.
const LATER: &str = "later";

/// Has an actor fail.
#[track_caller]
pub fn fault(world: &World, actor: &str, how: &str) {
    let mut client = wait("the control socket", || Client::connect(&world.spool()).unwrap());
    client.ask(Command::Fault { actor: actor.to_owned(), how: how.to_owned() }).unwrap();
}

fn actor<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["actors"].as_array().unwrap().iter().find(|actor| actor["name"] == name).unwrap()
}

/// Waits until an actor was started again so often, and all is well.
#[track_caller]
pub fn wait_restarts(world: &World, name: &str, restarts: u64) -> Value {
    world.wait_status(&format!("{name} to be started again ({restarts})"), |status| {
        let actor = actor(status, name);
        actor["restarts"].as_u64() >= Some(restarts) && actor["state"] == "running"
    })
}

/// A world with a quick supervisor, in which the brain answers, that is online.
fn world() -> World {
    let world = World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "100").with("breaker_count", "1000");
    world.brain().on_upload(|sayer, received| {
        if received.text.contains(" from ") && !received.text.ends_with(LATER) {
            sayer.say(&format!("the answer to {}", received.id), Some(&received.id));
        }
    });
    world
}

/// Waits until the one hand-off that is not answered is surely with the brain; returns its id.
#[track_caller]
fn wait_pushed(world: &World) -> String {
    wait("the push to be confirmed", || {
        let unanswered = world.documents("brain").pop()?;
        (unanswered["pushes"][0]["outcome"] == "sent").then(|| unanswered["id"].as_str().unwrap().to_owned())
    })
}

/// Each hand-off reached the brain, and each answer the bot; any further time says so. `plainly`: also that the first
/// time was no further one, as no push can have been cut short.
#[track_caller]
fn told_once(world: &World, plainly: bool) {
    let (asked, told) = (world.brain().uploads(), world.bot().uploads());
    for done in world.documents("done") {
        let id = done["id"].as_str().unwrap();
        for (all, again) in [(&asked, ", attempt "), (&told, ", sent again: ")] {
            let said: Vec<&Received> = all.iter().filter(|one| one.text.contains(id)).collect();
            let first = said.iter().filter(|one| !one.text.contains(again)).count();
            let context = || format!("{id}: {said:#?}\n{}", world.stream());
            assert!(!said.is_empty() && first <= 1 && (first == 1 || !plainly), "{}", context());
            assert!(said.iter().skip(1).all(|one| one.text.contains(again)), "{}", context());
        }
    }
}

/// The whole story of one actor that fails.
#[track_caller]
fn survives(name: &str, how: &str) {
    let mut world = world();
    world.start_online();
    world.bot().say("RELAY: before", None);
    world.wait_queue("done", 1);
    world.bot().say(&format!("RELAY: answered {LATER}"), None);
    let unanswered = wait_pushed(&world);
    fault(&world, name, how);
    let mut said = 2;
    // What is said while nobody listens is lost, and for the hooks to bring.
    if name != "bot_side" {
        world.bot().say("RELAY: during", None);
        said += 1;
    }
    world.ok(&["send", "during, from a script"]);
    let status = wait_restarts(&world, name, 1);
    for other in ["brain_side", "bot_side", "queue", "guard", "orphan_reaper", "witness", "control"] {
        let expected = u64::from(other == name);
        assert_eq!(actor(&status, other)["restarts"], expected, "{status:#}");
    }
    let why = if how == "panic" { "it panicked" } else { "it did not answer" };
    assert!(world.wait_stream(&format!("({name}: {why})")).contains('⚠'));
    world.wait_online();
    world.bot().say("RELAY: after", None);
    world.brain().say("at last", Some(&unanswered));
    world.wait_queue("done", said + 2);
    // What it had or was given, frozen, is given again.
    let cut_short = name == "queue" || (name.ends_with("_side") && how == "hang");
    told_once(&world, !cut_short);
    assert_eq!(world.stop().code(), Some(0));
}

macro_rules! each_actor_survives {
    ($($name:ident: $actor:literal;)*) => {$(
        mod $name {
            #[test]
            fn panics_and_is_started_again() {
                super::survives($actor, "panic");
            }

            #[test]
            fn hangs_and_is_started_again() {
                super::survives($actor, "hang");
            }
        }
    )*};
}

each_actor_survives! {
    brain_side: "brain_side";
    bot_side: "bot_side";
    queue: "queue";
    guard: "guard";
    orphan_reaper: "orphan_reaper";
    witness: "witness";
    control: "control";
}

/// A push that had its 204 and is not confirmed when this actor falls is made again, and says so.
#[track_caller]
fn pushes_again(name: &str, to_brain: bool) {
    let mut world = World::new().with("confirm_ms", "60000");
    world.start_online();
    let id = world.ok(&["send", "water the plants"]).trim().to_owned();
    world.brain_gets(|all| all.len() == 1);
    if to_brain {
        fault(&world, name, "panic");
        let asked = world.brain_gets(|all| all.len() == 2);
        assert!(asked[1].text.starts_with(&format!("[relay {id} from a script, attempt 2: ")), "{asked:#?}");
        return;
    }
    world.brain().say("they are watered", Some(&id));
    world.bot_gets(|all| all.len() == 1);
    fault(&world, name, "panic");
    let told = world.bot_gets(|all| all.len() == 2);
    let head = format!("[relay result for {id}, sent again: if already told, say nothing] they are watered");
    assert!(told[1].text.starts_with(&head), "{told:#?}");
}

#[test]
fn a_push_to_the_brain_that_brain_side_had_under_way_is_made_again() {
    pushes_again("brain_side", true);
}

#[test]
fn a_push_to_the_bot_that_bot_side_had_under_way_is_made_again() {
    pushes_again("bot_side", false);
}

#[test]
fn a_push_to_the_brain_that_the_queue_had_under_way_is_made_again() {
    pushes_again("queue", true);
}

#[test]
fn a_push_to_the_bot_that_the_queue_had_under_way_is_made_again() {
    pushes_again("queue", false);
}

#[test]
fn a_burst_of_hand_offs_outlives_falls_of_those_it_goes_through() {
    let mut world = world();
    world.start_online();
    for (n, name) in ["guard", "queue", "control", "queue", "guard"].into_iter().enumerate() {
        for m in 0..8 {
            world.bot().say(&format!("RELAY: number {n}-{m}"), None);
            if m == 3 {
                fault(&world, name, "panic");
            }
        }
    }
    world.wait_queue("done", 40);
    told_once(&world, false);
}

#[test]
fn a_guard_that_was_started_again_stays_tripped() {
    let mut world = world().with("breaker_count", "2");
    world.start_online();
    for text in ["RELAY: one", "RELAY: two", "RELAY: three"] {
        world.bot().say(text, None);
    }
    world.wait_queue("failed", 1);
    fault(&world, "guard", "panic");
    world.bot().say("RELAY: four", None);
    wait_restarts(&world, "guard", 1);
    world.bot().say("RELAY: five", None);
    let status = world.wait_queue("failed", 3);
    assert_eq!((&status["breaker"]["tripped"], &status["breaker"]["refused"]), (&true.into(), &3.into()));
    world.wait_queue("done", 2);
    world.ok(&["reset-breaker"]);
    world.bot_gets(|all| all.iter().any(|one| one.text.contains("3 were refused")));
    world.bot().say("RELAY: six", None);
    world.wait_queue("done", 3);
    let told = world.bot().uploads();
    assert_eq!(told.iter().filter(|one| one.text.contains("the breaker tripped")).count(), 1, "{told:#?}");
}

#[test]
fn what_the_bot_has_to_hear_outlives_a_fall_of_the_queue() {
    let mut world = world().with("breaker_count", "2");
    world.start_online();
    world.bot().faults(|faults| faults.hang = true);
    for text in ["RELAY: one", "RELAY: two", "RELAY: three"] {
        world.bot().say(text, None);
    }
    world.wait_queue("failed", 1);
    fault(&world, "queue", "panic");
    wait_restarts(&world, "queue", 1);
    world.bot_leaves();
    world.bot_comes();
    world.bot_gets(|all| all.iter().any(|one| one.text.contains("the breaker tripped")));
    world.ok(&["reset-breaker"]);
    let told = world.bot_gets(|all| all.iter().any(|one| one.text.contains("the breaker was reset")));
    assert_eq!(told.iter().filter(|one| one.text.contains("the breaker tripped")).count(), 1, "{told:#?}");
}

#[test]
fn systemd_hears_that_all_is_well_only_while_it_is() {
    let (mut world, systemd) = Systemd::new(World::new().with_env("ANNA_RELAY_TEST_TICK_MS", "300"));
    world.start_online();
    systemd.wait(|line| line.starts_with("STATUS=brain online, bot online"));
    fault(&world, "guard", "hang");
    // It may have answered for the tick that comes next.
    systemd.wait_ticks(2);
    assert_eq!(actor(&world.status(), "guard")["restarts"], 1);
}

#[test]
fn too_many_falls_end_the_process_for_systemd() {
    let mut world = world();
    world.start_online();
    world.bot().say(&format!("RELAY: answered {LATER}"), None);
    let id = wait_pushed(&world);
    for n in 1..=5 {
        fault(&world, "guard", "panic");
        wait_restarts(&world, "guard", n);
    }
    fault(&world, "guard", "panic");
    assert_eq!(world.wait_exit().code(), Some(70));
    assert!(world.log().contains("guard, kept failing"), "{}", world.log());
    world.start_online();
    world.brain().say("at last", Some(&id));
    world.wait_queue("done", 1);
    told_once(&world, true);
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_the_end() {
    let mut world = World::new();
    world.start_online();
    let pid = Pid::from_raw(world.pid().cast_signed());
    let before = getrlimit(Resource::Fsize);
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(50), ..before }).unwrap();
    let refused = world.run(&["send", "water the plants"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    prlimit(pid, Resource::Fsize, before).unwrap();
    // It is tried again within a second, and not before.
    wait("the disk to take writes again", || world.run(&["send", "feed the cat"]).status.success().then_some(()));
    world.brain_gets(|all| all.iter().any(|one| one.text.ends_with("] feed the cat")));
}
