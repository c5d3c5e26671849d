//! What was said, and what arrived: the account that has to balance.

use std::collections::{HashMap, HashSet};

use anna_relay::config::Side;
use anna_relay::fakechat::server::Received;

/// What has to come of a hand-off.
#[derive(Debug, Default)]
pub struct Account {
    /// What the brain said for it. No two of these are the same in a whole soak.
    pub said: Vec<String>,
}

/// All of them.
#[derive(Default)]
pub struct Ledger {
    pub accounts: HashMap<String, Account>,
    /// How many of what was said have not come to the bot so far, as its session sees it.
    pub untold: HashSet<(String, String)>,
    /// How many hand-offs have not come to the brain so far.
    pub unreached: HashSet<String>,
    told: HashSet<(String, String)>,
    uploads: [Vec<Received>; 2],
}

/// How it adds up.
#[derive(Debug, Default)]
pub struct Sum {
    pub accepted: usize,
    pub reached: usize,
    pub answered: usize,
    pub told: usize,
    pub doubled_with_words: usize,
    pub doubled_without_words: usize,
    pub lost: usize,
    /// One line for each thing that should not be.
    pub wrong: Vec<String>,
}

impl Ledger {
    pub fn accepted(&mut self, id: &str) {
        self.accounts.insert(id.to_owned(), Account::default());
        self.unreached.insert(id.to_owned());
    }

    pub fn said(&mut self, id: &str, text: &str) {
        let account = self.accounts.get_mut(id).expect("the brain answers what it was asked");
        if account.said.iter().any(|before| before == text) {
            return;
        }
        account.said.push(text.to_owned());
        let key = (id.to_owned(), text.to_owned());
        if !self.told.contains(&key) {
            self.untold.insert(key);
        }
    }

    /// The session of that side got this.
    pub fn seen(&mut self, side: Side, received: &Received) {
        match side {
            Side::Brain => drop(self.unreached.remove(&received.id)),
            Side::Bot => {
                if let Some(Told { id, text, .. }) = Told::parse(&received.text) {
                    let key = (id.to_owned(), text.to_owned());
                    self.untold.remove(&key);
                    self.told.insert(key);
                }
            }
        }
    }

    /// All that one fakechat of that side got, in order.
    pub fn keep(&mut self, side: Side, uploads: Vec<Received>) {
        uploads.iter().for_each(|one| self.seen(side, one));
        self.uploads[side as usize].extend(uploads);
    }

    pub fn sum(&self) -> Sum {
        let mut sum = Sum { accepted: self.accounts.len(), ..Sum::default() };
        self.sum_brain(&mut sum);
        self.sum_bot(&mut sum);
        for (id, account) in &self.accounts {
            let unreached = self.unreached.contains(id);
            let untold: Vec<&String> =
                account.said.iter().filter(|text| self.untold.contains(&(id.clone(), (*text).clone()))).collect();
            sum.reached += usize::from(!unreached);
            sum.answered += usize::from(!account.said.is_empty());
            sum.told += usize::from(!account.said.is_empty() && untold.is_empty());
            if unreached || account.said.is_empty() || !untold.is_empty() {
                sum.lost += 1;
                sum.wrong.push(format!("{id} is lost: unreached {unreached}, untold {untold:?} of {:?}", account.said));
            }
        }
        sum
    }

    fn sum_brain(&self, sum: &mut Sum) {
        let mut had = HashSet::new();
        for one in &self.uploads[Side::Brain as usize] {
            if !self.accounts.contains_key(&one.id) {
                sum.wrong.push(format!("nobody handed this off: {one:?}"));
            }
            count(sum, !had.insert(&one.id), one.text.contains(", attempt "), &one.text);
        }
    }

    fn sum_bot(&self, sum: &mut Sum) {
        let mut had = HashSet::new();
        let mut ids = HashSet::new();
        for one in &self.uploads[Side::Bot as usize] {
            // One POST may be taken and not answered, but never made twice.
            if !ids.insert(&one.id) {
                sum.wrong.push(format!("the bot got two messages of one id: {one:?}"));
            }
            let Some(told) = Told::parse(&one.text) else { continue };
            let known = self.accounts.get(told.id).is_some_and(|account| account.said.iter().any(|s| s == told.text));
            if !known {
                sum.wrong.push(format!("nobody said this: {one:?}"));
            }
            count(sum, !had.insert((told.id, told.text)), told.again, &one.text);
        }
    }
}

fn count(sum: &mut Sum, doubled: bool, with_words: bool, text: &str) {
    match (doubled, with_words) {
        (true, true) => sum.doubled_with_words += 1,
        (true, false) => {
            sum.doubled_without_words += 1;
            sum.wrong.push(format!("twice, and it does not say so: {text}"));
        }
        (false, _) => {}
    }
}

/// What the bot is told of a hand-off.
struct Told<'a> {
    id: &'a str,
    text: &'a str,
    again: bool,
}

impl<'a> Told<'a> {
    /// None: it is a notice.
    fn parse(pushed: &'a str) -> Option<Told<'a>> {
        let (head, rest) = pushed.strip_prefix("[relay ")?.split_once("] ")?;
        let (_, which) = head.split_once(" for ")?;
        let (id, again) = which
            .split_once(", ")
            .map_or((which, false), |(id, words)| (id, words == "sent again: if already told, say nothing"));
        let (text, _) = rest.rsplit_once("\n[asked: ")?;
        Some(Told { id, text, again })
    }
}
