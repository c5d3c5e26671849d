//! `setup`

pub mod json;
