//! What is pushed, when, and what follows from how it ends.

use super::*;
use crate::handoff::OutcomeKind;
use crate::queue::notice::MAX_NOTICES;

#[test]
fn acceptance_and_the_first_attempt_are_one_write() {
    let mut rig = Rig::with_brain();
    let id = rig.accept("water the plants");
    assert_eq!(rig.writes, 1);
    assert_eq!(rig.said(Side::Brain), Some(format!("[relay {id} from the bot] water the plants")));
    assert_eq!(rig.done, [Receipt::Frame(Side::Bot, 1)]);
    assert_eq!(rig.flights[0].2[0].id, id, "posted with its own id");
    assert_eq!(rig.h(id).state(), State::Brain);
}

#[test]
fn the_next_push_is_written_while_one_is_posted_and_the_confirmations_overlap() {
    let mut rig = Rig::with_brain();
    let ids: Vec<Id> = ["a", "b", "c", "d"].into_iter().map(|text| rig.accept(text)).collect();
    assert_eq!((rig.flying(Side::Brain), rig.wake_in()), (2, Some(1_800)), "one ahead, and no more");
    rig.accepted(Side::Brain);
    assert_eq!(rig.flying(Side::Brain), 3, "the 204 frees the line, the confirmation does not");
    let second = rig.flights[1].1;
    rig.event(Event::Pushed { token: second, pushed: Pushed::Accepted });
    rig.event(Event::Pushed { token: second, pushed: Pushed::Accepted });
    assert_eq!(rig.flying(Side::Brain), 4);
    let order: Vec<Id> = rig.flights.iter().map(|(_, _, uploads)| uploads[0].id).collect();
    assert_eq!(order, ids);
    rig.deliver(Side::Brain);
    assert!(rig.queue.is_idle());
}

#[test]
fn after_a_wait_one_push_is_begun_at_a_time_and_the_next_at_once() {
    let mut rig = Rig::new();
    for text in ["a", "b", "c"] {
        rig.accept(text);
    }
    let before = rig.writes;
    rig.side(Side::Brain, Some(None));
    assert_eq!((rig.writes - before, rig.flying(Side::Brain), rig.wake_in()), (1, 1, Some(0)));
    rig.pass(0);
    assert_eq!((rig.writes - before, rig.flying(Side::Brain)), (2, 2));
}

#[test]
fn the_first_one_holds_up_those_behind_it_until_it_is_through() {
    let mut rig = Rig::with_brain();
    let first = rig.accept("a");
    let second = rig.accept("b");
    rig.land(Side::Brain, failed());
    rig.land(Side::Brain, Pushed::NotTried);
    assert_eq!((rig.flying(Side::Brain), rig.wake_in()), (0, Some(1)));
    rig.pass(1);
    assert!(rig.said(Side::Brain).unwrap().starts_with(&format!("[relay {first} from the bot, attempt 2: ")));
    rig.land(Side::Brain, Pushed::Confirmed);
    assert!(rig.said(Side::Brain).unwrap().starts_with(&format!("[relay {second} from the bot] ")));
}

#[test]
fn what_was_begun_ahead_is_withdrawn_by_a_pause_or_when_it_is_cancelled() {
    let mut rig = Rig::with_brain();
    let ids: Vec<Id> = ["a", "b"].into_iter().map(|text| rig.accept(text)).collect();
    let ahead = rig.flights[1].1;
    rig.pause(true);
    assert_eq!(rig.withdrawn.last(), Some(&ahead));
    rig.land(Side::Brain, Pushed::Confirmed);
    rig.land(Side::Brain, Pushed::NotTried);
    assert_eq!((rig.flying(Side::Brain), rig.h(ids[1]).pushes.len()), (0, 0));
    rig.pause(false);
    assert!(rig.said(Side::Brain).unwrap().starts_with(&format!("[relay {} from the bot] b", ids[1])));

    let mut rig = Rig::with_both();
    let ids: Vec<Id> = ["a", "b"].into_iter().map(|text| rig.accept(text)).collect();
    let ahead = rig.flights[1].1;
    rig.cancel(ids[1]);
    assert_eq!(rig.withdrawn, [ahead]);
    rig.land(Side::Brain, Pushed::Confirmed);
    rig.land(Side::Brain, Pushed::NotTried);
    assert_eq!(rig.flying(Side::Brain), 0, "what was never posted is not taken back");
}

#[test]
fn it_is_given_up_after_max_attempts_with_growing_pauses() {
    let mut rig = Rig::with_both();
    let id = rig.accept("a");
    rig.land(Side::Brain, failed());
    assert_eq!(rig.wake_in(), Some(1));
    rig.pass(1);
    rig.land(Side::Brain, failed());
    assert_eq!(rig.wake_in(), Some(2));
    rig.pass(2);
    rig.land(Side::Brain, failed());
    assert!(rig.h(id).failed.as_ref().is_some_and(|f| f.reason == crate::handoff::Reason::Attempts));
    let said = rig.said(Side::Bot).unwrap();
    assert!(said.starts_with(&format!("[relay] hand-off {id} was given up after 3 attempts: HTTP 500")), "{said}");
    rig.land(Side::Bot, failed());
    rig.pass(1);
    assert!(rig.said(Side::Bot).unwrap().contains("sent again"), "{:?}", rig.said(Side::Bot));
    rig.deliver(Side::Bot);
    assert!(!rig.queue.holds(id), "nothing is left to do with it");
}

