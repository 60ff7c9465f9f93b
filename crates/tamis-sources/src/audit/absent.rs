//! Generates random ids, nearly all of which are absent from the source.

use std::collections::HashSet;

use crate::ids::id::IdType;

/// Generates distinct ids of a type in their canonical text. The same seed generates the same ids.
#[derive(Debug)]
pub(super) struct AbsentIds<'t> {
    id: &'t IdType,
    random: Random,
    /// The number of ids that remain to be generated.
    left: u64,
    /// The integers that were generated before. A small range contains few distinct integers.
    seen: HashSet<i128>,
}

/// The largest integer id: 38 digits.
const MAX_INTEGER: i128 = 10_i128.pow(38) - 1;

/// The length of a text id.
const TEXT_BYTES: usize = 16;

/// The maximum number of repeated integers in a row. After this number of repeats, the range counts as exhausted.
const MAX_REPEATS: usize = 1000;

impl<'t> AbsentIds<'t> {
    pub(super) fn new(id: &'t IdType, seed: u64, count: u64) -> Self {
        Self { id, random: Random(seed), left: count, seen: HashSet::new() }
    }

    fn integer(&mut self, min: i128, max: i128) -> Option<i128> {
        let (min, max) = (min.max(-MAX_INTEGER), max.min(MAX_INTEGER));
        if min > max {
            return None;
        }
        let count = max.abs_diff(min) + 1;
        for _ in 0..MAX_REPEATS {
            let word = u128::from(self.random.next()) << 64 | u128::from(self.random.next());
            // `wrapping_add` returns the correct value, even if the difference does not fit in an `i128`.
            let value = min.wrapping_add((word % count) as i128);
            if self.seen.insert(value) {
                return Some(value);
            }
        }
        None
    }

    fn uuid(&mut self) -> String {
        let (high, low) = (self.random.next(), self.random.next());
        // These two lines set the bits that mark a UUID of version 4 (RFC 9562).
        let high = high & !0xf000 | 0x4000;
        let low = low & !(0b11 << 62) | 0b10 << 62;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff,
        )
    }

    fn text(&mut self, max_bytes: usize) -> Option<String> {
        let bytes = max_bytes.min(TEXT_BYTES);
        let letter = |word: u64| char::from_digit((word % 36) as u32, 36).expect("below 36");
        (bytes > 0).then(|| (0..bytes).map(|_| letter(self.random.next())).collect())
    }
}

impl Iterator for AbsentIds<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(1)?;
        let id = match *self.id {
            IdType::Integer { min, max, .. } => self.integer(min, max)?.to_string(),
            IdType::Uuid => self.uuid(),
            IdType::Text { max_bytes } => self.text(max_bytes)?,
        };
        Some(id.into_bytes())
    }
}

/// A generator of random numbers from a seed (SplitMix64).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::id::IntegerForm;

    fn integers(min: i128, max: i128) -> IdType {
        IdType::Integer { min, max, form: IntegerForm { is_padded: false, is_spaced: false } }
    }

    #[test]
    fn all_ids_are_canonical_and_differ() {
        for id in [
            integers(1, i64::MAX.into()),
            integers(i128::MIN, i128::MAX),
            integers(-1000, 2000),
            IdType::Uuid,
            IdType::Text { max_bytes: 8 },
            IdType::Text { max_bytes: 1000 },
        ] {
            let made: Vec<_> = AbsentIds::new(&id, 7, 1000).collect();
            assert_eq!(made.iter().collect::<HashSet<_>>().len(), 1000, "{id:?}");
            for text in &made {
                assert_eq!(id.canonical(text).as_deref(), Ok(&text[..]), "{id:?}");
            }
            assert_eq!(made, AbsentIds::new(&id, 7, 1000).collect::<Vec<_>>());
            assert_ne!(made, AbsentIds::new(&id, 8, 1000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_small_range_has_few_ids() {
        let mut made: Vec<_> = AbsentIds::new(&integers(3, 5), 1, 1000).collect();
        made.sort();
        assert_eq!(made, [b"3", b"4", b"5"]);
        assert_eq!(AbsentIds::new(&integers(5, 3), 1, 10).count(), 0);
        assert_eq!(AbsentIds::new(&IdType::Text { max_bytes: 0 }, 1, 10).count(), 0);
    }
}
