//! Creates items from numbers. The items are distinct and the same on every machine, and a CPU
//! cannot predict their order.

use std::borrow::Borrow;
use std::hash::Hash;

use rapidhash::v3::{DEFAULT_RAPID_SECRETS, rapidhash_v3_micro_inline, rapidhash_v3_nano_inline};

/// The items of a query, in the memory of the caller.
pub trait Source {
    /// The type of an item: `u64`, or a byte string.
    type Key: Hash + Eq + ToOwned<Owned: Hash + Eq + Borrow<Self::Key>> + ?Sized;

    /// One item in a batch.
    type Item<'a>: Copy + tamis::Item + Borrow<Self::Key>
    where
        Self: 'a;

    /// Creates an empty list.
    fn new() -> Self;

    /// Appends item number `i`.
    fn push(&mut self, i: u64);

    /// Removes the items and keeps the memory.
    fn clear(&mut self);

    /// Returns the items.
    fn items(&self) -> Vec<Self::Item<'_>>;

    /// Hashes a key for sbbf-rs, which accepts only hashes. Uses the fastest variant of rapidhash
    /// for this key size.
    fn rapidhash(key: &Self::Key) -> u64;
}

/// A bijection of 64 bits without a pattern (the finalizer of SplitMix64).
pub const fn mix(i: u64) -> u64 {
    let z = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The first number of an absent item. No filter contains an item with this number or a higher
/// number.
pub const ABSENT: u64 = 1 << 40;

/// Which of the queried items are members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hits {
    All,
    None,
    Half,
}

impl Hits {
    pub const fn name(self) -> &'static str {
        match self {
            Hits::All => "hit",
            Hits::None => "miss",
            Hits::Half => "mixed",
        }
    }

    /// Creates `len` queries to a filter of the items `0..members`. Also returns the number of
    /// queries for members.
    pub fn questions<S: Source>(self, members: u64, len: u64) -> (S, u64) {
        let mut source = S::new();
        let mut inside = 0;
        for j in 0..len {
            let random = mix(!j);
            let is_member = match self {
                Hits::All => true,
                Hits::None => false,
                Hits::Half => random >> 63 == 1,
            };
            if is_member {
                source.push(random % members);
                inside += 1;
            } else {
                source.push(ABSENT + j);
            }
        }
        (source, inside)
    }
}

/// 64-bit integers.
pub struct Integers(Vec<u64>);

impl Source for Integers {
    type Key = u64;
    type Item<'a> = u64;

    fn new() -> Self {
        Self(Vec::new())
    }

    fn push(&mut self, i: u64) {
        self.0.push(mix(i));
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn items(&self) -> Vec<u64> {
        self.0.clone()
    }

    #[inline(always)]
    fn rapidhash(key: &u64) -> u64 {
        rapidhash_v3_nano_inline::<true, false>(&key.to_le_bytes(), &DEFAULT_RAPID_SECRETS)
    }
}

/// Byte strings in one buffer, without gaps, like the lines of a file.
pub struct Strings<const URL: bool> {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// URLs of 50 to 80 bytes.
pub type Urls = Strings<true>;

/// UUIDs as text, 36 bytes.
pub type Uuids = Strings<false>;

impl<const URL: bool> Source for Strings<URL> {
    type Key = [u8];
    type Item<'a> = &'a [u8];

    fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new() }
    }

    fn push(&mut self, i: u64) {
        if URL {
            push_url(&mut self.bytes, i);
        } else {
            push_uuid(&mut self.bytes, i);
        }
        self.ends.push(self.bytes.len());
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn items(&self) -> Vec<&[u8]> {
        let mut start = 0;
        let cut = |&end: &usize| {
            let item = &self.bytes[start..end];
            start = end;
            item
        };
        self.ends.iter().map(cut).collect()
    }

    #[inline(always)]
    fn rapidhash(key: &[u8]) -> u64 {
        rapidhash_v3_micro_inline::<true, false>(key, &DEFAULT_RAPID_SECRETS)
    }
}

fn push_uuid(bytes: &mut Vec<u8>, i: u64) {
    let (high, low) = (mix(i), mix(!i));
    let digits = (u128::from(high) << 64) | u128::from(low);
    for digit in 0..32 {
        if matches!(digit, 8 | 12 | 16 | 20) {
            bytes.push(b'-');
        }
        bytes.push(HEX[(digits >> (4 * (31 - digit)) & 15) as usize]);
    }
}

fn push_url(bytes: &mut Vec<u8>, i: u64) {
    const SECTIONS: [&[u8]; 8] = [
        b"articles/view/",
        b"p/",
        b"product/reviews/",
        b"u/photos/albums/",
        b"q/",
        b"wiki/",
        b"catalog/items/detail/",
        b"news/2026/11/",
    ];
    let random = mix(i);
    bytes.extend_from_slice(b"https://www.");
    // A few sites have most of the pages.
    bytes.extend_from_slice(
        format!("site{:04}", ((random >> 50) * (random >> 50)) >> 16).as_bytes(),
    );
    bytes.extend_from_slice(b".example.com/");
    bytes.extend_from_slice(SECTIONS[(random & 7) as usize]);
    for digit in 0..16 {
        bytes.push(HEX[(random >> (4 * digit) & 15) as usize]);
    }
    if random & 8 != 0 {
        bytes.extend_from_slice(b".html");
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_distinct_and_50_to_80_bytes_long() {
        let mut urls = Urls::new();
        (0..100_000).for_each(|i| urls.push(i));
        let items = urls.items();
        assert!(items.iter().all(|url| (50..=80).contains(&url.len())));
        let distinct: std::collections::HashSet<_> = items.iter().collect();
        assert_eq!(distinct.len(), items.len());
    }

    #[test]
    fn uuids_look_like_uuids() {
        let mut uuids = Uuids::new();
        uuids.push(7);
        let text = std::str::from_utf8(uuids.items()[0]).unwrap().to_owned();
        let parts: Vec<usize> = text.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
    }
}
