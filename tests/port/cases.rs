//! The tests.

use std::env;
use std::process::Output;
use std::time::{Duration, Instant};

use anna_relay::port::end::{EndCause, EndError, end};
use anna_relay::port::{Judge, Orphan, Process, Session, Verdict, without_channel};
use serde_json::{Value, json};

use crate::launch::{a_launch_ends_an_orphan_and_goes_on, a_launch_leaves_a_live_session_alone};
use crate::standin::{AS_UID, LISTEN, STUBBORN};
use crate::tree::{Tree, clear_port, free_port, kill, until};

/// A user other than root: nobody's id nearly everywhere.
const NOBODY: u32 = 65534;

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        /// Every test with its name.
        pub const ALL: &[(&str, fn())] = &[$((stringify!($name), $name)),*];
    };
}

tests![
    nobody_is_there,
    a_session_with_its_listener,
    a_session_with_wrapper_and_listener,
    an_orphan_by_a_killed_session,
    an_orphan_by_a_clean_exit,
    a_session_that_is_a_zombie_has_ended,
    a_listener_that_is_a_zombie_holds_nothing,
    an_orphan_that_a_subreaper_took,
    an_orphan_that_the_service_manager_took,
    a_stubborn_orphan_is_killed,
    a_live_session_is_left_alone,
    an_orphan_replaced_before_the_signal,
    a_process_id_used_again_is_not_signalled,
    a_stranger_is_left_alone,
    a_fakechat_of_another_port_is_a_stranger,
    another_user_is_a_stranger,
    clearing_says_what_it_did,
    a_dry_run_ends_nothing,
    clearing_twice_at_once,
    a_session_without_a_fakechat_is_found,
    a_launch_leaves_a_live_session_alone,
    a_launch_ends_an_orphan_and_goes_on,
    the_real_fakechat,
];

#[track_caller]
fn live(verdict: Verdict) -> (Process, Session) {
    let Verdict::Live { listener, session } = verdict else { panic!("not live: {verdict:?}") };
    (listener, session)
}

#[track_caller]
fn foreign(verdict: Verdict) -> (u32, String) {
    let Verdict::Foreign { pid: Some(pid), why, .. } = verdict else { panic!("not foreign: {verdict:?}") };
    (pid, why)
}

#[track_caller]
fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn nobody_is_there() {
    let port = free_port();
    assert_eq!(Judge::of_this_user().judge(port), Verdict::Free);
    for _ in 0..3 {
        let output = clear_port(port, "").output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(text(&output.stdout), format!("the brain's port {port} is free\n"));
    }
    let expected = json!({"side": "brain", "port": port, "found": "free", "holder": null, "session": null,
        "ended": [], "free": true, "dry_run": false});
    let output = clear_port(port, "--json").output().unwrap();
    assert_eq!(document(&output), expected);
    assert!(text(&output.stdout).starts_with("{\n  \""), "indented as every other");
}

fn a_session_with_its_listener() {
    let mut tree = Tree::start("claude direct");
    let mut judge = Judge::of_this_user();
    let (server, session) = (tree.pid("server"), tree.pid("session"));
    for _ in 0..3 {
        let (listener, found) = live(judge.judge(tree.port));
        assert_eq!((listener.pid, found.pid), (server, session));
        assert_eq!(found.command, "claude direct");
    }
}

fn a_session_with_wrapper_and_listener() {
    let mut tree = Tree::start("claude wrapped");
    let (server, session) = (tree.pid("server"), tree.pid("session"));
    let (listener, found) = live(Judge::of_this_user().judge(tree.port));
    assert_eq!((listener.pid, found.pid), (server, session));
    assert_eq!(listener.parent, tree.pid("wrapper"));
}

fn an_orphan_by_a_killed_session() {
    let mut tree = Tree::start("claude wrapped");
    let (server, wrapper) = (tree.pid("server"), tree.pid("wrapper"));
    tree.kill("session");
    tree.reap();
    let mut judge = Judge::of_this_user();
    let orphan = tree.orphan(&mut judge);
    assert_eq!((orphan.listener.pid, orphan.wrapper.as_ref().map(|one| one.pid)), (server, Some(wrapper)));
    assert!(tree.answers(), "the orphan serves");
    let ended = end(&orphan, tree.port).unwrap();
    assert!(ended.pids.contains(&server) && !ended.forced, "{ended:?}");
    assert_eq!(judge.judge(tree.port), Verdict::Free);
    assert!(!tree.answers());
    // Once more is no error.
    assert_eq!(end(&orphan, tree.port).unwrap().pids, [0; 0]);
}

