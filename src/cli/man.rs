//! `anna-relay man`: the man pages, made from the command line's types.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use super::help::Page;
use super::{PROGRAM, command, out};
use crate::error::{Advise, During, Error, Result};

/// What to do where the pages cannot be written.
const ELSEWHERE: &str = "give a folder that this user may write";
/// What to do where there can be no folder.
const NO_FOLDER: &str = "give a folder, not a file or what would lie in one";

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
    fs::create_dir_all(dir).map_err(|cause| {
        let hint = match cause.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => NO_FOLDER,
            _ => ELSEWHERE,
        };
        Error::failed(format!("creating the folder {}: {cause}", dir.display())).hint(hint)
    })?;
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
    let mut pages = vec![(PROGRAM.to_owned(), page(&whole, PROGRAM, &Page::of(PROGRAM)))];
    for part in whole.get_subcommands() {
        let name = format!("{PROGRAM}-{}", part.get_name());
        pages.push((name.clone(), page(&part.clone().display_name(&name), &name, &Page::of(part.get_name()))));
    }
    pages
}

fn page(command: &Command, name: &str, more: &Page) -> String {
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
    // The synopsis leaves out what an option takes.
    for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
        if let (Some(long), Some([value])) = (arg.get_long(), arg.get_value_names()) {
            let option = format!("\\fB{}\\fR", escape(&format!("--{long}")));
            page = page.replacen(&format!("{option}]"), &format!("{option} \\fI<{value}>\\fR]"), 1);
        }
    }
    if !more.notes.is_empty() {
        let notes: Vec<_> = more.notes.iter().map(|note| escape(note)).collect();
        page += &format!(".SH NOTES\n{}\n", notes.join("\n.PP\n"));
    }
    if !more.examples.is_empty() {
        page += &format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", escape(&more.examples.join("\n")));
    }
    for (title, words) in more.words {
        page += &section(&title.to_uppercase(), words.iter().copied());
    }
    let codes: Vec<_> = more.exit_codes().into_iter().map(|(code, text)| (code.to_string(), text)).collect();
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
        assert!(send.contains("\\fB124\\fR\n\\-\\-timeout passed"), "{send}");
        assert!(send.contains(".SH EXAMPLES\n.nf\nanna\\-relay send"));
        assert!(send.contains(".SH NOTES\nIt works without"));
        assert!(send.contains("[\\fB\\-\\-timeout\\fR \\fI<S>\\fR] [\\fB\\-\\-json\\fR]"), "{send}");
        let stream = fs::read_to_string(dir.join("anna-relay-stream.1")).unwrap();
        assert!(stream.contains("[\\fB\\-n\\fR|\\fB\\-\\-lines\\fR \\fI<N>\\fR] [\\fB\\-f"), "{stream}");
        let list = fs::read_to_string(dir.join("anna-relay-list.1")).unwrap();
        assert!(list.contains(".SH STAGES\n.TP\n\\fBqueued\\fR\nwaits"), "{list}");
        let whole = fs::read_to_string(dir.join("anna-relay.1")).unwrap();
        assert!(whole.contains(".SH SUBCOMMANDS\n"));
    }

    #[test]
    fn nothing_in_a_text_is_a_request() {
        assert_eq!(escape(".a\n'b\nc\\d -e"), "\\&.a\n\\&'b\nc\\ed \\-e");
    }
}
