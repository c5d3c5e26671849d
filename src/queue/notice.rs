//! Word for the bot that is about no one hand-off.

use std::time::Duration;

use crate::config::Side;
use crate::handoff::words::{self, Part};

use super::event::{Now, Pushed, Receipt, Upload};
use super::push::back_off;
use super::{Cargo, Queue};

/// How many notices wait for the bot at most; the oldest goes first.
pub(super) const MAX_NOTICES: usize = 100;

/// Word for the bot that is about no one hand-off, or about one that was never accepted. It lives in memory only.
#[derive(Debug)]
pub(super) struct Notice {
    pub key: u64,
    pub text: String,
    /// Who waits for it to be told.
    pub receipt: Receipt,
    /// What it is about: where that can be over, the word is void then.
    pub about: About,
    pub attempts: u32,
    pub in_flight: bool,
    pub not_before: Duration,
}

/// What word for the bot is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Something that has happened.
    Event,
    /// That the brain is away.
    Outage,
    /// That the brain waits for a person.
    Wait,
}

impl Queue {
    /// Has something said to the bot.
    pub(super) fn notify(&mut self, text: String, about: About, now: Now) {
        if self.notices.len() >= MAX_NOTICES {
            self.drop_notice(0);
        }
        self.next_token += 1;
        let key = self.next_token;
        let notice =
            Notice { key, text, about, receipt: Receipt::None, attempts: 0, in_flight: false, not_before: now.mono };
        self.notices.push_back(notice);
    }

    /// Has something said to the bot, once for that receipt.
    pub(super) fn notify_for(&mut self, text: String, receipt: Receipt, now: Now) {
        if receipt != Receipt::None && self.notices.iter().any(|notice| notice.receipt == receipt) {
            return;
        }
        self.notify(text, About::Event, now);
        if let Some(notice) = self.notices.back_mut() {
            notice.receipt = receipt;
        }
    }

    pub(super) fn push_notice(&mut self, now: Now) -> bool {
        let due = |notice: &&mut Notice| !notice.in_flight && notice.not_before <= now.mono;
        let Some(notice) = self.notices.iter_mut().find(due) else { return false };
        notice.in_flight = true;
        let (key, text) = (notice.key, words::notice(&notice.text));
        self.launch(
            Side::Bot,
            Cargo::Notice { key },
            vec![Upload { id: self.issue(now), part: Part { text, file: None } }],
        );
        true
    }

    pub(super) fn notice_landed(&mut self, key: u64, pushed: Pushed, now: Now) {
        let Some(at) = self.notices.iter().position(|notice| notice.key == key) else { return };
        match pushed {
            Pushed::Confirmed => self.drop_notice(at),
            Pushed::Failed { why, permanent: true } => {
                self.drop_notice(at);
                self.warn(None, format!("the bot's fakechat refused a notice: {why}"));
            }
            // It did not fail: it goes as soon as there is room.
            Pushed::NotTried => self.notices[at].in_flight = false,
            _ => {
                let notice = &mut self.notices[at];
                notice.attempts += 1;
                notice.in_flight = false;
                notice.not_before = now.mono + back_off(notice.attempts as usize);
            }
        }
    }

    /// Nothing more is to be done about a notice.
    pub(super) fn drop_notice(&mut self, at: usize) {
        if let Some(notice) = self.notices.remove(at) {
            self.done(None, notice.receipt);
        }
    }

    /// Word about something that is over is not said any more.
    pub(super) fn retract(&mut self, about: About) {
        self.notices.retain(|notice| notice.about != about || notice.in_flight);
    }
}
