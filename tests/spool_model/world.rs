//! A relay without its actors: a spooler on the made-up disk, two sides that do as they are told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anna_relay::config::Side;
use anna_relay::error::Error;
use anna_relay::handoff::life::State;
use anna_relay::handoff::{HandOff, Id, Origin, SessionKey};
use anna_relay::queue::event::{Arrival, Incoming, Reply};
use anna_relay::queue::{Effect, Event, Now, Pushed, Receipt, Settings, Token};
use anna_relay::spool::Store;
use anna_relay::spool::closed::Listed;
use anna_relay::spool::trouble::explained;
use anna_relay::spooler::{Outcome, Snapshot, Spooler};
use time::macros::datetime;

use super::ledger::{Known, Promise};
use super::sim::SimFs;

/// A push that is under way.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Where to.
    pub side: Side,
    /// Its name.
    pub token: Token,
    /// What is said.
    pub text: String,
    /// Whether it got its 204.
    pub accepted: bool,
}

/// See the module.
pub struct World {
    /// The disk.
    pub fs: SimFs,
    /// The relay; none while it is down.
    pub spooler: Option<Spooler<SimFs>>,
    /// The time.
    pub now: Now,
    /// What is under way.
    pub flights: Vec<Flight>,
    /// What was promised.
    pub known: BTreeMap<Id, Known>,
    /// How things stand.
    pub snapshot: Snapshot,
    /// When there is something to do.
    pub wake_at: Option<Duration>,
    /// Lines for the stream.
    pub lines: Vec<String>,
    /// Whether it is paused, as far as that was promised.
    pub paused: Option<bool>,
    online: [Option<Option<SessionKey>>; 2],
    /// What is not promised yet.
    pub promises: BTreeMap<u64, Promise>,
    next: u64,
    lives: u64,
    /// What the closed folders held when they were listed: told only after what happens next.
    listed: Option<Result<Listed, Error>>,
    /// Whether each write finds a file made for it.
    prepares: bool,
}

/// Where the spool is.
pub const ROOT: &str = "/relay";

fn settings() -> Settings {
    Settings {
        alarm: Duration::from_secs(1800),
        max_attempts: 3,
        gap: Duration::from_secs(10),
        inline_bytes: 64 * 1024,
    }
}

impl World {
    /// A new spool, and a relay on it; whether it has time to make a file before each write.
    pub fn new(prepares: bool) -> Self {
        let folders = ["", "new", "brain", "out", "done", "failed", "corrupt", "tmp", "files"];
        let fs =
            SimFs::with_dirs(folders.map(|name| Path::new(ROOT).join(name)).map(|path| path.components().collect()));
        let mut world = World {
            fs,
            spooler: None,
            now: Now { mono: Duration::from_secs(1000), wall: datetime!(2026-11-30 10:00 UTC) },
            flights: Vec::new(),
            known: BTreeMap::new(),
            snapshot: Snapshot::default(),
            wake_at: None,
            lines: Vec::new(),
            paused: Some(false),
            online: [None, None],
            promises: BTreeMap::new(),
            next: 0,
            lives: 0,
            listed: None,
            prepares,
        };
        assert!(world.open(), "a new spool");
        world
    }

    /// Starts the relay. Whether it came up.
    pub fn open(&mut self) -> bool {
        self.lives += 1;
        (self.flights, self.online, self.spooler) = (Vec::new(), [None, None], None);
        self.promises.clear();
        self.listed = None;
        let store = Store::on(Path::new(ROOT), self.fs.clone());
        let opened = store.sweep().and_then(|()| Spooler::open(store, settings(), self.lives << 32, self.now));
        match opened {
            Ok(spooler) if !self.fs.is_dead() => self.spooler = Some(spooler),
            _ => return false,
        }
        self.event(Event::Tick);
        !self.fs.is_dead()
    }

    /// The process is no more; the disk shows all that it did.
    pub fn kill(&mut self) {
        self.spooler = None;
        self.fs.revive();
    }

    /// The process is killed, or the power is cut: the seed says what that leaves, 0 the least.
    pub fn crash(&mut self, power_cut: Option<u64>) {
        let Some(seed) = power_cut.filter(|_| self.fs.is_sound()) else { return self.kill() };
        self.spooler = None;
        let mut random = fastrand::Rng::with_seed(seed);
        self.fs.power_cut(&mut |n| if seed == 0 { 0 } else { random.usize(0..n) });
    }

    /// The same world without its relay, on a copy of that disk.
    pub fn branch(&self, fs: &SimFs) -> Self {
        World {
            fs: fs.copy(),
            spooler: None,
            now: self.now,
            flights: Vec::new(),
            known: self.known.clone(),
            snapshot: self.snapshot.clone(),
            wake_at: None,
            lines: Vec::new(),
            paused: self.paused,
            online: [None, None],
            promises: BTreeMap::new(),
            next: self.next,
            lives: self.lives,
            listed: None,
            prepares: self.prepares,
        }
    }

