//! Reading single processes. On Linux straight from `/proc`, which costs microseconds; elsewhere through sysinfo.

use std::io;

use super::family::{MAX_DEPTH, Session, Table};

#[cfg(target_os = "linux")]
pub(super) use linux::{claudes, glimpse, read, runs};
#[cfg(not(target_os = "linux"))]
pub(super) use portable::{claudes, glimpse, read, runs};

/// The least that is looked at to tell that a process is what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glimpse {
    /// The process id of its parent.
    pub parent: u32,
    /// The kernel's short name for it, which changes when it becomes another program.
    pub name: String,
}

/// Adds to the table: this process, its ancestors up to the first that is not fakechat, and the session it had.
pub(super) fn gather(table: &mut Table, pid: u32, previous: Option<&Session>) -> io::Result<()> {
    let mut next = pid;
    for _ in 0..=MAX_DEPTH {
        let Some(process) = read(next)? else { break };
        let (parent, more) = (process.parent, process.pid == pid || process.is_fakechat());
        table.insert(process.pid, process);
        if !more || parent == 0 || table.contains_key(&parent) {
            break;
        }
        next = parent;
    }
    if let Some(session) = previous
        && !table.contains_key(&session.pid)
        && let Some(process) = read(session.pid)?
    {
        table.insert(process.pid, process);
    }
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::borrow::Cow;
    use std::fs::{self, File};
    use std::io::{self, ErrorKind, Read};

    use super::Glimpse;
    use crate::handoff::SessionKey;
    use crate::port::process::{PortSetting, Process, is_claude};

    /// Most files here are shorter, bytes: so one system call reads all of it.
    const COMMON: usize = 4096;
    /// The most that is read of `stat` and `status`, bytes: they have some 300 and 1,500.
    const MAX_STATUS: u64 = 64 * 1024;
    /// The kernel's flag of a process that has begun to end (`PF_EXITING`).
    const EXITING: u64 = 4;
    /// The most that is read of a command line, bytes: far more than is ever shown or compared.
    const MAX_COMMAND: u64 = 64 * 1024;
    /// The most that is read of an environment, bytes: a kernel's own limit is of this order.
    const MAX_ENVIRON: u64 = 8 * 1024 * 1024;

    /// The process with this id, if there is one.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn read(pid: u32) -> io::Result<Option<Process>> {
        if pid == 0 {
            return Ok(None);
        }
        match read_parts(pid) {
            Ok(process) => Ok(Some(process)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the very process that started then still runs: the cheapest look, and the one to tell that it has let go
    /// of its files, for an ending process loses what else can be read of it before that.
    pub fn runs(key: SessionKey) -> bool {
        Stat::of(key.pid).is_ok_and(|stat| stat.started == key.started && !stat.zombie)
    }

    /// A glimpse of the very process that started then, if it runs and has not begun to end: a single small file.
    pub fn glimpse(key: SessionKey) -> Option<Glimpse> {
        let stat = Stat::of(key.pid).ok()?;
        let same = stat.started == key.started && !stat.zombie && !stat.exiting;
        same.then_some(Glimpse { parent: stat.parent, name: stat.name })
    }

    /// Every process that is Claude Code by its name, with what its environment says about the port where it says
    /// anything.
    pub fn claudes() -> io::Result<Vec<(Process, Option<PortSetting>)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // Its name decides, so nothing else is read of all the others.
            let Ok(line) = capped(&format!("/proc/{pid}/cmdline"), MAX_COMMAND) else { continue };
            if is_claude(&words(&line))
                && let Ok(Some(process)) = read(pid)
                && let Ok(environ) = capped(&format!("/proc/{pid}/environ"), MAX_ENVIRON)
            {
                let setting = value(&environ).map(|value| PortSetting::parse(Some(&value)));
                found.push((process, setting));
            }
        }
        Ok(found)
    }

    fn read_parts(pid: u32) -> io::Result<Process> {
        let before = Stat::of(pid)?;
        let folder = format!("/proc/{pid}");
        let status = capped(&format!("{folder}/status"), MAX_STATUS)?;
        let uid = effective_uid(&status).ok_or_else(|| io::Error::other(format!("{folder}/status has no uid")))?;
        let mut process = Process {
            pid,
            parent: before.parent,
            started: before.started,
            uid,
            zombie: before.zombie,
            name: before.name,
            argv: words(&capped(&format!("{folder}/cmdline"), MAX_COMMAND)?),
            setting: PortSetting::Unread,
        };
        if process.is_server() {
            process.setting = setting(&folder)?;
        }
        // What was read of one that began to end meanwhile may be half of the truth, so none of it is told.
        let after = Stat::of(pid)?;
        if after.exiting || after.started != before.started {
            process.argv.clear();
        }
        process.parent = after.parent;
        process.zombie = after.zombie;
        Ok(process)
    }

    /// What its environment says about the port. One that may not be read, or is gone because the process is ending, is
    /// not an error: the verdict says so.
    fn setting(folder: &str) -> io::Result<PortSetting> {
        match capped(&format!("{folder}/environ"), MAX_ENVIRON) {
            Ok(environ) if environ.is_empty() => Ok(PortSetting::Unread),
            Ok(environ) => Ok(PortSetting::parse(value(&environ).as_deref())),
            Err(error) if error.kind() == ErrorKind::PermissionDenied || is_gone(&error) => Ok(PortSetting::Unread),
            Err(error) => Err(error),
        }
    }

    /// The value of `FAKECHAT_PORT` in an environment.
    fn value(environ: &[u8]) -> Option<Cow<'_, str>> {
        let value = environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"FAKECHAT_PORT="));
        value.map(String::from_utf8_lossy)
    }

    fn capped(path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(COMMON);
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Gone before it was opened, or while it was read (which the kernel says in another way).
    fn is_gone(error: &io::Error) -> bool {
        error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
    }

    /// Splits a command line at its NULs. A process that wrote over it (its title) may have left any number of them.
    fn words(line: &[u8]) -> Vec<String> {
        let end = line.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let used = line.get(..end).unwrap_or_default();
        if used.is_empty() {
            return Vec::new();
        }
        used.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    fn effective_uid(status: &[u8]) -> Option<u32> {
        let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
        std::str::from_utf8(line).ok()?.split_whitespace().nth(1)?.parse().ok()
    }

    #[derive(Debug, PartialEq, Eq)]
    struct Stat {
        name: String,
        zombie: bool,
        exiting: bool,
        parent: u32,
        started: u64,
    }

    impl Stat {
        fn of(pid: u32) -> io::Result<Stat> {
            let path = format!("/proc/{pid}/stat");
            Stat::parse(&capped(&path, MAX_STATUS)?)
                .ok_or_else(|| io::Error::other(format!("{path} has an unknown form")))
        }

        /// Fields 2, 3, 4, 9, 20 and 22. The name may hold anything, brackets and line breaks too: it ends at the last one.
        fn parse(line: &[u8]) -> Option<Stat> {
            let opening = line.iter().position(|byte| *byte == b'(')?;
            let closing = line.iter().rposition(|byte| *byte == b')')?;
            let name = String::from_utf8_lossy(line.get(opening + 1..closing)?).into_owned();
            let mut fields = std::str::from_utf8(line.get(closing + 1..)?).ok()?.split_ascii_whitespace();
            let ended = matches!(fields.next()?, "Z" | "X" | "x");
            let parent = fields.next()?.parse().ok()?;
            let flags: u64 = fields.nth(4)?.parse().ok()?;
            let threads: u64 = fields.nth(10)?.parse().ok()?;
            let started = fields.nth(1)?.parse().ok()?;
            // A main thread that has ended before the others looks the same, and the files are still open.
            let zombie = ended && threads <= 1;
            Some(Stat { name, zombie, exiting: flags & EXITING != 0, parent, started })
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_name_with_brackets_does_not_shift_the_fields() {
            let line = b"42 (a) Z 7 (b) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 307546 1 2 3\n";
            let stat = Stat::parse(line).unwrap();
            assert_eq!(
                stat,
                Stat { name: "a) Z 7 (b".into(), zombie: false, exiting: false, parent: 7, started: 307_546 }
            );
            assert_eq!(Stat::parse(b"42 (cut off) S 7"), None);
            let zombie = |threads: u32| format!("42 (x) Z 7 42 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 {threads} 0 307546 1");
            assert!(Stat::parse(zombie(1).as_bytes()).unwrap().zombie);
            assert!(!Stat::parse(zombie(2).as_bytes()).unwrap().zombie, "its other threads live");
            assert_eq!(Stat::parse(b""), None);
        }

        #[test]
        fn a_command_line_is_split_at_its_nuls() {
            assert_eq!(words(b"bun\0server.ts\0"), ["bun", "server.ts"]);
            assert_eq!(words(b"claude\0\0\0\0"), ["claude"]);
            assert_eq!(words(b"a\0\0b\0"), ["a", "", "b"]);
            assert!(words(b"").is_empty());
        }

        #[test]
        fn there_is_no_process_0_and_none_past_the_largest_id() {
            assert_eq!(read(0).unwrap(), None);
            assert_eq!(read(u32::MAX).unwrap(), None);
        }
    }
}

#[cfg(any(not(target_os = "linux"), test))]
mod portable {
    use std::io;

    use sysinfo::{Pid, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

    use super::Glimpse;
    use crate::handoff::SessionKey;
    use crate::port::process::{PortSetting, Process};

    /// The process with this id, if there is one.
    ///
    /// # Errors
    /// The system's tables cannot be read. A process that cannot be seen is taken to be gone.
    pub fn read(pid: u32) -> io::Result<Option<Process>> {
        let wanted = [Pid::from_u32(pid)];
        let mut system = System::new().map_err(|error| io::Error::other(error.to_string()))?;
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&wanted), true, what());
        Ok(system.process(wanted[0]).map(from_sysinfo))
    }

    fn what() -> ProcessRefreshKind {
        let kind = ProcessRefreshKind::nothing().without_tasks();
        kind.with_cmd(UpdateKind::Always).with_environ(UpdateKind::Always).with_user(UpdateKind::Always)
    }

    /// Every process that is Claude Code by its name, with what its environment says about the port where it says
    /// anything.
    pub fn claudes() -> io::Result<Vec<(Process, Option<PortSetting>)>> {
        let mut system = System::new().map_err(|error| io::Error::other(error.to_string()))?;
        system.refresh_processes_specifics(ProcessesToUpdate::All, true, what());
        let all = system.processes().values().map(|found| (from_sysinfo(found), value(found)));
        let claudes = all.filter(|(process, _)| process.is_claude());
        Ok(claudes.map(|(process, value)| (process, value.map(|value| PortSetting::parse(Some(&value))))).collect())
    }

    /// The value of `FAKECHAT_PORT` in the environment.
    fn value(found: &sysinfo::Process) -> Option<String> {
        let mut entries = found.environ().iter().map(|entry| entry.to_string_lossy());
        entries.find_map(|entry| entry.strip_prefix("FAKECHAT_PORT=").map(str::to_owned))
    }

    /// Whether the very process that started then still runs.
    pub fn runs(key: SessionKey) -> bool {
        matches!(read(key.pid), Ok(Some(now)) if now.started == key.started && !now.zombie)
    }

    /// A glimpse of the very process that started then, if it runs.
    #[cfg_attr(target_os = "linux", allow(dead_code, reason = "Linux has a cheaper one"))]
    pub fn glimpse(key: SessionKey) -> Option<Glimpse> {
        let now = read(key.pid).ok()??;
        let same = now.started == key.started && !now.is_ending();
        same.then_some(Glimpse { parent: now.parent, name: now.name })
    }

    fn from_sysinfo(found: &sysinfo::Process) -> Process {
        let uid = found.effective_user_id().or(found.user_id()).map(|uid| **uid);
        let mut process = Process {
            pid: found.pid().as_u32(),
            parent: found.parent().map_or(0, Pid::as_u32),
            started: found.start_time(),
            // A user that cannot be told is nobody's: such a process is foreign.
            uid: uid.unwrap_or(u32::MAX),
            zombie: matches!(found.status(), ProcessStatus::Zombie | ProcessStatus::Dead),
            name: found.name().to_string_lossy().into_owned(),
            argv: found.cmd().iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            setting: PortSetting::Unread,
        };
        // An empty environment is one that was not shown.
        if process.is_server() && !found.environ().is_empty() {
            process.setting = PortSetting::parse(value(found).as_deref());
        }
        process
    }

    #[cfg(all(test, target_os = "linux"))]
    mod tests {
        use super::*;

        #[test]
        fn both_ways_of_listing_find_a_session() {
            use std::os::unix::process::CommandExt;
            let mut sleep = std::process::Command::new("sleep");
            let mut child = sleep.arg0("claude").arg("60").env("FAKECHAT_PORT", "8788").spawn().unwrap();
            for list in [super::super::linux::claudes, claudes] {
                // Right after it was started its command line is not there yet.
                let found = (0..1000).find_map(|_| list().unwrap().into_iter().find(|(one, _)| one.pid == child.id()));
                assert_eq!(found.map(|(_, setting)| setting), Some(Some(PortSetting::Port(8788))));
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }

        #[test]
        fn both_ways_of_reading_a_process_agree() {
            for pid in
                [std::process::id(), rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get() as u32)]
            {
                let here = super::super::linux::read(pid).unwrap().unwrap();
                let there = read(pid).unwrap().unwrap();
                assert!(super::super::linux::runs(here.key()) && runs(there.key()));
                let later = SessionKey { started: here.started + 1, ..here.key() };
                assert!(!super::super::linux::runs(later) && !runs(later));
                assert_eq!(Process { started: 0, ..there }, Process { started: 0, ..here });
            }
        }
    }
}
