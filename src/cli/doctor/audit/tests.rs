use super::*;

/// One rule a line.
const FAILS: &str = r#"
*
Bash
Bash()
Bash(*)
Bash(:*)
Bash(* *)
Bash(curl:*)
Bash(curl *)
Bash(curl*)
Bash(cu*)
Bash(c*)
Bash(curl http://127.0.0.1:8788/upload)
Bash(wget:*)
Bash(nc:*)
Bash(python3 *)
Bash(python3.12:*)
Bash(python -c:*)
Bash(/usr/bin/curl:*)
Bash(/usr/bin/*)
Bash(/usr/bin/env node:*)
Bash(env:*)
Bash(env FOO=1 node x.js)
Bash(FOO=1 curl:*)
Bash(FOO=* ls)
Bash(bun:*)
Bash(bunx:*)
Bash(node:*)
Bash(deno run:*)
Bash(perl:*)
Bash(ruby -e:*)
Bash(php:*)
Bash(ssh:*)
Bash(socat:*)
Bash(telnet localhost 8788)
Bash(bash:*)
Bash(sh -c:*)
Bash(bash -c 'echo > /dev/tcp/127.0.0.1/8788')
Bash(echo x > /dev/tcp/localhost/8788)
Bash(. *)
WebFetch
WebFetch(domain:*)
WebFetch(domain:localhost)
mcp__*
mcp__*browser*
mcp__playwright__browser_navigate
mcp__puppeteer
mcp__fetch__fetch
mcp__claude-in-chrome__*
mcp__shell__run
Bash(anna-relay send:*)
Bash(anna-relay:*)
Bash(anna-relay *)
Bash(anna-relay s*)
Bash(anna-relay hook bot)
Bash(anna-relay retry:*)
Bash(~/.local/bin/anna-relay send:*)
Bash(anna-relay --config x send:*)
Bash(anna-relay reset-breaker)
Bash(anna*)
Bash(anna-relay setup:*)
Bash(git:*)
Bash(git clone:*)
Bash(git -c:*)
Bash(find:*)
Bash(find . -exec ls {} +)
Bash(xargs:*)
Bash(xargs curl)
Bash(awk:*)
Bash(sed:*)
Bash(make:*)
Bash(npm run:*)
Bash(npx:*)
Bash(cargo:*)
Bash(docker:*)
Bash(vim:*)
Bash(sudo:*)
Bash(sudo curl:*)
Bash(timeout 5 curl:*)
Bash(nohup:*)
Bash(timeout --signal KILL 5 curl x)
Bash(ls && curl:*)
Bash(cat x | nc:*)
Bash(echo $(curl x))
Bash(* --version)
Bash(tmux send-keys:*)
Bash(claude:*)
Bash(tar:*)
PowerShell(ls:*)
Monitor
Bash(\curl:*)
Bash("curl":*)
 Bash( curl:* ) 
Bash(busybox wget:*)
Bash(time curl:*)
Bash(gcc-13:*)
Bash(openssl s_client:*)
mcp__*__navigate
Bash(for *)
"#;

/// One rule a line.
const WARNS: &str = r#"
Edit
Write(~/**)
Write(//etc/**)
Edit(.claude/settings.json)
Bash(tee:*)
Bash(cp:*)
Bash(gh pr list:*)
Bash(systemctl restart:*)
Bash(systemctl --user restart x)
Bash(anna-relay pause:*)
Bash(sudo systemctl status:*)
Bash(dig:*)
mcp__plugin_fakechat_fakechat
mcp__plugin_fakechat_fakechat__*
mcp__plugin_fakechat_fakechat__edit_message
Bash(kill:*)
Bash(./deploy.sh:*)
Bash(~/bin/thing *)
"#;

/// One rule a line.
const FINE: &str = r#"
mcp__plugin_fakechat_fakechat__reply
mcp__plugin_telegram_telegram__reply
Read
Read(~/notes/**)
Grep
Glob
WebSearch
Bash(ls:*)
Bash(cat:*)
Bash(git status:*)
Bash(git log:*)
Bash(git diff *)
Bash(date)
Bash(anna-relay status:*)
Bash(anna-relay list:*)
Bash(anna-relay show *)
Bash(anna-relay cancel:*)
Bash(anna-relay --json status)
Bash(find . -name x)
Bash(node --version)
Bash(env)
Edit(src/**)
Bash(systemctl --user status:*)
Bash(timeout 5 ls:*)
Bash(echo:*)
Bash(curlew:*)
TodoWrite
Bash(pwd)
Bash(jq:*)
Bash(ls && pwd)
Bash(/usr/bin/ls:*)
"#;

fn rules(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.is_empty())
}

#[test]
fn what_reaches_ports_or_runs_code_fails() {
    for rule in rules(FAILS) {
        let found = audit(rule);
        assert_eq!(found.as_ref().map(|one| one.level), Some(Level::Fail), "{rule}: {found:?}");
    }
}

#[test]
fn what_deserves_a_look_is_warned_of() {
    for rule in rules(WARNS) {
        let found = audit(rule);
        assert_eq!(found.as_ref().map(|one| one.level), Some(Level::Warn), "{rule}: {found:?}");
    }
}

#[test]
fn what_is_harmless_is_let_be() {
    for rule in rules(FINE) {
        assert_eq!(audit(rule), None, "{rule}");
    }
    assert_eq!(audit(""), None);
}

#[test]
fn each_program_stands_in_one_row() {
    let mut all: Vec<&str> = TABLE.iter().flat_map(|row| row.names.split(' ')).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    assert!(!all.contains(&""));
}
