//! The soak itself: what happens, one thing after the other.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anna_relay::config::Side;
use anna_relay::fakechat::server::{Double, Received};

use super::agenda::{Act, Agenda};
use super::faults::{self, CONFIRM_MS};
use super::harness::{World, files_below, wait};
use super::ledger::Ledger;
use super::reports;
use super::scorecard::{Figures, Scorecard};
use super::sessions::Memory;

/// In the last of so many parts the bridge is left alone, to see whether it grows.
const PARTS: usize = 5;
/// A bridge has found its size by then.
const GROWN: Duration = Duration::from_millis(1500);
/// Where nothing at all comes for so long, nothing will.
const PATIENCE: Duration = Duration::from_secs(45);
/// By so much may the bridge grow in the last stretch.
const MORE_FDS: usize = 16;
const MORE_KIB: u64 = 32 * 1024;

/// A soak under way.
pub struct Play {
    pub world: World,
    pub rng: fastrand::Rng,
    pub agenda: Agenda,
    pub ledger: Ledger,
    pub memory: Memory,
    pub said: usize,
    pub total: usize,
    /// When the last hook of each side runs.
    pub reported: [Instant; 2],
    card: Scorecard,
    seen: Receiver<(Side, Received)>,
    sees: Sender<(Side, Received)>,
    started: Instant,
    grown: Option<Figures>,
}

/// Runs one. Returns its figures, and what is wrong, a line each.
pub fn run(hand_offs: usize, seed: u64) -> (Scorecard, Vec<String>) {
    let begun = Instant::now();
    let mut play = Play::new(hand_offs, seed);
    play.go_on();
    let mut wrong = play.come_to_rest();
    for side in Side::BOTH {
        let double = play.double(side).take();
        play.ledger.keep(side, double.map(Double::stop).unwrap_or_default());
    }
    let Play { mut card, ledger, world, .. } = play;
    card.sum = ledger.sum();
    card.seconds = begun.elapsed().as_secs();
    wrong.extend(card.sum.wrong.iter().cloned());
    let [begin, end] = card.stretch;
    if end.fds > begin.fds + MORE_FDS || end.rss_kib > begin.rss_kib + MORE_KIB {
        wrong.push(format!("the bridge grew: {:?}", card.stretch));
    }
    if !wrong.is_empty() {
        let kept = world.dir.path().with_extension("kept");
        std::fs::rename(world.dir.path(), &kept).unwrap();
        wrong.push(format!("all of it is kept in {}", kept.display()));
    }
    (card, wrong)
}

impl Play {
    fn new(total: usize, seed: u64) -> Play {
        let confirm = CONFIRM_MS.to_string();
        let world =
            World::new().with("breaker_count", "10000").with("breaker_window_s", "1").with("max_attempts", "100");
        let world = world.with("settle_s", "0.05").with("confirm_ms", &confirm);
        let (sees, seen) = channel();
        let mut play = Play {
            world,
            rng: fastrand::Rng::with_seed(seed),
            agenda: Agenda::default(),
            ledger: Ledger::default(),
            memory: Memory::default(),
            said: 0,
            total,
            reported: [Instant::now(); 2],
            card: Scorecard { seed, ..Scorecard::default() },
            seen,
            sees,
            started: Instant::now(),
            grown: None,
        };
        Side::BOTH.into_iter().for_each(|side| play.listen(side));
        play.world.start();
        play.agenda.after(0, Act::Say);
        play.agenda.after(500, Act::Fault);
        play.agenda.after(1000, Act::End);
        play
    }

    fn double(&mut self, side: Side) -> &mut Option<Double> {
        match side {
            Side::Brain => &mut self.world.brain,
            Side::Bot => &mut self.world.bot,
        }
    }

    /// The session behind that fakechat sees what comes.
    fn listen(&mut self, side: Side) {
        let sees = self.sees.clone();
        let double = self.double(side).as_ref().expect("it is there");
        // At the very end nobody looks any more.
        double.on_upload(move |_, received| sees.send((side, received.clone())).unwrap_or_default());
    }

    fn is_over(&self) -> bool {
        let talk = |act: &Act| !matches!(act, Act::Fault | Act::End | Act::Heal(_));
        self.said == self.total
            && !self.agenda.has(talk)
            && self.ledger.unreached.is_empty()
            && self.ledger.untold.is_empty()
    }

    /// Until all is said, and told.
    fn go_on(&mut self) {
        let mut last = Instant::now();
        let mut shown = 0;
        while !self.is_over() && last.elapsed() < PATIENCE {
            while let Some(act) = self.agenda.due() {
                self.act(act);
            }
            if let Some(status) = self.world.has_ended() {
                panic!("the bridge ended by itself: {status}\n{}", self.world.log());
            }
            if let Ok(one) = self.seen.recv_timeout(self.agenda.rest().min(Duration::from_millis(100))) {
                last = Instant::now();
                let more: Vec<_> = self.seen.try_iter().collect();
                std::iter::once(one).chain(more).for_each(|(side, received)| self.see(side, &received));
            }
            self.measure();
            if self.said / 500 > shown {
                shown = self.said / 500;
                println!("{} said, {} kills, {} faults", self.said, self.card.kills, self.card.faults);
            }
        }
    }

