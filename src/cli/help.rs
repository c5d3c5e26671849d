//! What is said of each command beyond its options, by `--help` and by its man page: examples, notes, exit codes.

mod words;

use clap::Command;

use super::PROGRAM;
use words::{SIDES, STAGES, STATES, Words};

/// What is said of a command; of the whole program under its own name.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    command: &'static str,
    /// Command lines.
    pub examples: &'static [&'static str],
    /// Paragraphs.
    pub notes: &'static [&'static str],
    /// Words that it prints, each with what it means, under a title.
    pub words: &'static [(&'static str, Words)],
    /// Exit codes that this command has beyond those of all, or that mean something of its own here.
    exit: &'static [(u8, &'static str)],
}

/// The exit codes of all commands: `spec.md`, "Commands".
const EXIT: [(u8, &str); 4] = [
    (0, "it was done"),
    (1, "it failed"),
    (2, "the command line makes no sense"),
    (78, "the configuration cannot be used"),
];
/// They work, whatever the configuration says.
const WITHOUT_CONFIG: [&str; 4] = ["demo", "doctor", "completions", "man"];
/// It has one exit code and no other.
const NEVER_FAILS: &str = "hook";

const SENT_WITHOUT_BRIDGE: &str = "It works without a running bridge too: the hand-off is kept, and waits for one.";

/// One of which nothing more is said.
const PLAIN: Page = Page { command: "", examples: &[], notes: &[], words: &[], exit: &[] };

const PAGES: &[Page] = &[
    Page {
        command: PROGRAM,
        examples: &[
            "anna-relay status",
            "anna-relay send \"look whether the backup of last night is whole\" --wait",
            "anna-relay stream -f",
        ],
        notes: &[
            "Begin with `anna-relay demo`: it needs neither Claude nor a configuration.",
            "Some commands have exit codes of their own besides: see the help of each.",
        ],
        ..PLAIN
    },
    Page {
        command: "bridge",
        notes: &["SIGTERM ends it within 5 s, SIGHUP has it read the configuration again."],
        exit: &[
            (0, "it was told to stop"),
            (70, "a part of it kept failing"),
            (75, "another bridge has this spool or one of these ports"),
            (78, "the configuration cannot be used, or relay.enabled is not true"),
        ],
        ..PLAIN
    },
    Page {
        command: "status",
        notes: &["Without a running bridge it shows what the spool says."],
        words: &[("Sides", SIDES), ("Queue", STATES)],
        exit: &[(0, "a bridge runs"), (1, "it failed; with --check: something needs a look"), (3, "no bridge runs")],
        ..PLAIN
    },
    Page {
        command: "list",
        examples: &["anna-relay list --state failed", "anna-relay list --all --limit 20 --json"],
        notes: &["The column ID shows the last 8 characters of each id, which other commands take for the whole."],
        words: &[("States", STATES), ("Stages", STAGES)],
        ..PLAIN
    },
    Page { command: "show", exit: &[(1, "no hand-off, or more than one, is named so")], ..PLAIN },
    Page {
        command: "send",
        examples: &[
            "anna-relay send \"how full are the disks?\" --wait --timeout 600",
            "journalctl -b -p err | anna-relay send - --file report.pdf",
        ],
        notes: &[SENT_WITHOUT_BRIDGE, "The result goes to the bot like any other, with --wait too."],
        exit: &[
            (0, "it was accepted; with --wait: its result came"),
            (1, "it was not accepted; with --wait: it was given up"),
            (124, "--timeout passed without a result; the hand-off stays"),
        ],
        ..PLAIN
    },
    Page {
        command: "pause",
        examples: &["anna-relay pause --reason \"back at eight\""],
        notes: &["Without a running bridge it holds for the next one."],
        ..PLAIN
    },
    Page {
        command: "retry",
        exit: &[(1, "it is done already, or no hand-off, or more than one, is named so")],
        ..PLAIN
    },
    Page {
        command: "cancel",
        notes: &[
            "It stays in `out` until the bot and, where it was pushed, the brain were told. The bot is told of one from \
             a script too.",
        ],
        exit: &[(1, "it is done already, or no hand-off, or more than one, is named so")],
        ..PLAIN
    },
    Page {
        command: "prune",
        examples: &["anna-relay prune --older-than 30d --dry-run", "anna-relay prune --older-than 12h --state failed"],
        ..PLAIN
    },
    Page {
        command: "clear-port",
        examples: &["anna-relay clear-port bot --dry-run"],
        exit: &[
            (0, "the port is free, or was cleared"),
            (1, "it could not be cleared"),
            (4, "a live session holds it"),
            (5, "something that is not fakechat holds it"),
        ],
        ..PLAIN
    },
    Page {
        command: "launch",
        examples: &[
            "anna-relay launch brain",
            "anna-relay launch bot -- --model haiku --continue",
            "anna-relay launch bot --dry-run",
        ],
        notes: &[
            "It ends an orphaned fakechat that holds the side's port, sets FAKECHAT_PORT, takes variables that switch \
             channels off out of the environment, and becomes `claude`, with the settings that `anna-relay setup` \
             wrote. Of two launches at once the second waits for the first.",
        ],
        exit: &[
            (0, "as `claude` ends, once it was started"),
            (1, "the session could not be started"),
            (4, "a live session holds its port"),
            (5, "something that is not fakechat holds its port"),
        ],
        ..PLAIN
    },
    Page {
        command: "stream",
        examples: &["anna-relay stream -n 20", "anna-relay stream -f"],
        notes: &["\u{26a0} marks what needs a look."],
        ..PLAIN
    },
    Page { command: "demo", notes: &["It works in a folder of its own and touches nothing of yours."], ..PLAIN },
    Page {
        command: "setup",
        examples: &["anna-relay setup --dry-run", "anna-relay setup --bot-commands", "anna-relay setup --undo"],
        notes: &["It works in $CLAUDE_CONFIG_DIR, else ~/.claude. A file that is not valid JSON is left alone."],
        exit: &[(1, "a file cannot be edited, and nothing was begun; or a step failed, and the others were done")],
        ..PLAIN
    },
    Page {
        command: "doctor",
        examples: &["anna-relay doctor", "anna-relay doctor --settings ~/other-bot/settings.json --json"],
        exit: &[(0, "all is well, or there are mere warnings"), (1, "something is broken or unsafe")],
        ..PLAIN
    },
    Page {
        command: NEVER_FAILS,
        notes: &[
            "It reads the hook's JSON from standard input and prints nothing; with ANNA_LOG=debug it says on standard \
             error what it did. The settings that `anna-relay setup` writes call it.",
        ],
        exit: &[(0, "always, whatever happens")],
        ..PLAIN
    },
    Page {
        command: "completions",
        examples: &["anna-relay completions bash > ~/.local/share/bash-completion/completions/anna-relay"],
        ..PLAIN
    },
    Page {
        command: "man",
        examples: &["anna-relay man | man -l -", "anna-relay man ~/.local/share/man/man1"],
        ..PLAIN
    },
];

