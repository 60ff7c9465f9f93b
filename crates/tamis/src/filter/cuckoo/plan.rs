//! The formulas of the cuckoo filter: its rate, and the number of items that fit.
//!
//! The function `rate_at` computes the exact rate. The function [`fits`] estimates by a rule
//! whether a number of items fits. The rule of [`fits`] was derived from measurements: tables of
//! every size were filled until the first item did not fit. Up to 4·10⁵ tables of each size were
//! filled.

use crate::filter::cuckoo::table::{MAX_SLOTS, Table};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::rates::HASHES;

/// The possible widths of a slot, in bits.
pub(crate) const SLOT_BITS: std::ops::RangeInclusive<u32> = 4..=32;

/// Computes the probability that an absent item is reported as present, if `items` distinct items
/// are stored. The probability is the chance that at least one stored item has the same key as the
/// absent item. All keys are equally probable. Items with the same hash have the same key.
pub(crate) fn rate_at(table: &Table, items: u64) -> f64 {
    -(items as f64 * (-1.0 / keys(table)).ln_1p()).exp_m1()
}

/// Returns the number of possible keys.
fn keys(table: &Table) -> f64 {
    table.keys_in_all().min(HASHES)
}

/// Computes how many distinct items a table can hold at `rate`. The result does not consider the
/// number of slots.
pub(crate) fn items_at(table: &Table, rate: f64) -> u64 {
    // The result is slightly reduced because of rounding, so that the rate is never exceeded.
    let items = ((-rate).ln_1p() / (-1.0 / keys(table)).ln_1p()).floor() as u64;
    if rate_at(table, items) <= rate { items } else { items.saturating_sub(1) }
}

/// Returns the highest load of a planned filter.
///
/// A table of 10⁴ to 10⁷ slots is full at 96.1 % with buckets of two slots, and at 99.1 % with
/// larger buckets. Inserts into the last percent of a table take most of the time of all inserts.
///
/// Filters with narrow slots are planned with a slightly lower load than filters with wide slots,
/// because filling the last percents takes most of the time. Filters with narrow slots still take
/// less than log₂(1/rate) + 3 bits for each item.
pub(crate) const fn load_limit(bucket: u32, slot_bits: u32) -> f64 {
    match (bucket, slot_bits) {
        (2, ..=12) => 0.92,
        (2, ..=16) => 0.94,
        (2, _) => 0.95,
        _ => 0.98,
    }
}

/// Returns the limit for the expected number of crowded pairs of keys in a filter with `items`
/// items. A pair is crowded if the pair has more items than slots. With the limit of this function,
/// one large filter in ten thousand refuses an item slightly before its capacity. An insert of a
/// refused item returns an error. A limit of one in a million would cost large filters one more bit
/// for each item.
fn most_crowded(items: f64) -> f64 {
    1e-6 * (items / 1e5).clamp(1.0, 100.0)
}

/// Returns true if `items` distinct items fit in a table. For about one table in a million, `fits`
/// returns true although the items do not fit. Among the largest tables, `fits` wrongly returns
/// true for one table in ten thousand (`most_crowded`).
///
/// Three rules decide whether the items fit:
///
/// * Up to `2 * bucket` items always fit, because each item may use `2 * bucket` slots.
/// * The table as a whole must have free slots. With buckets of two slots, the first item that does
///   not fit is number 0.965·slots ± 0.24·√items. The deviation was measured for tables of 10² to
///   10⁴ slots. With buckets of more than two slots, the first item that does not fit is number
///   0.994·slots ± 0.15·√items. For small tables, the distribution has a longer tail than for large
///   tables. Of 250 000 tables with 18 slots, one table was full at 7 items. Of 100 000 tables with
///   66 slots, one table was full at 45 items. Of 15 000 tables with 514 slots, one table was full
///   at 470 items.
/// * Two keys that share a bucket in one half have `3 * bucket` slots together. Two keys that share
///   a bucket may have more items than slots (`crowded`). For slots of few bits, the rule for
///   shared buckets is the strictest rule, because a table with narrow slots has few keys.
pub(crate) fn fits(table: &Table, items: u64) -> bool {
    let bucket = table.bucket();
    if items <= 2 * u64::from(bucket) {
        return true;
    }
    let (n, slots) = (items as f64, table.slots() as f64);
    let room = match bucket {
        2 => 0.964 * slots - 18.0 - n.sqrt(),
        _ => 0.99 * slots - 12.0 - 0.5 * n.sqrt(),
    };
    n <= room
        && n <= load_limit(bucket, table.slot_bits()) * slots
        && crowded(table, n) <= most_crowded(n)
}

