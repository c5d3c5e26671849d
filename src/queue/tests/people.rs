//! Retry, cancel, and waiting for a result.

use super::*;

#[test]
fn a_failed_one_gets_fresh_attempts() {
    let mut rig = Rig::with_both();
    let id = rig.accept("a");
    rig.land(Side::Brain, refused());
    rig.retry(id);
    assert_eq!(rig.answers, [(Receipt::Request(1), true)]);
    assert!(rig.said(Side::Brain).unwrap().contains("attempt 2:"));
    // The word that it was given up was under way: how that ends says nothing about the new try.
    rig.land(Side::Bot, Pushed::Confirmed);
    assert_eq!((rig.h(id).state(), rig.h(id).failed.is_none()), (State::Brain, true));
    for pause in [1, 2] {
        rig.land(Side::Brain, failed());
        rig.pass(pause);
    }
    assert!(rig.h(id).failed.is_none(), "the attempts before the retry do not count");
    rig.land(Side::Brain, failed());
    assert!(rig.h(id).failed.is_some());
}

#[test]
fn one_that_waits_to_be_tried_again_is_tried_at_once() {
    let mut rig = Rig::with_brain();
    let id = rig.accept("a");
    rig.land(Side::Brain, failed());
    rig.retry(id);
    assert!(rig.said(Side::Brain).unwrap().contains("attempt 2:"));
}

#[test]
fn one_under_way_is_pushed_once_more_after_that() {
    let mut rig = Rig::with_brain();
    let id = rig.accept("a");
    rig.retry(id);
    assert_eq!(rig.flying(Side::Brain), 1, "not twice at a time");
    rig.land(Side::Brain, Pushed::Confirmed);
    assert!(rig.said(Side::Brain).unwrap().contains("attempt 2:"));
    rig.deliver(Side::Brain);
    assert_eq!(rig.h(id).pushes.len(), 2);
}

#[test]
fn an_answer_that_waits_for_the_bot_is_tried_at_once() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.reply(id, "done");
    for _ in 0..5 {
        rig.land(Side::Bot, failed());
        rig.pass(60);
    }
    rig.land(Side::Bot, failed());
    assert_eq!(rig.flying(Side::Bot), 0);
    rig.retry(id);
    assert_eq!((rig.flying(Side::Bot), rig.flying(Side::Brain)), (1, 0));
}

#[test]
fn what_is_done_or_unknown_is_not_retried_nor_cancelled() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.reply(id, "done");
    let mut h = rig.h(id).clone();
    rig.cancel(id);
    rig.deliver(Side::Bot);
    h.results[0].told = Some(rig.now.wall);
    rig.queue.restore(h, State::Done, Duration::ZERO, rig.now);
    rig.retry(id);
    rig.queue.release(id);
    assert!(!rig.queue.holds(id));
    rig.retry(Id::now());
    rig.cancel(Id::now());
    let said: Vec<bool> = rig.answers.iter().map(|(_, ok)| *ok).collect();
    assert_eq!(said, [false; 4]);
}

#[test]
fn one_never_pushed_is_cancelled_without_a_word_to_the_brain() {
    let mut rig = Rig::with_both();
    rig.side(Side::Brain, None);
    let id = rig.accept("a");
    rig.cancel(id);
    rig.side(Side::Brain, Some(None));
    assert_eq!(rig.flying(Side::Brain), 0);
    assert!(rig.said(Side::Bot).unwrap().starts_with(&format!("[relay] hand-off {id} was cancelled\n[asked: a]")));
    rig.cancel(id);
    rig.deliver(Side::Bot);
    assert_eq!((rig.queue.holds(id), rig.answers.len()), (false, 2), "cancelling it twice is no error");
}

#[test]
fn one_that_was_pushed_is_taken_back_even_while_paused() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.pause(true);
    rig.cancel(id);
    assert_eq!(rig.said(Side::Brain), Some(format!("[relay {id} cancelled: stop work on it]")));
    assert_ne!(rig.flights.iter().find(|(side, ..)| *side == Side::Brain).unwrap().2[0].id, id, "an id of its own");
    rig.deliver(Side::Bot);
    assert!(rig.queue.holds(id), "the brain does not know yet");
    rig.land(Side::Brain, failed());
    assert_eq!(rig.wake_in(), Some(1));
    rig.pass(1);
    rig.deliver(Side::Brain);
    assert!(!rig.queue.holds(id));
}

