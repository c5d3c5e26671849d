//! Closed documents that the disk does not give: only what is about them waits.

use std::fs::File;
use std::sync::{Arc, Mutex};

use super::*;

/// The disk, but for what cannot be read.
#[derive(Clone, Debug, Default)]
struct Failing(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Failing {
    fn set(&self, path: &Path, fails: bool) {
        let mut paths = self.0.lock().unwrap();
        match fails {
            true => drop(paths.insert(path.to_owned())),
            false => drop(paths.remove(path)),
        }
    }
}

impl Fs for Failing {
    type File = File;

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        RealFs.make_dir(path)
    }
    fn create(&self, path: &Path) -> io::Result<File> {
        RealFs.create(path)
    }
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        RealFs.write(file, bytes)
    }
    fn sync(&self, file: &File) -> io::Result<()> {
        RealFs.sync(file)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealFs.sync_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealFs.rename(from, to)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealFs.link(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        RealFs.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealFs.remove_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        RealFs.list(path)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealFs.exists(path)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.0.lock().unwrap().contains(path) {
            true => Err(rustix::io::Errno::IO.into()),
            false => RealFs.read(path),
        }
    }
}

fn answers(spooler: &Spooler<Failing>, id: Id) -> Vec<String> {
    let (h, _) = spooler.store.load(id, &State::ALL).unwrap().unwrap();
    h.results.iter().map(|result| result.text.clone()).collect()
}

fn waits(out: &Outcome) -> usize {
    let waits =
        |effect: &&Effect| matches!(effect, Effect::Warn { text, .. } if text.contains("a reply of the brain waits"));
    out.effects.iter().filter(waits).count()
}

fn edit(message: &str, text: &str) -> Event {
    let (message, text, receipt) = (message.to_owned(), text.to_owned(), Receipt::None);
    Event::Reply(Reply { message, reply_to: None, edit: true, text, files: vec![], found: None, receipt })
}

#[test]
fn one_that_cannot_be_read_holds_up_its_own_replies_only_and_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let [bad, good] = [(); 2].map(|()| done(dir.path()).id);
    let fs = Failing::default();
    let mut spooler = open_on(Store::on(dir.path(), fs.clone()));
    let path = spooler.store.path(State::Done, bad);
    fs.set(&path, true);
    let out = spooler.process([reply(&bad.to_string(), "m1-2", vec![])], NOW);
    assert_eq!(waits(&out), 1, "{:?}", out.effects);
    let out = spooler.process([reply(&good.to_string(), "m1-3", vec![]), reply(&bad.to_string(), "m1-4", vec![])], NOW);
    assert_eq!((waits(&out), answers(&spooler, good).len()), (0, 2));
    // Tried again, and not said again, whatever else goes on.
    let again = Now { mono: out.wake_at.unwrap(), ..NOW };
    let out = spooler.process([Event::Tick, reply(&good.to_string(), "m1-5", vec![]), Event::Tick], again);
    assert_eq!((waits(&out), out.snapshot.idle, answers(&spooler, good).len()), (0, false, 3));
    fs.set(&path, false);
    // One that comes now does not overtake those that wait.
    spooler.process([reply(&bad.to_string(), "m1-6", vec![])], again);
    let out = spooler.process([Event::Tick], Now { mono: out.wake_at.unwrap(), ..NOW });
    assert!(out.snapshot.idle);
    assert_eq!(answers(&spooler, bad), ["done", "said in m1-2", "said in m1-4", "said in m1-6"]);
}

#[test]
fn edits_of_others_are_found_beside_one_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<Id> = (0..30).map(|_| done(dir.path()).id).collect();
    let fs = Failing::default();
    let mut spooler = open_on(Store::on(dir.path(), fs.clone()));
    let of = |h: usize| format!("m2-{h}");
    for (n, id) in all.iter().enumerate() {
        // Each answered by a message of its own.
        let path = spooler.store.path(State::Done, *id);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("m1-1", &of(n))).unwrap();
        fs.set(&path, n < 20);
    }
    let mut now = NOW;
    let mut warned =
        waits(&spooler.process([edit(&of(0), "first"), edit(&of(25), "better"), edit(&of(0), "second")], now));
    for _ in 0..5 {
        now.mono += Duration::from_secs(1);
        warned += waits(&spooler.process([Event::Tick, reply("", "m3-1", vec![])], now));
    }
    assert_eq!((warned, answers(&spooler, all[25])), (1, vec!["done".to_owned(), "better".to_owned()]));
    fs.0.lock().unwrap().clear();
    for _ in 0..5 {
        now.mono += Duration::from_secs(1);
        spooler.process([Event::Tick], now);
    }
    assert_eq!(answers(&spooler, all[0]), ["done", "first", "second"]);
    assert!(spooler.process([edit("m9-9", "of nobody")], now).snapshot.idle);
}
