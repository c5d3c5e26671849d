//! What is in the way of what hooks bring, said once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::inbox::{Listing, Stuck};
use crate::text::count;

/// What was said to be in the way; an empty path: the inbox as a whole.
#[derive(Debug, Default)]
pub(super) struct Obstacles(BTreeSet<PathBuf>);

impl Obstacles {
    /// What there is to say of those in a listing that are new.
    pub(super) fn new_in(&mut self, listing: &Listing) -> Vec<String> {
        let (mut there, mut said) = (BTreeSet::new(), Vec::new());
        let new: Vec<&Stuck> = listing.stuck.iter().filter(|stuck| !self.0.contains(&stuck.path)).collect();
        if let [Stuck { path, why }, others @ ..] = &new[..] {
            let others = match others.len() {
                0 => String::new(),
                more => format!(" (and {})", count(more, "other")),
            };
            said.push(format!("{} stays where it is: {why}{others}", path.display()));
        }
        there.extend(listing.stuck.iter().map(|stuck| stuck.path.clone()));
        if let Some(error) = &listing.failed {
            if !self.0.contains(Path::new("")) {
                said.push(format!("what hooks bring is not taken: {error}"));
            }
            there.insert(PathBuf::new());
        }
        // What was not looked at now may be there still.
        if listing.more || listing.failed.is_some() {
            self.0.append(&mut there);
        } else {
            self.0 = there;
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn listing(stuck: &[&str], failed: bool) -> Listing {
        let stuck = stuck.iter().map(|path| Stuck { path: path.into(), why: "no record".to_owned() }).collect();
        Listing { stuck, failed: failed.then(|| Error::failed("no luck")), ..Listing::default() }
    }

    #[test]
    fn each_is_said_once_while_it_is_there() {
        let mut obstacles = Obstacles::default();
        assert_eq!(obstacles.new_in(&listing(&["a", "b"], false)), ["a stays where it is: no record (and 1 other)"]);
        assert!(obstacles.new_in(&listing(&["a", "b"], false)).is_empty());
        assert_eq!(obstacles.new_in(&listing(&["a", "c"], true)).len(), 2);
        assert!(obstacles.new_in(&listing(&[], true)).is_empty());
        // Not all was looked at, so it may have been there.
        assert!(obstacles.new_in(&listing(&["a", "b", "c"], false)).is_empty());
        assert!(obstacles.new_in(&listing(&[], false)).is_empty());
        assert_eq!(obstacles.new_in(&listing(&["c"], true)).len(), 2);
    }
}
