//! `status`: asks the bridge; without one, reads the spool.

use std::path::Path;
use std::time::Duration;

use time::OffsetDateTime;

use crate::config::{Config, Side};
use crate::control::client::Client;
use crate::control::wire::{BreakerStatus, Command, Paused, SideState, SideStatus, Status};
use crate::error::{Advise, During, Error, Kind, Result};
use crate::handoff::life::State;
use crate::spool::read::Reader;
use crate::spool::store::LOG;
use crate::spool::{RealFs, pause};
use crate::within::within;

use super::out;
use super::render::{self, Style};
use super::starter::Starter;

/// How long the bridge may take: it answers within a millisecond, whatever else it does.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Shows how things stand. `check`: fail if something needs a look.
///
/// # Errors
/// Of kind `NotRunning` if no bridge runs; nothing more need be said then.
pub fn run(config: &Config, check: bool, json: bool) -> Result<()> {
    let status = match Client::connect(&config.paths.spool())? {
        Some(mut client) => {
            let answer = client.ask_within(Command::Status, Some(ANSWER_WITHIN));
            let answer = answer.map_err(|error| match error.kind() {
                Kind::TimedOut => Error::failed(error.to_string()).hint(format!(
                    "it hangs: see its log in {}; to have it start anew: {}",
                    config.paths.spool().join(LOG).display(),
                    Starter::here().restart()
                )),
                _ => error,
            })?;
            let status: Status = serde_json::from_value(answer).during("reading the bridge's status")?;
            if status.recovering { counted(config, status)? } else { status }
        }
        None => without_bridge(config)?,
    };
    if json {
        out::print_json(&serde_json::to_value(&status).during("putting the status together")?)?;
    } else {
        let style = Style::detect(out::is_terminal());
        out::print(&render::status(&status, config, Starter::here(), OffsetDateTime::now_utc(), &style))?;
    }
    match () {
        () if !status.running => Err(Error::silent(Kind::NotRunning)),
        () if check => match degraded(&status) {
            reasons if reasons.is_empty() => Ok(()),
            reasons => Err(Error::failed(format!("checking how things stand: {}", reasons.join("; ")))),
        },
        () => Ok(()),
    }
}

/// What needs a look.
fn degraded(status: &Status) -> Vec<String> {
    let mut reasons = Vec::new();
    for (name, side) in [(Side::Brain, &status.brain), (Side::Bot, &status.bot)] {
        let may_be_away = name == Side::Brain && status.paused.is_some();
        if side.state != SideState::Online && !may_be_away {
            reasons.push(format!("the {name} is {}", render::state(side.state)));
        }
    }
    if status.breaker.tripped {
        reasons.push("the breaker has tripped".to_owned());
    }
    if status.alarms > 0 {
        reasons.push(render::alarms(status.alarms));
    }
    reasons
}

/// What the bridge does not know yet, for it is still reading the spool, and a look at its folders tells.
fn counted(config: &Config, status: Status) -> Result<Status> {
    let root = config.paths.spool();
    let look = move || Ok((Reader::new(&root).counts(), paused(&root)));
    let (queue, paused) = within(ANSWER_WITHIN, "counting what is in the spool", look)
        .advise("the bridge runs, but has not read its spool yet: see its log, and whether the disk hangs")?;
    Ok(Status { queue: queue?, paused: paused?, ..status })
}

/// Whether the spool says that it is paused.
///
/// # Errors
/// It cannot be told.
pub(super) fn paused(root: &Path) -> Result<Option<Paused>> {
    pause::read(&RealFs, root, OffsetDateTime::now_utc())
        .during("reading whether the relay is paused")
        .advise("see to the file `paused` in the spool")
}

/// What the spool alone says.
fn without_bridge(config: &Config) -> Result<Status> {
    let now = OffsetDateTime::now_utc();
    let root = config.paths.spool();
    let reader = Reader::new(&root);
    let mut oldest: Option<OffsetDateTime> = None;
    let mut alarms = 0;
    for id in reader.ids(&[State::New, State::Brain, State::Out])? {
        let Ok(Some((h, _))) = reader.load(id) else { continue };
        alarms += usize::from(h.alarmed.is_some() && h.waits_for_result());
        if h.wants_push(None) {
            oldest = Some(oldest.map_or(h.waiting_since(), |oldest| oldest.min(h.waiting_since())));
        }
    }
    let side = |side| SideStatus {
        port: config.relay.port(side),
        state: SideState::Offline,
        why: Some("no bridge runs".to_owned()),
        since: None,
        holder: None,
        session: None,
    };
    Ok(Status {
        running: false,
        pid: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_s: None,
        paused: paused(&root)?,
        breaker: BreakerStatus {
            limit: config.relay.breaker_count,
            window_s: config.relay.breaker_window.as_secs_f64(),
            ..BreakerStatus::default()
        },
        brain: side(Side::Brain),
        bot: side(Side::Bot),
        queue: reader.counts()?,
        recovering: false,
        oldest_waiting_s: oldest.map(|oldest| (now - oldest).whole_seconds().max(0).cast_unsigned()),
        alarms,
        actors: Vec::new(),
    })
}
