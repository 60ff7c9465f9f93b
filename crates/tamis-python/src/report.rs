//! The report about a set.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tamis::{Bits, Digest, DigestSet, Filter, Hasher, SharedBloom, Span};
use tamis_formats::{FilterInfo, ItemCount};

use crate::set_error::SetError;
use crate::state::State;
use crate::storage;

/// The report of a larger filter comes from a part of the filter.
pub const SAMPLE_BYTES: u64 = 64 << 20;

/// The report about a set.
pub struct Report {
    info: FilterInfo,
    /// The name of the format of a filter of another system.
    format: Option<&'static str>,
    is_mapped: bool,
    is_keyed: bool,
}

impl Report {
    /// Computes the report. Reads all bits, or a part of a large filter.
    ///
    /// # Errors
    ///
    /// [`SetError::Closed`].
    pub fn new(state: &State) -> Result<Self, SetError> {
        let own = |info, is_mapped, is_keyed| Report { info, format: None, is_mapped, is_keyed };
        Ok(match state {
            State::Owned(file) => own(info_of(file), false, file.filter.hasher().is_keyed()),
            State::Mapped(file) => own(info_of(file), true, file.filter.hasher().is_keyed()),
            State::Shared(filter) => own(
                FilterInfo {
                    items: filter.estimate_items(),
                    fill: filter.fill(),
                    rate_now: filter.estimate_rate(),
                    is_over_rate: filter.is_over_rate(),
                    ..info_of_shared_plan(filter)
                },
                false,
                filter.hasher().is_keyed(),
            ),
            State::Exact64(set) => digests(set.digests(), set.hasher()),
            State::Exact128(set) => digests(set.digests(), set.hasher()),
            State::Integers(set) => {
                own(exact("integers", set.len(), set.memory_bytes()), false, false)
            }
            State::Foreign(foreign) => {
                let mut info = foreign.contents.info();
                info.bytes = storage::foreign_bytes(foreign, info.bits);
                // An estimate of no items may be a negative zero.
                info.items += 0.0;
                Report {
                    info,
                    format: Some(foreign.format.name),
                    is_mapped: false,
                    is_keyed: false,
                }
            }
            State::Closed => return Err(SetError::Closed),
        })
    }

    /// Computes the report, and leaves out all that depends on the bits of a large filter. Takes
    /// constant time, except for a filter of another system.
    ///
    /// # Errors
    ///
    /// [`SetError::Closed`].
    pub fn of_plan(state: &State) -> Result<Self, SetError> {
        let info = match state {
            State::Owned(file) => file.info_of_plan(),
            State::Mapped(file) => file.info_of_plan(),
            State::Shared(filter) => info_of_shared_plan(filter),
            other => return Self::new(other),
        };
        Ok(Report { info, format: None, is_mapped: false, is_keyed: false })
    }

    /// Returns the capacity, the planned rate and the size in bytes.
    pub fn plan(&self) -> (Option<u64>, Option<f64>, u64) {
        (self.info.capacity, self.info.rate_planned, self.info.bytes)
    }

    /// Returns the report as a dictionary.
    ///
    /// # Errors
    ///
    /// The exception of Python, if there is no memory.
    pub fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Self { info, format, is_mapped, is_keyed } = self;
        let dict = PyDict::new(py);
        dict.set_item("kind", info.kind)?;
        dict.set_item("format", format)?;
        dict.set_item("layout", &info.layout)?;
        dict.set_item("capacity", info.capacity)?;
        dict.set_item("items", info.items)?;
        dict.set_item(
            "items_are",
            match info.items_are {
                ItemCount::Estimated => "estimated",
                ItemCount::Inserted => "inserted",
                ItemCount::Distinct => "distinct",
                ItemCount::Exact => "exact",
            },
        )?;
        dict.set_item("bits", info.bits)?;
        dict.set_item("size_bytes", info.bytes)?;
        dict.set_item("fill", info.fill)?;
        dict.set_item("rate", info.rate_planned)?;
        dict.set_item("present_rate", info.rate_now)?;
        dict.set_item("is_saturated", info.is_over_rate)?;
        dict.set_item("is_mapped", is_mapped)?;
        dict.set_item("is_keyed", is_keyed)?;
        if let Some(window) = &info.window {
            let (seconds, items) = match window.span {
                Span::Millis(millis) => (Some(millis as f64 / 1000.0), None),
                Span::Items(items) => (None, Some(items)),
            };
            dict.set_item("window_seconds", seconds)?;
            dict.set_item("window_items", items)?;
            dict.set_item("slices", window.slices)?;
            dict.set_item("refresh", window.refreshes)?;
        }
        if format.is_some() {
            dict.set_item("details", info.details.clone())?;
        }
        Ok(dict)
    }
}

fn info_of<B: Bits<Word = u64>>(file: &tamis_formats::TamisFile<B>) -> FilterInfo {
    let counted = file.counted_items();
    match file.filter.sample(SAMPLE_BYTES) {
        Some(part) => file.info_from(&part, counted),
        None => file.info_from(&file.filter, counted),
    }
}

fn info_of_shared_plan(filter: &SharedBloom) -> FilterInfo {
    let plan = filter.plan();
    FilterInfo {
        kind: plan.kind().name(),
        layout: filter.layout().to_string(),
        bits: plan.bits(),
        bytes: plan.bytes(),
        capacity: Some(plan.items()),
        rate_planned: Some(plan.rate()),
        ..FilterInfo::default()
    }
}

/// Returns the report about an exact set of hashes.
fn digests<D: Digest>(set: &DigestSet<D>, hasher: Hasher) -> Report {
    let info = exact("digests", set.len(), set.memory_bytes());
    Report { info, format: None, is_mapped: false, is_keyed: hasher.is_keyed() }
}

fn exact(kind: &'static str, items: u64, bytes: u64) -> FilterInfo {
    FilterInfo {
        kind,
        layout: kind.into(),
        bits: bytes * 8,
        bytes,
        items: items as f64,
        items_are: ItemCount::Exact,
        rate_planned: Some(0.0),
        ..FilterInfo::default()
    }
}
