//! The metadata of a filter: the string at the key that has the name of the filter.
//!
//! ```text
//! tamis-redis 1
//! hash 5 00000000000000000000000000000000
//! window 7 86400000
//! generation 9f3a01bc current items=1000000 rate=0.01 growth=fixed shards=1 bits=12582320 probes=3 capacity=1000000
//! ```
//!
//! The line `hash` contains the number of the hash function, and the seed or key of the hash
//! function. Only windows have the line `window`, which contains the number of slices and the
//! milliseconds of a slice. The role of a generation is `current`, `building`, or the number of a
//! slice. Unknown lines and fields are errors, because an older client does not support the
//! features that these lines and fields describe.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use tamis::Hasher;

use crate::layouts::geometry::{MAX_ALL_SHARDS, MAX_SHARDS, RedisGrowth, ShardGeometry};
use crate::plan::{RedisPlan, RedisWindow};

const FIRST_LINE: &str = "tamis-redis 1";

/// The parameters and generations that all clients of a filter share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metadata {
    pub(crate) hasher: Hasher,
    pub(crate) window: Option<RedisWindow>,
    /// The generations, from the oldest to the newest.
    pub(crate) generations: Vec<GenerationRecord>,
}

/// A line `generation` of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GenerationRecord {
    pub(crate) id: u32,
    pub(crate) role: Role,
    pub(crate) items: u64,
    pub(crate) rate: f64,
    pub(crate) growth: RedisGrowth,
    pub(crate) geometry: ShardGeometry,
}

/// How clients use a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The generation takes lookups and inserts.
    Current,
    /// The generation takes only inserts, and replaces the current generation at the end of the
    /// rebuild.
    Building,
    /// The generation contains the items of one slice of a window. The number of the slice is the
    /// time divided by the length of a slice.
    Slice(u64),
}

/// The reason why a string is not the metadata of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisMetadataError {
    line: usize,
    why: String,
}

impl fmt::Display for RedisMetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the metadata {}", self.line, self.why)
    }
}

impl std::error::Error for RedisMetadataError {}

impl GenerationRecord {
    /// Creates a generation for a plan, with a random identifier.
    pub(crate) fn new(plan: &RedisPlan, role: Role) -> Self {
        Self {
            id: random_id(),
            role,
            items: plan.items(),
            rate: plan.rate(),
            growth: plan.growth(),
            geometry: plan.geometry,
        }
    }
}

/// Returns a random number from the random seed of a hash map of the standard library.
pub(crate) fn random_id() -> u32 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::time::SystemTime::now()) as u32
}

impl Metadata {
    /// Creates the metadata of a new filter. `now` is the time of the creation in milliseconds
    /// since 1970.
    pub(crate) fn new(plan: &RedisPlan, now: u64) -> Self {
        let window = plan.window_span();
        let role = window.map_or(Role::Current, |span| Role::Slice(now / span.slice_millis));
        let first = GenerationRecord::new(plan, role);
        Self { hasher: plan.hash_function(), window, generations: vec![first] }
    }

    /// Tests whether the metadata contains a generation with this identifier.
    pub(crate) fn names(&self, id: u32) -> bool {
        self.generations.iter().any(|record| record.id == id)
    }

    /// Returns the plan of the oldest generation.
    pub(crate) fn plan(&self) -> RedisPlan {
        let GenerationRecord { items, rate, growth, geometry, .. } = self.generations[0];
        RedisPlan::of_filter((items, rate, growth), geometry, self.hasher, self.window)
    }

    /// Encodes the metadata as text.
    pub(crate) fn encode(&self) -> String {
        let (number, seed) = self.hasher.to_parts();
        let seed = u128::from_be_bytes(seed);
        let mut text = format!("{FIRST_LINE}\nhash {number} {seed:032x}\n");
        if let Some(RedisWindow { slices, slice_millis }) = self.window {
            writeln!(text, "window {slices} {slice_millis}").expect("a string takes all");
        }
        for GenerationRecord { id, role, items, rate, growth, geometry } in &self.generations {
            let role = match role {
                Role::Current => "current".to_owned(),
                Role::Building => "building".to_owned(),
                Role::Slice(number) => number.to_string(),
            };
            let growth = match growth {
                RedisGrowth::Fixed => "fixed",
                RedisGrowth::Doubling => "doubling",
            };
            let ShardGeometry { shards, bits, probes, capacity } = geometry;
            writeln!(
                text,
                "generation {id:08x} {role} items={items} rate={rate} growth={growth} \
                 shards={shards} bits={bits} probes={probes} capacity={capacity}"
            )
            .expect("a string takes all");
        }
        text
    }