#[test]
fn the_pauses_grow_to_a_minute_and_no_further() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.reply(id, "done");
    let mut pauses = Vec::new();
    for _ in 0..9 {
        rig.land(Side::Bot, failed());
        pauses.push(rig.wake_in().unwrap());
        rig.pass(*pauses.last().unwrap());
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
}

#[test]
fn one_refused_for_good_is_given_up_at_once() {
    let mut rig = Rig::with_both();
    let (id, next) = (rig.accept("a"), rig.accept("b"));
    rig.land(Side::Brain, refused());
    assert!(rig.said(Side::Bot).unwrap().contains("the brain's fakechat refused it (HTTP 413)"));
    assert!(rig.said(Side::Brain).unwrap().contains(&next.to_string()), "the next one goes on");
    rig.deliver(Side::Bot);
    assert!(!rig.queue.holds(id));
}

#[test]
fn what_the_relay_cut_short_itself_does_not_count() {
    let mut rig = Rig::with_brain();
    let id = rig.accept("a");
    for n in 2..10 {
        rig.event(Event::SideReset(Side::Brain));
        rig.flights.clear();
        rig.side(Side::Brain, Some(None));
        assert!(rig.said(Side::Brain).unwrap().contains(&format!("attempt {n}:")));
        rig.land(Side::Brain, Pushed::NotTried);
        rig.flights.clear();
        rig.event(Event::SideReset(Side::Brain));
        rig.h(id);
        rig.side(Side::Brain, None);
        assert_eq!((rig.h(id).failed_attempts(), rig.h(id).failed.is_none()), (0, true));
        let h = &mut rig.queue.entry_mut(id).unwrap().h;
        h.pushes.truncate(n);
    }
}

#[test]
fn a_side_that_was_started_again_takes_pushes_again() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.reply(id, "done");
    rig.event(Event::Notify { text: "hello".into(), receipt: Receipt::None });
    let (_, stale, _) = rig.flights[0];
    rig.event(Event::SideReset(Side::Bot));
    rig.flights.clear();
    rig.event(Event::Pushed { token: stale, pushed: Pushed::Confirmed });
    rig.side(Side::Bot, Some(None));
    let mut said = rig.deliver(Side::Bot);
    rig.pass(60);
    said.extend(rig.deliver(Side::Bot));
    assert!(said.iter().any(|text| text.contains("result for") && text.contains("sent again")), "{said:?}");
    assert!(said.iter().any(|text| text == "[relay] hello"), "{said:?}");
    assert!(!rig.queue.holds(id));
}

#[test]
fn results_are_told_in_order_each_once() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.says(id, "m1-1", "done", false);
    rig.says(id, "m1-1", "done", false);
    rig.says(id, "m1-2", "done", false);
    rig.says(id, "m1-3", "and more", false);
    rig.says(id, "m1-1", "done!", true);
    let said = rig.deliver(Side::Bot);
    let heads: Vec<&str> = said.iter().map(|text| text.split(" for ").next().unwrap()).collect();
    assert_eq!(heads, ["[relay result", "[relay follow-up", "[relay correction"]);
    assert!(!rig.queue.holds(id));
    assert_eq!(rig.queue.answered_by("m1-1"), Some(id), "for a later edit");
}

#[test]
fn an_answer_before_its_push_is_known_to_have_arrived_proves_that_it_has() {
    let mut rig = Rig::with_both();
    let id = rig.accept("a");
    rig.reply(id, "done");
    assert_eq!(rig.h(id).pushes[0].outcome, PushOutcome::Sent);
    rig.land(Side::Bot, Pushed::Confirmed);
    assert!(rig.queue.holds(id), "its push is still under way");
    rig.land(Side::Brain, failed());
    assert!(!rig.queue.holds(id), "and is no failure, nor pushed again");
    rig.pass(100);
    assert_eq!(rig.flights.len(), 0);
}

#[test]
fn a_result_refused_for_good_becomes_a_word_on_where_it_lies() {
    let mut rig = Rig::with_both();
    let (id, other) = (rig.sent(), rig.sent());
    rig.reply(id, "done");
    rig.reply(other, "done, too");
    rig.land(Side::Bot, refused());
    assert!(rig.said(Side::Bot).unwrap().contains(&other.to_string()), "the next one goes on");
    rig.deliver(Side::Bot);
    rig.pass(1);
    let said = rig.said(Side::Bot).unwrap();
    assert!(said.starts_with(&format!("[relay] the result for {id} cannot be sent here (HTTP 413)")), "{said}");
    assert!(!said.contains("sent again"));
    rig.land(Side::Bot, failed());
    rig.pass(2);
    assert!(rig.said(Side::Bot).unwrap().contains("sent again: if already told, say nothing"));
    rig.deliver(Side::Bot);
    assert!(!rig.queue.holds(id));
}