impl Page {
    /// What is said of that command.
    #[must_use]
    pub fn of(command: &str) -> Page {
        PAGES.iter().find(|page| page.command == command).copied().unwrap_or(PLAIN)
    }

    /// All exit codes of the command, the lowest first. Its own words for a code win.
    #[must_use]
    pub fn exit_codes(&self) -> Vec<(u8, &'static str)> {
        let applies = |code: u8| match code {
            _ if self.command == NEVER_FAILS => false,
            78 => !WITHOUT_CONFIG.contains(&self.command),
            _ => true,
        };
        let mut codes = self.exit.to_vec();
        codes.extend(EXIT.into_iter().filter(|(code, _)| applies(*code) && self.exit.iter().all(|own| own.0 != *code)));
        codes.sort_by_key(|(code, _)| *code);
        codes
    }

    /// What `--help` ends with.
    fn text(&self) -> String {
        let listed = |title: &str, lines: Vec<String>| match lines.is_empty() {
            true => None,
            false => Some(format!("{title}:\n  {}", lines.join("\n  "))),
        };
        let examples = self.examples.iter().map(|line| (*line).to_owned()).collect();
        let codes = self.exit_codes().into_iter().map(|(code, text)| format!("{code:<4} {text}")).collect();
        let notes = (!self.notes.is_empty()).then(|| self.notes.join("\n\n"));
        let words = self.words.iter().map(|(title, words)| {
            let width = words.iter().map(|(word, _)| word.len()).max().unwrap_or_default();
            listed(title, words.iter().map(|(word, text)| format!("{word:<width$}  {text}")).collect())
        });
        let parts = [listed("Examples", examples), notes].into_iter().chain(words);
        parts.chain([listed("Exit status", codes)]).flatten().collect::<Vec<_>>().join("\n\n")
    }
}

/// The command line with all of that in its help.
#[must_use]
pub fn with_pages(command: Command) -> Command {
    let add = |part: Command| {
        let text = Page::of(part.get_name()).text();
        part.after_help(text)
    };
    command.mut_subcommands(add).after_help(Page::of(PROGRAM).text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_that_of_a_command() {
        let whole = crate::cli::command();
        for page in PAGES {
            assert!(page.command == PROGRAM || whole.find_subcommand(page.command).is_some(), "{page:?}");
        }
        assert!(WITHOUT_CONFIG.iter().all(|name| whole.find_subcommand(name).is_some()));
    }

    /// `spec.md`, "Commands".
    #[test]
    fn every_command_has_the_exit_codes_of_the_contract() {
        let codes = |name: &str| Page::of(name).exit_codes().into_iter().map(|(code, _)| code).collect::<Vec<_>>();
        for part in crate::cli::command().get_subcommands() {
            let expected: &[u8] = match part.get_name() {
                "bridge" => &[0, 1, 2, 70, 75, 78],
                "status" => &[0, 1, 2, 3, 78],
                "send" => &[0, 1, 2, 78, 124],
                "clear-port" | "launch" => &[0, 1, 2, 4, 5, 78],
                "hook" => &[0],
                "demo" | "doctor" | "completions" | "man" => &[0, 1, 2],
                _ => &[0, 1, 2, 78],
            };
            assert_eq!(codes(part.get_name()), expected, "{}", part.get_name());
        }
    }
}