/// Computes the expected number of pairs of keys that share a bucket and have more items than
/// slots.
fn crowded(table: &Table, n: f64) -> f64 {
    let b = table.bucket() as i32;
    let (starts, fingerprints) = (table.starts() as f64, table.fingerprints() as f64);
    // The number of items of a key is Poisson distributed. A key holds at most 2b items, so if two
    // keys together have 3b + 1 items, each key has at least b + 1 items.
    let load = n / (starts * fingerprints);
    // Each of the `2 * starts` buckets is shared by `fingerprints² / 2` pairs of keys.
    starts * fingerprints * fingerprints * load.powi(3 * b + 1) * ways_to_crowd(table.bucket())
}

/// Returns the probability that two keys have 3b + 1 items together and at least b + 1 items each.
/// The result is divided by the (3b + 1)th power of the load.
const fn ways_to_crowd(bucket: u32) -> f64 {
    let (mut ways, mut k) = (0.0, bucket + 1);
    while k <= 2 * bucket {
        ways += 1.0 / (factorial(k) * factorial(3 * bucket + 1 - k));
        k += 1;
    }
    ways
}

const fn factorial(k: u32) -> f64 {
    if k == 0 { 1.0 } else { k as f64 * factorial(k - 1) }
}

/// The requirements of [`plan`] on a table, converted into sizes.
struct Requirements {
    bucket: u32,
    items: u64,
    rate: f64,
    /// The minimum number of possible keys with which the filter keeps the rate. A key is a pair of
    /// bucket and fingerprint.
    keys: f64,
    /// The minimum number of slots for the table as a whole, without regard to the load limit.
    slots: f64,
    /// The number of items, or zero if the items always fit.
    crowd: f64,
}

impl Requirements {
    fn new(bucket: u32, items: u64, rate: f64) -> Self {
        let n = items as f64;
        let keys = -1.0 / ((-rate).ln_1p() / n).exp_m1();
        let slots = match bucket {
            2 => (n + 18.0 + n.sqrt()) / 0.964,
            _ => (n + 12.0 + 0.5 * n.sqrt()) / 0.99,
        };
        let always_fit = items <= 2 * u64::from(bucket);
        let (slots, crowd) = if always_fit { (0.0, 0.0) } else { (slots, n) };
        Self { bucket, items, rate, keys, slots, crowd }
    }

    /// Computes the minimum number of bucket starts that hold the items, with slots of this width.
    fn starts_for_room(&self, slot_bits: u32) -> f64 {
        let slots = self.slots.max(self.crowd / load_limit(self.bucket, slot_bits));
        (slots / 2.0 - f64::from(self.bucket - 1)).max(1.0)
    }

    /// Computes the minimum number of bucket starts of a table with slots of `slot_bits` bits.
    fn starts(&self, slot_bits: u32) -> u64 {
        let fingerprints = Table::count_fingerprints(self.bucket, slot_bits) as f64;
        let starts = (self.keys / fingerprints).max(self.starts_for_room(slot_bits));
        // The next lines solve the formula of `crowded` for the number of starts. The solution is
        // used only if the formula of `crowded` needs more starts than the rules for the keys and
        // the slots.
        let (n, power) = (self.crowd, 3 * self.bucket as i32);
        let load = n / (starts * fingerprints);
        let pairs = starts * fingerprints * fingerprints * ways_to_crowd(self.bucket);
        let excess = pairs * load.powi(power + 1) / most_crowded(n);
        let starts =
            if excess > 1.0 { starts * excess.powf(1.0 / f64::from(power)) } else { starts };
        // The number of starts is lowered by more than a rounding error. A number that is slightly
        // too low does no harm, because `settle` increases the number until the items fit.
        (starts * (1.0 - 1e-14)).ceil() as u64
    }

