//! Made-up process tables: every shape a port's holder can have.

use proptest::prelude::*;

use super::*;

const UID: u32 = 1000;
const PORT: u16 = 8788;

/// A process that started at the tick of its own id, as where ids only count up.
fn process(pid: u32, parent: u32, command: &str) -> Process {
    Process {
        pid,
        parent,
        started: u64::from(pid),
        uid: UID,
        zombie: false,
        name: "x".to_owned(),
        argv: command.split(' ').map(str::to_owned).collect(),
        setting: PortSetting::Port(PORT),
    }
}

fn table(processes: &[Process]) -> Table {
    processes.iter().map(|one| (one.pid, one.clone())).collect()
}

fn ask(processes: &[Process], previous: Option<&Session>) -> Verdict {
    let listener = processes[0].pid;
    let table = table(processes);
    judge(&Question { port: PORT, own_uid: UID, holders: &[listener], table: &table, previous })
}

const WRAPPER: &str = "bun run --cwd /plugins/fakechat --shell=bun --silent start";

/// The real tree: listener, wrapper, session, shell, init.
fn family() -> Vec<Process> {
    vec![
        process(40, 30, "/usr/bin/bun server.ts"),
        process(30, 20, WRAPPER),
        process(20, 10, "claude --channels plugin:fakechat@claude-plugins-official"),
        process(10, 1, "-bash"),
        process(1, 0, "/sbin/init"),
    ]
}

#[track_caller]
fn assert_live(verdict: &Verdict, session: u32) {
    assert!(matches!(verdict, Verdict::Live { session: found, .. } if found.pid == session), "{verdict:?}");
}

#[track_caller]
fn assert_orphan(verdict: &Verdict, with_wrapper: Option<u32>) {
    let Verdict::Orphan(orphan) = verdict else { panic!("{verdict:?}") };
    assert_eq!(orphan.wrapper.as_ref().map(|wrapper| wrapper.pid), with_wrapper);
}

#[track_caller]
fn assert_foreign(verdict: &Verdict, says: &str) {
    assert!(matches!(verdict, Verdict::Foreign { why, .. } if why.contains(says)), "{verdict:?}");
}

#[track_caller]
fn assert_unknown(verdict: &Verdict) {
    assert!(matches!(verdict, Verdict::Unknown { .. }), "{verdict:?}");
}

#[test]
fn nobody_holds_it() {
    let verdict = judge(&Question { port: PORT, own_uid: UID, holders: &[], table: &Table::new(), previous: None });
    assert_eq!(verdict, Verdict::Free);
}

#[test]
fn the_session_is_above_wrapper_and_listener() {
    assert_live(&ask(&family(), None), 20);
}

#[test]
fn a_session_may_start_the_listener_itself() {
    assert_live(&ask(&[process(40, 20, "bun /plugins/fakechat/server.ts"), process(20, 1, "claude")], None), 20);
}

#[test]
fn both_shapes_of_an_orphan() {
    let init = process(1, 0, "/sbin/init");
    let killed = [process(40, 30, "bun server.ts"), process(30, 1, WRAPPER), init.clone()];
    assert_orphan(&ask(&killed, None), Some(30));
    let exited = [process(40, 1, "bun server.ts"), init];
    assert_orphan(&ask(&exited, None), None);
}

#[test]
fn inits_adopt_and_own_nothing() {
    for init in ["/usr/lib/systemd/systemd --user", "tini -- claude", "/init", "dumb-init claude"] {
        assert_orphan(&ask(&[process(40, 9, "bun server.ts"), process(9, 1, init)], None), None);
    }
    for init in
        ["/sbin/init", "/usr/lib/systemd/systemd --switched-root", "sh -c claude", "node server.js", "bun run start"]
    {
        assert_orphan(&ask(&[process(40, 1, "bun server.ts"), process(1, 0, init)], None), None);
    }
    // Without its flag it is a program like any other.
    assert_live(&ask(&[process(40, 9, "bun server.ts"), process(9, 1, "systemd --system")], None), 9);
}

#[test]
fn claude_code_as_pid_1_is_a_session() {
    for session in
        ["claude", "/usr/local/bin/claude --continue", "node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"]
    {
        assert_live(&ask(&[process(40, 1, "bun server.ts"), process(1, 0, session)], None), 1);
        assert_live(
            &ask(&[process(40, 30, "bun server.ts"), process(30, 1, WRAPPER), process(1, 0, session)], None),
            1,
        );
    }
}

#[test]
fn a_session_may_run_under_bun() {
    for session in ["bunx claude", "bun x claude", "bun run claude", "bun cli.js start", "bun run"] {
        assert_live(&ask(&[process(40, 30, "bun server.ts"), process(30, 1, session)], None), 30);
    }
}

