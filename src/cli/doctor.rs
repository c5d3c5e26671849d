//! `doctor`

use std::path::Path;

use super::Doctor;
use crate::error::Result;

/// Looks.
///
/// # Errors
/// Something is broken.
pub fn run(_args: &Doctor, _config: Option<&Path>) -> Result<()> {
    Ok(())
}
