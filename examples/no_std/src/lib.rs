//! A library for a device without an operating system.
#![no_std]

use tamis::{Bloom, PlanError};

/// Estimates the number of distinct sensors in a log.
///
/// # Errors
///
/// [`PlanError::Memory`] if there is not enough memory.
pub fn count_sensors(log: &[u32]) -> Result<usize, PlanError> {
    let mut seen = Bloom::for_items(log.len(), 0.01)?;
    Ok(seen.insert_all(log))
}
