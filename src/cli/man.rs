//! `anna-relay man`: the man pages, made from the command line's types.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use super::{PROGRAM, command, out};
use crate::error::{Advise, During, Result};

/// What to do where the pages cannot be written.
const ELSEWHERE: &str = "give a folder that this user may write";

/// The commands' exit codes beyond those of all: `spec.md`, "Commands".
const EXIT: &[(&str, &[(u8, &str)])] = &[
    (
        "bridge",
        &[
            (70, "a part kept failing"),
            (75, "another bridge has this spool or one of these ports"),
            (78, "the configuration cannot be used"),
        ],
    ),
    ("status", &[(1, "with --check: something needs a look"), (3, "no bridge runs")]),
    ("show", &[(1, "no hand-off, or more than one, is named so")]),
    ("send", &[(124, "no result within --timeout; the hand-off stays")]),
    ("retry", &[(1, "it is done already")]),
    ("cancel", &[(1, "it is done already")]),
    (
        "clear-port",
        &[
            (1, "it could not be cleared"),
            (4, "a live session holds it"),
            (5, "something that is not fakechat holds it"),
        ],
    ),
    ("hook", &[(0, ALWAYS)]),
    (
        "launch",
        &[
            (1, "the session could not be started"),
            (4, "a live session holds its port"),
            (5, "something that is not fakechat holds its port"),
        ],
    ),
    ("check", &[(78, "the configuration cannot be used")]),
];

/// Of the one exit code of a command that has no other.
const ALWAYS: &str = "always, whatever happens";

/// The exit codes of every command.
const EXIT_ALL: &[(u8, &str)] = &[(0, "it was done"), (1, "it failed"), (2, "the command line makes no sense")];

/// What the environment decides.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("ANNA_CONFIG", "the configuration, unless --config names one"),
    ("ANNA_LOG", "how much the bridge logs: error, warn, info (as without it), debug or trace"),
    ("CLAUDE_CONFIG_DIR", "Claude Code's folder, where it is not ~/.claude"),
    ("XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_RUNTIME_DIR", "where the files below lie instead"),
    ("NO_COLOR, TERM", "no colour where NO_COLOR is set, or TERM is dumb"),
];

/// What files there are.
const FILES: &[(&str, &str)] = &[
    ("~/.config/anna/anna.toml", "the configuration; anna-relay check shows what holds"),
    ("~/.local/state/anna/stream.log", "the stream, Anna's running record of events"),
    ("~/.local/state/anna/relay/", "the spool: a folder for each state, in it a JSON file for each hand-off"),
    ("~/.local/state/anna/relay/log/", "the bridge's logs, a file a day"),
    ("~/.local/state/anna/relay/anna-relay.sock", "the control socket of the running bridge"),
];

/// Prints the program's page, or writes it and one for each command to the folder.
///
/// # Errors
/// Where that cannot be done.
pub fn run(dir: Option<&Path>) -> Result<()> {
    let pages = pages();
    let Some(dir) = dir else {
        return pages.first().map_or(Ok(()), |(_, page)| out::print(page));
    };
    fs::create_dir_all(dir).during(format!("creating the folder {}", dir.display())).advise(ELSEWHERE)?;
    for (name, page) in pages {
        let file = dir.join(format!("{name}.1"));
        fs::write(&file, page).during(format!("writing the man page {}", file.display())).advise(ELSEWHERE)?;
    }
    Ok(())
}

/// Every page with its name: the program's, then the commands'.
fn pages() -> Vec<(String, String)> {
    let mut whole = command().disable_help_subcommand(true);
    whole.build();
    let mut pages = vec![(PROGRAM.to_owned(), page(&whole, PROGRAM, EXIT_ALL.to_vec()))];
    for part in whole.get_subcommands() {
        let name = format!("{PROGRAM}-{}", part.get_name());
        let own = EXIT.iter().find(|(command, _)| *command == part.get_name()).map_or(&[][..], |(_, codes)| codes);
        // The command's own words for a code win.
        let always = own.iter().any(|(_, text)| *text == ALWAYS);
        let common = EXIT_ALL.iter().filter(|(code, _)| !always && own.iter().all(|(other, _)| other != code));
        let mut codes: Vec<_> = common.chain(own).copied().collect();
        codes.sort_by_key(|(code, _)| *code);
        pages.push((name.clone(), page(&part.clone().display_name(&name), &name, codes)));
    }
    pages
}

fn page(command: &Command, name: &str, codes: Vec<(u8, &str)>) -> String {
    // Examples get a section with their lines as they are, which clap's own would fill.
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .manual("Anna")
        .source(format!("{PROGRAM} {}", env!("CARGO_PKG_VERSION")));
    let mut out = Vec::new();
    let write = |out: &mut Vec<u8>| -> io::Result<()> {
        man.render_title(out)?;
        man.render_name_section(out)?;
        man.render_synopsis_section(out)?;
        man.render_description_section(out)?;
        man.render_options_section(out)?;
        if command.has_subcommands() {
            man.render_subcommands_section(out)?;
        }
        Ok(())
    };
    // Writing to memory does not fail.
    write(&mut out).unwrap_or_default();
    let mut page = String::from_utf8_lossy(&out).into_owned();
    if let Some(examples) = after.strip_prefix("Examples:\n") {
        page += &format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", escape(examples));
    }
    let codes: Vec<_> = codes.iter().map(|(code, text)| (code.to_string(), *text)).collect();
    page += &section("EXIT STATUS", codes.iter().map(|(code, text)| (code.as_str(), *text)));
    page += &section("ENVIRONMENT", ENVIRONMENT.iter().copied());
    page += &section("FILES", FILES.iter().copied());
    page
}

/// A section of terms, each with its explanation.
fn section<'a>(title: &str, terms: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let terms: String =
        terms.map(|(term, text)| format!(".TP\n\\fB{}\\fR\n{}\n", escape(term), escape(text))).collect();
    format!(".SH {title}\n{terms}")
}

/// The text as roff: nothing in it is taken for a request.
fn escape(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_all_sections() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("man/man1");
        run(Some(&dir)).unwrap();
        for name in command().get_subcommands().map(Command::get_name) {
            let page = fs::read_to_string(dir.join(format!("{PROGRAM}-{name}.1"))).unwrap();
            for title in ["NAME", "SYNOPSIS", "DESCRIPTION", "\"EXIT STATUS\"", "FILES", "ENVIRONMENT"] {
                let title = title.trim_matches('"');
                assert!(page.contains(&format!("\n.SH {title}\n")), "{name}: {title}\n{page}");
            }
        }
        let send = fs::read_to_string(dir.join("anna-relay-send.1")).unwrap();
        assert!(send.contains("\\fB124\\fR\nno result within \\-\\-timeout"));
        assert!(send.contains(".SH EXAMPLES\n.nf\n  anna\\-relay send"));
        let whole = fs::read_to_string(dir.join("anna-relay.1")).unwrap();
        assert!(whole.contains(".SH SUBCOMMANDS\n"));
    }

    #[test]
    fn every_exit_code_belongs_to_a_command() {
        for (name, _) in EXIT {
            assert!(command().find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn nothing_in_a_text_is_a_request() {
        assert_eq!(escape(".a\n'b\nc\\d -e"), "\\&.a\n\\&'b\nc\\ed \\-e");
    }
}