    /// Decodes the metadata from text.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, RedisMetadataError> {
        let error = |line: usize, why: &str| RedisMetadataError { line, why: why.to_owned() };
        let text = std::str::from_utf8(bytes).map_err(|_| error(1, "is not text"))?;
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
        if lines.next().is_none_or(|(_, line)| line != FIRST_LINE) {
            return Err(error(1, "is not \"tamis-redis 1\": another program wrote this key"));
        }
        let (mut hasher, mut window, mut generations) = (None, None, Vec::new());
        for (number, line) in lines {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            let is_read = match name {
                "hash" => hasher_of(rest).map(|read| hasher = Some(read)),
                "window" => window_of(rest).map(|read| window = Some(read)),
                "generation" => generation_of(rest).map(|read| generations.push(read)),
                _ => None,
            };
            if is_read.is_none() {
                return Err(error(number, "is not one that this version of Tamis can read"));
            }
        }
        let hasher = hasher.ok_or_else(|| error(2, "has no hash function"))?;
        let metadata = Self { hasher, window, generations };
        if !metadata.is_consistent() {
            return Err(error(3, "does not begin a list of generations that belong together"));
        }
        Ok(metadata)
    }

    /// Tests whether the generations fit together. A window has ascending slices. A filter that is
    /// no window has a current generation and at most one generation that is being built. The
    /// limits on generations and shards also bound the memory of a client.
    fn is_consistent(&self) -> bool {
        let shards: u64 = self.generations.iter().map(|one| u64::from(one.geometry.shards)).sum();
        let are_ordered = match self.window {
            None => matches!(
                &self.generations.iter().map(|one| one.role).collect::<Vec<_>>()[..],
                [Role::Current] | [Role::Current, Role::Building]
            ),
            Some(span) => {
                let number = |one: &GenerationRecord| match one.role {
                    // The expiry of the keys must fit a signed number, because the server stores
                    // times as signed numbers.
                    Role::Slice(number) => (number.checked_add(span.max_generations())?)
                        .checked_mul(span.slice_millis)
                        .filter(|&end| i64::try_from(end).is_ok())
                        .map(|_| number),
                    _ => None,
                };
                let numbers: Option<Vec<u64>> = self.generations.iter().map(number).collect();
                numbers.is_some_and(|numbers| {
                    !numbers.is_empty()
                        && numbers.len() as u64 <= span.max_generations()
                        && numbers.is_sorted_by(|a, b| a < b)
                })
            }
        };
        are_ordered && shards <= MAX_ALL_SHARDS
    }
}

fn hasher_of(text: &str) -> Option<Hasher> {
    let (number, seed) = text.split_once(' ')?;
    let seed = u128::from_str_radix(seed, 16).ok()?;
    Hasher::from_parts(number.parse().ok()?, seed.to_be_bytes())
}

fn window_of(text: &str) -> Option<RedisWindow> {
    let (slices, slice_millis) = text.split_once(' ')?;
    let span =
        RedisWindow { slices: slices.parse().ok()?, slice_millis: slice_millis.parse().ok()? };
    span.is_valid().then_some(span)
}

fn generation_of(text: &str) -> Option<GenerationRecord> {
    let mut words = text.split(' ');
    let id = u32::from_str_radix(words.next()?, 16).ok()?;
    let role = match words.next()? {
        "current" => Role::Current,
        "building" => Role::Building,
        number => Role::Slice(number.parse().ok()?),
    };
    let items = field(words.next()?, "items")?;
    let rate = field(words.next()?, "rate").filter(|&rate| 0.0 < rate && rate < 1.0)?;
    let growth = match words.next()? {
        "growth=fixed" => RedisGrowth::Fixed,
        "growth=doubling" => RedisGrowth::Doubling,
        _ => return None,
    };
    let geometry = ShardGeometry {
        shards: field(words.next()?, "shards")
            .filter(|shards| (1..=MAX_SHARDS).contains(shards))?,
        // A string of Redis has fewer than 2³² bits.
        bits: field(words.next()?, "bits").filter(|bits| (8..1 << 31).contains(bits))?,
        probes: field(words.next()?, "probes").filter(|probes| (1..=1000).contains(probes))?,
        capacity: field(words.next()?, "capacity")
            .filter(|capacity| (1..1 << 36).contains(capacity))?,
    };
    words.next().is_none().then_some(GenerationRecord { id, role, items, rate, growth, geometry })
}

