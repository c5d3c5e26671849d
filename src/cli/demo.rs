//! `demo`: the whole round, without Claude: a real bridge, two built-in fakechats, a scripted brain.

mod stage;

use std::time::Duration;

use crate::error::{Error, Result};
use crate::fakechat::server::Received;

use super::out;
use stage::Stage;

/// What the bot hands off.
const ASKED: &str = "how many days does this year have left?";
/// What the scripted brain answers.
const ANSWER: &str = "31, and then it is New Year";
/// How long each step may take: many times what a slow machine needs.
const WITHIN: Duration = Duration::from_secs(10);

/// Shows it.
///
/// # Errors
/// A step did not happen in time: says which.
pub fn run() -> Result<()> {
    out::print_line(
        "anna-relay demo: one hand-off from the bot to the brain and back, between two built-in fakechats\n",
    )?;
    let mut stage = Stage::set()?;
    let shown = show(&mut stage);
    stage.clear();
    shown?;
    out::print_line(
        "\nThat was the real bridge. To have it between your own two sessions, see \"Turning it on\" in the README; \
         `anna-relay doctor` says what is missing.",
    )
}

fn show(stage: &mut Stage) -> Result<()> {
    let bot = stage.bot.port();
    stage.say(&format!("the bot's fakechat listens on port {bot}; the brain is away"))?;
    let pid = stage.start_bridge()?;
    stage.say(&format!("the bridge runs (pid {pid})"))?;
    stage.wait_status("the bot to be online", |status| status["bot"]["state"] == "online")?;
    stage.say("the bot is online: its websocket has been up for settle_s")?;

    stage.bot.say(&format!("RELAY: {ASKED}"), None);
    stage.say(&format!("bot → relay    RELAY: {ASKED}"))?;
    stage.wait_status("the hand-off to be accepted", |status| status["queue"]["new"] == 1)?;
    stage.say("it is on disk, and waits for the brain (queue: 1 new)")?;

    let brain = stage.start_brain(ANSWER)?;
    stage.say(&format!("the brain comes back, on port {brain}"))?;
    let handed = stage.received_by_brain(WITHIN)?;
    stage.say(&format!("relay → brain  {}", handed.text))?;
    stage.say(&format!("brain → relay  {ANSWER}   (reply_to {})", handed.id))?;

    let told = stage.received_by_bot(WITHIN, |all| all.iter().any(|one| one.text.contains(ANSWER)))?;
    let Some(result) = told.iter().find(|one| one.text.contains(ANSWER)) else {
        return Err(Error::failed("showing the demo: the result did not reach the bot"));
    };
    for (n, line) in result.text.lines().enumerate() {
        stage.say(&format!("{}{line}", if n == 0 { "relay → bot    " } else { "               " }))?;
    }

    echo(stage, result)?;
    stage.wait_status("the hand-off to be done", |status| status["queue"]["done"] == 1)?;
    stage.say("all told (queue: 1 done)")
}

/// A bot that echoes what it was told makes no hand-off of it.
fn echo(stage: &mut Stage, result: &Received) -> Result<()> {
    let echo = format!("RELAY: {ANSWER}");
    stage.bot.say(&echo, Some(&result.id));
    stage.say(&format!("bot → relay    {echo}   (an echo: it has a reply_to)"))?;
    let line = stage.wait_stream("the guard to refuse the echo", "RELAY: of the bot was refused")?;
    stage.say(&format!("guard          {line}"))
}
