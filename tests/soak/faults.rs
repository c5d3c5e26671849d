//! What goes wrong with a fakechat.

use std::time::Duration;

use anna_relay::config::Side;
use anna_relay::fakechat::server::{Double, Faults, Refusal};

use super::agenda::Act;
use super::harness::World;

/// The pushes' confirmation, as the soak has it.
pub const CONFIRM_MS: u64 = 20;

/// Breaks something at that side. Returns what has to follow, and when; none where nobody is there to fail.
pub fn strike(world: &World, side: Side, rng: &mut fastrand::Rng) -> Option<(u64, Act)> {
    let double = match side {
        Side::Brain => world.brain.as_ref()?,
        Side::Bot => world.bot.as_ref()?,
    };
    let heal = |millis| Some((millis, Act::Heal(side)));
    let back = |millis| Some((millis, Act::Back(side)));
    match rng.u8(..12) {
        0 => double.drop_sockets(),
        1 => double.close_sockets(),
        2 => {
            let status = if rng.bool() { 500 } else { 503 };
            let refusal = Refusal { status, times: Some(rng.usize(1..=2)) };
            double.faults(|faults| faults.refuse_uploads = Some(refusal));
        }
        3 => {
            double.faults(|faults| faults.answer_after = Duration::from_millis(rng.u64(20..300)));
            return heal(400);
        }
        4 => {
            double.faults(|faults| faults.lose_answers = true);
            return heal(rng.u64(20..150));
        }
        5 => {
            let after = Duration::from_millis(rng.u64(0..=CONFIRM_MS + 5));
            double.faults(|faults| faults.close_after_answer = Some(after));
        }
        6 => {
            double.faults(|faults| faults.die_after_answer = true);
            return back(rng.u64(300..1500));
        }
        7 => {
            let millis = rng.u64(0..1500);
            return Some((0, Act::Leave(side, millis)));
        }
        8 => {
            double.faults(|faults| faults.hang = true);
            return back(rng.u64(100..400));
        }
        9 => {
            double.faults(|faults| faults.refuse_sockets = Some(503));
            double.drop_sockets();
            return heal(300);
        }
        10 => {
            double.faults(|faults| faults.duplicate_frames = true);
            return heal(500);
        }
        _ => {
            double.faults(|faults| faults.fragment = Some(7));
            return heal(500);
        }
    }
    heal(1000)
}

/// All is right again.
pub fn heal(double: &Double) {
    double.faults(|faults| *faults = Faults::default());
}
