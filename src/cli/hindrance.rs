//! What keeps hand-offs from going on just now, for whoever asked for something and would wait without knowing.

use std::time::Duration;

use super::render::step;
use super::starter::Starter;
use super::{out, render};
use crate::config::{Config, Side};
use crate::control::client::Client;
use crate::control::wire::{Command, SideState, SideStatus, Status};
use crate::error::Error;
use crate::text::on_one_line;

/// How long the bridge may take to say how things stand: it answers within a millisecond.
const WITHIN: Duration = Duration::from_secs(5);

/// What is in the way, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hindrance {
    what: String,
    /// Where what is in the way does not say it itself.
    todo: Option<String>,
}

/// What a hand-off needs to go on.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// Those that have to hear of it.
    pub sides: &'a [Side],
    /// Whether it is new work, which a pause holds up.
    pub work: bool,
}

impl Need<'_> {
    /// A running bridge, and nobody else.
    pub const BRIDGE: Need<'static> = Need { sides: &[], work: false };
    /// That of a hand-off which the brain has yet to do.
    pub const WORK: Need<'static> = Need { sides: &[Side::Brain], work: true };
}

impl Hindrance {
    /// Looks for the first one.
    #[must_use]
    pub fn of(config: &Config, need: Need) -> Option<Hindrance> {
        let Some(mut client) = Client::connect(&config.paths.spool()).ok()? else {
            let todo = step::start(config, Starter::here()).join(", then ");
            return Some(Hindrance { what: "no bridge runs".to_owned(), todo: Some(todo) });
        };
        let answer = client.ask_within(Command::Status, Some(WITHIN)).ok()?;
        Hindrance::among(&serde_json::from_value(answer).ok()?, need)
    }

    fn among(status: &Status, need: Need) -> Option<Hindrance> {
        if let Some(paused) = status.paused.as_ref().filter(|_| need.work) {
            let reason = paused.reason.as_deref().map(|reason| format!(": {}", on_one_line(reason)));
            let what = format!("the relay is paused{}", reason.unwrap_or_default());
            return Some(Hindrance { what, todo: Some(step::RESUME.to_owned()) });
        }
        need.sides.iter().find_map(|side| {
            let about = match side {
                Side::Brain => &status.brain,
                Side::Bot => &status.bot,
            };
            Some(Hindrance { what: away(*side, about)?, todo: step::side(*side, about) })
        })
    }

    /// Says it on standard error, after what comes of it.
    pub fn say(&self, so: &str) {
        let error = Error::failed(format!("{so}: {}", self.what));
        out::say(&render::error(&match &self.todo {
            Some(todo) => error.hint(todo),
            None => error,
        }));
    }
}

/// Why a side does not take anything now, if that is not over in a moment.
fn away(side: Side, about: &SideStatus) -> Option<String> {
    let state = match about.state {
        SideState::Connecting | SideState::Settling => return None,
        SideState::Online if step::waits(about) => return Some(format!("the {side} waits for a person")),
        SideState::Online => return None,
        SideState::Offline => format!("the {side} is offline"),
        SideState::Orphan => format!("the {side}'s port {} is held by an orphaned fakechat", about.port),
        SideState::Foreign => format!("the {side}'s port {} is held by something else", about.port),
    };
    let why = step::why(about).map(|why| format!(": {}", on_one_line(why))).unwrap_or_default();
    Some(state + &why)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::super::render::samples;
    use super::*;
    use crate::control::wire::{Activity, Paused};

    fn said(status: &Status, need: Need) -> Option<(String, Option<String>)> {
        Hindrance::among(status, need).map(|found| (found.what, found.todo))
    }

    #[test]
    fn nothing_is_said_where_all_is_well_or_soon_will_be() {
        let mut status = samples::status();
        for state in [SideState::Online, SideState::Connecting, SideState::Settling] {
            status.brain.state = state;
            assert_eq!(said(&status, Need::WORK), None);
        }
        status.bot.state = SideState::Offline;
        assert_eq!(said(&status, Need::WORK), None, "work does not need the bot");
    }

    #[test]
    fn a_pause_holds_up_work_and_nothing_else() {
        let mut status = samples::status();
        let since = datetime!(2026-11-30 11:00 UTC);
        status.paused = Some(Paused { since, reason: Some("night".to_owned()) });
        let (what, todo) = said(&status, Need::WORK).unwrap();
        assert_eq!((what.as_str(), todo.as_deref()), ("the relay is paused: night", Some(step::RESUME)));
        assert_eq!(said(&status, Need { sides: &Side::BOTH, work: false }), None);
    }

    #[test]
    fn a_side_that_is_away_is_said_with_what_to_do() {
        let mut status = samples::status();
        status.brain.session.as_mut().unwrap().status = Some(Activity::Waiting);
        let (what, todo) = said(&status, Need::WORK).unwrap();
        assert_eq!(what, "the brain waits for a person");
        assert_eq!(todo.unwrap(), "answer it in the brain's own window");
        status.bot.state = SideState::Offline;
        status.bot.why = Some("nothing listens there".to_owned());
        let (what, todo) = said(&status, Need { sides: &[Side::Bot], work: false }).unwrap();
        assert_eq!(what, "the bot is offline: nothing listens there");
        assert!(todo.unwrap().ends_with("anna-relay launch bot"));
    }
}