fn an_orphan_by_a_clean_exit() {
    let mut tree = Tree::start("claude wrapped");
    let server = tree.pid("server");
    let mut judge = Judge::of_this_user();
    live(judge.judge(tree.port));
    tree.kill("wrapper");
    tree.kill("session");
    tree.reap();
    let orphan = until("the wrapper is gone", || Some(tree.orphan(&mut judge)).filter(|one| one.wrapper.is_none()));
    assert_eq!(orphan.listener.pid, server);
    assert_eq!(end(&orphan, tree.port).unwrap().pids, [server]);
    assert_eq!(judge.judge(tree.port), Verdict::Free);
}

fn a_session_that_is_a_zombie_has_ended() {
    let mut tree = Tree::start("claude wrapped");
    tree.pid("server");
    tree.kill("session");
    let orphan = tree.orphan(&mut Judge::of_this_user());
    assert!(orphan.wrapper.is_some());
    end(&orphan, tree.port).unwrap();
    assert!(!tree.answers());
}

fn a_listener_that_is_a_zombie_holds_nothing() {
    let mut tree = Tree::start("claude direct");
    let server = tree.pid("server");
    let mut judge = Judge::of_this_user();
    live(judge.judge(tree.port));
    kill(server);
    until("the port is free", || (judge.judge(tree.port) == Verdict::Free).then_some(()));
}

fn an_orphan_that_a_subreaper_took() {
    if !cfg!(target_os = "linux") {
        return println!("skipped: there are no subreapers here");
    }
    let mut tree = Tree::start("reaper wrapped");
    let (server, session, reaper) = (tree.pid("server"), tree.pid("session"), tree.pid("reaper"));
    let mut judge = Judge::of_this_user();
    assert_eq!(live(judge.judge(tree.port)).1.pid, session);
    kill(session);
    let orphan = tree.orphan(&mut judge);
    assert_eq!(orphan.lost.as_ref().map(|lost| lost.pid), Some(session));
    // One that has not seen the session takes the subreaper for it, and so leaves it alone.
    assert_eq!(live(Judge::of_this_user().judge(tree.port)).1.pid, reaper);
    let forgetful = Orphan { lost: None, ..orphan.clone() };
    assert!(matches!(end(&forgetful, tree.port), Err(EndError { cause: EndCause::Changed(_), .. })));
    assert!(tree.answers());
    assert!(end(&orphan, tree.port).unwrap().pids.contains(&server));
    assert_eq!(judge.judge(tree.port), Verdict::Free);
}

fn an_orphan_that_the_service_manager_took() {
    if !cfg!(target_os = "linux") {
        return println!("skipped: there are no subreapers here");
    }
    let mut tree = Tree::start("systemd --user");
    let (server, session) = (tree.pid("server"), tree.pid("session"));
    assert_eq!(live(Judge::of_this_user().judge(tree.port)).1.pid, session);
    kill(session);
    until("the orphan was adopted", || {
        // Seen for the first time, and known for an orphan by who adopted it.
        let orphan = tree.orphan(&mut Judge::of_this_user());
        (orphan.listener.pid == server && orphan.lost.is_none()).then_some(())
    });
    assert_eq!(tree.clear_port("").status.code(), Some(0));
    assert!(!tree.answers());
}

fn a_stubborn_orphan_is_killed() {
    let mut tree = Tree::with("claude wrapped", free_port(), &[(STUBBORN, "1")]);
    let server = tree.pid("server");
    tree.kill("session");
    tree.reap();
    let orphan = tree.orphan(&mut Judge::of_this_user());
    let begun = Instant::now();
    let ended = end(&orphan, tree.port).unwrap();
    assert!(ended.forced && ended.pids.contains(&server), "{ended:?}");
    assert!(begun.elapsed() >= Duration::from_millis(1900) && begun.elapsed() < Duration::from_secs(4));
    assert!(!tree.answers());
}

