use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use crate::config::Side;
use crate::hook::NamedFile;
use crate::spool::lock::{Lock, Role};
use crate::spool::store::{CORRUPT, MAX_FILE};

use super::*;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn spool(&self) -> PathBuf {
        self.0.path().join("state/relay")
    }

    fn inbox(&self) -> PathBuf {
        self.spool().join(INBOX)
    }

    /// A file outside of the spool.
    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn put(&self, record: Record) -> PathBuf {
        match put(&self.spool(), record).unwrap() {
            Put::Stored(path) => path,
            Put::Full => panic!("it is full"),
        }
    }

    fn store(&self) -> Store {
        Store::on(&self.spool(), RealFs)
    }

    fn list(&self) -> Vec<Entry> {
        let listing = list(&self.store());
        let is_odd = listing.more || listing.failed.is_some();
        assert!(!is_odd && listing.put_aside.is_empty() && listing.stuck.is_empty(), "{listing:?}");
        listing.entries
    }

    /// What lies in the inbox, dot files too.
    fn names(&self) -> Vec<String> {
        let mut names = RealFs.list(&self.inbox()).unwrap();
        names.sort();
        names
    }
}

fn record(what: What) -> Record {
    let at = OffsetDateTime::from_unix_timestamp(1_796_031_734).unwrap();
    Record { v: 1, side: Side::Brain, at, session_id: None, transcript: None, what }
}

fn reply(text: &str, files: &[&Path]) -> Record {
    let name = |path: &&Path| NamedFile { named: path.to_path_buf(), kept: None, bytes: 0, why: None };
    let files = files.iter().map(name).collect();
    record(What::Reply { message: "m5-1".into(), text: Some(text.into()), reply_to: None, files })
}

fn files(entry: &Entry) -> &[NamedFile] {
    let What::Reply { files, .. } = &entry.record.what else { panic!("it is no reply") };
    files
}

/// Makes it look unfinished for long.
fn age(path: &Path) {
    let file = fs::File::open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(4000)).unwrap();
}

#[test]
fn what_is_put_is_listed_and_removed() {
    let home = Home::new();
    assert!(home.list().is_empty(), "no inbox is an empty one");
    let mut later = reply("second", &[]);
    later.at += Duration::from_millis(1);
    home.put(later.clone());
    let path = home.put(reply("first", &[]));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let modes = [&home.spool(), &home.inbox(), &path].map(|path| mode(path));
    assert_eq!(modes, [0o700, 0o700, 0o600]);
    let entries = home.list();
    assert_eq!(entries.len(), 2);
    assert_eq!((&entries[0].record, &entries[0].path), (&reply("first", &[]), &path));
    assert_eq!(entries[1].record, later);
    remove(&home.store(), &entries[0]).unwrap();
    remove(&home.store(), &entries[0]).unwrap();
    assert_eq!(home.list().len(), 1);
}

#[test]
fn files_are_copied_before_the_record_is_there() {
    let home = Home::new();
    let (one, two) = (home.file("a b.txt", b"one"), home.file(".hid\u{1b}den", b""));
    let link = home.0.path().join("link");
    symlink(&one, &link).unwrap();
    let sizeless = Path::new("/proc/self/status");
    home.put(reply("", &[&one, &two, &link, &one, sizeless]));
    fs::remove_file(&one).unwrap();
    let entry = home.list().remove(0);
    let kept: Vec<_> = files(&entry).iter().map(|file| file.kept.as_deref().unwrap()).collect();
    assert_eq!(kept, ["1-a b.txt", "2-hid_den", "3-link", "4-a b.txt", "5-status"]);
    let read = |n: usize| fs::read(entry.copy_of(&files(&entry)[n]).unwrap()).unwrap();
    assert_eq!((read(0), read(1), read(2)), (b"one".to_vec(), Vec::new(), b"one".to_vec()));
    assert!(files(&entry)[0].bytes == 3 && files(&entry)[4].bytes > 0);
    remove(&home.store(), &entry).unwrap();
    assert!(home.names().is_empty());
}