#[test]
fn one_cancelled_while_under_way_is_taken_back_after_that_unless_it_did_not_arrive() {
    for (landed, taken_back) in [(Pushed::Confirmed, 1), (failed(), 1), (Pushed::NotTried, 0), (refused(), 0)] {
        let mut rig = Rig::with_both();
        let id = rig.accept("a");
        rig.cancel(id);
        assert_eq!(rig.flying(Side::Brain), 1);
        rig.land(Side::Brain, landed.clone());
        rig.pass(5);
        assert_eq!(rig.deliver(Side::Brain).len(), taken_back, "{landed:?}");
        rig.deliver(Side::Bot);
        assert!(!rig.queue.holds(id), "{landed:?}");
    }
}

#[test]
fn a_session_that_ended_needs_no_take_back() {
    let mut rig = Rig::new();
    rig.side(Side::Bot, Some(None));
    rig.side(Side::Brain, Some(Some(ONE)));
    let id = rig.sent();
    rig.side(Side::Brain, None);
    rig.cancel(id);
    rig.side(Side::Brain, Some(Some(TWO)));
    rig.deliver(Side::Bot);
    assert_eq!((rig.flying(Side::Brain), rig.queue.holds(id)), (0, false));
}

#[test]
fn a_cancelled_one_that_is_retried_is_no_longer_taken_back() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.side(Side::Brain, None);
    rig.cancel(id);
    rig.retry(id);
    rig.side(Side::Brain, Some(None));
    let said = rig.deliver(Side::Brain);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("attempt 2:"), "{said:?}");
}

#[test]
fn a_reply_to_a_cancelled_one_goes_to_the_stream_and_one_to_a_failed_one_to_the_bot() {
    let mut rig = Rig::with_both();
    let (cancelled, given_up) = (rig.sent(), rig.accept("b"));
    rig.land(Side::Brain, refused());
    rig.cancel(cancelled);
    rig.reply(cancelled, "too late");
    rig.says(cancelled, "m1-9", "too late", true);
    assert!(rig.warnings.iter().any(|text| text.contains("for the cancelled hand-off") && text.ends_with("too late")));
    rig.reply(given_up, "after all");
    let said = rig.deliver(Side::Bot);
    assert!(said.iter().any(|text| text.contains(&format!("[relay result for {given_up}] after all"))), "{said:?}");
    assert!(!said.iter().any(|text| text.contains("too late")));
    assert_eq!(rig.done.len(), 5, "each frame is dealt with: {:?}", rig.done);
}

#[test]
fn a_late_answer_makes_the_word_that_it_was_given_up_needless() {
    let mut rig = Rig::with_brain();
    let id = rig.accept("a");
    rig.land(Side::Brain, refused());
    rig.reply(id, "done");
    rig.side(Side::Bot, Some(None));
    assert_eq!(rig.deliver(Side::Bot).len(), 1);
    assert!(!rig.queue.holds(id));
}

#[test]
fn who_waits_is_answered_once_the_result_is_written() {
    let mut rig = Rig::with_brain();
    let id = rig.sent();
    rig.event(Event::Wait { id, receipt: Receipt::Request(7) });
    rig.event(Event::Wait { id: Id::now(), receipt: Receipt::Request(8) });
    assert_eq!(rig.answers, [(Receipt::Request(8), false)]);
    rig.broken = true;
    rig.reply(id, "done");
    rig.event(Event::Wait { id, receipt: Receipt::Request(9) });
    assert_eq!(rig.answers.len(), 1, "it is not on disk yet");
    rig.broken = false;
    rig.pass(1);
    assert_eq!(rig.answers[1..], [(Receipt::Request(7), true), (Receipt::Request(9), true)]);
    rig.event(Event::Wait { id, receipt: Receipt::Request(10) });
    assert_eq!(rig.answers.len(), 4);
}
