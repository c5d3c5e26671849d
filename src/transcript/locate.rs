//! Where a session's transcript is.
//!
//! A hook says it outright; else it follows from the session's entry in Claude Code's registry
//! ([`crate::port::registry`]): `<claude folder>/projects/<slug of its folder>/<session id>.jsonl`. `/clear` gives the
//! same process a new session id, and so a new file: ask again whenever the id changes.

use std::path::{Component, Path, PathBuf};

/// The longest session id that is believed, characters: a UUID has 36.
const MAX_SESSION_ID: usize = 64;
/// How many project folders are looked through for a transcript that is not where it should be.
const MAX_FOLDERS: usize = 4096;

/// The name of a project's folder: each UTF-16 unit of its path that is not an ASCII letter or digit as `-`.
///
/// So it does in Claude Code (`/home/anna/bot` is `-home-anna-bot`, `é` one dash, an emoji two). Names past 200
/// characters it shortens with a hash of its own: those are found by [`find`] alone.
#[must_use]
pub fn slug(cwd: &Path) -> String {
    let plain = |one: char| one.is_ascii_alphanumeric();
    let path = cwd.to_string_lossy();
    path.chars().flat_map(|one| std::iter::repeat_n(if plain(one) { one } else { '-' }, one.len_utf16())).collect()
}

/// Whether this can be Claude's id of a session: it names files, so nothing but letters, digits and dashes.
#[must_use]
pub fn is_session_id(id: &str) -> bool {
    let plain = |one: u8| one.is_ascii_alphanumeric() || one == b'-';
    (1..=MAX_SESSION_ID).contains(&id.len()) && id.bytes().all(plain)
}

/// Where the transcript of the session with that id and folder should be, there yet or not.
#[must_use]
pub fn expected(claude_folder: &Path, cwd: &Path, session_id: &str) -> Option<PathBuf> {
    let sane = is_session_id(session_id) && cwd.is_absolute();
    sane.then(|| claude_folder.join("projects").join(slug(cwd)).join(format!("{session_id}.jsonl")))
}

/// Where it is: where it should be or, where nothing is there, in whichever project has it (a link in the path of
/// its folder, a very long one, or a session that changed its folder make the slug another). Not there at all:
/// where it should be, for it may come yet. Looks at the disk: one call, or a few thousand in the worst case.
#[must_use]
pub fn find(claude_folder: &Path, cwd: &Path, session_id: &str) -> Option<PathBuf> {
    let expected = expected(claude_folder, cwd, session_id)?;
    if is_file(&expected) {
        return Some(expected);
    }
    let name = format!("{session_id}.jsonl");
    let projects = std::fs::read_dir(claude_folder.join("projects")).into_iter().flatten().take(MAX_FOLDERS);
    let elsewhere = projects.flatten().map(|project| project.path().join(&name)).find(|path| is_file(path));
    Some(elsewhere.unwrap_or(expected))
}

/// The transcript that a hook named, if that is a name for one: an absolute path without `..`, and in the end
/// `<session id>.jsonl`.
#[must_use]
pub fn from_hook(transcript_path: &Path) -> Option<PathBuf> {
    let id = transcript_path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    let straight = transcript_path.components().all(|part| part != Component::ParentDir);
    (transcript_path.is_absolute() && straight && is_session_id(id)).then(|| transcript_path.to_owned())
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ID: &str = "d488da11-a7e5-4334-8691-13c1ec87eb37";

    #[test]
    fn the_recorded_hook_names_the_file_that_follows_from_id_and_folder() {
        let real = "/home/anna/.claude/projects/-home-anna-bot/d488da11-a7e5-4334-8691-13c1ec87eb37.jsonl";
        let expected = expected(Path::new("/home/anna/.claude"), Path::new("/home/anna/bot"), ID);
        assert_eq!(expected.as_deref(), Some(Path::new(real)));
        assert_eq!(from_hook(Path::new(real)), expected);
    }

    #[test]
    fn a_slug_has_dashes_for_all_but_ascii_letters_and_digits() {
        for (cwd, slug_) in [
            ("/home/anna/My Bot_2.0", "-home-anna-My-Bot-2-0"),
            ("/home/änna", "-home--nna"),
            ("/home/🌱", "-home---"),
            ("/", "-"),
        ] {
            assert_eq!(slug(Path::new(cwd)), slug_, "{cwd}");
        }
    }

    #[test]
    fn what_names_no_transcript_is_refused() {
        for odd in ["", ".", "..", "../x", "a/b", "a\\b", "a\0", "ä", &"a".repeat(65)] {
            assert!(!is_session_id(odd), "{odd:?}");
            assert_eq!(expected(Path::new("/c"), Path::new("/w"), odd), None);
        }
        assert_eq!(expected(Path::new("/c"), Path::new("w"), ID), None);
        for odd in
            ["x.jsonl", "/p/../x.jsonl", "/p/x.json", "/p/.jsonl", "/p/..jsonl", "/p/..", "/", "", "/p/a b.jsonl"]
        {
            assert_eq!(from_hook(Path::new(odd)), None, "{odd:?}");
        }
    }

    #[test]
    fn a_transcript_under_another_slug_is_found_and_a_link_is_not() {
        let claude = tempfile::tempdir().unwrap();
        let cwd = Path::new("/link/to/bot");
        let expected = expected(claude.path(), cwd, ID).unwrap();
        assert_eq!(find(claude.path(), cwd, ID).as_ref(), Some(&expected));

        let elsewhere = claude.path().join("projects/-real-bot").join(format!("{ID}.jsonl"));
        fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &elsewhere).unwrap();
        assert_eq!(find(claude.path(), cwd, ID).as_ref(), Some(&expected));
        fs::remove_file(&elsewhere).unwrap();
        fs::write(&elsewhere, "").unwrap();
        assert_eq!(find(claude.path(), cwd, ID).as_ref(), Some(&elsewhere));

        fs::create_dir_all(expected.parent().unwrap()).unwrap();
        fs::write(&expected, "").unwrap();
        assert_eq!(find(claude.path(), cwd, ID).as_ref(), Some(&expected));
        assert_eq!(find(claude.path(), cwd, "../x"), None);
    }
}
