//! The plugin: installed, off for all sessions, on for the two, and their hooks in place.

use std::path::Path;

use serde_json::Value;

use super::{Finding, Scene};
use crate::cli::external;
use crate::cli::setup::file::Settings;
use crate::cli::setup::wants::{self, EVENTS, PLUGIN, REPLY};
use crate::cli::setup::{USER_SETTINGS, json, plugin, side_settings};
use crate::config::Side;

const SETUP: &str = "run `anna-relay setup`";

/// Looks at all of that.
pub fn look(scene: &Scene) -> Vec<Finding> {
    let mut findings = vec![installed(scene), off(scene)];
    for side in Side::BOTH {
        match read(&scene.folder.join(side_settings(side))) {
            Ok(Some(settings)) => {
                findings.push(on(side, &settings));
                findings.push(hooks(scene, side, &settings));
            }
            Ok(None) => findings.push(Finding::fail(
                "plugin-on",
                format!("there is no {}", scene.folder.join(side_settings(side)).display()),
                format!("the {side} has no fakechat without it"),
                SETUP,
            )),
            Err(why) => findings.push(Finding::fail("plugin-on", why, "Claude Code ignores it", "correct it by hand")),
        }
    }
    findings
}

/// The value of a settings file; none: there is no such file.
pub fn read(path: &Path) -> Result<Option<Value>, String> {
    let file = Settings::read_any(path).map_err(|error| error.to_string())?;
    let parsed = file.text.as_deref().map(json::parse).transpose();
    parsed.map_err(|refusal| format!("{} is not JSON: {refusal}", path.display()))
}

fn installed(scene: &Scene) -> Finding {
    const CHECK: &str = "plugin";
    let (found, doubt) = match plugin::list() {
        Ok(all) => (plugin::fakechat(&all).cloned(), None),
        Err(why) => (plugin::on_disk(&scene.folder), Some(why)),
    };
    match (plugin::directory(&scene.folder, found.as_ref()), found, doubt) {
        (_, None, None) => {
            Finding::fail(CHECK, format!("{PLUGIN} is not installed"), "it is what the relay joins", SETUP)
        }
        (_, None, Some(why)) => Finding::fail(
            CHECK,
            format!("{PLUGIN} does not seem to be installed (claude plugin list --json: {why})"),
            "it is what the relay joins",
            SETUP,
        ),
        (Some(directory), Some(_), _) if !plugin::is_warm(&directory) => Finding::warn(
            CHECK,
            format!("fakechat in {} has not downloaded what it needs", directory.display()),
            "the first session downloads it at its start, and two at once break it",
            SETUP,
        ),
        (_, Some(_), _) => Finding::ok(CHECK, format!("{PLUGIN} is installed")),
    }
}

fn off(scene: &Scene) -> Finding {
    const CHECK: &str = "plugin-off";
    const WHY: &str = "it would start in each of your sessions, and the first one takes the port";
    let path = scene.folder.join(USER_SETTINGS);
    let name = path.display();
    match read(&path) {
        Err(why) => Finding::fail(CHECK, why, "Claude Code ignores it", "correct it by hand"),
        Ok(settings) => match settings.as_ref().and_then(|settings| settings.get("enabledPlugins")?.get(PLUGIN)) {
            Some(Value::Bool(false)) => Finding::ok(CHECK, "fakechat is off for your other sessions"),
            Some(_) => Finding::fail(CHECK, format!("{name} has fakechat on for all your sessions"), WHY, SETUP),
            None => Finding::warn(CHECK, format!("{name} does not turn fakechat off"), WHY, SETUP),
        },
    }
}

fn on(side: Side, settings: &Value) -> Finding {
    const CHECK: &str = "plugin-on";
    let name = side_settings(side);
    let allowed =
        |rule: &Value| rule.as_str().is_some_and(|rule| rule == REPLY || rule.starts_with("mcp__plugin_fakechat"));
    let allow = settings.pointer("/permissions/allow").and_then(Value::as_array);
    if settings.get("enabledPlugins").and_then(|plugins| plugins.get(PLUGIN)) != Some(&Value::Bool(true)) {
        return Finding::fail(
            CHECK,
            format!("{name} does not turn fakechat on"),
            format!("the {side} has none"),
            SETUP,
        );
    }
    if !allow.is_some_and(|rules| rules.iter().any(allowed)) {
        let why = format!("the {side} waits for a person at each reply, and looks silent");
        return Finding::fail(CHECK, format!("{name} does not allow fakechat's reply tool"), why, SETUP);
    }
    if settings.pointer("/env/ENABLE_TOOL_SEARCH").and_then(Value::as_str) != Some("false") {
        let why = format!("the {side} first has to search for the tool that it answers with, and may not");
        return Finding::warn(CHECK, format!("{name} does not set ENABLE_TOOL_SEARCH to \"false\""), why, SETUP);
    }
    Finding::ok(CHECK, format!("fakechat is on for the {side}"))
}

fn hooks(scene: &Scene, side: Side, settings: &Value) -> Finding {
    const CHECK: &str = "hooks";
    const WHY: &str = "without them the relay hears less of what the session does: answers made while it was away, \
                       a wait for a permission, the session's end";
    let ours = |event: &str| {
        let groups = settings.get("hooks").and_then(|hooks| hooks.get(event)).and_then(Value::as_array);
        groups.into_iter().flatten().flat_map(wants::commands).find(|hook| wants::is_our_hook(hook, side)).cloned()
    };
    let missing: Vec<&str> = EVENTS.into_iter().filter(|event| ours(event).is_none()).collect();
    let name = side_settings(side);
    if !missing.is_empty() {
        return Finding::warn(CHECK, format!("{name} has no hook of the relay for {}", missing.join(", ")), WHY, SETUP);
    }
    let user = read(&scene.folder.join(USER_SETTINGS)).ok().flatten();
    for (name, settings) in [(USER_SETTINGS, user.as_ref()), (name, Some(settings))] {
        if settings.and_then(|settings| settings.get("disableAllHooks")) == Some(&Value::Bool(true)) {
            let fix = format!("remove disableAllHooks from {name}");
            return Finding::warn(CHECK, format!("{name} turns all hooks off"), WHY, fix);
        }
    }
    let commands = EVENTS.into_iter().filter_map(ours);
    let programs =
        commands.filter_map(|hook| hook.get("command")?.as_str().and_then(|command| wants::program(command, side)));
    for program in programs {
        let here =
            if program.contains('/') { Path::new(&program).is_file() } else { external::find(&program).is_some() };
        if !here {
            return Finding::fail(
                CHECK,
                format!("{name} has hooks that call {program}, which is not there"),
                WHY,
                SETUP,
            );
        }
    }
    Finding::ok(CHECK, format!("the {side}'s hooks are in place"))
}