fn a_live_session_is_left_alone() {
    for kind in ["direct", "wrapped"] {
        let mut tree = Tree::start(&format!("claude {kind}"));
        let (server, session) = (tree.pid("server"), tree.pid("session"));
        let output = tree.clear_port("");
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains("a live session holds it") && said.contains(&format!("pid {session} (claude")), "{said}");
        let output = tree.clear_port("--json");
        assert_eq!(output.status.code(), Some(4));
        let expected = json!({"side": "brain", "port": tree.port, "found": "live",
            "holder": {"pid": server, "command": "bun server.ts"},
            "session": {"pid": session, "command": format!("claude {kind}")},
            "ended": [], "free": false, "dry_run": false});
        assert_eq!(document(&output), expected);
        // Even one who claims that it is an orphan does not get it ended.
        let (listener, session) = live(Judge::of_this_user().judge(tree.port));
        for lost in [None, Some(session)] {
            let claim = Orphan { wrapper: None, listener: listener.clone(), lost };
            assert!(matches!(end(&claim, tree.port), Err(EndError { cause: EndCause::Changed(_), .. })));
        }
        assert!(tree.answers());
        assert_eq!(live(Judge::of_this_user().judge(tree.port)).0, listener);
    }
}

fn an_orphan_replaced_before_the_signal() {
    let mut old = Tree::start("claude wrapped");
    old.pid("server");
    old.kill("session");
    old.reap();
    let mut judge = Judge::of_this_user();
    let orphan = old.orphan(&mut judge);
    let port = old.port;
    old.kill("server");
    until("the port is free", || (judge.judge(port) == Verdict::Free).then_some(()));
    let mut new = Tree::with("claude wrapped", port, &[]);
    let server = new.pid("server");
    assert!(matches!(end(&orphan, port), Err(EndError { cause: EndCause::StillHeld, .. })));
    assert_eq!(live(judge.judge(port)).0.pid, server);
    assert!(new.answers());
}

fn a_process_id_used_again_is_not_signalled() {
    let mut tree = Tree::start("claude wrapped");
    tree.pid("server");
    tree.kill("session");
    tree.reap();
    let mut judge = Judge::of_this_user();
    let real = tree.orphan(&mut judge);
    // The same numbers, judged at a time when they meant other processes.
    let earlier = |process: &Process| Process { started: process.started - 1, ..process.clone() };
    let stale = Orphan { wrapper: real.wrapper.as_ref().map(earlier), listener: earlier(&real.listener), lost: None };
    let Err(EndError { ended, cause: EndCause::StillHeld }) = end(&stale, tree.port) else { panic!("it was ended") };
    assert_eq!(ended, [0; 0]);
    assert_eq!(tree.orphan(&mut judge), real);
    assert!(end(&real, tree.port).is_ok());
}

fn a_stranger_is_left_alone() {
    let mut tree = Tree::start("stranger");
    let pid = tree.pid("stranger");
    let (found, why) = foreign(Judge::of_this_user().judge(tree.port));
    assert_eq!((found, why.as_str()), (pid, "it is not fakechat"));
    for flags in ["", "--dry-run"] {
        let output = tree.clear_port(flags);
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        assert!(text(&output.stderr).contains(&format!("pid {pid} (stranger)")), "{output:?}");
    }
    let found = document(&tree.clear_port("--json"));
    assert_eq!(
        (&found["found"], &found["holder"]["pid"], &found["free"]),
        (&json!("foreign"), &json!(pid), &json!(false))
    );
    assert!(tree.answers());
}

fn a_fakechat_of_another_port_is_a_stranger() {
    // Of another port, of a random one, of the default one.
    for setting in ["1", "0", ""] {
        let port = free_port();
        let variables = [(LISTEN, port.to_string()), ("FAKECHAT_PORT", setting.to_owned())];
        let mut tree =
            Tree::with("claude wrapped", port, &variables.each_ref().map(|(name, value)| (*name, value.as_str())));
        let server = tree.pid("server");
        let (pid, why) = foreign(Judge::of_this_user().judge(port));
        assert!(pid == server && why.contains("FAKECHAT_PORT"), "{why}");
        tree.kill("session");
        tree.reap();
        assert_eq!(tree.clear_port("").status.code(), Some(5));
        assert!(tree.answers());
    }
}