#[test]
fn a_file_that_cannot_be_had_says_why_and_keeps_nothing_out() {
    let home = Home::new();
    let large = home.file("large", b"");
    fs::File::options().write(true).open(&large).unwrap().set_len(MAX_FILE + 1).unwrap();
    let fifo = home.0.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let dangling = home.0.path().join("dangling");
    symlink("nowhere", &dangling).unwrap();
    let (zero, none, relative) = (Path::new("/dev/zero"), home.0.path().join("none"), Path::new("../etc/passwd"));
    home.put(reply("", &[&large, relative, &none, &dangling, &fifo, zero, home.0.path()]));
    let entry = home.list().remove(0);
    let whys: Vec<_> = files(&entry).iter().map(|file| file.why.as_deref().unwrap()).collect();
    assert_eq!(whys[..2], ["it is larger than 52428800 bytes", "its name does not say in which folder it is"]);
    assert_eq!(whys[2..4], ["No such file or directory (os error 2)"; 2]);
    assert_eq!(whys[4..], ["it is not a regular file"; 3]);
    assert!(files(&entry).iter().all(|file| entry.copy_of(file).is_none()));
    assert_eq!(home.names().len(), 1, "no folder is made for nothing");
}

#[test]
fn many_and_large_files_are_bounded_together() {
    let home = Home::new();
    let small = home.file("small", b"x");
    home.put(reply("", &vec![small.as_path(); MAX_FILES + 2]));
    let entry = home.list().remove(0);
    assert_eq!(files(&entry).iter().filter(|file| file.kept.is_some()).count(), MAX_FILES);
    assert_eq!(files(&entry)[MAX_FILES].why.as_deref(), Some("it is past the first 16 files of the reply"));
    remove(&home.store(), &entry).unwrap();

    let sparse = home.file("sparse", b"");
    fs::File::options().write(true).open(&sparse).unwrap().set_len(MAX_FILE).unwrap();
    home.put(reply("", &[&sparse, &sparse, &sparse, &sparse, &sparse, &small]));
    let entry = home.list().remove(0);
    let kept: Vec<bool> = files(&entry).iter().map(|file| file.kept.is_some()).collect();
    assert_eq!(kept, [true, true, true, true, false, false]);
    assert_eq!(files(&entry)[5].why.as_deref(), Some("the files of the reply are larger than 209715200 bytes"));
}

#[test]
fn of_a_sessions_state_the_newest_is_kept() {
    let home = Home::new();
    for side in Side::BOTH {
        for n in 0..3 {
            let states = [
                What::SessionStart { source: n.to_string() },
                What::SessionEnd { reason: n.to_string() },
                What::Waiting { for_what: n.to_string() },
                What::Stopped,
                What::Prompt,
            ];
            for what in states {
                // Also if the clock went back.
                let at = OffsetDateTime::from_unix_timestamp(1_796_031_734 - n).unwrap();
                home.put(Record { side, at, ..record(what) });
            }
            home.put(Record { side, ..reply("said", &[]) });
        }
    }
    let entries = home.list();
    assert_eq!(entries.len(), 2 * (5 + 3));
    let start = |entry: &Entry| match &entry.record.what {
        What::SessionStart { source } => Some((entry.record.side, source.clone())),
        _ => None,
    };
    let starts: Vec<_> = entries.iter().filter_map(start).collect();
    assert_eq!(starts.len(), 2);
    assert!(starts.iter().all(|(_, source)| source == "2") && starts[0].0 != starts[1].0, "{starts:?}");
}

#[test]
fn when_too_many_wait_new_ones_are_dropped_and_it_is_said_once() {
    let home = Home::new();
    let first = home.put(reply("first", &[]));
    assert_eq!(overflow(&home.spool()).unwrap(), None);
    for n in 1..MAX_RECORDS {
        fs::write(home.inbox().join(format!("2-{n}.json")), "").unwrap();
    }
    let full = |seconds: u64| {
        let mut late = reply("late", &[]);
        late.at += Duration::from_secs(seconds);
        put(&home.spool(), late).unwrap()
    };
    assert_eq!((full(0), full(9)), (Put::Full, Put::Full));
    let since = reply("", &[]).at;
    assert_eq!(overflow(&home.spool()).unwrap(), Some(since));
    home.put(record(What::Stopped));
    clear_overflow(&home.store()).unwrap();
    clear_overflow(&home.store()).unwrap();
    assert_eq!(overflow(&home.spool()).unwrap(), None);
    fs::remove_file(first).unwrap();
    fs::remove_file(home.inbox().join("2-1.json")).unwrap();
    assert!(matches!(full(10), Put::Stored(_)));
}

