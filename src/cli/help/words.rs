//! What the words mean that commands print.

/// Words, each with what it means.
pub type Words = &'static [(&'static str, &'static str)];

/// The folders of the spool: `spec.md`, "The spool".
pub const STATES: Words = &[
    ("new", "accepted, not pushed to the brain yet"),
    ("brain", "pushed to the brain, no result yet"),
    ("out", "something in it the bot, or the brain, was not told yet"),
    ("done", "the bot was told every result"),
    ("failed", "given up, cancelled or refused"),
    ("corrupt", "could not be read, and is kept as found: `status` counts them, `list` does not show them"),
];

/// How far a hand-off has come.
pub const STAGES: Words = &[
    ("queued", "waits to be pushed to the brain"),
    ("pushed", "sent to the brain; whether it has it is not known"),
    ("seen", "in the brain's transcript: the brain has it"),
    ("answered", "has a result that the bot was not told yet"),
    ("handed to the bot", "the bot was told every result"),
    ("failed", "given up without a result; instead of the word `list` shows why:"),
    ("  attempts", "as many pushes failed as relay.max_attempts allows"),
    ("  refused", "the brain's fakechat takes no such message"),
    ("  cancelled", "by `anna-relay cancel`"),
    ("  breaker", "it came while the breaker was tripped"),
];

/// How a side stands.
pub const SIDES: Words = &[
    ("offline", "no session with a fakechat on its port"),
    ("connecting", "a connection is being opened"),
    ("settling", "connected, for less than relay.settle_s"),
    ("online", "hand-offs and results go to it"),
    ("orphan", "a fakechat whose session has ended holds its port"),
    ("foreign", "something else holds its port"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::help::with_pages;
    use crate::handoff::Reason;
    use crate::handoff::life::State;
    use crate::handoff::listed::Stage;

    #[test]
    fn every_state_and_stage_is_explained() {
        let names = |words: Words| words.iter().map(|(word, _)| word.trim()).collect::<Vec<_>>();
        let states = State::ALL.map(State::name).into_iter().chain(["corrupt"]);
        assert_eq!(names(STATES), states.collect::<Vec<_>>());
        let stages = [Stage::Queued, Stage::Pushed, Stage::Seen, Stage::Answered, Stage::Told, Stage::Failed];
        let reasons = [Reason::Attempts, Reason::Refused, Reason::Cancelled, Reason::Breaker];
        let wanted = stages.iter().map(|stage| stage.name()).chain(reasons.iter().map(Reason::word));
        assert_eq!(names(STAGES), wanted.collect::<Vec<_>>());
        let help = with_pages(crate::cli::command()).find_subcommand_mut("list").unwrap().render_help().to_string();
        assert!(help.contains("\n  seen               in the brain's transcript"), "{help}");
    }
}