fn another_user_is_a_stranger() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can start a process of another user");
    }
    // An orphan of nobody is not root's business …
    let mut tree = Tree::with("claude direct", free_port(), &[(AS_UID, &NOBODY.to_string())]);
    let server = tree.pid("server");
    tree.kill("session");
    tree.reap();
    let (pid, why) = foreign(Judge::of_this_user().judge(tree.port));
    assert!(pid == server && why.contains("65534"), "{why}");
    assert_eq!(tree.clear_port("").status.code(), Some(5));
    assert!(tree.answers());
    drop(tree);
    // … and an orphan of root not nobody's, who cannot even see it.
    let mut tree = Tree::start("claude direct");
    tree.pid("server");
    tree.kill("session");
    tree.reap();
    let mut command = clear_port(tree.port, "");
    let output = std::os::unix::process::CommandExt::uid(&mut command, NOBODY).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(text(&output.stderr).contains("belongs to another user (uid 0)"), "{output:?}");
    assert!(tree.answers());
}

fn clearing_says_what_it_did() {
    let mut tree = Tree::start("claude wrapped");
    let (server, wrapper) = (tree.pid("server"), tree.pid("wrapper"));
    tree.kill("session");
    tree.reap();
    tree.orphan(&mut Judge::of_this_user());
    let output = tree.clear_port("");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let port = tree.port;
    let expected = format!(
        "ended an orphaned fakechat, pid {server} (bun server.ts) and its wrapper, pid {wrapper}; the brain's port {port} is free\n"
    );
    assert_eq!(text(&output.stdout), expected);
    assert!(!tree.answers());
    let output = tree.clear_port("");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), format!("the brain's port {port} is free\n")));
}

fn a_dry_run_ends_nothing() {
    let mut tree = Tree::start("claude direct");
    let server = tree.pid("server");
    tree.kill("session");
    tree.reap();
    tree.orphan(&mut Judge::of_this_user());
    let output = tree.clear_port("--dry-run");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).ends_with("would be ended\n"), "{output:?}");
    let expected = |ended: &[u32], dry_run: bool| {
        json!({"side": "brain", "port": tree.port, "found": "orphan", "holder": {"pid": server, "command": "bun server.ts"},
            "session": null, "ended": ended, "free": !dry_run, "dry_run": dry_run})
    };
    assert_eq!(document(&tree.clear_port("--json --dry-run")), expected(&[], true));
    assert!(tree.answers());
    assert_eq!(document(&tree.clear_port("--json")), expected(&[server], false));
    assert!(!tree.answers());
}

fn clearing_twice_at_once() {
    for _ in 0..10 {
        let mut tree = Tree::start("claude wrapped");
        tree.pid("server");
        tree.kill("session");
        tree.reap();
        tree.orphan(&mut Judge::of_this_user());
        let both: Vec<_> =
            (0..3).map(|_| clear_port(tree.port, "").stdout(std::process::Stdio::piped()).spawn().unwrap()).collect();
        for one in both {
            let output = one.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            assert!(text(&output.stdout).contains("is free"), "{output:?}");
        }
        assert!(!tree.answers());
    }
}

fn a_session_without_a_fakechat_is_found() {
    let mut tree = Tree::start("claude direct");
    let (server, session) = (tree.pid("server"), tree.pid("session"));
    kill(server);
    let found = without_channel(tree.port).unwrap();
    let [only] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((only.pid, only.command.as_str()), (session, "claude direct"));
    assert_eq!(without_channel(free_port()).unwrap(), []);
    tree.kill("session");
    until("it is gone", || without_channel(tree.port).unwrap().is_empty().then_some(()));
}

fn the_real_fakechat() {
    let Ok(folder) = env::var("FAKECHAT_DIR") else {
        return println!("skipped: FAKECHAT_DIR does not name a checkout of the fakechat plugin");
    };
    for clean in [false, true] {
        let mut tree = Tree::start(&format!("claude real {folder}"));
        let session = tree.pid("session");
        let mut judge = Judge::of_this_user();
        let (listener, found) = until("fakechat listens", || match judge.judge(tree.port) {
            Verdict::Live { listener, session } => Some((listener, session)),
            _ => None,
        });
        assert_eq!(found.pid, session);
        assert_eq!(tree.clear_port("").status.code(), Some(4));
        if clean {
            kill(listener.parent);
        }
        tree.kill("session");
        tree.reap();
        let orphan = until("the orphan has its shape", || {
            Some(tree.orphan(&mut judge)).filter(|one| one.wrapper.is_none() == clean)
        });
        assert_eq!(orphan.listener.pid, listener.pid);
        let found = document(&tree.clear_port("--json"));
        assert_eq!((&found["found"], &found["free"]), (&json!("orphan"), &json!(true)), "{found}");
        assert_eq!(judge.judge(tree.port), Verdict::Free);
    }
}
