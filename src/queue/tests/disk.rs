//! A disk that does not take what it is given.

use super::*;

#[test]
fn a_hand_off_that_cannot_be_kept_is_refused_with_the_reason_and_the_next_one_is_taken() {
    let mut rig = Rig::with_both();
    rig.broken = true;
    let id = rig.accept("water the plants");
    assert!(!rig.queue.holds(id) && rig.flying(Side::Brain) == 0);
    assert_eq!(rig.done, [Receipt::Frame(Side::Bot, 1)], "the bot is told instead");
    rig.pass(0);
    let said = rig.said(Side::Bot).unwrap();
    assert!(said.starts_with("[relay] a hand-off was refused, for it cannot be kept: full; say it again later"));
    assert!(said.ends_with("[asked: water the plants]"), "{said}");
    rig.broken = false;
    let id = rig.accept("water the plants");
    rig.pass(0);
    assert!(rig.said(Side::Brain).unwrap().contains(&id.to_string()), "the trouble does not outlive the write");
    let said = |lines: &[String], start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!(said(&rig.warnings, "the spool cannot be written: full"), 1);
    assert_eq!(said(&rig.notes, "the disk takes writes again"), 1);
}

#[test]
fn one_refused_by_the_breaker_that_cannot_be_kept_is_only_in_the_stream() {
    let mut rig = Rig::with_both();
    rig.broken = true;
    let receipt = Receipt::Frame(Side::Bot, 1);
    let (id, from, text) = (Id::now(), Origin::Bot, "again".to_owned());
    let arrival = Arrival { id, from, text, message: None, files: vec![], receipt };
    rig.event(Event::Refuse { arrival: arrival.clone(), keep: true });
    rig.pass(0);
    assert_eq!((rig.flying(Side::Bot), rig.done.len()), (0, 1));
    assert!(rig.warnings.iter().any(|line| line.contains("breaker") && line.contains("again")), "{:?}", rig.warnings);
    rig.broken = false;
    rig.event(Event::Refuse { arrival, keep: true });
    assert_eq!((rig.done.len(), rig.queue.holds(id)), (2, false), "kept in failed/, with nothing left to do");
}

#[test]
fn a_push_that_cannot_be_written_down_is_not_made() {
    let mut rig = Rig::new();
    let id = rig.accept("a");
    rig.broken = true;
    rig.side(Side::Brain, Some(None));
    assert_eq!((rig.flights.len(), rig.h(id).pushes.len(), rig.queue.is_idle()), (0, 0, true));
    assert_eq!(rig.wake_in(), Some(1));
    rig.pass(60);
    assert_eq!((rig.flights.len(), rig.warnings.len()), (0, 1), "said once: {:?}", rig.warnings);
    rig.broken = false;
    rig.pass(1);
    assert!(rig.said(Side::Brain).unwrap().starts_with(&format!("[relay {id} from the bot] ")));
    assert_eq!(rig.notes.iter().filter(|line| line.starts_with("the disk takes writes again")).count(), 1);
}

#[test]
fn what_has_happened_is_kept_and_written_later_and_only_then_dealt_with() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.done.clear();
    rig.broken = true;
    rig.says(id, "m1-1", "done", false);
    assert!(rig.notes.iter().any(|line| line == "result from the brain: done"), "{:?}", rig.notes);
    rig.says(id, "m1-1", "done", false);
    assert_eq!((rig.done.len(), rig.flights.len(), rig.queue.is_idle()), (0, 0, false));
    rig.broken = false;
    rig.pass(1);
    assert_eq!(rig.done.len(), 2, "both frames");
    assert!(rig.said(Side::Bot).unwrap().starts_with(&format!("[relay result for {id}] done")));
}

#[test]
fn how_a_push_ended_is_written_later_too() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.reply(id, "done");
    rig.broken = true;
    rig.land(Side::Bot, Pushed::Confirmed);
    assert!(rig.queue.holds(id) && !rig.queue.is_idle());
    assert_eq!(rig.flying(Side::Bot), 0, "not told again");
    rig.broken = false;
    rig.pass(1);
    assert!(!rig.queue.holds(id) && rig.queue.is_idle());
}

