//! What may happen to a hand-off.