#[test]
fn bytes_are_bounded_too() {
    let home = Home::new();
    let path = home.put(reply("first", &[]));
    let folder = path.with_extension("files");
    fs::create_dir(&folder).unwrap();
    fs::File::create(folder.join("1-sparse")).unwrap().set_len(MAX_BYTES).unwrap();
    assert_eq!(put(&home.spool(), reply("late", &[])).unwrap(), Put::Full);
}

#[test]
fn what_cannot_be_read_is_put_aside_and_the_rest_is_listed() {
    let home = Home::new();
    let good = home.put(reply("good", &[]));
    let at = |name: &str| home.inbox().join(name);
    let text = fs::read_to_string(&good).unwrap();
    fs::write(at("1-cut.json"), &text[..text.len() / 2]).unwrap();
    fs::write(at("2-other.txt"), &text).unwrap();
    fs::write(at("3-later.json"), text.replace(r#""v":1"#, r#""v":2"#)).unwrap();
    symlink(&good, at("4-link.json")).unwrap();
    fs::create_dir(at("5-folder.json")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("6-fifo.json"), rustix::fs::Mode::RWXU).unwrap();
    let kept = r#""files":[{"named":"/a","kept":"../../x"}]"#;
    fs::write(at("7-escape.json"), text.replace(r#""files":[]"#, kept)).unwrap();
    fs::create_dir(at("7-escape.files")).unwrap();
    fs::create_dir_all(home.spool().join(CORRUPT).join("1-cut.json")).unwrap();
    let listing = list(&home.store());
    assert_eq!(listing.entries.len(), 1);
    assert_eq!(listing.put_aside.len(), 7, "{:?}", listing.put_aside);
    assert!(listing.put_aside[0].path.ends_with("corrupt/1-1-cut.json"), "{:?}", listing.put_aside[0]);
    assert!(home.spool().join(CORRUPT).join("7-escape.files").is_dir());
    assert_eq!(home.list().len(), 1, "and nothing is left of them");
    assert_eq!(home.names().len(), 1);
}

#[test]
fn each_odd_thing_is_dealt_with_on_its_own() {
    let home = Home::new();
    home.put(reply("good", &[]));
    let at = |name: &str| home.inbox().join(name);
    let socket = std::os::unix::net::UnixListener::bind(at("0-socket.json")).unwrap();
    let long = "0".repeat(250) + ".json";
    fs::write(at(&long), "").unwrap();
    let not_text = std::ffi::OsStr::from_bytes(b"0\xff.json");
    fs::write(home.inbox().join(not_text), "").unwrap();
    fs::create_dir(at(OVERFLOW)).unwrap();
    let stays = home.inbox().join("0-a.files");
    fs::create_dir(&stays).unwrap();
    fs::write(at("0-a.json~"), "").unwrap();
    let corrupt = home.spool().join(CORRUPT);
    fs::create_dir_all(corrupt.join(&long)).unwrap();
    let listing = list(&home.store());
    assert_eq!(listing.entries.len(), 1);
    assert!(listing.stuck.is_empty() && listing.failed.is_none(), "{listing:?}");
    assert_eq!(listing.put_aside.len(), 5, "{listing:?}");
    assert!(listing.put_aside.iter().all(|aside| aside.path.symlink_metadata().is_ok()));
    assert!(corrupt.join("0-socket.json").exists() && stays.is_dir());
    drop(socket);
    assert_eq!(home.list().len(), 1);
}

#[test]
fn a_record_with_the_longest_name_is_read_and_removed() {
    let home = Home::new();
    let path = home.put(reply("good", &[]));
    fs::rename(path, home.inbox().join("0".repeat(250) + ".json")).unwrap();
    remove(&home.store(), &home.list()[0]).unwrap();
    assert!(home.list().is_empty());
}

#[test]
fn what_cannot_be_put_aside_is_passed_over() {
    let home = Home::new();
    home.put(reply("good", &[]));
    fs::write(home.inbox().join("0-x.json"), "").unwrap();
    fs::write(home.spool().join(CORRUPT), "").unwrap();
    let listing = list(&home.store());
    assert_eq!((listing.entries.len(), listing.put_aside.len(), listing.stuck.len()), (1, 0, 1));
    let stuck = &listing.stuck[0];
    assert!(stuck.path.ends_with("0-x.json") && stuck.path.exists(), "{stuck:?}");
    assert!(stuck.why.starts_with("it is no record: ") && stuck.why.contains("; putting it aside: "), "{stuck:?}");
}

#[test]
fn an_inbox_that_is_gone_is_made_again_but_no_spool() {
    let home = Home::new();
    home.list();
    assert!(!home.spool().exists());
    home.put(reply("x", &[]));
    fs::remove_dir_all(home.inbox()).unwrap();
    home.list();
    assert_eq!(fs::metadata(home.inbox()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn nothing_is_changed_in_another_spool_that_lies_in_place_of_the_one_that_is_locked() {
    let home = Home::new();
    let away = home.0.path().join("away");
    fs::create_dir_all(home.spool()).unwrap();
    let lock = Lock::spool(&home.spool(), Role::Bridge).unwrap();
    let store = Store::open_locked(&home.spool(), lock.place().unwrap()).unwrap();
    fs::rename(home.spool(), &away).unwrap();
    home.put(reply("theirs", &[]));
    let _theirs = Lock::spool(&home.spool(), Role::Bridge).unwrap();
    for name in ["0-x.json", ".new-x", OVERFLOW] {
        fs::write(home.inbox().join(name), "").unwrap();
    }
    age(&home.inbox().join(".new-x"));
    let entry = list(&store).entries.remove(0);
    assert!(remove(&store, &entry).is_err() && clear_overflow(&store).is_err());
    assert_eq!(home.names().len(), 4);
    assert!(!home.spool().join(CORRUPT).exists());
    fs::remove_dir_all(home.inbox()).unwrap();
    assert!(list(&store).failed.is_some());
    assert!(!home.inbox().exists());
}

#[test]
fn what_dead_hooks_left_goes_once_it_is_old() {
    let home = Home::new();
    let file = home.file("a", b"a");
    let path = home.put(reply("good", &[&file]));
    let at = |name: &str| home.inbox().join(name);
    fs::write(at(".new-x"), "half").unwrap();
    fs::create_dir(at("1-x.files")).unwrap();
    fs::write(at("1-x.files/1-a"), "half").unwrap();
    fs::write(at(".keep"), "").unwrap();
    home.list();
    assert_eq!(home.names().len(), 5, "they may be a hook's that runs");
    for path in [&at(".new-x"), &at("1-x.files"), &at(".keep"), &path.with_extension("files")] {
        age(path);
    }
    let entry = home.list().remove(0);
    assert!(entry.copy_of(&files(&entry)[0]).unwrap().is_file());
    assert_eq!(home.names().len(), 3);
    assert_eq!(home.names()[0], ".keep");
}

#[test]
fn much_comes_in_parts() {
    let home = Home::new();
    for _ in 0..BATCH_RECORDS {
        home.put(reply("x", &[]));
    }
    assert_eq!(home.list().len(), BATCH_RECORDS);
    home.put(reply("x", &[]));
    let listing = list(&home.store());
    assert_eq!((listing.entries.len(), listing.more), (BATCH_RECORDS, true));
    listing.entries.iter().for_each(|entry| remove(&home.store(), entry).unwrap());
    assert_eq!(home.list().len(), 1);
}

#[test]
fn an_inbox_that_is_no_folder_is_left_alone() {
    let home = Home::new();
    let elsewhere = home.0.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::create_dir_all(home.spool()).unwrap();
    symlink(&elsewhere, home.inbox()).unwrap();
    let error = put(&home.spool(), reply("x", &[])).unwrap_err();
    assert!(error.to_string().ends_with("relay/inbox: it is not a folder"), "{error}");
    assert!(list(&home.store()).failed.is_some());
    assert!(fs::read_dir(&elsewhere).unwrap().next().is_none());
    fs::remove_file(home.inbox()).unwrap();
    fs::write(home.inbox(), "").unwrap();
    assert!(put(&home.spool(), reply("x", &[])).is_err() && list(&home.store()).failed.is_some());
}
