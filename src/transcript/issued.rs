//! Which upload ids are this relay's own, without a list of them.
//!
//! A push that is no hand-off's first one has an id of its own, and after a restart nobody remembers it. So such an
//! id carries its proof: the relay can tell, from the id and a secret in the spool alone, whether it issued it. A
//! channel message with any other id (that is no hand-off's either) means that something else prompted the session.
//!
//! An id is a UUIDv7: 48 bits of Unix milliseconds, the version, a serial of 12 bits, the variant, and in the
//! remaining 62 bits the start of SHA-256 over a word, the secret and the 8 bytes before. All of these have fixed
//! lengths and the digest is cut to a quarter, so plain SHA-256 is a sound MAC here. A foreign id passes once in
//! 2^62. It is a proof against accidents and outsiders; whoever reads the spool can forge it, and needs not.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use crate::handoff::Id;
use crate::spool::fs::{open_regular, private_dir};
use crate::spool::store::TMP;

/// The secret's file in the spool.
pub const FILE: &str = "secret";
/// Its length, bytes.
const SECRET: usize = 32;
/// What the digest is for: the same secret may serve something else one day.
const PURPOSE: &[u8] = b"anna-relay upload id v1";
/// How many bits of an id's first 8 bytes are the serial.
const SERIAL_BITS: u32 = 12;
/// The largest Unix time in milliseconds that a UUIDv7 can hold.
const MAX_MILLIS: u64 = (1 << 48) - 1;

/// Issues ids, and knows its own.
pub struct Issuer {
    secret: [u8; SECRET],
    /// The last id's time and serial, as one number.
    last: AtomicU64,
}

impl Issuer {
    /// With that secret.
    #[must_use]
    pub fn new(secret: [u8; SECRET]) -> Self {
        Issuer { secret, last: AtomicU64::new(0) }
    }

    /// With the secret of the spool at `root`, which is made if there is none yet. Whoever comes first makes it, also
    /// where several come at once, and it is on the disk before anybody uses it.
    /// To be called under the spool's lock, or after its sweep: the draft lies in `tmp/`.
    ///
    /// # Errors
    /// Of kind `InvalidInput` where that name is no regular file of this user, `InvalidData` where it is not what was
    /// once written (delete it: what was pushed before then counts as foreign).
    pub fn open(root: &Path) -> io::Result<Self> {
        let path = root.join(FILE);
        let file = match open_regular(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(root, &path)?;
                open_regular(&path)?
            }
            opened => opened?,
        };
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        let mut bytes = Vec::new();
        file.take(SECRET as u64 + 1).read_to_end(&mut bytes)?;
        let length = bytes.len();
        let secret = bytes.try_into().map_err(|_| {
            let what = format!("it should have {SECRET} bytes, but has {length} or more");
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?;
        Ok(Issuer::new(secret))
    }

    /// A new id. Each is greater than the one before, whatever the clock does.
    #[must_use]
    pub fn issue(&self, now: OffsetDateTime) -> Id {
        let millis = (now.unix_timestamp_nanos() / 1_000_000).clamp(0, i128::from(MAX_MILLIS));
        let millis = u64::try_from(millis).unwrap_or(0);
        // From the lower half on: two relays in one millisecond are told apart, and this one has room for more.
        let fresh = millis << SERIAL_BITS | u64::from(fastrand::u16(..1 << (SERIAL_BITS - 1)));
        let next = |last: u64| fresh.max(last.saturating_add(1));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        Id::from_bytes(self.sealed(next(last.unwrap_or_else(|last| last))))
    }

    /// Whether this relay (any with this secret) issued that id.
    #[must_use]
    pub fn is_own(&self, id: &Id) -> bool {
        let bytes = id.as_bytes();
        let half: [u8; 8] = std::array::from_fn(|n| bytes[n]);
        let half = u64::from_be_bytes(half);
        self.sealed(half >> 16 << SERIAL_BITS | half & ((1 << SERIAL_BITS) - 1)) == *bytes
    }

    /// The bytes of the id with that time and serial.
    fn sealed(&self, time_and_serial: u64) -> [u8; 16] {
        let (millis, serial) = (time_and_serial >> SERIAL_BITS, time_and_serial & ((1 << SERIAL_BITS) - 1));
        let head = (millis << 16 | 0x7000 | serial).to_be_bytes();
        let digest = Sha256::new().chain_update(PURPOSE).chain_update(self.secret).chain_update(head).finalize();
        let mut bytes: [u8; 16] = std::array::from_fn(|n| if n < 8 { head[n] } else { digest[n - 8] });
        bytes[8] = 0x80 | bytes[8] & 0x3f;
        bytes
    }
}

/// Never shows the secret.
impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer").finish_non_exhaustive()
    }
}

