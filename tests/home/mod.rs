//! A home folder of its own, with stand-ins for the programs that are called.

#![allow(dead_code)] // each test program uses its part

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A stand-in for bun: notes its call, and downloads nothing into the right place.
const BUN: &str = "#!/bin/sh\nset -eu\nprintf 'bun %s\\n' \"$*\" >>\"$CALLS\"\n\
    case \"$1\" in --version) echo 1.4.5 ;; install) mkdir node_modules ;; esac\n";

pub struct Home {
    dir: tempfile::TempDir,
    /// More of the environment.
    pub env: Vec<(String, String)>,
}

/// What came of a run.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        let home = Home { dir, env: Vec::new() };
        fs::create_dir(home.path()).unwrap();
        fs::create_dir(home.bin()).unwrap();
        home.program("claude", include_str!("claude.sh"));
        home.program("bun", BUN);
        home
    }

    /// `$HOME`
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Claude Code's folder.
    pub fn claude(&self) -> PathBuf {
        self.path().join(".claude")
    }

    fn bin(&self) -> PathBuf {
        self.dir.path().join("bin")
    }

    /// A folder beside the home.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn program(&self, name: &str, script: &str) {
        let path = self.bin().join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn without(&self, name: &str) {
        fs::remove_file(self.bin().join(name)).unwrap();
    }

    /// Writes a file below Claude Code's folder.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.claude().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.claude().join(name)).unwrap()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Everything below the home, to the byte.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut all = BTreeMap::new();
        gather(&self.path(), &mut all);
        all
    }

    /// How the stand-ins were called since the last time this was asked.
    pub fn calls(&self) -> Vec<String> {
        let path = self.dir.path().join("calls");
        let text = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, "").unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.dir.path());
        command.env("HOME", self.path()).env("CALLS", self.dir.path().join("calls")).env("FAIL", "nothing");
        command.env("PATH", format!("{}:/usr/bin:/bin", self.bin().display()));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(Path::new(env!("CARGO_BIN_EXE_anna-relay"))).args(args).output().unwrap();
        Ran::from(&output)
    }

    /// A run that must succeed.
    pub fn good(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
        ran
    }
}

impl From<&Output> for Ran {
    fn from(output: &Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

fn gather(dir: &Path, all: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let about = path.symlink_metadata().unwrap();
        let content = match () {
            () if about.is_symlink() => fs::read_link(&path).unwrap().to_string_lossy().into_owned().into_bytes(),
            () if about.is_dir() => Vec::new(),
            () => fs::read(&path).unwrap(),
        };
        all.insert(path.clone(), (about.mode(), content));
        if about.is_dir() {
            gather(&path, all);
        }
    }
}
