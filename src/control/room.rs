//! How many may be at the control socket, how many of them may wait for something, and who has to go for the next one.
//!
//! Not all who are there may wait: so there is always one who can go, and whoever asks something that is answered at
//! once, such as `status`, is served whatever the others do.

/// How many clients are served at a time, if the process may have files enough open.
pub const MAX_CLIENTS: usize = 512;
/// So many are served, however few files it may have open.
const MIN_CLIENTS: usize = 8;

/// What a client is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// It asks nothing, or has not come to the end of its request.
    #[default]
    Nothing,
    /// It waits for what another actor has to do.
    Waiting,
    /// It was answered, and has not read all of it.
    Reading,
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// For clients.
    pub clients: usize,
    /// For those of them that wait for a result, which may take days.
    pub waits: usize,
    /// For those that wait for anything else.
    pub errands: usize,
}

impl Room {
    /// The room in a process that may have so many files open (`None`: any number): half of them are for others.
    #[must_use]
    pub fn of(files: Option<u64>) -> Room {
        let half = files.and_then(|files| usize::try_from(files / 2).ok()).unwrap_or(MAX_CLIENTS);
        let clients = half.clamp(MIN_CLIENTS, MAX_CLIENTS);
        Room { clients, waits: clients / 4, errands: clients / 2 }
    }

    /// That in this process.
    #[must_use]
    pub fn here() -> Room {
        Room::of(rustix::process::getrlimit(rustix::process::Resource::Nofile).current)
    }
}

/// Which of the clients, in the order in which they came, has to go for another: the first that asks nothing, else the
/// first that does not read its answer.
#[must_use]
pub fn who_goes(clients: impl Iterator<Item = Doing> + Clone) -> Option<usize> {
    let first = |wanted: Doing| clients.clone().position(|doing| doing == wanted);
    first(Doing::Nothing).or_else(|| first(Doing::Reading))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_all_who_are_there_may_wait() {
        for files in [None, Some(0), Some(64), Some(256), Some(1024), Some(u64::MAX)] {
            let room = Room::of(files);
            assert!(room.waits > 0 && room.errands > 0 && room.waits + room.errands < room.clients, "{room:?}");
            assert!(room.clients <= MAX_CLIENTS, "{room:?}");
        }
        assert_eq!(Room::of(Some(1024)).clients, 512);
        assert_eq!(Room::of(Some(256)).clients, 128, "half of the files are for others");
    }

    #[test]
    fn who_waits_stays_and_of_the_others_the_first_goes() {
        use Doing::{Nothing, Reading, Waiting};
        let goes = |clients: &[Doing]| who_goes(clients.iter().copied());
        assert_eq!(goes(&[Waiting, Reading, Nothing, Nothing]), Some(2));
        assert_eq!(goes(&[Waiting, Reading, Waiting, Reading]), Some(1));
        assert_eq!(goes(&[Waiting]), None);
    }
}
