//! When the Witness looks: as soon as a watch tells of something, and at a ping, if something has changed of which no
//! watch told.

use std::rc::Rc;

use actix::prelude::*;

use crate::config::Side;
use crate::port::registry;
use crate::receipts::Receipts;
use crate::spool::store::INBOX;
use crate::spool::{Fs, RealFs};
use crate::watch::{News, Watch};

use super::Witness;

impl Witness {
    /// Watches the folders that are there now, with watches that could not be had before, if they can be now. Whether one
    /// was not watched: what happened there was not told.
    pub(super) fn renew(&mut self, ctx: &mut Context<Self>) -> bool {
        for news in [News::Came, News::Changed] {
            if self.watch(news).is_none() {
                let watch = Watch::new(news).inspect_err(|error| tracing::debug!(%error, "watching folders"));
                let Ok(watch) = watch.map(Rc::new) else { continue };
                self.wait_for(Rc::clone(&watch), news, ctx);
                *self.watch(news) = Some(watch);
            }
        }
        let inbox = self.wires.config().paths.spool().join(INBOX);
        let came = self.came.as_ref().is_some_and(|watch| watch.set([inbox.as_path()]));
        let (Some(receipts), Some(watch)) = (&self.receipts, &self.changes) else { return came };
        watch.set(receipts.folders()) | came
    }

    fn watch(&mut self, news: News) -> &mut Option<Rc<Watch>> {
        match news {
            News::Came => &mut self.came,
            News::Changed => &mut self.changes,
        }
    }

    /// Has it look when the watch tells of something.
    fn wait_for(&self, watch: Rc<Watch>, news: News, ctx: &mut Context<Self>) {
        let waiting = async move { watch.told().await.map(|()| watch) };
        ctx.spawn(waiting.into_actor(self).map(move |told, act, ctx| match told {
            Ok(watch) => {
                // Where the transcripts are, other files change too.
                if news == News::Came || act.receipts.as_ref().is_none_or(Receipts::has_grown) {
                    act.look(ctx);
                }
                act.wait_for(watch, news, ctx);
            }
            Err(error) => {
                tracing::debug!(%error, "watching folders");
                *act.watch(news) = None;
            }
        }));
    }

    /// Whether it is told of what there is to see.
    pub(super) fn is_told(&self) -> bool {
        !self.failed && self.changes.is_some() && self.came.as_ref().is_some_and(|watch| watch.is_whole())
    }

    /// Whether the registry names another session than before.
    pub(super) fn is_met(&self, receipts: &Receipts) -> bool {
        let live = self.wires.live.borrow();
        let mut sides = Side::BOTH.into_iter().zip(live.iter());
        sides.any(|(side, live)| live.as_ref().is_some_and(|live| receipts.is_news(side, &live.session_id)))
    }

    /// Whether something has come into the inbox since the last look.
    pub(super) fn has_news(&mut self) -> bool {
        let inbox = self.wires.config().paths.spool().join(INBOX);
        let changed = RealFs.changed(&inbox);
        let is_news = self.changed != changed;
        self.changed = changed.filter(|at| registry::is_settled(*at));
        is_news
    }
}
