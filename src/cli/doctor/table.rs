//! What a command of an allowlist can do, by its name.

/// What is wrong with letting a restricted session run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// It speaks to ports, so it can put a prompt into a session through its fakechat.
    Net,
    /// It runs code or commands of the caller's choosing.
    Code,
    /// It runs the command that follows.
    Wrapper,
    /// It runs code only with certain arguments, which a wildcard admits.
    Args,
    /// It types into, starts or steers a session or the relay.
    Session,
    /// It writes files, which may be those that a shell or Claude Code runs.
    Writes,
    /// It sends data out, or reads it, by ways that cannot reach the ports.
    Leaks,
    /// It changes services or the system.
    System,
    /// It runs a file of which only the path is known.
    Script,
}

impl Danger {
    /// Why it matters, in one line.
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Danger::Net => {
                "it can reach ports: a fakechat asks nobody who he is, so text from a chat could become a prompt to the brain"
            }
            Danger::Code => "it runs code of the caller's choosing, which can reach the ports and everything else",
            Danger::Wrapper => "it runs whatever command follows",
            Danger::Args => "some of its arguments run other programs or write files, and the wildcard admits them",
            Danger::Session => "it puts words into a session, or steers the relay, past the rules for hand-offs",
            Danger::Writes => "it can overwrite what a shell or Claude Code runs or obeys later",
            Danger::Leaks => "it can carry text out of this machine, or bring some in",
            Danger::System => "it can start, stop or change services",
            Danger::Script => "what that file does, and who may change it, cannot be told from the rule",
        }
    }

    /// Whether it breaks what the relay relies on, or only deserves a look.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Danger::Net | Danger::Code | Danger::Wrapper | Danger::Session | Danger::Args)
    }
}

/// Names with the same danger.
pub struct Row {
    /// What they can do.
    pub danger: Danger,
    /// The programs, with spaces between them.
    pub names: &'static str,
    /// Their subcommands that are harmless, likewise.
    pub safe: &'static str,
}

const fn row(danger: Danger, names: &'static str) -> Row {
    Row { danger, names, safe: "" }
}

/// Whether a word is one of a list with spaces between them.
#[must_use]
pub fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

/// The arguments of [`Danger::Args`] programs that run something or write, for rules without a wildcard.
pub const RUNNING_ARGS: &str = "-exec -execdir -ok -okdir -delete -fprint -fprintf -fls -x -X --exec --exec-batch --pre --to-command \
    --checkpoint-action --use-compress-program -I --compress-program -i --in-place";

/// All that is known. A name that is not here is taken to be harmless.
pub const TABLE: &[Row] = &[
    row(
        Danger::Net,
        "curl wget wget2 aria2c axel http https httpie xh xhs curlie httpx nc ncat netcat nc.openbsd \
         nc.traditional socat telnet websocat wscat grpcurl hurl newman ftp lftp tftp nmap hping3 ab wrk \
         hey vegeta siege k6 lynx links elinks w3m browsh firefox chromium chromium-browser \
         google-chrome google-chrome-stable chrome brave brave-browser msedge microsoft-edge safari \
         xdg-open open sensible-browser playwright puppeteer cypress selenium chromedriver geckodriver \
         agent-browser openssl gnutls-cli stunnel ssh scp sftp rsync mosh autossh sshpass rclone \
         cloudflared ngrok lwp-request GET POST HEAD busybox toybox",
    ),
    row(
        Danger::Code,
        "sh bash rbash zsh fish dash ash ksh mksh csh tcsh pwsh powershell nu xonsh elvish eval source . \
         trap alias python pypy ipython jupyter node nodejs deno bun bunx ts-node tsx esno qjs perl raku \
         ruby irb rake php lua luajit tclsh wish Rscript R julia octave guile racket sbcl clisp emacs \
         emacsclient ghc ghci runghc runhaskell stack cabal ocaml dune elixir iex mix erl escript rebar3 \
         scala sbt groovy kotlin java jshell jbang clojure clj lein bb osascript awk gawk mawk nawk m4 \
         dc gdb lldb vim vi nvim view vimdiff ex ed nano pico micro hx kak joe code sqlite3 psql mysql \
         mariadb mongo mongosh redis-cli duckdb npm npx pnpm pnpx yarn corepack pip pipx uv uvx poetry \
         pdm hatch tox nox pytest conda mamba gem bundle bundler composer cargo rustc rustup go zig \
         swift dotnet gradle gradlew mvn mvnw ant bazel buck2 make gmake cmake ctest ninja meson just \
         task mage scons jest vitest mocha tsc eslint webpack vite nix nix-shell nix-build guix docker \
         podman nerdctl docker-compose kubectl helm oc lxc incus nsenter chroot unshare bwrap firejail \
         systemd-run systemd-nspawn machinectl vagrant terraform tofu ansible ansible-playbook fab at \
         batch crontab expect ld.so ld-linux-x86-64.so.2 pre-commit direnv mise asdf tcc gcc cc clang \
         g++ c++",
    ),
    row(
        Danger::Wrapper,
        "env sudo doas su runuser pkexec xargs parallel nohup setsid time timeout nice ionice chrt \
         taskset stdbuf unbuffer script command builtin exec watch entr flock strace ltrace perf \
         valgrind caffeinate setarch numactl prlimit chpst faketime proxychains torsocks tsocks coproc \
         then do ! if while for until case select function {",
    ),
    row(Danger::Args, "find gfind fd fdfind sed gsed tar bsdtar gtar rg zip 7z man less more"),
    row(Danger::Session, "claude anna-brain anna-tg tmux screen zellij dtach abduco xdotool ydotool wtype"),
    row(
        Danger::Writes,
        "tee cp mv dd ln install truncate chmod chown rm shred unlink patch sponge split csplit sort \
         gzip bzip2 xz unzip cpio pax ar touch mkfifo mknod",
    ),
    row(
        Danger::Leaks,
        "gh glab hub aws gcloud gsutil az doctl flyctl heroku vercel netlify s3cmd yt-dlp youtube-dl \
         ffmpeg ffprobe dig nslookup host drill ping traceroute mail mailx sendmail msmtp mutt svn hg",
    ),
    Row {
        danger: Danger::System,
        names: "systemctl service launchctl loginctl",
        safe: "status is-active is-enabled is-failed list-units list-timers show cat list-sessions",
    },
    row(
        Danger::System,
        "apt apt-get dpkg dnf yum rpm zypper pacman apk brew port snap flatpak kill pkill killall \
         anna-day mount umount useradd usermod passwd iptables nft",
    ),
    Row {
        danger: Danger::Code,
        names: "git",
        safe: "status log show diff branch blame add rev-parse rev-list ls-files ls-tree describe shortlog \
            cat-file merge-base reflog tag stash switch restore",
    },
];

/// The relay's own commands that say nothing to anybody.
pub const RELAY_SAFE: &str = "status list show cancel check stream doctor completions man help";
/// The relay's own commands that change how it works, but put no words into a session.
pub const RELAY_CHANGES: &str = "pause resume prune clear-port bridge demo";

/// What the program of that name can do: by the name, or by the name without its version (`python3.12`).
#[must_use]
pub fn look_up(name: &str) -> Option<&'static Row> {
    let find = |name: &str| TABLE.iter().find(|row| has(row.names, name));
    find(name).or_else(|| {
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
        Some(bare).filter(|bare| !bare.is_empty()).and_then(find)
    })
}