    /// Gives an event to the relay, if it runs.
    pub fn event(&mut self, event: Event) {
        let listed = self.listed.take();
        for event in [Some(event), listed.map(Event::Listed)].into_iter().flatten() {
            let Some(spooler) = &mut self.spooler else { return };
            let outcome = spooler.process([event], self.now);
            if !self.fs.is_dead() {
                self.take(outcome);
            }
        }
        // There is time.
        if let Some(spooler) = &self.spooler {
            spooler.tidy();
            if self.prepares && !spooler.is_prepared() {
                spooler.prepare();
            }
        }
    }

    /// The closed folders are listed, also if that failed before.
    pub fn be_listed(&mut self) {
        for _ in 0..3 {
            if self.listed.is_some() || !self.snapshot.counted {
                self.event(Event::Tick);
            }
        }
    }

    /// Time passes.
    pub fn pass(&mut self, time: Duration) {
        self.now.mono += time;
        self.now.wall += time;
        self.event(Event::Tick);
    }

    fn promise(&mut self, promise: Promise) -> u64 {
        self.next += 1;
        self.promises.insert(self.next, promise);
        self.next
    }

    /// A hand-off from the bot, or the same again.
    pub fn accept(&mut self, message: &str) -> Id {
        let id = Id::derive(Side::Bot, message);
        let receipt = Receipt::Frame(Side::Bot, self.promise(Promise::Accepted(id)));
        // One that a crash left on the disk has its place already.
        let there = self.find(id).is_some();
        self.known.entry(id).or_default().placeless |= there;
        let message = Some(message.to_owned());
        let arrival = Arrival { id, from: Origin::Bot, text: "do it".into(), message, files: vec![], receipt };
        self.event(Event::Accept(arrival));
        id
    }

    /// The brain says something: each text is another one.
    pub fn reply(&mut self, id: Id, message: &str, text: &str, edit: bool, files: Vec<Incoming>) {
        let answers = |(h, _): &(HandOff, State)| !edit || h.results.iter().any(|r| r.message == message);
        let promise = match self.find(id).filter(answers) {
            Some(_) => Promise::Recorded(id, text.to_owned()),
            None => Promise::Nothing,
        };
        self.known.entry(id).or_default().replied_to = true;
        let receipt = Receipt::Frame(Side::Brain, self.promise(promise));
        let (reply_to, message) = ((!edit).then(|| id.to_string()), message.to_owned());
        self.event(Event::Reply(Reply { message, reply_to, edit, text: text.into(), files, found: None, receipt }));
    }

    /// A file that was fetched into `tmp/`.
    pub fn fetched(&mut self, name: &str) -> Incoming {
        use anna_relay::spool::Fs;
        let path: PathBuf = Path::new(ROOT).join("tmp").join(name);
        let written = self.fs.create(&path).and_then(|mut file| {
            self.fs.write(&mut file, b"abc")?;
            self.fs.sync(&file)
        });
        if let Err(error) = written {
            return Incoming::Lost { name: format!("{name}: {error}") };
        }
        Incoming::Fetched { name: name.to_owned(), path, bytes: 3 }
    }

    /// A person's wish.
    pub fn cancel(&mut self, id: Id) {
        let receipt = Receipt::Request(self.promise(Promise::Cancelled(id)));
        self.event(Event::Cancel { id, receipt });
    }

    /// A person's wish.
    pub fn retry(&mut self, id: Id) {
        let known = self.known.entry(id).or_default();
        (known.cancelled, known.alarms) = (false, 0);
        let receipt = Receipt::Request(self.promise(Promise::Retried(id)));
        self.event(Event::Retry { id, receipt });
    }

    /// A person's wish.
    pub fn prune(&mut self, ids: Vec<Id>) {
        for id in &ids {
            // From here on it may be there or not.
            if matches!(self.find(*id), Some((_, State::Done | State::Failed))) {
                self.known.insert(*id, Known::default());
            }
        }
        let receipt = Receipt::Request(self.promise(Promise::Nothing));
        self.event(Event::Prune { ids, receipt });
    }

    /// A person's wish.
    pub fn pause(&mut self, pause: bool) {
        self.paused = None;
        let receipt = Receipt::Request(self.promise(Promise::Paused(pause)));
        match pause {
            true => self.event(Event::Pause { reason: None, receipt }),
            false => self.event(Event::Resume { receipt }),
        }
    }

