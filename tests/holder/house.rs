//! A bridge with sessions at its sides.

use std::ops::{Deref, DerefMut};

use anna_relay::config::Side;
use serde_json::{Value, json};

use crate::harness::World;
use crate::tree::{Tree, free_port};

/// A world whose sides are told apart, with nobody at them yet.
pub struct House {
    world: World,
}

impl House {
    pub fn new() -> House {
        let mut world = World::new();
        world.brain_leaves();
        world.bot_leaves();
        (world.brain_port, world.bot_port) = (free_port(), free_port());
        let world = world.with("holder", "\"session\"");
        House { world: world.with_env("ANNA_RELAY_TEST_TICK_MS", "250").with_env("ANNA_RELAY_TEST_GRACE_MS", "500") }
    }

    /// One that sweeps and looks at the registry so rarely that a test is over before; but when the kernel tells it to.
    pub fn without_sweeps() -> House {
        let House { world } = House::new();
        House { world: world.with_env("ANNA_RELAY_TEST_TICK_MS", "3600000") }
    }

    /// Nor then.
    pub fn blind() -> House {
        let House { world } = House::without_sweeps();
        House { world: world.with_env("ANNA_RELAY_TEST_NO_EXITS", "1") }
    }

    pub fn port(&self, side: Side) -> u16 {
        if side == Side::Brain { self.brain_port } else { self.bot_port }
    }

    /// Starts a tree at a side.
    pub fn tree(&self, side: Side, line: &str, variables: &[(&str, &str)]) -> Tree {
        Tree::start(line, self.dir.path(), self.port(side), variables)
    }

    /// Starts a session at a side and waits until its fakechat listens.
    pub fn session(&self, side: Side) -> Tree {
        let mut tree = self.tree(side, "claude wrapped", &[]);
        tree.pid("server");
        tree.pid("session");
        tree
    }

    /// Both sessions, the bridge, and all online.
    pub fn all_online(&mut self) -> (Tree, Tree) {
        let both = (self.session(Side::Brain), self.session(Side::Bot));
        self.start_online();
        both
    }

    /// Waits until that side is in that state.
    #[track_caller]
    pub fn wait_side(&self, side: Side, state: &str) -> Value {
        let status = self.wait_status(&format!("the {side} to be {state}"), |all| all[side.name()]["state"] == state);
        status[side.name()].clone()
    }

    /// Puts an entry for a session into Claude Code's registry.
    pub fn register(&self, pid: u32, status: &str, waiting_for: Option<&str>, since: u64) {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
        let entry = json!({"pid": pid, "sessionId": "f2cdf2b6", "cwd": "/home/anna", "procStart": started,
            "status": status, "statusUpdatedAt": since, "waitingFor": waiting_for});
        let folder = self.dir.path().join(".claude/sessions");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("new"), entry.to_string()).unwrap();
        std::fs::rename(folder.join("new"), folder.join(format!("{pid}.json"))).unwrap();
    }

    /// Warnings of the stream with these words in them.
    pub fn warned(&self, words: &str) -> usize {
        self.warnings().iter().filter(|line| line.contains(words)).count()
    }
}

impl Deref for House {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for House {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

/// The id of the hand-off that a brain was given with this text.
pub fn id_of(text: &str) -> String {
    text.split([' ', ']']).nth(1).unwrap().to_owned()
}
