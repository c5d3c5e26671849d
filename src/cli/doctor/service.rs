//! The systemd unit, and whether it outlives a login.

use std::time::Duration;

use super::Finding;
use crate::cli::external;
use crate::cli::starter::Starter;

/// How long systemd may take to answer.
const WITHIN: Duration = Duration::from_secs(10);
const UNIT: &str = "anna-relay.service";
const CHECK: &str = "unit";

/// Looks at both.
pub fn look() -> Vec<Finding> {
    match (unit(), Starter::here()) {
        (Ok(unit), _) => vec![unit, lingering()],
        (Err(why), Starter::Systemd) => vec![unasked(format!("systemd cannot be asked: {why}")), lingering()],
        (Err(_), Starter::Person) => vec![unasked(absent().to_owned())],
    }
}

/// What is said where no systemd starts programs for this user.
fn absent() -> &'static str {
    match external::find("systemctl") {
        Some(_) => "no systemd user manager runs here",
        None => "there is no systemd here",
    }
}

/// The first word of the answer, or why there is none. `is-active` and the like answer with a failure too.
fn ask(program: &str, args: &[&str]) -> Result<String, String> {
    let called = external::call(program, args, None, WITHIN);
    let called = called.map_err(|error| crate::cli::setup::plugin::reason(program, &error))?;
    match called.out.split_whitespace().next() {
        Some(word) => Ok(word.to_owned()),
        None => Err(called.why),
    }
}

fn unasked(what: String) -> Finding {
    const FIX: &str = "have `anna-relay bridge` started by whatever starts programs here";
    Finding::warn(CHECK, what, "nothing starts the bridge again", FIX)
}

/// The finding, or why systemd does not answer.
fn unit() -> Result<Finding, String> {
    const FIX: &str = "systemctl --user enable --now anna-relay";
    let state = |verb: &str| ask("systemctl", &["--user", verb, UNIT]);
    let (enabled, active) = match (state("is-enabled"), state("is-active")) {
        (Ok(enabled), Ok(active)) => (enabled, active),
        (Err(why), Ok(active)) if active != "unknown" => (format!("not known ({why})"), active),
        (Err(why), _) | (_, Err(why)) => return Err(why),
    };
    Ok(match (enabled.as_str(), active.as_str()) {
        (_, "failed") => Finding::fail(
            CHECK,
            format!("{UNIT} has failed"),
            "the bridge does not run",
            "look why: journalctl --user -u anna-relay; then systemctl --user restart anna-relay",
        ),
        ("enabled", "active" | "activating" | "reloading") => {
            Finding::ok(CHECK, format!("{UNIT} is enabled and {active}"))
        }
        (_, "active") => {
            Finding::warn(CHECK, format!("{UNIT} runs, and is {enabled}"), "it does not come back after a restart", FIX)
        }
        (missing, _) if missing == "not-found" || missing.contains("No such file") => Finding::warn(
            CHECK,
            format!("there is no {UNIT}"),
            "systemd does not run the bridge",
            "install it with ./install.sh, then systemctl --user enable --now anna-relay",
        ),
        _ => Finding::warn(CHECK, format!("{UNIT} is {enabled} and {active}"), "systemd does not run the bridge", FIX),
    })
}

fn lingering() -> Finding {
    const CHECK: &str = "lingering";
    const WHY: &str = "systemd ends the bridge, and whatever you left running in it, with your last login";
    let uid = rustix::process::geteuid().as_raw().to_string();
    match ask("loginctl", &["show-user", &uid, "--property=Linger", "--value"]).as_deref() {
        Ok("yes") => Finding::ok(CHECK, "your services outlive your logins"),
        Ok("no") => Finding::warn(CHECK, "lingering is off", WHY, "loginctl enable-linger"),
        Ok(other) => Finding::warn(CHECK, format!("lingering is {other}"), WHY, "loginctl enable-linger"),
        Err(why) => Finding::warn(
            CHECK,
            format!("it cannot be told whether lingering is on: {why}"),
            WHY,
            "loginctl enable-linger",
        ),
    }
}