    /// Computes a lower bound of the slot width of the plan with the fewest bits. A table whose
    /// slots are one bit narrower needs twice as many slots for the same number of keys.
    fn narrowest(&self) -> u32 {
        let fingerprints = self.keys / self.starts_for_room(*SLOT_BITS.start());
        let bits = (fingerprints as u64).max(1).ilog2() + self.bucket.ilog2();
        bits.saturating_sub(1).clamp(*SLOT_BITS.start(), *SLOT_BITS.end())
    }

    /// Returns the smallest table with slots of this width that meets the requirements. Returns
    /// `None` if the table would be too large.
    fn settle(&self, slot_bits: u32) -> Option<Table> {
        (self.starts(slot_bits)..=MAX_SLOTS / 2 - u64::from(self.bucket))
            .map(|starts| Table::new(self.bucket, slot_bits, starts))
            .find(|table| rate_at(table, self.items) <= self.rate && fits(table, self.items))
    }
}

/// Plans the table with the fewest bits in which `items` fit and keep `rate`. Returns `None` if the
/// table would be too large.
pub(crate) fn plan(bucket: u32, items: u64, rate: f64) -> Option<Table> {
    let required = Requirements::new(bucket, items.max(1), rate);
    // The limit `HASHES` is lowered by more than a rounding error, because the search may find no
    // table if the number of keys is close to the number of hashes.
    if required.keys > HASHES * (1.0 - 1e-9) {
        return None;
    }
    let mut fewest = (u64::MAX, 0);
    for slot_bits in required.narrowest()..=*SLOT_BITS.end() {
        let starts = required.starts(slot_bits).min(MAX_SLOTS);
        let bits = 2 * (starts + u64::from(bucket) - 1) * u64::from(slot_bits);
        // If the table already has enough keys, wider slots only add bits to the table.
        if bits > fewest.0 {
            break;
        }
        if bits < fewest.0 {
            fewest = (bits, slot_bits);
        }
    }
    let fewest = required.settle(fewest.1)?;
    // A table with wider slots may take a few percent more memory, because wider slots halve the
    // rate. If the required rate lies between the rates of two widths, a table with narrower slots
    // needs additional memory for slots that stay empty.
    let wider = fewest.slot_bits() + 1;
    let wider = SLOT_BITS.contains(&wider).then(|| required.settle(wider)).flatten();
    let worth = fewest.len_bits() + fewest.len_bits() / 32;
    Some(wider.filter(|table| table.len_bits() <= worth).unwrap_or(fewest))
}

/// Plans the table of at most `max_bits` that holds the most items at `rate`. Returns `None` if no
/// table holds an item at this rate.
pub(crate) fn plan_in(bucket: u32, max_bits: u64, rate: f64) -> Option<(Table, u64)> {
    let planned = SLOT_BITS.filter_map(|slot_bits| {
        let table = largest(bucket, slot_bits, max_bits)?;
        let items = room(&table).min(items_at(&table, rate));
        (items > 0).then_some((table, items))
    });
    // If several tables hold the same number of items, this expression returns the table with the
    // narrowest slots, because `max_by_key` returns the last maximum.
    planned.rev().max_by_key(|&(_, items)| items)
}

/// Plans the table of at most `max_bits` with the lowest rate for `items`. Returns `None` if the
/// items do not fit in any table.
pub(crate) fn plan_items_in(bucket: u32, items: u64, max_bits: u64) -> Option<Table> {
    let items = items.max(1);
    SLOT_BITS
        .filter_map(|slot_bits| largest(bucket, slot_bits, max_bits))
        .filter(|table| fits(table, items))
        .min_by(|a, b| rate_at(a, items).total_cmp(&rate_at(b, items)))
}

/// Returns how many items fit in a table.
pub(crate) fn room(table: &Table) -> u64 {
    first(1, table.slots() + 1, |items| !fits(table, items)).map_or(table.slots(), |over| over - 1)
}

