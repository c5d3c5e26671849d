//! Where `anna.toml` is looked for, and reading it.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::Config;
use crate::error::{Error, Kind, Result};
use crate::within::within;

/// More bytes than this are no configuration, but a wrong file.
const MAX_BYTES: u64 = 1024 * 1024;
/// How long what writes into a pipe may take.
const PIPE_WITHIN: Duration = Duration::from_secs(10);

/// What of the environment decides where things are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    /// `$ANNA_CONFIG`
    pub anna_config: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`
    pub config_home: Option<PathBuf>,
    /// `$XDG_STATE_HOME`
    pub state_home: Option<PathBuf>,
    /// `$HOME`
    pub home: Option<PathBuf>,
}

impl Env {
    /// That of this process. As the XDG specification wants it, folders that are not absolute count as not set.
    #[must_use]
    pub fn current() -> Self {
        let path = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = |name| path(name).filter(|path| path.is_absolute());
        Env {
            anna_config: path("ANNA_CONFIG"),
            config_home: folder("XDG_CONFIG_HOME"),
            state_home: folder("XDG_STATE_HOME"),
            home: env::home_dir().filter(|path| path.is_absolute()),
        }
    }

    /// Where the configuration lies when nobody says otherwise: the first one that is there, else the first place.
    fn usual_file(&self) -> Option<PathBuf> {
        let places = [self.config_home.clone(), self.home.as_ref().map(|home| home.join(".config"))];
        let files: Vec<PathBuf> = places.into_iter().flatten().map(|place| place.join("anna/anna.toml")).collect();
        files.iter().find(|file| file.symlink_metadata().is_ok()).or(files.first()).cloned()
    }
}

impl Config {
    /// Reads the configuration: the file `flag` names, else `$ANNA_CONFIG`, else the usual places. None there:
    /// the defaults. It never waits, and does not take a pipe, which cannot be read again.
    ///
    /// # Errors
    /// Of kind [`Kind::Config`]: a named file that is not there, one that cannot be read, anything wrong in it.
    pub fn load(flag: Option<&Path>) -> Result<Config> {
        Config::load_in(flag, &Env::current())
    }

    /// [`Config::load`] for a command that reads it this once: it may be a pipe, as a shell's `<(…)` is.
    ///
    /// # Errors
    /// The same, and that nothing came through the pipe.
    pub fn load_once(flag: Option<&Path>) -> Result<Config> {
        look_up(flag, &Env::current(), Some(PIPE_WITHIN))
    }

    /// [`Config::load`] in a given environment.
    ///
    /// # Errors
    /// The same.
    pub fn load_in(flag: Option<&Path>, env: &Env) -> Result<Config> {
        look_up(flag, env, None)
    }
}

fn look_up(flag: Option<&Path>, env: &Env, pipe_within: Option<Duration>) -> Result<Config> {
    let named = match (flag, &env.anna_config) {
        (Some(flag), _) => Some((flag, "--config")),
        (None, Some(path)) => Some((path.as_path(), "$ANNA_CONFIG")),
        (None, None) => None,
    };
    if let Some((file, by)) = named {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        return match read(&file, pipe_within)? {
            Some(text) => Config::parse(&text, &file, env),
            None => Err(Error::new(
                Kind::Config,
                format!("reading the configuration {}, named by {by}: no such file", file.display()),
            )
            .hint(format!("create the file, or correct {by}"))),
        };
    }
    let Some(file) = env.usual_file() else {
        return Err(Error::new(Kind::Config, "looking for the configuration: there is no home folder")
            .hint("set $HOME, or name the file with --config"));
    };
    match read(&file, pipe_within)? {
        Some(text) => Config::parse(&text, &file, env),
        None => Ok(Config { found: false, ..Config::parse("", &file, env)? }),
    }
}

/// What is in the file; of a pipe, what comes within that time, if one is taken at all.
fn bytes(file: &Path, pipe_within: Option<Duration>) -> io::Result<Vec<u8>> {
    let all = |file: File| {
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    let about = fs::metadata(file)?;
    if about.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !about.file_type().is_fifo() {
        // Nor is a pipe waited for that has just taken its place, nor a terminal.
        return all(File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(file)?);
    }
    let Some(time) = pipe_within else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is a pipe, not a file"));
    };
    let pipe = file.to_owned();
    within(time, "reading a pipe", move || Ok(File::open(pipe).and_then(all))).unwrap_or_else(|_| {
        let why = format!("it is a pipe, and did not come to its end within {} s", time.as_secs());
        Err(io::Error::new(ErrorKind::TimedOut, why))
    })
}

/// The text of the file; `None` where nothing is at that place, not even a dangling link.
fn read(file: &Path, pipe_within: Option<Duration>) -> Result<Option<String>> {
    let fail = |cause: &dyn std::fmt::Display, hint: &str| {
        Error::new(Kind::Config, format!("reading the configuration {}: {cause}", file.display())).hint(hint)
    };
    let bytes = match bytes(file, pipe_within) {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            return match fs::symlink_metadata(file) {
                Ok(_) => Err(fail(&"it is a link to a file that is not there", "mend or remove the link")),
                Err(_) => Ok(None),
            };
        }
        Err(cause) if cause.kind() == ErrorKind::IsADirectory => {
            return Err(fail(&"it is a folder", "name the file in it, mostly anna.toml"));
        }
        Err(cause) if cause.kind() == ErrorKind::InvalidInput => {
            return Err(fail(&cause, "this is read more than once, and a pipe cannot be: name a file"));
        }
        Err(cause) if cause.kind() == ErrorKind::TimedOut => {
            return Err(fail(&cause, "see to what writes into it, or name a file"));
        }
        Err(cause) => return Err(fail(&cause, "make the file readable for this user")),
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(fail(&"it is larger than 1 MiB", "name the right file"));
    }
    String::from_utf8(bytes).map(Some).map_err(|cause| {
        let good = &cause.as_bytes()[..cause.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        fail(&format!("line {line}: it is not UTF-8"), "save the file as UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(home: &Path) -> Env {
        Env { home: Some(home.to_owned()), ..Env::default() }
    }

    fn write(path: &Path, text: impl AsRef<[u8]>) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_first_place_named_wins() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let mut env = env(home.path());

        let none = Config::load_in(None, &env).unwrap();
        assert!(!none.found && none.file == at(".config/anna/anna.toml"));
        assert_eq!(none.paths.state, at(".local/state/anna"));

        for (place, count) in
            [(".config/anna/anna.toml", 1), ("xdg/anna/anna.toml", 2), ("env.toml", 3), ("flag.toml", 4)]
        {
            write(&at(place), format!("[relay]\nbreaker_count = {count}\n"));
        }
        let count = |flag: Option<&Path>, env: &Env| Config::load_in(flag, env).unwrap().relay.breaker_count;
        assert_eq!(count(None, &env), 1);
        env.config_home = Some(at("xdg"));
        assert_eq!(count(None, &env), 2);
        env.anna_config = Some(at("env.toml"));
        assert_eq!(count(None, &env), 3);
        assert_eq!(count(Some(&at("flag.toml")), &env), 4);
        assert!(Config::load_in(None, &env).unwrap().found);
    }

    #[test]
    fn whoever_reads_it_once_may_be_given_a_pipe() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, "relay.breaker_count = 7")
        });
        let config = look_up(Some(&pipe), &env(home.path()), Some(Duration::from_secs(60))).unwrap();
        assert_eq!((config.relay.breaker_count, config.file), (7, pipe));
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_read_says_why() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let mut env = env(home.path());
        let error = |name: &str| Config::load_in(Some(&at(name)), &Env::default()).unwrap_err();

        assert!(error("none.toml").to_string().ends_with("none.toml, named by --config: no such file"));
        fs::create_dir(at("folder")).unwrap();
        assert!(error("folder").to_string().ends_with("folder: it is a folder"));
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        assert!(error("link").to_string().ends_with("it is a link to a file that is not there"));
        write(&at("latin1.toml"), b"# one\n# gr\xfc\xdfe\n");
        assert!(error("latin1.toml").to_string().ends_with("line 2: it is not UTF-8"));
        write(&at("utf16.toml"), b"\xff\xfe[\0r\0");
        assert!(error("utf16.toml").to_string().ends_with("line 1: it is not UTF-8"));
        write(&at("huge.toml"), vec![b'#'; 1024 * 1024 + 1]);
        assert!(error("huge.toml").to_string().ends_with("larger than 1 MiB"));
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(error("pipe").to_string().ends_with("pipe: it is a pipe, not a file"));
        for name in ["none.toml", "folder", "link", "latin1.toml", "utf16.toml", "huge.toml", "pipe"] {
            assert_eq!(error(name).kind(), Kind::Config);
            assert!(error(name).advice().is_some());
        }
        let error = look_up(Some(&at("pipe")), &env, Some(Duration::from_millis(20))).unwrap_err();
        assert!(error.to_string().contains("did not come to its end") && error.kind() == Kind::Config, "{error}");
        env.anna_config = Some(at("gone.toml"));
        let error = Config::load_in(None, &env).unwrap_err();
        assert!(error.to_string().ends_with("gone.toml, named by $ANNA_CONFIG: no such file"), "{error}");
        assert_eq!(Config::load_in(None, &Env::default()).unwrap_err().kind(), Kind::Config);
    }
}
