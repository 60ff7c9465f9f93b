//! Sizes of cuckoo filters. The module `plan` contains the formulas for the sizes.

use crate::filter::cuckoo::plan::{self, SLOT_BITS};
use crate::filter::cuckoo::table::Table;
use crate::plan::geometry::Geometry;
use crate::plan::sizing::{Best, MAX_BITS, Sizing};

/// The number of slots of a bucket. Tables with buckets of two slots take the fewest bits.
const USUAL_BUCKET: u32 = 2;

/// The number of bits of the spare word, a zero word after the slots. A read of the last slot may
/// also read the spare word.
const SPARE_BITS: u64 = 64;

/// The formulas of cuckoo filters.
pub(crate) struct CuckooSizing;

impl Sizing for CuckooSizing {
    fn geometry(&self, number: u32) -> Option<Geometry> {
        let (bits, bucket) = (number & 0xff, number >> 8);
        let is_known = SLOT_BITS.contains(&bits) && (2..=4).contains(&bucket);
        is_known.then_some(Geometry::Slots { bits, bucket })
    }

    fn usual_geometry(&self, _: u64, _: f64) -> Geometry {
        // The plan computes the number of bits of a slot later, from the size of the filter.
        Geometry::Slots { bits: 8, bucket: USUAL_BUCKET }
    }

    fn fewest(&self, geometry: Geometry, items: u64, rate: f64) -> Option<(u64, Geometry)> {
        plan::plan(bucket_of(geometry), items, rate).as_ref().map(size_of_table)
    }

    fn best(&self, geometry: Geometry, items: u64, bits: u64) -> Best {
        match plan::plan_items_in(bucket_of(geometry), items, bits.saturating_sub(SPARE_BITS)) {
            Some(table) => {
                let (bits, geometry) = size_of_table(&table);
                Best { rate: plan::rate_at(&table, items), geometry, bits }
            }
            None => Best { rate: 1.0, geometry, bits },
        }
    }

    fn largest(&self, max_bytes: u64, rate: f64) -> Option<(u64, (u64, Geometry))> {
        let max_bits = (max_bytes / 8).saturating_mul(64).min(MAX_BITS).checked_sub(SPARE_BITS)?;
        let (table, items) = plan::plan_in(USUAL_BUCKET, max_bits, rate)?;
        Some((items, size_of_table(&table)))
    }

    fn rate_at(&self, geometry: Geometry, bits: u64, items: u64) -> f64 {
        table(geometry, bits).map_or(1.0, |table| plan::rate_at(&table, items))
    }

    fn items_at(&self, geometry: Geometry, bits: u64, rate: f64) -> u64 {
        let items = |table| plan::items_at(&table, rate).min(plan::room(&table));
        table(geometry, bits).map_or(0, items)
    }

    fn is_valid(&self, geometry: Geometry, bits: u64) -> bool {
        table(geometry, bits).is_some()
    }

    fn cache_lines(&self, _: Geometry) -> u32 {
        // A lookup reads two buckets, and each bucket is usually in one cache line.
        2
    }
}

fn bucket_of(geometry: Geometry) -> u32 {
    let Geometry::Slots { bucket, .. } = geometry else { return USUAL_BUCKET };
    bucket
}

/// Returns the table of a filter with this geometry and this number of bits. Returns `None` if no
/// table has this geometry and size.
pub(super) fn table(geometry: Geometry, bits: u64) -> Option<Table> {
    let Geometry::Slots { bits: slot_bits, bucket } = geometry else { return None };
    let slots_bits = bits.checked_sub(SPARE_BITS)?;
    if !slots_bits.is_multiple_of(u64::from(slot_bits)) {
        return None;
    }
    Table::from_slots(bucket, slot_bits, slots_bits / u64::from(slot_bits))
}

/// Returns the number of bits of a table, including the spare word, and the geometry of the table.
pub(super) fn size_of_table(table: &Table) -> (u64, Geometry) {
    let geometry = Geometry::Slots { bits: table.slot_bits(), bucket: table.bucket() };
    (table.len_bits() + SPARE_BITS, geometry)
}
