//! The spool: hand-offs on disk, one JSON file each, in folders that say where they stand.
//!
//! # Format
//! ```text
//! <paths.state>/relay/
//!   new/ brain/ out/ done/ failed/   <id>.json: a hand-off (crate::handoff::HandOff), one line of JSON
//!   corrupt/                         what could not be read, kept as found
//!   tmp/                             files being written, and replaced ones until there is time; swept at start
//!   files/<id>/                      what came along with a hand-off or its results
//!   inbox/                           what hooks brought, until it is taken (crate::inbox)
//!   paused                           exists while paused (crate::control::wire::Paused, or empty)
//!   receipts.json                    how far the sessions' transcripts were read (crate::receipts)
//!   secret                           what ids of our own messages are known by (crate::transcript::issued)
//!   launching                        which session was just started, for the launcher of the other
//!   pauses.json                      the last pauses that ended: paused time does not count as waiting
//! ```
//! # Invariants
//! 1. One writer: whoever holds `lock`, and only while the file of that name is the one it holds. Readers need no lock,
//!    since files only ever change by rename.
//! 2. A hand-off's folder follows from its content ([`HandOff::state`](crate::handoff::HandOff::state)).
//! 3. Its `rev` grows with each write. Of two copies (a power cut can keep both ends of a rename) the higher one
//!    is the truth, and recovery deletes the other.
//! 4. No name in a folder is followed if it is a symbolic link, and nothing but regular files is opened.
//!
//! # Commit points
//! Every change of a hand-off is one call of [`Store::put`]:
//!
//! | step | system calls | a crash after it leaves |
//! |---|---|---|
//! | 1 | write `tmp/<id>.<rev>`, fsync it; where there was time before, into a file that was made without a name, and is given it after the fsync | the old state; `tmp/` is swept |
//! | 2 | if it lies in `done/` or `failed/` and belongs elsewhere: rename it, as it is, to that folder | the old state, in the wrong folder: the next start moves it back |
//! | 3 | give the file that is replaced next a second name, `tmp/<id>.<rev>.old`, so that it is freed only later | the same; `tmp/` is swept |
//! | **4** | **rename `tmp/<id>.<rev>` to `<id>.json` in the folder the hand-off lies in now (a new one: where it belongs)** | **the new state** |
//! | 5 | rename that to the folder it belongs in, if that is another | the new state, in its place |
//! | 6 | fsync the folder | the same, also after a power cut, which may leave an older copy in the former folder: the next start deletes it |
//! | 7 | if it came from `done/` or `failed/`: fsync that one too, for no start looks through it | no older copy there either |
//!
//! Step 4 is the commit point. A failure before it leaves all as it was, and is reported; one after it is not a
//! failure of the change (repeating it would do it twice): the file is only in the wrong folder, which the next
//! write (it is tried again soon) or the next start mends. A change counts as durable, and is acted on, once all
//! steps are done. A start reads the open folders only: hence step 2, so that nothing left to do hides in the others.

mod attach;
mod blank;
pub mod closed;
pub mod document;
mod folders;
pub mod fs;
pub mod lock;
pub mod pause;
pub mod read;
pub mod recover;
mod replaced;
pub mod store;
pub mod trouble;

pub use fs::{Fs, RealFs};
pub use store::{Placed, Store};
