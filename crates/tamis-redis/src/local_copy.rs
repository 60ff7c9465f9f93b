//! A copy of a filter in the memory of a client. Lookups in the copy need no server.
//!
//! The caller reads the strings of the filter from the server, and chooses the connections and the
//! limits:
//!
//! ```text
//! metadata ─▶ RedisCopyBuilder ─▶ key of shard 0, layer 0 ─▶ string ─▶ number of layers
//!                              ─▶ key of shard 0, layer 1 ─▶ string ...
//!                              ─▶ RedisCopy
//! ```
//!
//! The caller may read the strings one after another, because inserts only set bits. The copy
//! contains every item that was inserted before the first read. If a rebuild ends during the reads,
//! the rebuild deletes the strings, and the copy fails.

use std::fmt;

use tamis::Hasher;

use crate::layouts::geometry::LayerGeometry;
use crate::layouts::header::State;
use crate::layouts::metadata::{GenerationRecord, Metadata, RedisMetadataError, Role};
use crate::layouts::shard_keys::{NameError, ShardKeys};

/// The reason why a filter cannot be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisCopyError {
    /// The string at the key of the filter is not the metadata of a filter.
    Metadata(RedisMetadataError),
    /// The name is not valid for a filter.
    Name(NameError),
    /// The filter is a window. The items of a window expire, but a copy would keep the items.
    Window,
    /// The string of a shard is missing, belongs to another generation, or has a wrong size.
    Shard {
        /// The number of the shard.
        shard: u32,
        /// The number of the layer.
        layer: u8,
    },
}

impl fmt::Display for RedisCopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metadata(error) => error.fmt(f),
            Self::Name(error) => error.fmt(f),
            Self::Window => f.write_str("the filter is a window, whose items expire"),
            Self::Shard { shard, layer } => write!(
                f,
                "layer {layer} of shard {shard} is missing or was replaced: the server lost it, or a \
                 rebuild ended meanwhile"
            ),
        }
    }
}

impl std::error::Error for RedisCopyError {}

/// Builds a copy from the strings of a filter.
#[derive(Debug)]
pub struct RedisCopyBuilder {
    keys: ShardKeys,
    copy: RedisCopy,
}

/// A copy of a filter in memory.
#[derive(Clone, Debug)]
pub struct RedisCopy {
    hasher: Hasher,
    record: GenerationRecord,
    /// The layers of each shard, indexed by shard and then by layer.
    shards: Vec<Vec<Layer>>,
}

#[derive(Clone, Debug)]
struct Layer {
    geometry: LayerGeometry,
    items: u64,
    string: Vec<u8>,
}

impl RedisCopyBuilder {
    /// Creates a builder from the metadata, which is the string at the key of the filter.
    ///
    /// # Errors
    ///
    /// [`RedisCopyError`] if the string is not the metadata of a filter, if the name is not valid,
    /// or if the filter is a window.
    pub fn new(name: &[u8], metadata: &[u8]) -> Result<Self, RedisCopyError> {
        let metadata = Metadata::decode(metadata).map_err(RedisCopyError::Metadata)?;
        let current = metadata.generations.into_iter().find(|one| one.role == Role::Current);
        let record = current.ok_or(RedisCopyError::Window)?;
        let keys = ShardKeys::new(name, record.geometry.shards).map_err(RedisCopyError::Name)?;
        let copy = RedisCopy { hasher: metadata.hasher, record, shards: Vec::new() };
        Ok(Self { keys, copy })
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.copy.record.geometry.shards
    }

    /// Returns the key of a layer of a shard.
    ///
    /// # Panics
    ///
    /// Panics if the filter has no shard with this number.
    #[must_use]
    pub fn key(&self, shard: u32, layer: u8) -> Vec<u8> {
        self.keys.key(shard, self.copy.record.id, layer)
    }

    /// Returns the length of the string of a layer in bytes.
    #[must_use]
    pub fn layer_bytes(&self, layer: u8) -> u64 {
        self.copy.record.geometry.layer(layer).bytes()
    }

    /// Adds the string of the next layer. The caller adds the strings shard by shard, and within a
    /// shard layer by layer. Returns true if the shard has further layers to add.
    ///
    /// # Errors
    ///
    /// [`RedisCopyError::Shard`] if the string is missing, belongs to another generation, or has a
    /// wrong size.
    pub fn add(&mut self, string: Option<Vec<u8>>) -> Result<bool, RedisCopyError> {
        let shards = &mut self.copy.shards;
        let is_complete =
            |layers: &Vec<Layer>| layers.len() >= usize::from(layers_of(&layers[0].string));
        if shards.last().is_none_or(is_complete) {
            shards.push(Vec::new());
        }
        let shard = shards.len() as u32 - 1;
        let Some(layers) = shards.last_mut() else { return Ok(false) };
        let layer = layers.len() as u8;
        let geometry = self.copy.record.geometry.layer(layer);
        let wrong = RedisCopyError::Shard { shard, layer };
        let is_shard = |string: &Vec<u8>| {
            string.len() as u64 == geometry.bytes()
                && state(string).is_some_and(|state| {
                    state.generation == self.copy.record.id && !state.is_retired
                })
        };
        let Some(string) = string.filter(is_shard) else {
            if layers.is_empty() {
                shards.pop();
            }
            return Err(wrong);
        };
        // A counter may be negative for a short time, because clients correct counters after
        // inserts.
        let items = u64::try_from(word(&string, 8).cast_signed()).unwrap_or(0);
        layers.push(Layer { geometry, items, string });
        Ok(layers.len() < usize::from(layers_of(&layers[0].string)))
    }

