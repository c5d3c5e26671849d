//! Where `anna.toml` is looked for, and reading it.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::Config;
use crate::error::{Error, Kind, Result};

/// More bytes than this are no configuration, but a wrong file.
const MAX_BYTES: u64 = 1024 * 1024;

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
    /// the defaults.
    ///
    /// # Errors
    /// Of kind [`Kind::Config`]: a named file that is not there, one that cannot be read, anything wrong in it.
    pub fn load(flag: Option<&Path>) -> Result<Config> {
        Config::load_in(flag, &Env::current())
    }

    /// [`Config::load`] in a given environment.
    ///
    /// # Errors
    /// The same.
    pub fn load_in(flag: Option<&Path>, env: &Env) -> Result<Config> {
        let named = match (flag, &env.anna_config) {
            (Some(flag), _) => Some((flag, "--config")),
            (None, Some(path)) => Some((path.as_path(), "$ANNA_CONFIG")),
            (None, None) => None,
        };
        if let Some((file, by)) = named {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
            return match read(&file)? {
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
        match read(&file)? {
            Some(text) => Config::parse(&text, &file, env),
            None => Ok(Config { found: false, ..Config::parse("", &file, env)? }),
        }
    }
}

/// The text of the file; `None` where nothing is at that place, not even a dangling link.
fn read(file: &Path) -> Result<Option<String>> {
    let fail = |cause: &dyn std::fmt::Display, hint: &str| {
        Error::new(Kind::Config, format!("reading the configuration {}: {cause}", file.display())).hint(hint)
    };
    let mut bytes = Vec::new();
    match fs::metadata(file).and_then(|about| {
        if about.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if about.file_type().is_fifo() {
            // It could be waited for for ever, also by a bridge that reads it again.
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is a pipe, not a file"));
        }
        File::open(file)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)
    }) {
        Ok(_) => {}
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            return match fs::symlink_metadata(file) {
                Ok(_) => Err(fail(&"it is a link to a file that is not there", "mend or remove the link")),
                Err(_) => Ok(None),
            };
        }
        Err(cause) if cause.kind() == ErrorKind::IsADirectory => {
            return Err(fail(&"it is a folder", "name the file in it, mostly anna.toml"));
        }
        Err(cause) if cause.kind() == ErrorKind::InvalidInput => return Err(fail(&cause, "put a file in its place")),
        Err(cause) => return Err(fail(&cause, "make the file readable for this user")),
    }
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
        env.anna_config = Some(at("gone.toml"));
        let error = Config::load_in(None, &env).unwrap_err();
        assert!(error.to_string().ends_with("gone.toml, named by $ANNA_CONFIG: no such file"), "{error}");
        assert_eq!(Config::load_in(None, &Env::default()).unwrap_err().kind(), Kind::Config);
    }
}
