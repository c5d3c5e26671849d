//! Which transcript each side's session writes, and how far it was read: kept across restarts, so that no byte is read
//! twice and none is missed.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::config::Side;
use crate::handoff::Id;
use crate::spool::store::TMP;
use crate::spool::{Fs, RealFs};
use crate::transcript::follow::{Follower, Position};
use crate::transcript::line::Sighting;

/// The file in the spool.
pub const FILE: &str = "receipts.json";

/// What is followed of each side.
pub struct Receipts {
    spool: PathBuf,
    sides: [Watch; 2],
    saved: Option<Vec<Kept>>,
}

/// One side's transcript.
#[derive(Default)]
struct Watch {
    session: Option<String>,
    /// When it was first met: what the session had before is history.
    since: Option<OffsetDateTime>,
    follower: Option<Follower>,
    hooked: bool,
    /// The session that the registry named last. It may be behind: what a hook says after that counts more.
    registered: Option<String>,
}

/// What is kept of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    session: Option<String>,
    #[serde(with = "time::serde::rfc3339::option")]
    since: Option<OffsetDateTime>,
    position: Option<Position>,
    #[serde(default)]
    hooked: bool,
    #[serde(default)]
    registered: Option<String>,
}

impl Receipts {
    /// What was kept in that spool; nothing, if it cannot be read: then it is met anew.
    #[must_use]
    pub fn open(spool: &Path) -> Self {
        let kept = RealFs.read(&spool.join(FILE)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let kept: Vec<Kept> = kept.unwrap_or_default();
        let mut sides: [Watch; 2] = Default::default();
        for (side, kept) in sides.iter_mut().zip(&kept) {
            *side = Watch {
                session: kept.session.clone(),
                since: kept.since,
                follower: kept.position.clone().map(Follower::resume),
                hooked: kept.hooked,
                registered: kept.registered.clone(),
            };
        }
        Receipts { spool: spool.to_owned(), sides, saved: Some(kept) }
    }

    /// Whether the side's session was seen to have hooks that tell what was said.
    #[must_use]
    pub fn is_hooked(&self, side: Side) -> bool {
        self.sides[side as usize].hooked
    }

    /// The session has hooks.
    pub fn hooked(&mut self, side: Side) {
        self.sides[side as usize].hooked = true;
    }

    /// The session that the side has, with its transcript, as a hook or the registry named them. Whether it is another
    /// transcript than before.
    pub fn learn(&mut self, side: Side, session: &str, transcript: Option<PathBuf>, now: OffsetDateTime) -> bool {
        let watch = &mut self.sides[side as usize];
        let same = watch.session.as_deref() == Some(session);
        let path = transcript.filter(|path| watch.follower.as_ref().is_none_or(|known| !same || known.path() != path));
        let Some(path) = path else { return false };
        *watch = Watch {
            session: Some(session.to_owned()),
            since: Some(now),
            follower: Some(Follower::new(path)),
            hooked: watch.hooked,
            registered: watch.registered.take(),
        };
        true
    }

    /// Whether the registry's word for the side's session is a new one.
    #[must_use]
    pub fn is_news(&self, side: Side, session: &str) -> bool {
        self.sides[side as usize].registered.as_deref() != Some(session)
    }

    /// The registry says that this is the side's session. `transcript` finds where it writes.
    pub fn registered(
        &mut self,
        side: Side,
        session: &str,
        transcript: impl FnOnce() -> Option<PathBuf>,
        now: OffsetDateTime,
    ) {
        if self.is_news(side, session) {
            self.sides[side as usize].registered = Some(session.to_owned());
            if !self.follows(side, session) {
                self.learn(side, session, transcript(), now);
            }
        }
    }

    /// Whether that session's transcript is followed.
    #[must_use]
    pub fn follows(&self, side: Side, session: &str) -> bool {
        let watch = &self.sides[side as usize];
        watch.follower.is_some() && watch.session.as_deref() == Some(session)
    }

    /// Reads what the transcripts have got since: messages of fakechat, each with whether the session has had it since
    /// it was met. Whether there is more to read at once.
    pub fn poll(&mut self, mut sink: impl FnMut(Side, Sighting, bool)) -> bool {
        let mut more = false;
        for side in Side::BOTH {
            let watch = &mut self.sides[side as usize];
            let (since, Some(follower)) = (watch.since, &mut watch.follower) else { continue };
            let polled = follower.poll(&mut |sighting| {
                let new = since.is_none_or(|since| sighting.at.is_some_and(|at| at >= since));
                if sighting.is_fakechat() {
                    sink(side, sighting, new);
                }
            });
            match polled {
                Ok(polled) => more |= polled.more,
                Err(error) => tracing::debug!(side = side.name(), %error, "reading a transcript"),
            }
        }
        more
    }

    /// The folders that the transcripts are in.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.followers().filter_map(|follower| follower.path().parent())
    }

