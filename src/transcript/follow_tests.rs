use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

const SEEN: &str = include_str!("../../tests/fixtures/transcripts/seen.jsonl");

/// A line that shows the message `id`, padded with `pad` bytes.
fn shows(id: &str, pad: usize) -> String {
    let (tag, pad) = (format!(r#"<channel source=\"s\" message_id=\"{id}\">"#), "x".repeat(pad));
    let message = format!(r#"{{"role":"user","content":"{tag}\n{pad}\n</channel>"}}"#);
    format!(r#"{{"type":"user","origin":{{"kind":"channel"}},"message":{message}}}"#) + "\n"
}

/// A line of a tool's result that shows nothing, of about `size` bytes.
fn noise(size: usize) -> String {
    format!(r#"{{"type":"user","message":{{"content":"{}"}}}}"#, "y".repeat(size)) + "\n"
}

struct Play {
    _dir: tempfile::TempDir,
    path: PathBuf,
    follower: Follower,
}

impl Play {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        Play { follower: Follower::new(path.clone()), path, _dir: dir }
    }

    fn append(&self, bytes: impl AsRef<[u8]>) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
        file.write_all(bytes.as_ref()).unwrap();
    }

    fn poll(&mut self) -> (Polled, Vec<String>) {
        let mut ids = Vec::new();
        let polled = self.follower.poll(&mut |one| ids.push(one.message_id)).unwrap();
        (polled, ids)
    }

    fn ids(&mut self) -> Vec<String> {
        self.poll().1
    }

    fn restart(&mut self) {
        let kept = serde_json::to_string(&self.follower.position()).unwrap();
        self.follower = Follower::resume(serde_json::from_str(&kept).unwrap());
    }
}

#[test]
fn a_file_that_comes_and_grows_is_read_once() {
    let mut play = Play::new();
    assert!(play.poll().0.missing);
    assert_eq!(play.follower.position().ino, 0);
    play.append(SEEN);
    let (polled, ids) = play.poll();
    assert_eq!((ids.len(), polled.bytes), (15, SEEN.len() as u64));
    assert_eq!(play.poll(), (Polled::default(), vec![]));
    play.append(shows("next", 0));
    assert_eq!(play.ids(), ["next"]);
}

#[test]
fn half_a_line_waits_for_its_other_half() {
    let mut play = Play::new();
    let line = shows("é", 10);
    let cut = line.find('é').unwrap() + 1;
    play.append(&line.as_bytes()[..cut]);
    assert!(play.ids().is_empty());
    assert_eq!(play.follower.position().offset, 0);
    play.append(&line.as_bytes()[cut..line.len() - 1]);
    assert!(play.ids().is_empty());
    play.append("\n");
    assert_eq!(play.ids(), ["é"]);
    assert_eq!(play.follower.position().offset, line.len() as u64);
}

#[test]
fn a_restart_goes_on_where_it_was_also_within_a_line() {
    let mut play = Play::new();
    play.append(shows("a", 0));
    play.append(&shows("b", 0).as_bytes()[..40]);
    assert_eq!(play.ids(), ["a"]);
    play.restart();
    play.append(&shows("b", 0).as_bytes()[40..]);
    let (polled, ids) = play.poll();
    assert_eq!((ids, polled.restarted), (vec!["b".to_owned()], false));
    play.restart();
    assert_eq!(play.ids(), Vec::<String>::new());
    play.append(shows("c", 0));
    play.restart();
    assert_eq!(play.ids(), ["c"]);
}

#[test]
fn of_a_large_file_only_the_end_is_read() {
    let mut play = Play::new();
    play.append(shows("old", 0));
    play.append(noise(3_000_000));
    play.append(shows("near", 0));
    let (polled, ids) = play.poll();
    assert_eq!((ids, polled.bytes), (vec!["near".to_owned()], LOOK_BACK + 1));

    // A line that starts just where the look back does is not lost.
    let mut play = Play::new();
    let first = shows("first", 0);
    play.append(noise(500));
    play.append(&first);
    play.append(noise(usize::try_from(LOOK_BACK).unwrap() - first.len() - noise(0).len()));
    assert_eq!(play.ids(), ["first"]);
}

#[test]
fn the_end_of_one_huge_line_is_no_place_to_go_on_from() {
    let mut play = Play::new();
    play.append(noise(3_000_000).trim_end());
    assert!(play.ids().is_empty());
    assert_eq!(play.follower.position().ino, 0);
    play.append(format!("\n{}", shows("a", 0)));
    assert_eq!(play.ids(), ["a"]);
    assert_ne!(play.follower.position().ino, 0);
}

#[test]
fn cut_short_or_replaced_it_is_read_anew() {
    let mut play = Play::new();
    play.append(shows("a", 100) + &shows("b", 0));
    assert_eq!(play.ids(), ["a", "b"]);

    fs::write(&play.path, shows("c", 0)).unwrap();
    let (polled, ids) = play.poll();
    assert_eq!((ids, polled.restarted), (vec!["c".to_owned()], true));

    // Rewritten in place with more than there was, the old place within a line.
    fs::write(&play.path, shows("d", 999)).unwrap();
    let (polled, ids) = play.poll();
    assert_eq!((ids, polled.restarted), (vec!["d".to_owned()], true));

    let other = play.path.with_extension("new");
    fs::write(&other, shows("e", 2000)).unwrap();
    fs::rename(&other, &play.path).unwrap();
    let (polled, ids) = play.poll();
    assert_eq!((ids, polled.restarted), (vec!["e".to_owned()], true));

    fs::write(&other, shows("f", 0)).unwrap();
    fs::rename(&other, &play.path).unwrap();
    play.restart();
    let (polled, ids) = play.poll();
    assert_eq!((ids, polled.restarted), (vec!["f".to_owned()], true));
}

#[test]
fn gone_and_back_it_goes_on() {
    let mut play = Play::new();
    let aside = play.path.with_extension("aside");
    play.append(shows("a", 0));
    assert_eq!(play.ids(), ["a"]);
    fs::rename(&play.path, &aside).unwrap();
    assert!(play.poll().0.missing);
    fs::rename(&aside, &play.path).unwrap();
    play.append(shows("b", 0));
    let (polled, ids) = play.poll();
    assert_eq!((ids, polled.restarted), (vec!["b".to_owned()], false));
}

#[test]
fn what_is_no_plain_file_is_refused_at_once() {
    let mut play = Play::new();
    let refused = |play: &mut Play| play.follower.poll(&mut |_| {}).unwrap_err().kind();
    fs::create_dir(&play.path).unwrap();
    assert_eq!(refused(&mut play), io::ErrorKind::InvalidInput);
    fs::remove_dir(&play.path).unwrap();
    symlink("/dev/zero", &play.path).unwrap();
    assert_eq!(refused(&mut play), io::ErrorKind::InvalidInput);
    fs::remove_file(&play.path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&play.path).status().unwrap().success());
    assert_eq!(refused(&mut play), io::ErrorKind::InvalidInput);
    fs::remove_file(&play.path).unwrap();
    play.append(shows("a", 0));
    assert_eq!(play.ids(), ["a"]);
}

#[test]
fn a_folder_may_be_a_link() {
    let mut play = Play::new();
    play.append(shows("a", 0));
    let link = play.path.with_file_name("link");
    symlink(play.path.parent().unwrap(), &link).unwrap();
    play.follower = Follower::new(link.join("t.jsonl"));
    assert_eq!(play.ids(), ["a"]);
}

#[test]
fn a_poll_has_its_limit_and_long_lines_cost_no_memory() {
    let mut play = Play::new();
    play.append(shows("a", 0));
    assert_eq!(play.ids(), ["a"]);
    play.append(noise(18 * 1024 * 1024));
    play.append(shows("b", 0));
    play.append(shows("too long", 17 * 1024 * 1024));
    play.append(shows("long", 2_000_000));
    play.append(shows("c", 0));
    let (mut ids, mut too_long, mut polls) = (Vec::new(), 0, 0);
    loop {
        let (polled, found) = play.poll();
        assert!(polled.bytes <= PER_POLL);
        ids.extend(found);
        too_long += polled.too_long;
        polls += 1;
        if !polled.more {
            break;
        }
    }
    assert_eq!((ids, too_long, polls), (vec!["b".to_owned(), "long".to_owned(), "c".to_owned()], 1, 3));
    assert_eq!(play.follower.position().offset, fs::metadata(&play.path).unwrap().len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn however_it_is_written_and_polled_each_message_is_sighted_once(
        lines in prop::collection::vec((0_usize..200_000, any::<bool>()), 1..8),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..12),
    ) {
        let all: Vec<_> = lines.iter().enumerate().map(|(n, (size, shown))| {
            if *shown { shows(&n.to_string(), *size) } else { noise(*size) }
        }).collect();
        let bytes = all.concat();
        let mut cuts: Vec<_> = cuts.iter().map(|(at, restart)| (at.index(bytes.len()), *restart)).collect();
        cuts.push((bytes.len(), false));
        cuts.sort_unstable();

        let (mut play, mut ids, mut written) = (Play::new(), Vec::new(), 0);
        play.append("");
        ids.extend(play.ids());
        for (cut, restart) in cuts {
            play.append(&bytes[written..cut]);
            written = cut;
            ids.extend(play.ids());
            if restart { play.restart(); }
        }
        let shown = lines.iter().enumerate().filter(|(_, (_, shown))| *shown);
        prop_assert_eq!(ids, shown.map(|(n, _)| n.to_string()).collect::<Vec<_>>());
    }
}