#[test]
fn only_the_unanswered_ones_of_a_session_that_ended_go_to_the_next() {
    let mut rig = Rig::new();
    rig.side(Side::Brain, Some(Some(ONE)));
    let (answered, unanswered) = (rig.sent(), rig.sent());
    rig.reply(answered, "done");
    rig.side(Side::Brain, None);
    assert_eq!(rig.queue.waiting(), 0);
    rig.side(Side::Brain, Some(Some(ONE)));
    assert_eq!(rig.flying(Side::Brain), 0, "the same session");
    rig.side(Side::Brain, None);
    rig.side(Side::Brain, Some(Some(TWO)));
    let said = rig.deliver(Side::Brain);
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with(&format!("[relay {unanswered} from the bot, attempt 2: ")), "{said:?}");
    assert_eq!(rig.h(unanswered).pushes[1].session, Some(TWO));
}

#[test]
fn notices_are_bounded() {
    let mut rig = Rig::new();
    for n in 0..MAX_NOTICES + 50 {
        rig.event(Event::Notify { text: format!("{n}"), receipt: Receipt::None });
    }
    rig.side(Side::Bot, Some(None));
    let said = rig.deliver(Side::Bot);
    assert_eq!((said.len(), said[0].as_str()), (MAX_NOTICES, "[relay] 50"));
    rig.event(Event::Notify { text: "too long".into(), receipt: Receipt::None });
    rig.land(Side::Bot, refused());
    assert_eq!((rig.flying(Side::Bot), rig.queue.is_idle()), (0, true), "one refused for good is dropped");
}

#[test]
fn one_that_was_there_before_the_start_goes_first() {
    let mut rig = Rig::new();
    let old = HandOff::new(Id::now(), Origin::Script, "old".into(), rig.now.wall);
    let id = old.id;
    rig.queue.restore(old, State::New, Duration::ZERO, rig.now);
    let new = rig.accept("new");
    rig.side(Side::Brain, Some(None));
    let said = rig.deliver(Side::Brain);
    assert!(said[0].contains(&id.to_string()) && said[1].contains(&new.to_string()), "{said:?}");
    assert!(said[0].contains("from a script"));
}

#[test]
fn a_stop_begins_nothing_and_takes_what_comes() {
    let mut rig = Rig::with_both();
    let id = rig.accept("a");
    rig.event(Event::Drain);
    let other = rig.accept("b");
    assert!(!rig.queue.is_idle());
    rig.land(Side::Brain, Pushed::Confirmed);
    rig.reply(id, "done");
    assert_eq!((rig.flights.len(), rig.queue.is_idle(), rig.wake_in()), (0, true, None));
    assert_eq!((rig.h(id).state(), rig.h(other).state()), (State::Out, State::New));
}

#[test]
fn an_edit_of_a_reply_that_said_the_same_as_one_before_is_a_correction() {
    let mut rig = Rig::with_both();
    let id = rig.sent();
    rig.says(id, "m1-1", "done", false);
    rig.says(id, "m1-2", "done", false);
    assert_eq!(rig.h(id).results.len(), 1, "told once");
    assert_eq!((rig.queue.answered_by("m1-1"), rig.queue.answered_by("m1-2")), (Some(id), Some(id)));
    rig.says(id, "m1-2", "not done", true);
    assert_eq!(rig.h(id).results[1].kind, OutcomeKind::Correction);
    // What the disk has says it, too.
    let mut queue = Rig::new().queue;
    queue.remember(rig.h(id));
    assert_eq!(queue.answered_by("m1-2"), Some(id));
}

#[test]
fn nothing_is_begun_ahead_of_its_turn_while_a_push_takes_long() {
    let mut rig = Rig::with_brain();
    let ids: Vec<Id> = ["a", "b", "c"].into_iter().map(|text| rig.accept(text)).collect();
    let (first, ahead) = (rig.flights[0].1, rig.flights.remove(1).1);
    rig.event(Event::Pushed { token: ahead, pushed: Pushed::NotTried });
    assert_eq!((rig.flying(Side::Brain), rig.h(ids[1]).state()), (1, State::New));
    rig.event(Event::Pushed { token: first, pushed: Pushed::Accepted });
    rig.pass(0);
    assert_eq!(rig.flying(Side::Brain), 3, "from then on it is as before");
}

#[test]
fn a_notice_whose_turn_had_not_come_did_not_fail() {
    let mut rig = Rig::with_both();
    for text in ["a", "b"] {
        rig.event(Event::Notify { text: text.into(), receipt: Receipt::None });
    }
    let (first, ahead) = (rig.flights[0].1, rig.flights.remove(1).1);
    rig.event(Event::Pushed { token: ahead, pushed: Pushed::NotTried });
    rig.event(Event::Pushed { token: first, pushed: Pushed::Accepted });
    assert_eq!(rig.flying(Side::Bot), 2, "it goes as soon as there is room");
}