    /// A side comes or goes, with what it had under way.
    pub fn side(&mut self, side: Side, online: bool, session: Option<SessionKey>) {
        if !online {
            while let Some(at) = self.flights.iter().position(|flight| flight.side == side) {
                let token = self.flights[at].token;
                self.land(token, Pushed::Failed { why: "the websocket dropped".into(), permanent: false });
            }
        }
        self.online[side as usize] = online.then_some(session);
        self.event(Event::Side { side, online, session });
    }

    /// Word of a push.
    pub fn land(&mut self, token: Token, pushed: Pushed) {
        match pushed {
            Pushed::Accepted => self.flights.iter_mut().filter(|f| f.token == token).for_each(|f| f.accepted = true),
            _ => {
                for flight in self.flights.extract_if(.., |flight| flight.token == token).collect::<Vec<_>>() {
                    if pushed == Pushed::NotTried {
                        self.not_posted(flight.side, &flight.text);
                    }
                }
            }
        }
        self.event(Event::Pushed { token, pushed });
    }

    /// The push to that side whose POST is under way.
    pub fn posting(&self, side: Side) -> Option<Flight> {
        self.flights.iter().find(|flight| flight.side == side && !flight.accepted).cloned()
    }

    /// A side whose actor was started again.
    pub fn reset(&mut self, side: Side) {
        self.flights.retain(|flight| flight.side != side);
        self.online[side as usize] = None;
        self.event(Event::SideReset(side));
    }

    /// All hand-offs on the disk, in all the places where they lie.
    pub fn on_disk(fs: &SimFs) -> Vec<(HandOff, State)> {
        let parse = |path: &Path, bytes: &[u8]| {
            let state = path.parent()?.file_name()?.to_str()?.parse().ok()?;
            Some((serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{path:?}: {error}")), state))
        };
        fs.files().iter().filter_map(|(path, bytes)| parse(path, bytes)).collect()
    }

    /// A hand-off on the disk: the newest copy.
    pub fn find(&self, id: Id) -> Option<(HandOff, State)> {
        World::on_disk(&self.fs).into_iter().filter(|(h, _)| h.id == id).max_by_key(|(h, _)| h.rev)
    }

    fn take(&mut self, outcome: Outcome) {
        (self.snapshot, self.wake_at) = (outcome.snapshot, outcome.wake_at);
        let refused = |effect: &Effect| matches!(effect, Effect::Warn { text, .. } if text.contains("cannot be kept"));
        let refused = outcome.effects.iter().any(refused);
        let acts = |effect: &Effect| matches!(effect, Effect::Push { .. } | Effect::Done(_) | Effect::Answer(..));
        let acts = outcome.effects.iter().any(acts);
        let mut withdrawn = Vec::new();
        for effect in outcome.effects {
            match effect {
                Effect::Push { side, token, uploads, .. } => {
                    let begun = self.flights.iter().filter(|flight| flight.side == side && !flight.accepted).count();
                    assert!(begun < 2, "more than the next push to {side:?} was begun ahead");
                    let text = uploads[0].part.text.clone();
                    self.pushed(side, &text);
                    self.flights.push(Flight { side, token, text, accepted: false });
                }
                Effect::Warn { text, of: Some(id) } if text.starts_with("no result after") => {
                    let known = self.known.entry(id).or_default();
                    known.alarms += 1;
                    assert_eq!(known.alarms, 1, "{id} alarms again");
                }
                Effect::Note { text, .. } | Effect::Warn { text, .. } => self.lines.push(text),
                Effect::Done(Receipt::Frame(_, n)) => self.kept(n, !refused),
                Effect::Answer(Receipt::Request(n), result) => self.kept(n, result.is_ok()),
                // The word for it comes at once, if its turn had not come.
                Effect::Withdraw { side, token } => {
                    let posting = self.posting(side).map(|flight| flight.token);
                    if posting != Some(token) {
                        withdrawn.push(token);
                    }
                }
                Effect::List => {
                    let listed = Listed::read(&self.fs, Path::new(ROOT), None);
                    self.listed = Some(listed.map_err(|error| explained(&error)));
                }
                Effect::Done(_) | Effect::Answer(..) => {}
            }
        }
        if acts && self.fs.is_sound() {
            // The least that a power cut could leave now.
            let least = self.fs.copy();
            least.power_cut(&mut |_| 0);
            self.check_promises(&World::on_disk(&least));
        }
        for token in withdrawn {
            self.land(token, Pushed::NotTried);
        }
    }

    /// Which sides can be pushed to.
    pub fn is_online(&self, side: Side) -> bool {
        self.online[side as usize].is_some()
    }
}

/// Says where a test was when it failed.
pub struct Said(pub String);

impl Drop for Said {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("at: {}", self.0);
        }
    }
}
