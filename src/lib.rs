//! anna-relay makes two long-running Claude Code sessions one assistant: the *bot*, which is the conversation, hands
//! work to the *brain*, which does it, and the brain's result comes back through the bot. It joins the two sessions'
//! fakechat plugins (a local HTTP upload in, a websocket out; no authentication, no history, no promise of delivery)
//! with a durable queue between them.
//!
//! # The one idea
//! **Deciding is pure, doing is thin.** What a [`side`], the [`guard`], the [`queue`] or a [`port`]'s judge should do
//! next is a plain function or state machine without sockets, clocks or files. The actors own a mailbox, a timer and
//! one resource each, call the pure part and carry out what it decided.
//!
//! # The way of a hand-off
//! In the order it happens, which is a good order for reading:
//!
//! 1. [`actor::bot_side`] takes a frame off the bot's websocket ([`fakechat::socket`], [`fakechat::frame`]).
//! 2. [`actor::guard`] lets it in or not ([`guard`]: what is a hand-off, the breaker).
//! 3. [`actor::queue`] gives it to the [`spooler`], which has the [`queue`] decide and the [`spool`] write: accepted.
//! 4. [`actor::brain_side`] pushes it ([`fakechat::upload`]), once [`actor::orphan_reaper`] has said that a live session
//!    holds the port ([`port`]).
//! 5. The brain replies: [`actor::brain_side`] takes that frame; the queue records the result.
//! 6. [`actor::bot_side`] pushes it to the bot; the queue notes that it was told, and the hand-off is done.
//!
//! Beside that way, Claude Code's own hooks bring what was said while nobody listened: [`hook`] reads what they tell,
//! the [`inbox`] keeps it until the bridge takes it.
//!
//! [`actor::supervisor`] starts the actors and starts them again when they fall; [`actor::control`] answers at the
//! control socket ([`control`]); [`daemon`] is the frame around it all; [`cli`] is what a person types.
//!
//! # The import rule
//! `cli, daemon → actor → {queue, spooler, guard, side, spool, port, fakechat, control, stream, hook, inbox,
//! receipts, transcript} → {handoff, config, error, text, beat, watch, watchdog}`, and `message` is the actors' own.
//! Actors do not import each other: they hold recipients ([`actor::wires`]). actix is used under `actor`, in `daemon` and
//! `message` alone; awc in `fakechat` alone; sysinfo and listeners in `port` alone. `tests/imports.rs` keeps these rules.

pub mod actor;
pub mod beat;
pub mod cli;
pub mod config;
pub mod control;
pub mod daemon;
pub mod error;
pub mod fakechat;
pub mod guard;
pub mod handoff;
pub mod hook;
pub mod inbox;
pub mod message;
pub mod port;
pub mod queue;
pub mod receipts;
pub mod side;
pub mod spool;
pub mod spooler;
pub mod stream;
pub mod telemetry;
pub mod text;
pub mod transcript;
pub mod watch;
pub mod watchdog;
pub mod within;