#[test]
fn a_session_that_ended_leaves_an_orphan_whoever_adopts_it() {
    let adopted = vec![process(40, 30, "bun server.ts"), process(30, 10, WRAPPER), process(10, 1, "a-subreaper")];
    let session = Session::from(&process(20, 10, "claude"));
    assert_live(&ask(&adopted, None), 10);
    assert_orphan(&ask(&adopted, Some(&session)), Some(30));
    // A zombie has ended, and so has one whose id another process has by now.
    let zombie = Process { zombie: true, ..process(20, 10, "claude") };
    assert_orphan(&ask(&[adopted.clone(), vec![zombie]].concat(), Some(&session)), Some(30));
    let other = Process { started: 99, ..process(20, 10, "claude") };
    assert_orphan(&ask(&[adopted.clone(), vec![other]].concat(), Some(&session)), Some(30));
    // One that lives lost only its wrapper.
    assert_live(&ask(&[adopted, vec![process(20, 10, "claude")]].concat(), Some(&session)), 20);
}

#[test]
fn a_parent_that_is_a_zombie_has_no_children_any_more() {
    let mut processes = family();
    processes[2].zombie = true;
    assert_orphan(&ask(&processes, None), Some(30));
    processes[1].zombie = true;
    assert_orphan(&ask(&processes, None), None);
}

#[test]
fn strangers() {
    for command in
        ["python3 -m http.server", "node server.ts", "bun", "bun run server.ts", "bun myserver.ts", "notbun server.ts"]
    {
        assert_foreign(&ask(&[process(40, 1, command)], None), "not fakechat");
    }
    let theirs = Process { uid: 0, ..process(40, 1, "bun server.ts") };
    assert_foreign(&ask(&[theirs], None), "another user (uid 0)");
    for (setting, says) in [
        (PortSetting::parse(Some("8789")), "8789"),
        (PortSetting::parse(None), "8787"),
        (PortSetting::parse(Some("")), "random"),
        (PortSetting::parse(Some("soon")), "not a port"),
    ] {
        let mut processes = family();
        processes[0].setting = setting;
        assert_foreign(&ask(&processes, None), says);
    }
    let mut processes = family();
    processes[2].uid = 0;
    assert_foreign(&ask(&processes, None), "session");
}

#[test]
fn what_cannot_be_told_is_not_guessed() {
    let mut unread = family();
    unread[0].setting = PortSetting::Unread;
    assert_unknown(&ask(&unread, None));
    // The wrapper, or the session, went away between two reads.
    assert_unknown(&ask(&[process(40, 30, "bun server.ts")], None));
    assert_unknown(&ask(&family()[..2], None));
    // The listener is about to go.
    let mut dying = family();
    dying[0].zombie = true;
    assert_unknown(&ask(&dying, None));
    // So is it where its command line is gone already; the same for what is above it.
    for n in 0..3 {
        let mut dying = family();
        dying[n].argv.clear();
        assert_unknown(&ask(&dying, None));
    }
    // A parent outside of this container.
    assert_unknown(&ask(&[process(40, 0, "bun server.ts")], None));
    // Parents in a circle.
    assert_unknown(&ask(&[process(40, 30, "bun server.ts"), process(30, 40, WRAPPER)], None));
    assert_unknown(&ask(&[process(40, 40, "bun server.ts")], None));
}

#[test]
#[cfg(target_os = "linux")]
fn an_ancestor_is_never_younger() {
    let mut reused = family();
    reused[2].started = 41;
    assert_unknown(&ask(&reused, None));
    // Two may start in one tick.
    reused[2].started = 30;
    assert_live(&ask(&reused, None), 20);
}

#[test]
fn of_several_holders_the_topmost_is_judged() {
    let ask = |holders: &[u32], processes: &[Process]| {
        judge(&Question { port: PORT, own_uid: UID, holders, table: &table(processes), previous: None })
    };
    let child = [family(), vec![process(50, 40, "git fetch")]].concat();
    assert_live(&ask(&[50, 40], &child), 20);
    let passed_on = [process(40, 30, "bun server.ts"), process(30, 1, "stranger")];
    assert_foreign(&ask(&[40, 30], &passed_on), "not fakechat");
    let apart = [family(), vec![process(60, 10, "bun server.ts")]].concat();
    assert_unknown(&ask(&[40, 60], &apart));
    assert_unknown(&ask(&[40, 30], &[process(40, 30, "bun server.ts"), process(30, 40, "bun server.ts")]));
}

#[test]
fn only_a_fakechat_with_no_live_session_may_be_ended() {
    let orphan = [process(40, 30, "bun server.ts"), process(30, 1, WRAPPER), process(1, 0, "init")];
    let both = table(&orphan);
    assert!(may_be_ended(&orphan[0], UID, &both, None).is_ok());
    assert!(may_be_ended(&orphan[1], UID, &both, None).is_ok());
    assert!(may_be_ended(&orphan[0], UID + 1, &both, None).is_err());
    assert!(may_be_ended(&orphan[2], UID, &both, None).is_err());
    let live = family();
    for one in &live {
        assert!(may_be_ended(one, UID, &table(&live), None).is_err(), "{one:?}");
    }
}