#[test]
fn one_write_that_succeeds_does_not_leave_another_unwritten() {
    let mut rig = Rig::with_brain();
    let id = rig.sent();
    rig.broken = true;
    rig.reply(id, "done");
    rig.broken = false;
    let other = rig.accept("b");
    assert_eq!((rig.queue.is_idle(), rig.wake_in()), (false, Some(1)));
    rig.pass(1);
    assert!(rig.said(Side::Brain).unwrap().contains(&other.to_string()));
    rig.deliver(Side::Brain);
    assert!(rig.queue.is_idle(), "{id} is written by itself");
}

#[test]
fn a_wish_that_cannot_be_written_is_undone_and_says_so() {
    let mut rig = Rig::new();
    rig.side(Side::Brain, Some(Some(ONE)));
    let id = rig.sent();
    rig.side(Side::Brain, None);
    rig.side(Side::Brain, Some(Some(ONE)));
    rig.pass(60);
    rig.broken = true;
    rig.cancel(id);
    assert!(rig.h(id).failed.is_none() && rig.flights.is_empty());
    rig.retry(id);
    assert!(rig.h(id).retried.is_none());
    assert_eq!(rig.answers, [(Receipt::Request(2), false), (Receipt::Request(1), false)]);
    rig.broken = false;
    rig.pass(1);
    assert_eq!(rig.wake_in(), Some(30 * 60 - 61), "it has waited as long as it has");
}

#[test]
fn a_cancel_with_nothing_to_take_back_that_cannot_be_written_is_undone_as_a_whole() {
    let mut rig = Rig::new();
    rig.side(Side::Brain, Some(Some(ONE)));
    let id = rig.sent();
    rig.side(Side::Brain, None);
    rig.pause(true);
    rig.side(Side::Brain, Some(Some(TWO)));
    rig.broken = true;
    rig.cancel(id);
    assert_eq!(rig.answers, [(Receipt::Request(2), false)]);
    rig.broken = false;
    rig.pass(5);
    assert!(rig.h(id).failed.is_none(), "it was said that nothing was changed");
}

#[test]
fn an_alarm_that_cannot_be_written_is_raised_later_once() {
    let mut rig = Rig::with_brain();
    rig.sent();
    rig.broken = true;
    rig.pass(30 * 60 + 5);
    let alarms = |rig: &Rig| rig.warnings.iter().filter(|line| line.starts_with("no result")).count();
    assert_eq!((alarms(&rig), rig.queue.alarms()), (0, 0));
    rig.broken = false;
    rig.pass(5);
    assert_eq!(alarms(&rig), 1);
}

#[test]
fn notices_go_while_the_disk_does_not() {
    let mut rig = Rig::with_both();
    rig.broken = true;
    rig.accept("a");
    rig.event(Event::Notify { text: "hello".into(), receipt: Receipt::None });
    let said = rig.deliver(Side::Bot);
    assert_eq!(said.len(), 2, "{said:?}");
}

#[test]
fn a_disk_that_takes_a_probe_but_not_what_matters_is_not_reported_every_second() {
    let mut rig = Rig::new();
    rig.accept("a");
    rig.side(Side::Brain, None);
    rig.broken = true;
    rig.side(Side::Brain, Some(None));
    for _ in 0..600 {
        rig.set(rig.now.mono + Duration::from_secs(1));
        if rig.queue.disk_retry_due(rig.now) && !rig.queue.touch_dirty() {
            rig.queue.disk_probed(Ok(()), rig.now);
        }
        rig.event(Event::Tick);
    }
    assert!(rig.warnings.len() < 20, "{}", rig.warnings.len());
}

#[test]
fn a_stop_waits_for_what_is_not_written_yet() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.broken = true;
    rig.reply(id, "done");
    rig.event(Event::Drain);
    assert_eq!((rig.queue.is_idle(), rig.wake_in()), (false, Some(1)));
    rig.broken = false;
    rig.pass(1);
    assert_eq!((rig.queue.is_idle(), rig.wake_in()), (true, None));
}

#[test]
fn one_left_in_the_wrong_folder_is_moved_soon() {
    let mut rig = Rig::with_brain();
    let id = rig.accept("a");
    let now = rig.now;
    rig.queue.handle(Event::Pushed { token: rig.flights[0].1, pushed: refused() }, now);
    rig.queue.written(id, State::Brain, now);
    rig.queue.effects();
    assert_eq!((rig.queue.is_idle(), rig.wake_in()), (false, Some(1)));
    rig.pass(1);
    assert!(rig.queue.is_idle());
}
