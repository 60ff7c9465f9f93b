//! The keys of a filter. The keys are spread evenly over the slots of a cluster.
//!
//! ```text
//! NAME                       metadata
//! NAME:{i.x}:gggggggg.l      shard i, generation g (eight hexadecimal digits), layer l
//! ```
//!
//! A filter with S shards divides the slots into min(S, 1024) equal ranges. The number x in a key
//! of shard i is the smallest number that meets two conditions: x is at least `crc16(NAME)`, and
//! the slot of the key lies in the slot range of shard i. Each node of a cluster therefore holds an
//! equal part of the shards. Small filters with different names are in different slots. All layers
//! and generations of a shard share the hash tag, so a script can change all layers and generations
//! of a shard together.
//!
//! If a name has a hash tag, such as `app:{users}`, the whole filter is in the slot of this tag,
//! and the keys are `NAME:i:gggggggg.l`.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::transport::slot::{SLOTS, crc16, hash_tag};

/// The largest number of slot ranges.
const MAX_RANGES: u64 = 1024;

/// The reason why a name is not valid for a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty.
    Empty,
    /// The name has a brace that is not part of a hash tag.
    Brace,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the name of a filter is empty",
            Self::Brace => {
                "the name of a filter has a brace that is not part of a hash tag: remove the brace, \
                 or write a hash tag as in app:{users}"
            }
        })
    }
}

impl std::error::Error for NameError {}

/// The keys of the shards of a filter. The first use of a shard computes the hash tag of the shard.
#[derive(Clone, Debug)]
pub(crate) struct ShardKeys {
    name: Arc<[u8]>,
    /// The number x in the keys of each shard. A filter whose name has a hash tag does not use the
    /// numbers x.
    suffixes: Arc<[OnceLock<u32>]>,
    is_pinned: bool,
}

impl ShardKeys {
    pub(crate) fn new(name: &[u8], shards: u32) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        let is_pinned = hash_tag(name).is_some();
        if !is_pinned && name.iter().any(|byte| b"{}".contains(byte)) {
            return Err(NameError::Brace);
        }
        let suffixes = (0..shards).map(|_| OnceLock::new()).collect();
        Ok(Self { name: name.into(), suffixes, is_pinned })
    }

    /// Returns the key of a layer of a shard.
    pub(crate) fn key(&self, shard: u32, generation: u32, layer: u8) -> Vec<u8> {
        let mut key = self.name.to_vec();
        let rest = if self.is_pinned {
            format!(":{shard}:{generation:08x}.{layer}")
        } else {
            let suffix = self.suffixes[shard as usize]
                .get_or_init(|| suffix(&self.name, shard, self.suffixes.len() as u64));
            format!(":{{{shard}.{suffix}}}:{generation:08x}.{layer}")
        };
        key.extend_from_slice(rest.as_bytes());
        key
    }
}

/// Returns the number x in the keys of a shard. Of all numbers that are at least `crc16(name)`, x
/// is the smallest number with which the keys lie in the slot range of the shard.
fn suffix(name: &[u8], shard: u32, shards: u64) -> u32 {
    let ranges = shards.min(MAX_RANGES);
    let range = u64::from(shard) * ranges / shards;
    let slots = range * u64::from(SLOTS) / ranges..(range + 1) * u64::from(SLOTS) / ranges;
    let prefix = crc16(0, format!("{shard}.").as_bytes());
    (u32::from(crc16(0, name))..)
        .find(|x| {
            let crc = crc16(prefix, x.to_string().as_bytes());
            slots.contains(&(u64::from(crc) % u64::from(SLOTS)))
        })
        .expect("a CRC of 16 bits takes all values")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::slot::cluster_slot;

    fn keys(name: &str, shards: u32) -> ShardKeys {
        ShardKeys::new(name.as_bytes(), shards).unwrap()
    }

    #[test]
    fn every_shard_lies_in_its_range_of_slots() {
        for shards in [1, 3, 48, 1024, 1500] {
            let keys = keys("users", shards);
            let ranges = u64::from(shards).min(1024);
            for shard in (0..shards).step_by(1 + shards as usize / 100) {
                let slot = u64::from(cluster_slot(&keys.key(shard, 0, 0)));
                let range = u64::from(shard) * ranges / u64::from(shards);
                assert!((range * 16384 / ranges..(range + 1) * 16384 / ranges).contains(&slot));
            }
        }
    }

    #[test]
    fn layers_and_generations_of_a_shard_share_a_slot() {
        let keys = keys("users", 48);
        assert_eq!(cluster_slot(&keys.key(7, 0, 0)), cluster_slot(&keys.key(7, 0xdead_beef, 3)));
    }

    #[test]
    fn small_filters_with_different_names_lie_in_different_slots() {
        let slots: std::collections::HashSet<_> =
            (0..100).map(|i| cluster_slot(&keys(&format!("filter {i}"), 1).key(0, 0, 0))).collect();
        assert!(slots.len() > 95, "{}", slots.len());
    }

    #[test]
    fn a_name_with_a_tag_keeps_all_shards_in_one_slot() {
        let keys = keys("app:{users}", 48);
        assert_eq!(keys.key(5, 1, 2), b"app:{users}:5:00000001.2");
        assert_eq!(cluster_slot(&keys.key(5, 1, 2)), cluster_slot(b"users"));
    }

    #[test]
    fn a_brace_without_a_tag_is_rejected() {
        for name in ["a{", "a}b", "a{}b"] {
            assert_eq!(ShardKeys::new(name.as_bytes(), 1).unwrap_err(), NameError::Brace);
        }
        assert_eq!(ShardKeys::new(b"", 1).unwrap_err(), NameError::Empty);
    }
}
