//! What time brings.

use super::*;

fn minutes(n: u64) -> u64 {
    n * 60
}

#[test]
fn the_bot_is_told_once_an_outage_and_not_for_a_gap() {
    let mut rig = Rig::with_both();
    rig.side(Side::Brain, None);
    rig.accept("a");
    assert_eq!(rig.wake_in(), Some(10));
    rig.pass(9);
    assert_eq!(rig.flying(Side::Bot), 0);
    rig.pass(1);
    let said = rig.deliver(Side::Bot);
    assert_eq!(said, ["[relay] the brain is away: 1 hand-off waits and goes on when it is back"]);
    rig.accept("b");
    rig.pass(minutes(5));
    assert_eq!(rig.flying(Side::Bot), 0, "once an outage");
    rig.side(Side::Brain, Some(None));
    rig.deliver(Side::Brain);
    rig.side(Side::Brain, None);
    rig.accept("c");
    rig.pass(9);
    rig.side(Side::Brain, Some(None));
    rig.deliver(Side::Brain);
    rig.pass(60);
    assert_eq!(rig.flying(Side::Bot), 0, "a gap is not worth a word");
    rig.side(Side::Brain, None);
    rig.pass(minutes(5));
    rig.accept("d");
    assert_eq!(rig.deliver(Side::Bot).len(), 1, "the next outage is, as soon as something waits");
}

#[test]
fn word_of_an_outage_is_void_once_it_is_over() {
    let mut rig = Rig::new();
    rig.accept("a");
    rig.pass(11);
    rig.side(Side::Brain, Some(None));
    rig.side(Side::Bot, Some(None));
    assert_eq!(rig.flying(Side::Bot), 0);
}

#[test]
fn while_paused_hand_offs_wait_and_afterwards_all_go_in_order() {
    let mut rig = Rig::with_both();
    rig.pause(true);
    let ids = [rig.accept("a"), rig.accept("b")];
    assert_eq!((rig.flying(Side::Brain), rig.wake_in()), (0, Some(10)));
    rig.pass(10);
    let said = rig.deliver(Side::Bot);
    assert_eq!(said, ["[relay] the brain is wrapping up: 2 hand-offs wait and go on when it is back"]);
    rig.pause(false);
    let said = rig.deliver(Side::Brain);
    for (text, id) in said.iter().zip(ids) {
        assert!(text.starts_with(&format!("[relay {id} from the bot] ")), "{text}");
    }
}

#[test]
fn a_pause_of_what_waits_already_is_told_in_time() {
    let mut rig = Rig::with_both();
    rig.accept("a");
    rig.land(Side::Brain, failed());
    rig.pause(true);
    assert_eq!(rig.wake_in(), Some(10));
}

#[test]
fn a_pause_of_more_than_twelve_hours_is_recalled_at_the_next_hand_off() {
    let mut rig = Rig::with_both();
    rig.pause(true);
    rig.pass(minutes(12 * 60) - 60);
    rig.accept("a");
    rig.deliver(Side::Bot);
    rig.pass(minutes(2));
    assert_eq!(rig.flying(Side::Bot), 0);
    rig.accept("b");
    let said = rig.deliver(Side::Bot);
    assert!(said[0].starts_with("[relay] the brain has been paused for 12 hours, so this waits too"), "{said:?}");
    rig.accept("c");
    assert_eq!(rig.flying(Side::Bot), 0, "not at each one");
    rig.pass(minutes(12 * 60));
    rig.accept("d");
    assert_eq!(rig.deliver(Side::Bot).len(), 1);
}

#[test]
fn a_wait_becomes_an_alarm_once_at_its_time() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    assert_eq!(rig.wake_in(), Some(minutes(30)));
    rig.pass(minutes(30) - 1);
    assert_eq!((rig.warnings.len(), rig.queue.alarms()), (0, 0));
    rig.pass(1);
    assert_eq!(rig.warnings, ["no result after 30 min: pushed and not seen; `anna-relay retry` pushes it again"]);
    assert_eq!((rig.queue.alarms(), rig.wake_in()), (1, None));
    rig.pass(minutes(600));
    assert_eq!(rig.warnings.len(), 1);
    let h = rig.h(id).clone();
    let mut next = Rig::new();
    next.queue.restore(h, State::Brain, Duration::from_secs(99_999), next.now);
    next.pass(minutes(60));
    assert_eq!((next.warnings.len(), next.queue.alarms()), (0, 1), "nor after a restart");
    rig.retry(id);
    rig.deliver(Side::Brain);
    assert_eq!((rig.queue.alarms(), rig.wake_in()), (0, Some(minutes(30))), "a retry is a new wait");
    rig.reply(id, "done");
    rig.deliver(Side::Bot);
    assert_eq!(rig.wake_in(), None);
}

#[test]
fn paused_time_is_no_waiting_whatever_happens_in_it() {
    let mut rig = Rig::with_both();
    rig.sent();
    rig.pass(minutes(10));
    rig.pause(true);
    rig.set(rig.now.mono + Duration::from_secs(8 * 3600));
    let other = rig.accept("b");
    rig.deliver(Side::Bot);
    rig.set(rig.now.mono + Duration::from_secs(8 * 3600));
    rig.reply(other, "odd");
    rig.deliver(Side::Bot);
    assert_eq!(rig.warnings, [""; 0]);
    rig.pause(false);
    assert_eq!(rig.wake_in(), Some(minutes(20)));
    rig.pass(minutes(20));
    assert_eq!(rig.warnings.len(), 1);
}

#[test]
fn what_was_waited_before_a_restart_counts() {
    let mut rig = Rig::new();
    let h = HandOff::new(Id::now(), Origin::Bot, "a".into(), rig.now.wall);
    rig.queue.restore(h, State::New, Duration::from_secs(minutes(29)), rig.now);
    rig.event(Event::Tick);
    rig.pass(61);
    assert_eq!(rig.warnings, ["no result after 30 min: not seen: it was not pushed, for the brain is away"]);
}

#[test]
fn with_nothing_to_do_there_is_no_time_to_wake() {
    let rig = Rig::with_both();
    assert_eq!(rig.wake_in(), None);
    let mut away = Rig::new();
    let id = away.accept("a");
    away.cancel(id);
    assert_eq!(away.wake_in(), None);
}

#[test]
fn the_soonest_of_several_take_backs_sets_the_time() {
    let mut rig = Rig::with_brain();
    let (a, b) = (rig.sent(), rig.sent());
    rig.cancel(a);
    rig.accepted(Side::Brain);
    rig.cancel(b);
    let (first, second) = (rig.flights[0].1, rig.flights[1].1);
    rig.event(Event::Pushed { token: second, pushed: failed() });
    rig.set(rig.now.mono + Duration::from_millis(500));
    rig.event(Event::Pushed { token: first, pushed: failed() });
    assert_eq!(rig.queue.wake_at(rig.now), Some(rig.now.mono + Duration::from_millis(500)));
}