    fn see(&mut self, side: Side, received: &Received) {
        self.ledger.seen(side, received);
        if side == Side::Brain && self.ledger.accounts.contains_key(&received.id) {
            self.take_up(received);
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Say => self.say(),
            Act::Answer { id, text } => self.answer(id, text),
            Act::Edit { id, message, text } => self.edit(id, message, text),
            Act::Hook { side, json } => {
                let really = self.rng.u8(..40) == 0;
                reports::bring(&self.world, side, &json, really);
            }
            Act::LookAfter { id } => self.look_after(id),
            Act::Fault => self.fault(),
            Act::Heal(side) => {
                if let Some(double) = self.double(side) {
                    faults::heal(double);
                }
            }
            Act::Leave(side, millis) => {
                self.leave(side);
                self.agenda.after(millis, Act::Back(side));
            }
            Act::Back(side) => {
                self.leave(side);
                let port = if side == Side::Brain { self.world.brain_port } else { self.world.bot_port };
                *self.double(side) = Some(wait("the port to be free", || Double::start(port).ok()));
                self.listen(side);
            }
            Act::End => self.end(),
            Act::Start => {
                self.world.spawn();
                (self.card.restarts, self.started) = (self.card.restarts + 1, Instant::now());
                let longest = if self.is_short() { 2500 } else { 8000 };
                // Sometimes before it has got anywhere.
                let lives = if self.rng.u8(..8) == 0 { self.rng.u64(0..150) } else { self.rng.u64(200..longest) };
                self.agenda.after(lives, Act::End);
            }
        }
    }

    fn leave(&mut self, side: Side) {
        if let Some(double) = self.double(side).take() {
            self.ledger.keep(side, double.stop());
        }
    }

    fn fault(&mut self) {
        if self.said == self.total {
            return;
        }
        let side = if self.rng.bool() { Side::Brain } else { Side::Bot };
        let strikes = |act: &Act| matches!(act, Act::Back(of) | Act::Heal(of) if *of == side);
        // One thing at a time a side.
        if !self.agenda.has(strikes)
            && let Some((after, act)) = faults::strike(&self.world, side, &mut self.rng)
        {
            self.card.faults += 1;
            self.agenda.after(after, act);
        }
        let longest = if self.is_short() { 1200 } else { 3500 };
        let next = self.rng.u64(200..longest);
        self.agenda.after(next, Act::Fault);
    }

    /// In a short one more has to go wrong in less time.
    fn is_short(&self) -> bool {
        self.total < 1000
    }

    /// So much may be open before the bot waits for some of it.
    pub fn at_once(&self) -> usize {
        if self.is_short() { 25 } else { 150 }
    }

    fn in_last_stretch(&self) -> bool {
        self.said * PARTS >= self.total * (PARTS - 1)
    }

    /// The bridge ends, one way or the other.
    fn end(&mut self) {
        if self.in_last_stretch() {
            return;
        }
        if self.rng.u8(..8) == 0 {
            let status = self.world.stop();
            assert!(status.success() || status.signal() == Some(15), "{status}\n{}", self.world.log());
            self.card.stops += 1;
        } else {
            self.world.kill();
            self.card.kills += 1;
        }
        let pause = match self.rng.u8(..10) {
            0..5 => 0,
            5..8 => self.rng.u64(50..800),
            _ => self.rng.u64(1000..3000),
        };
        self.agenda.after(pause, Act::Start);
    }

    fn runs(&self) -> bool {
        !self.agenda.has(|act| matches!(act, Act::Start))
    }

    fn measure(&mut self) {
        if self.grown.is_none() && self.in_last_stretch() && self.runs() && self.started.elapsed() > GROWN {
            self.grown = Figures::of(self.world.pid());
        }
    }

    /// Waits until the bridge has nothing left to do, and looks at what it leaves behind.
    fn come_to_rest(&mut self) -> Vec<String> {
        let open = |status: &serde_json::Value| ["new", "brain", "out"].iter().any(|at| status["queue"][at] != 0);
        let inbox = self.world.spool().join("inbox");
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && (open(&self.world.status()) || !files_below(&inbox).is_empty()) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let end = Figures::of(self.world.pid()).unwrap_or_default();
        self.card.stretch = [self.grown.unwrap_or(end), end];
        assert!(self.world.stop().success(), "{}", self.world.log());
        let mut wrong = Vec::new();
        let mut lies: HashMap<String, Vec<&str>> = HashMap::new();
        for folder in ["new", "brain", "out", "done", "failed"] {
            for file in files_below(&self.world.spool().join(folder)) {
                lies.entry(file.trim_end_matches(".json").to_owned()).or_default().push(folder);
            }
        }
        for id in self.ledger.accounts.keys() {
            let folders = lies.remove(id).unwrap_or_default();
            if folders != ["done"] {
                wrong.push(format!("{id} lies in {folders:?}"));
            }
        }
        wrong.extend(lies.iter().map(|(id, folders)| format!("{id}, which is unknown, lies in {folders:?}")));
        for folder in ["tmp", "inbox", "corrupt"] {
            let left = files_below(&self.world.spool().join(folder));
            if !left.is_empty() {
                wrong.push(format!("left in {folder}/: {left:?}"));
            }
        }
        wrong
    }
}