/// Makes the secret, unless somebody else did meanwhile. The name appears with the whole content (a hard link), so
/// there is no moment, and no crash, that leaves half a secret.
fn create(root: &Path, path: &Path) -> io::Result<()> {
    let mut secret = [0; SECRET];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    let draft = private_dir(&root.join(TMP))?.join(format!("{FILE}-{}", Id::now()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written =
        file.write_all(&secret).and_then(|()| file.sync_all()).and_then(|()| std::fs::hard_link(&draft, path));
    // What is left of it goes when the spool is next swept.
    std::fs::remove_file(&draft).unwrap_or_default();
    match written {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => File::open(root)?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn at(millis: i64) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).unwrap()
    }

    proptest! {
        #[test]
        fn every_id_is_a_uuid_of_its_time_and_known_again(secret: [u8; 32], millis in 0_i64..1 << 47) {
            let id = Issuer::new(secret).issue(at(millis));
            let uuid: Uuid = id.to_string().parse().unwrap();
            prop_assert_eq!(uuid.get_version_num(), 7);
            prop_assert_eq!(uuid.get_variant(), uuid::Variant::RFC4122);
            let (seconds, nanos) = uuid.get_timestamp().unwrap().to_unix();
            prop_assert_eq!(seconds * 1000 + u64::from(nanos) / 1_000_000, millis.unsigned_abs());
            prop_assert!(Issuer::new(secret).is_own(&id));
        }

        #[test]
        fn an_id_with_one_bit_changed_is_nobodys(secret: [u8; 32], bit in 0_usize..128) {
            let issuer = Issuer::new(secret);
            let mut bytes = *issuer.issue(at(1_796_031_734_360)).as_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!issuer.is_own(&Id::from_bytes(bytes)));
        }

        #[test]
        fn other_ids_are_not_own(secret: [u8; 32], other: [u8; 32], bytes: [u8; 16], message: String) {
            prop_assume!(secret != other);
            let issuer = Issuer::new(secret);
            prop_assert!(!issuer.is_own(&Issuer::new(other).issue(at(1))));
            prop_assert!(!issuer.is_own(&Id::from_bytes(bytes)));
            prop_assert!(!issuer.is_own(&Id::derive(crate::config::Side::Bot, &message)));
            prop_assert!(!issuer.is_own(&Id::now()));
        }

        #[test]
        fn each_id_is_greater_than_the_last_whatever_the_clock_does(times in proptest::collection::vec(0_i64..50, 2..99)) {
            let issuer = Issuer::new([7; 32]);
            let ids: Vec<Id> = times.iter().map(|millis| issuer.issue(at(*millis))).collect();
            prop_assert!(ids.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn more_than_a_millisecond_has_room_for_are_still_all_different() {
        let issuer = Issuer::new([1; 32]);
        let ids: Vec<Id> = (0..10_000).map(|_| issuer.issue(at(5))).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert!(ids.iter().all(|id| issuer.is_own(id)));
    }

    #[test]
    fn a_time_before_1970_or_far_ahead_makes_an_id_too() {
        let issuer = Issuer::new([1; 32]);
        for odd in [time::macros::datetime!(1960-01-01 0:00 UTC), time::macros::datetime!(9999-12-31 23:59 UTC)] {
            assert!(issuer.is_own(&issuer.issue(odd)));
        }
    }

    #[test]
    fn the_secret_is_made_once_and_kept_from_others() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(FILE);
        let id = Issuer::open(root.path()).unwrap().issue(at(9));
        let meta = std::fs::metadata(&path).unwrap();
        assert_eq!((meta.mode() & 0o777, meta.len(), meta.nlink()), (0o600, 32, 1));
        assert!(Issuer::open(root.path()).unwrap().is_own(&id));

        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(Issuer::open(root.path()).unwrap().is_own(&id));
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(root.path().join(TMP)).unwrap().count(), 0);
    }

    #[test]
    fn many_at_once_agree_on_one_secret() {
        let root = tempfile::tempdir().unwrap();
        let ids: Vec<Id> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| Issuer::open(root.path()).unwrap().issue(at(1)))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let issuer = Issuer::open(root.path()).unwrap();
        assert!(ids.iter().all(|id| issuer.is_own(id)));
    }

    #[test]
    fn what_is_no_secret_is_said_and_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(FILE);
        for odd in [&b""[..], b"short", &[0; 33]] {
            std::fs::write(&path, odd).unwrap();
            assert_eq!(Issuer::open(root.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
            assert_eq!(std::fs::read(&path).unwrap(), odd);
        }
        std::fs::rename(&path, root.path().join("elsewhere")).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert_eq!(Issuer::open(root.path()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(Issuer::open(root.path()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