    fn followers(&self) -> impl Iterator<Item = &Follower> {
        self.sides.iter().filter_map(|watch| watch.follower.as_ref())
    }

    /// Whether a transcript has another length than when it was read.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        let grown = |follower: &Follower| {
            let length = std::fs::metadata(follower.path()).map(|meta| meta.len());
            length.is_ok_and(|length| length != follower.position().offset)
        };
        self.followers().any(grown)
    }

    /// Keeps how far it was read. What is lost of that is read again.
    ///
    /// # Errors
    /// It is not kept; that costs nothing but a second reading.
    pub fn save(&mut self) -> io::Result<()> {
        let kept: Vec<Kept> = self
            .sides
            .iter()
            .map(|watch| Kept {
                session: watch.session.clone(),
                since: watch.since,
                position: watch.follower.as_ref().map(Follower::position),
                hooked: watch.hooked,
                registered: watch.registered.clone(),
            })
            .collect();
        if self.saved.as_ref() == Some(&kept) {
            return Ok(());
        }
        let tmp = self.spool.join(TMP).join(Id::now().to_string());
        let bytes = serde_json::to_vec(&kept)?;
        let written = RealFs
            .create(&tmp)
            .and_then(|mut file| RealFs.write(&mut file, &bytes))
            .and_then(|()| RealFs.rename(&tmp, &self.spool.join(FILE)));
        if written.is_err() {
            // A full disk takes no more of these.
            RealFs.remove(&tmp).unwrap_or_default();
        }
        written?;
        self.saved = Some(kept);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn line(id: &str, at: &str) -> String {
        format!(
            r#"{{"type":"user","isMeta":true,"origin":{{"kind":"channel","server":"plugin:fakechat:fakechat"}},"timestamp":"{at}","message":{{"role":"user","content":"<channel source=\"plugin:fakechat:fakechat\" chat_id=\"web\" message_id=\"{id}\" user=\"web\" ts=\"{at}\">\nhello\n</channel>"}}}}"#
        ) + "\n"
    }

    fn poll(receipts: &mut Receipts) -> Vec<(Side, String, bool)> {
        let mut seen = Vec::new();
        receipts.poll(|side, sighting, new| seen.push((side, sighting.message_id, new)));
        seen
    }

    #[test]
    fn the_registry_counts_when_it_changes_and_a_hook_after_that_counts_more() {
        let dir = tempfile::tempdir().unwrap();
        let mut receipts = Receipts::open(dir.path());
        let path = |name: &str| Some(dir.path().join(format!("{name}.jsonl")));
        let now = datetime!(2026-11-30 10:00 UTC);
        receipts.registered(Side::Bot, "s1", || path("s1"), now);
        assert!(receipts.follows(Side::Bot, "s1"));
        receipts.learn(Side::Bot, "s2", path("s2"), now);
        receipts.registered(Side::Bot, "s1", || path("s1"), now);
        assert!(receipts.follows(Side::Bot, "s2"), "it is behind");
        receipts.registered(Side::Bot, "s3", || path("s3"), now);
        assert!(receipts.follows(Side::Bot, "s3") && !receipts.is_news(Side::Bot, "s3"));
    }

    #[test]
    fn each_message_is_seen_once_also_across_a_restart_and_the_past_is_known_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let spool = dir.path().join("relay");
        std::fs::create_dir_all(spool.join(TMP)).unwrap();
        let transcript = dir.path().join("s1.jsonl");
        std::fs::write(&transcript, line("old", "2026-11-30T09:00:00Z")).unwrap();
        let mut receipts = Receipts::open(&spool);
        assert!(!receipts.follows(Side::Brain, "s1"));
        receipts.learn(Side::Brain, "s1", Some(transcript.clone()), datetime!(2026-11-30 10:00 UTC));
        assert_eq!(poll(&mut receipts), [(Side::Brain, "old".to_owned(), false)]);
        let append = |text: String| {
            use std::io::Write;
            std::fs::File::options().append(true).open(&transcript).unwrap().write_all(text.as_bytes()).unwrap();
        };
        append(line("one", "2026-11-30T10:00:01Z"));
        assert_eq!(poll(&mut receipts), [(Side::Brain, "one".to_owned(), true)]);
        receipts.save().unwrap();
        append(line("two", "2026-11-30T10:00:02Z"));
        let mut again = Receipts::open(&spool);
        assert!(again.follows(Side::Brain, "s1"));
        again.learn(Side::Brain, "s1", Some(transcript.clone()), datetime!(2026-11-30 11:00 UTC));
        assert_eq!(poll(&mut again), [(Side::Brain, "two".to_owned(), true)]);
    }
}