#[test]
fn a_command_is_shown_on_one_line() {
    let hostile = Process { argv: vec!["a\n\u{1b}[2J".into(), "b".repeat(500)], ..process(5, 1, "") };
    let shown = hostile.command();
    assert!(shown.starts_with("a\\n\\u{1b}[2J bbb") && shown.ends_with('…'), "{shown}");
    let thread = Process { argv: Vec::new(), name: "kthreadd".into(), ..process(2, 0, "") };
    assert_eq!(thread.command(), "[kthreadd]");
}

fn any_command() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "bun server.ts",
        WRAPPER,
        "claude",
        "bunx claude",
        "tini -- x",
        "systemd --user",
        "bash",
        "",
    ])
}

prop_compose! {
    /// Any table at all: parents in circles, zombies, ids used twice, processes missing.
    fn any_table()(rows in prop::collection::vec((1u32..12, 0u32..12, 0u64..12, any_command(), any::<bool>(), 0u32..2), 0..12)) -> Vec<Process> {
        rows.into_iter().map(|(pid, parent, started, command, zombie, stranger)| {
            Process { started, zombie, uid: UID + stranger, ..process(pid, parent, command) }
        }).collect()
    }
}

proptest! {
    /// Whatever the table: an answer comes, and what it claims is in the table.
    #[test]
    fn an_answer_always_holds_water(
        processes in any_table(),
        holders in prop::collection::vec(1u32..12, 0..3),
        previous in prop::option::of((1u32..12, 0u64..12)),
    ) {
        let table = table(&processes);
        let previous = previous.map(|(pid, started)| Session { pid, started, command: "claude".into() });
        let verdict = judge(&Question { port: PORT, own_uid: UID, holders: &holders, table: &table, previous: previous.as_ref() });
        match &verdict {
            Verdict::Free => prop_assert!(holders.is_empty()),
            Verdict::Live { listener, session } => {
                prop_assert!(listener.is_server() && listener.uid == UID && !listener.zombie);
                let session = &table[&session.pid];
                prop_assert!(session.uid == UID && !session.zombie);
            }
            Verdict::Orphan(orphan) => {
                prop_assert!(orphan.listener.is_server() && orphan.listener.uid == UID);
                // What is judged an orphan may be ended, wrapper too.
                prop_assert!(may_be_ended(&orphan.listener, UID, &table, orphan.lost.as_ref()).is_ok() || orphan.listener.pid == 1);
                if let Some(wrapper) = &orphan.wrapper {
                    prop_assert!(wrapper.is_wrapper() && wrapper.uid == UID && wrapper.pid == orphan.listener.parent);
                    prop_assert!(may_be_ended(wrapper, UID, &table, orphan.lost.as_ref()).is_ok());
                }
            }
            Verdict::Foreign { pid: Some(pid), .. } => prop_assert!(holders.contains(pid)),
            Verdict::Foreign { .. } | Verdict::Unknown { .. } => {}
        }
    }

    /// Chains of any length: what is above fakechat's own processes decides, and nothing above that.
    #[test]
    fn only_the_first_other_ancestor_counts(own in 0usize..MAX_DEPTH, above in any_command(), further in any_command()) {
        let depth = u32::try_from(own).unwrap();
        let mut processes = vec![process(100 + depth, 99 + depth, "bun server.ts")];
        processes.extend((0..depth).rev().map(|n| process(100 + n, 99 + n, WRAPPER)));
        processes.extend([process(99, 98, above), process(98, 97, further)]);
        let top = &processes[own + 1];
        match ask(&processes, None) {
            Verdict::Live { session, .. } => prop_assert!(session.pid == 99 && !top.is_init() && !top.is_fakechat() || top.is_fakechat()),
            Verdict::Orphan(_) => prop_assert!(top.is_init() || top.is_fakechat()),
            Verdict::Unknown { .. } => prop_assert!(top.is_fakechat() || own + 1 >= MAX_DEPTH),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    /// Whatever was remembered: a fakechat below a session that lives is never taken for an orphan when nothing was.
    #[test]
    fn no_live_session_is_taken_for_ended(parent in any_command()) {
        let processes = [process(40, 30, "bun server.ts"), process(30, 20, parent), process(20, 1, "claude"), process(1, 0, "init")];
        let verdict = ask(&processes, None);
        prop_assert!(matches!(verdict, Verdict::Live { .. }) || processes[1].is_init(), "{verdict:?}");
    }

    /// The way fakechat reads its port, for every port.
    #[test]
    fn every_port_is_read(port: u16) {
        prop_assert_eq!(PortSetting::parse(Some(&port.to_string())), PortSetting::Port(port));
        prop_assert_eq!(PortSetting::parse(Some(&format!(" {port}\n"))), PortSetting::Port(port));
    }
}