    /// Returns the complete copy.
    ///
    /// # Errors
    ///
    /// [`RedisCopyError::Shard`] if the caller has not added all strings.
    pub fn finish(self) -> Result<RedisCopy, RedisCopyError> {
        let added = self.copy.shards.len() as u32;
        let last = self.copy.shards.last();
        let is_open = last.filter(|it| it.len() < usize::from(layers_of(&it[0].string)));
        if let Some(layers) = is_open {
            return Err(RedisCopyError::Shard { shard: added - 1, layer: layers.len() as u8 });
        }
        if added < self.shards() {
            return Err(RedisCopyError::Shard { shard: added, layer: 0 });
        }
        Ok(self.copy)
    }
}

impl RedisCopy {
    /// Tests whether an item may be in the filter. If the answer is false, no client inserted the
    /// item before the caller read the first string.
    #[must_use]
    pub fn contains(&self, item: &[u8]) -> bool {
        let hash = self.hasher.hash(item);
        let shard = self.record.geometry.shard(hash);
        self.shards[shard as usize].iter().any(|layer| layer.contains(hash))
    }

    /// Returns the sum of the item counters of all shards.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.shards.iter().flatten().map(|layer| layer.items).fold(0, u64::saturating_add)
    }

    /// Returns the number of bytes of all strings in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shards.iter().flatten().map(|layer| layer.string.len() as u64).sum()
    }

    /// Returns the planned false positive rate.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.record.rate
    }

    /// Estimates the present false positive rate from the counters.
    #[must_use]
    pub fn estimate_rate(&self) -> f64 {
        let of_shard = |layers: &Vec<Layer>| {
            let absent = layers.iter().map(|it| 1.0 - it.geometry.rate(it.items as f64));
            1.0 - absent.product::<f64>()
        };
        self.shards.iter().map(of_shard).sum::<f64>() / self.shards.len() as f64
    }
}

impl Layer {
    fn contains(&self, hash: u64) -> bool {
        self.geometry.offsets(hash).all(|offset| {
            // No index into the string is out of range, because `add` checked the length of the
            // string.
            self.string[(offset / 8) as usize] >> (7 - offset % 8) & 1 == 1
        })
    }
}

fn word(string: &[u8], at: usize) -> u64 {
    string
        .get(at..at + 8)
        .map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes")))
}

fn state(string: &[u8]) -> Option<State> {
    State::decode(word(string, 0).cast_signed())
}

/// Returns the number of layers of a shard from the string of its first layer.
fn layers_of(string: &[u8]) -> u8 {
    state(string).map_or(0, |state| state.layers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::RedisFilter;
    use crate::model::{Model, Strings};
    use crate::plan::RedisPlan;

    /// Copies the filter `users` from the strings of a model.
    fn copy(strings: &Strings) -> Result<RedisCopy, RedisCopyError> {
        let mut builder = RedisCopyBuilder::new(b"users", &strings[&b"users"[..]])?;
        for shard in 0..builder.shards() {
            let mut layer = 0;
            while builder.add(strings.get(&builder.key(shard, layer)).cloned())? {
                layer += 1;
            }
        }
        builder.finish()
    }

    fn filter(items: u64) -> RedisFilter<Model> {
        let plan = RedisPlan::new(items, 0.01).unwrap();
        RedisFilter::create(Model::default(), "users", &plan).unwrap()
    }

    #[test]
    fn a_copy_answers_as_the_filter() {
        for planned in [1000, 5_000_000] {
            let filter = filter(planned);
            let items: Vec<String> = (0..900).map(|i| format!("user {i}")).collect();
            for result in filter.insert_each(&items) {
                result.unwrap();
            }
            let absent: Vec<String> = (0..900).map(|i| format!("nobody {i}")).collect();
            let answers = filter.contains_each(&absent);
            let copy = copy(&filter.into_transport().data().strings).unwrap();
            assert!(items.iter().all(|item| copy.contains(item.as_bytes())));
            for (item, answer) in absent.iter().zip(answers) {
                assert_eq!(copy.contains(item.as_bytes()), answer.unwrap(), "{item}");
            }
            assert_eq!(copy.items(), 900);
            assert!(copy.estimate_rate() <= copy.rate());
        }
    }

    #[test]
    fn a_lost_or_damaged_shard_is_an_error() {
        let strings = filter(5_000_000).into_transport().data().strings.clone();
        let last = RedisCopyBuilder::new(b"users", &strings[&b"users"[..]]).unwrap();
        let key = last.key(last.shards() - 1, 0);
        let shard = last.shards() - 1;
        let mut lost = strings.clone();
        lost.remove(&key);
        assert_eq!(copy(&lost).unwrap_err(), RedisCopyError::Shard { shard, layer: 0 });
        let mut short = strings.clone();
        short.get_mut(&key).unwrap().pop();
        assert_eq!(copy(&short).unwrap_err(), RedisCopyError::Shard { shard, layer: 0 });
        let mut zero = strings;
        zero.get_mut(&key).unwrap().fill(0);
        assert_eq!(copy(&zero).unwrap_err(), RedisCopyError::Shard { shard, layer: 0 });
        let unfinished = last.finish().unwrap_err();
        assert_eq!(unfinished, RedisCopyError::Shard { shard: 0, layer: 0 });
    }
}
