//! The exact words.