fn field<T: FromStr>(word: &str, name: &str) -> Option<T> {
    word.strip_prefix(name)?.strip_prefix('=')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        let plan = RedisPlan::new(1_000_000, 0.01).unwrap().hasher(Hasher::keyed([1, 2]));
        let mut metadata = Metadata::new(&plan, 0);
        metadata.generations.push(GenerationRecord::new(&plan, Role::Building));
        metadata
    }

    fn window(slices: u32, slice_millis: u64, numbers: &[u64]) -> Metadata {
        let plan = RedisPlan::new(1_000_000, 0.01).unwrap();
        let record = |&number: &u64| GenerationRecord::new(&plan, Role::Slice(number));
        let window = Some(RedisWindow { slices, slice_millis });
        Metadata { window, generations: numbers.iter().map(record).collect(), ..metadata() }
    }

    #[test]
    fn metadata_is_decoded_as_it_was_encoded() {
        for metadata in [metadata(), window(7, 86_400_000, &[19_999, 20_000, 20_002])] {
            let text = metadata.encode();
            assert_eq!(Metadata::decode(text.as_bytes()).unwrap(), metadata, "{text}");
        }
    }

    #[test]
    fn generations_that_do_not_belong_together_are_rejected() {
        let decode = |metadata: Metadata| Metadata::decode(metadata.encode().as_bytes());
        let of = |roles: &[Role]| {
            let plan = RedisPlan::new(10, 0.01).unwrap();
            let generations = roles.iter().map(|&role| GenerationRecord::new(&plan, role));
            decode(Metadata { generations: generations.collect(), ..metadata() })
        };
        use Role::{Building, Current, Slice};
        assert!(of(&[Current]).is_ok() && of(&[Current, Building]).is_ok());
        for wrong in [&[][..], &[Building], &[Building, Current], &[Current, Current], &[Slice(1)]]
        {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
        assert!(of(&[Current, Building, Building]).is_err());
        assert!(decode(window(2, 1000, &[1, 2, 3, 4])).is_ok());
        assert!(decode(window(2, 1000, &[1, 2, 3, 4, 5])).is_err());
        for numbers in [&[][..], &[2, 1], &[2, 2], &[u64::MAX], &[1 << 60]] {
            assert!(decode(window(2, 1000, numbers)).is_err(), "{numbers:?}");
        }
        for (slices, millis) in [(0, 1), (1001, 1), (1, 0), (1, (1 << 40) + 1), (1, u64::MAX)] {
            assert!(decode(window(slices, millis, &[1])).is_err(), "{slices} {millis}");
        }
        assert!(decode(window(1000, 1 << 40, &[1])).is_ok());
        let mut large = window(1000, 1, &(0..1000).collect::<Vec<_>>());
        large.generations.iter_mut().for_each(|one| one.geometry.shards = 1 << 20);
        assert!(decode(large).is_err());
    }

    #[test]
    fn the_metadata_of_extreme_plans_is_decoded() {
        for (items, rate) in [(u64::from(u32::MAX), 0.99), (0, 1e-15), (1_000_000_000_000, 0.01)] {
            let plan = RedisPlan::new(items, rate).unwrap().max_shard_bytes(64 << 20).unwrap();
            let metadata = Metadata::new(&plan.growing().unwrap(), 0);
            assert_eq!(Metadata::decode(metadata.encode().as_bytes()).unwrap(), metadata);
        }
    }

    #[test]
    fn every_truncated_or_changed_text_is_rejected_or_equal() {
        let text = metadata().encode();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = b'x';
            // This test does not compare the results: the test only requires that the decoder does
            // not panic.
            let _ = Metadata::decode(&bytes);
            let _ = Metadata::decode(&text.as_bytes()[..at]);
        }
        for wrong in ["", "hello", "tamis-redis 1\n", "tamis-redis 2\nhash 4 0\n"] {
            assert!(Metadata::decode(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let unknown = format!("{text}colour blue\n");
        let error = Metadata::decode(unknown.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "line 5 of the metadata is not one that this version of Tamis can read");
    }
}
