//! What `status` says, to the letter.

use super::super::samples::{NOW, config, status as sample};
use super::*;
use crate::control::wire::{ActorStatus, HolderStatus, Paused, SessionStatus};

fn text(sample: &Status, enabled: bool) -> String {
    status(sample, &config(enabled), Starter::Systemd, NOW, &Style::PLAIN)
}

#[test]
fn all_is_well() {
    assert_eq!(
        text(&sample(), true),
        "\
bridge   running, pid 4242, up 3 h, version 0.1.0
brain    online for 3 min, port 8788, session 4711 busy
bot      online for 3 min, port 8789, session 4712 idle
queue    new 0  brain 1  out 0  done 40  failed 0  corrupt 0
breaker  closed, 1 of 5 in 120 s
"
    );
}

#[test]
fn everything_is_wrong() {
    let mut sample = sample();
    sample.paused = Some(Paused { since: NOW - time::Duration::hours(9), reason: Some("night\x1b".to_owned()) });
    sample.brain = SideStatus {
        state: SideState::Foreign,
        why: Some("not a fakechat: end pid 99, or set relay.brain_port to another port".to_owned()),
        holder: Some(HolderStatus { pid: 99, command: "nc -l\n8788".to_owned() }),
        session: None,
        ..sample.brain
    };
    sample.bot.session =
        Some(SessionStatus { pid: 7, status: Some(Activity::Waiting), waiting_for: Some("Bash".to_owned()) });
    sample.breaker.tripped = true;
    sample.breaker.refused = 1;
    sample.queue.corrupt = 2;
    sample.oldest_waiting_s = Some(240);
    sample.alarms = 2;
    sample.actors = vec![
        ActorStatus { name: "queue".to_owned(), state: "restarting".to_owned(), restarts: 3 },
        ActorStatus { name: "guard".to_owned(), state: "running".to_owned(), restarts: 0 },
    ];
    assert_eq!(
        text(&sample, true),
        "\
bridge   running, pid 4242, up 3 h, version 0.1.0
paused   for 9 h: night␛
         → when the brain is back: anna-relay resume
brain    foreign for 3 min, port 8788: not a fakechat
         → end pid 99 (nc -l ⏎ 8788), or give relay.brain_port another port
bot      online for 3 min, port 8789, session 7 waits for a person: Bash
         → answer it in the bot's own window
queue    new 0  brain 1  out 0  done 40  failed 0  corrupt 2
         → see what could not be read: /home/anna/.local/state/anna/relay/corrupt
waiting  the oldest for 4 min
breaker  tripped, 1 hand-off refused since
         → let hand-offs in again: anna-relay reset-breaker
         → see what was refused: anna-relay list --state failed
alarms   2 hand-offs without a result for too long
         → see which: anna-relay list
part     queue is restarting, started again 3 times
"
    );
}

#[test]
fn no_bridge_runs() {
    let mut sample = sample();
    (sample.running, sample.pid, sample.uptime_s) = (false, None, None);
    for side in [&mut sample.brain, &mut sample.bot] {
        (side.state, side.since, side.session) = (SideState::Offline, None, None);
    }
    let expected = "\
bridge   not running; this is what its spool says
         → start it: systemctl --user start anna-relay (here and now: anna-relay bridge)
brain    offline, port 8788
bot      offline, port 8789
";
    assert!(text(&sample, true).starts_with(expected), "{}", text(&sample, true));
    let by_hand = status(&sample, &config(true), Starter::Person, NOW, &Style::PLAIN);
    assert_eq!(by_hand.lines().nth(1), Some("         → start it: anna-relay bridge, in a terminal of its own"));
    let step = "         → first set relay.enabled = true in /home/anna/.config/anna/anna.toml\n";
    assert_eq!(text(&sample, false).lines().nth(1).unwrap().to_owned() + "\n", step);
}

#[test]
fn a_side_that_settles_says_when_it_will_be_online() {
    let mut sample = sample();
    sample.brain.state = SideState::Settling;
    sample.brain.why = Some("not reachable: Connection refused".to_owned());
    for (since, left) in [(1.5, "in 4 s"), (5.0, "in a moment"), (-2.0, "in 5 s")] {
        sample.brain.since = Some(NOW - time::Duration::seconds_f64(since));
        let text = text(&sample, true);
        assert!(text.contains(&format!("port 8788, session 4711 busy: online {left}\n")), "{text}");
    }
}

#[test]
fn what_answers_at_the_port_and_is_no_fakechat_has_to_go_first() {
    let mut sample = sample();
    sample.brain.state = SideState::Offline;
    sample.brain.holder = Some(HolderStatus { pid: 99, command: "python3 -m http.server".to_owned() });
    for why in ["refused with HTTP status 404", "not a websocket: the handshake failed"] {
        sample.brain.why = Some(why.to_owned());
        let text = text(&sample, true);
        let step = "→ end pid 99 (python3 -m http.server), or give relay.brain_port another port\n";
        assert!(text.contains(step) && !text.contains("start the brain's session"), "{text}");
    }
}

#[test]
fn a_stranger_without_a_name_is_advised_on_once() {
    let mut sample = sample();
    sample.brain.state = SideState::Foreign;
    for (why, times) in [("not yours: end what holds the port, or set relay.brain_port to another port", 0), ("?", 1)] {
        sample.brain.why = Some(why.to_owned());
        let text = text(&sample, true);
        assert_eq!(text.matches("→ end what holds it, or").count(), times, "{text}");
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn a_spool_that_is_still_read_is_said_to_be() {
    let text = text(&Status { recovering: true, ..sample() }, true);
    let line = text.lines().nth(1).unwrap();
    assert_eq!(line, "spool    still being read; how long something waits, and alarms, are not known yet");
}

#[test]
fn an_offline_and_an_orphaned_side_say_what_to_do() {
    let mut sample = sample();
    sample.brain.state = SideState::Offline;
    sample.brain.why = Some("nothing listens there".to_owned());
    sample.bot.state = SideState::Orphan;
    let night = Status { paused: Some(Paused { since: NOW, reason: None }), ..sample.clone() };
    assert!(!self::text(&night, true).contains("start the brain"));
    let text = text(&sample, true);
    assert!(text.contains("session 4711 busy: nothing listens there\n         → start the brain's session, with its fakechat on port 8788: anna-relay launch brain\n"), "{text}");
    assert!(text.contains("→ the bridge ends it; should that fail: anna-relay clear-port bot\n"), "{text}");
}

#[test]
fn colours_do_not_move_the_columns() {
    let colored = status(&sample(), &config(true), Starter::Systemd, NOW, &Style::COLORED);
    let mut plain = colored.clone();
    for code in ["\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[2m", "\x1b[1m", "\x1b[0m"] {
        plain = plain.replace(code, "");
    }
    assert!(colored.contains("\x1b[32monline\x1b[0m"));
    assert_eq!(plain, text(&sample(), true));
}
