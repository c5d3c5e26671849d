//! What `/proc` says of a process.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Whether there is a `/proc` that says all that is asked here; if not, says so.
pub fn is_open() -> bool {
    let open = ["clear_refs", "schedstat", "status"].iter().all(|file| Path::new("/proc/self").join(file).exists());
    if !open {
        eprintln!("  this system does not say what a process uses: left out");
    }
    open
}

/// A figure of `/proc/<pid>/status`, in MiB.
pub fn mib(pid: u32, key: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    number(&status, key).unwrap() as f64 / 1024.0
}

/// Forgets how much memory it has had at most.
pub fn forget_peak(pid: u32) {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
}

/// What a process's threads did since a first look. A thread that ends is counted up to the last look before that.
#[derive(Default)]
pub struct Work {
    /// By thread: then and now.
    threads: HashMap<u32, (Used, Used)>,
}

#[derive(Clone, Copy, Default)]
struct Used {
    time: Duration,
    wakes: u64,
}

impl Work {
    /// The first look.
    pub fn since_now(pid: u32) -> Work {
        let mut work = Work::default();
        work.look(pid);
        work.threads.values_mut().for_each(|(then, now)| *then = *now);
        work
    }

    /// A further look.
    pub fn look(&mut self, pid: u32) {
        for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let task = task.unwrap();
            // It may have ended just now.
            let (Ok(times), Ok(status)) =
                (fs::read_to_string(task.path().join("schedstat")), fs::read_to_string(task.path().join("status")))
            else {
                continue;
            };
            let nanos = times.split_whitespace().next().unwrap().parse().unwrap();
            let wakes = number(&status, "voluntary_ctxt_switches").unwrap();
            let id = task.file_name().to_string_lossy().parse().unwrap();
            self.threads.entry(id).or_default().1 = Used { time: Duration::from_nanos(nanos), wakes };
        }
    }

    /// The processor time.
    pub fn time(&self) -> Duration {
        self.threads.values().map(|(then, now)| now.time - then.time).sum()
    }

    /// How often a thread waited for something, and was woken.
    pub fn wakes(&self) -> u64 {
        self.threads.values().map(|(then, now)| now.wakes - then.wakes).sum()
    }
}

fn number(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}