/// Returns the largest table of at most `max_bits` with slots of this width.
fn largest(bucket: u32, slot_bits: u32, max_bits: u64) -> Option<Table> {
    let slots = (max_bits / u64::from(slot_bits)).min(MAX_SLOTS) / 2 * 2;
    Table::from_slots(bucket, slot_bits, slots)
}

/// Returns the first number in `low..=high` for which `holds` is true. If `holds` is true for a
/// number, `holds` must also be true for all higher numbers.
fn first(low: u64, high: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(high) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEMS: [u64; 9] = [0, 1, 2, 5, 10, 100, 10_000, 1_000_000, 1_000_000_000];

    #[test]
    fn plans_are_tight() {
        for bucket in 2..=4 {
            for items in ITEMS {
                for rate in [0.5, 0.1, 0.01, 1e-3, 1e-6] {
                    let table = plan(bucket, items, rate).unwrap();
                    assert!(rate_at(&table, items) <= rate && fits(&table, items));
                    let Some(smaller) =
                        Table::from_slots(bucket, table.slot_bits(), table.slots() - 2)
                    else {
                        continue;
                    };
                    assert!(rate_at(&smaller, items.max(1)) > rate || !fits(&smaller, items));
                }
            }
        }
    }

    #[test]
    fn no_other_width_takes_fewer_bits() {
        for (bucket, items) in (2..=4).flat_map(|bucket| ITEMS.map(|items| (bucket, items))) {
            for rate in [0.9, 0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-9] {
                let enough =
                    |table: &Table| rate_at(table, items.max(1)) <= rate && fits(table, items);
                let least = |slot_bits| {
                    let of = |starts| Table::new(bucket, slot_bits, starts);
                    first(1, MAX_SLOTS / 2 - u64::from(bucket), |starts| enough(&of(starts)))
                        .map(of)
                };
                let fewest = SLOT_BITS.filter_map(least).min_by_key(Table::len_bits).unwrap();
                let planned = plan(bucket, items, rate).unwrap();
                assert_eq!(Some(planned), least(planned.slot_bits()), "{bucket} {items} {rate}");
                let wider = planned.slot_bits() - fewest.slot_bits();
                let most = fewest.len_bits() + u64::from(wider) * fewest.len_bits() / 32;
                assert!(wider <= 1 && planned.len_bits() <= most, "{bucket} {items} {rate}");
            }
        }
    }

    #[test]
    fn items_memory_and_rate_plan_each_other() {
        for bucket in 2..=4 {
            for items in ITEMS {
                for rate in [0.1, 0.01, 1e-4] {
                    let table = plan(bucket, items, rate).unwrap();
                    let (_, most) = plan_in(bucket, table.len_bits(), rate).unwrap();
                    assert!(most >= items, "{bucket}, {items} at {rate}: {most}");
                    let best = plan_items_in(bucket, items, table.len_bits()).unwrap();
                    assert!(rate_at(&best, items) <= rate, "{bucket}, {items} at {rate}");
                    assert!(best.len_bits() <= table.len_bits());
                    let at = items_at(&table, rate);
                    assert!(at >= items && rate_at(&table, at) <= rate);
                }
            }
        }
    }

    #[test]
    fn large_tables_are_planned_for_their_load() {
        for items in [10_000, 20_000, 1_000_000, 100_000_000] {
            let table = plan(2, items, 0.001).unwrap();
            assert_eq!(table.slot_bits(), 12);
            // The number of slots is even, because both halves have the same size.
            let slots = table.slots();
            assert!(slots as f64 <= items as f64 / 0.92 + 2.0, "{items}: {slots}");
            let above = table.len_bits() as f64 / items as f64 + rate_at(&table, items).log2();
            assert!(above < 3.0, "{above} bits above the bound");
        }
    }

    #[test]
    fn impossible_plans_are_refused() {
        assert_eq!(plan(2, u64::MAX, 0.01), None);
        assert_eq!(plan(2, 10, 1e-300), None);
        assert_eq!(plan_in(2, 0, 0.01), None);
        assert_eq!(plan_in(2, 64, 1e-12), None);
        assert_eq!(plan_items_in(2, 1000, 64), None);
        assert_eq!(plan_items_in(2, u64::MAX, u64::MAX), None);
    }
}
