//! Plans, hashers, filters and exact sets for serde (feature `serde`).
//!
//! A filter is serialized as its plan, its hasher and its words as little-endian bytes. The plan,
//! the hasher and the words are the content of a Tamis file, without checksums. Decoding checks the
//! words in the same way as the words of a Tamis file. Memory is allocated only for bytes that were
//! read, never for a size that the input claims.
//!
//! A secret key is never serialized. A filter whose hasher [is keyed](Hasher::is_keyed) cannot be
//! serialized, because the key would appear in logs, messages and caches. To store a filter with
//! its key, save a Tamis file with the crate `tamis-formats`.

mod sets;

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};

use crate::bits::{AtomicBitmap, Bitmap, BitsMut};
use crate::filter::FilterWords;
use crate::filter::any::AnyFilter;
use crate::filter::bloom::{BloomFilter, Counting};
use crate::filter::cuckoo::Cuckoo;
use crate::filter::growing::Growing;
use crate::filter::window::Window;
use crate::hash::Hasher;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::{Geometry, Kind, Plan, PlanError};
use crate::strategy::Strategy;

/// The serialized form of a [`Plan`].
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Plan", deny_unknown_fields)]
struct PlanParts {
    kind: u8,
    items: u64,
    rate: f64,
    bits: u64,
    #[serde(rename = "shape")]
    geometry: u32,
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = PlanParts {
            kind: self.kind() as u8,
            items: self.items(),
            rate: self.rate(),
            bits: self.bits(),
            geometry: self.geometry().to_number(),
        };
        parts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PlanParts { kind, items, rate, bits, geometry } = PlanParts::deserialize(deserializer)?;
        let kind = Kind::from_number(kind).ok_or_else(|| {
            D::Error::custom(format_args!("unknown number {kind} of a filter kind"))
        })?;
        let geometry = Geometry::from_number(kind, geometry).ok_or_else(|| {
            D::Error::custom(format_args!("no {kind} filter has geometry {geometry}"))
        })?;
        Plan::from_parts(kind, items, rate, bits, geometry).map_err(D::Error::custom)
    }
}

impl Serialize for Kind {
    /// Writes the [name](Kind::name) of the kind.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = alloc::borrow::Cow::<str>::deserialize(deserializer)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| D::Error::custom(format_args!("no filter kind has the name {name:?}")))
    }
}

/// The serialized form of a [`Hasher`]. Hash functions with a key are neither serialized nor
/// deserialized.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Hasher", deny_unknown_fields)]
struct HasherParts {
    function: u8,
    seed: u64,
}

impl Serialize for Hasher {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_keyed() {
            return Err(S::Error::custom("a secret key cannot be serialized: save a Tamis file"));
        }
        let (function, bytes) = self.to_parts();
        let seed = u128::from_le_bytes(bytes) as u64;
        HasherParts { function, seed }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Hasher {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let HasherParts { function, seed } = HasherParts::deserialize(deserializer)?;
        Hasher::from_parts(function, u128::from(seed).to_le_bytes())
            .filter(|hasher| !hasher.is_keyed())
            .ok_or_else(|| {
                D::Error::custom(format_args!("unknown number {function} of a hash function"))
            })
    }
}

/// The serialized form of a filter.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Filter", deny_unknown_fields)]
struct FilterParts {
    plan: Plan,
    hasher: Hasher,
    words: ByteString,
}

/// Bytes, such as little-endian words.
struct ByteString(Vec<u8>);

impl Serialize for ByteString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for ByteString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = ByteString;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a byte string, or a list of bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<ByteString, E> {
                Ok(ByteString(bytes.to_vec()))
            }

            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<ByteString, E> {
                Ok(ByteString(bytes))
            }

            // Formats without byte strings, such as JSON, use this method.
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ByteString, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(ByteString(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

/// Decodes the parts of a filter.
fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(Plan, Hasher, Bitmap), D::Error> {
    let FilterParts { plan, hasher, words } = FilterParts::deserialize(deserializer)?;
    let (words, rest) = words.0.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(D::Error::custom("the bytes of a filter are not whole words"));
    }
    // The number of words of a growing filter depends on its growth.
    if !plan.kind().grows() {
        plan.check_len(words.len()).map_err(D::Error::custom)?;
        let used = plan.bits() % 64;
        let last = words.last().map_or(0, |&bytes| u64::from_le_bytes(bytes));
        if used > 0 && last >> used != 0 {
            return Err(D::Error::custom("the bits past the end of a filter are not zero"));
        }
    }
    let mut bits = Bitmap::zeroed(words.len() as u64 * 64).map_err(D::Error::custom)?;
    for (word, bytes) in bits.words_mut().iter_mut().zip(words) {
        *word = u64::from_le_bytes(*bytes);
    }
    Ok((plan, hasher, bits))
}

macro_rules! serde_filters {
    ($([$($generics:tt)*] $filter:ty, $words:expr, $restore:expr;)*) => { $(
        impl<$($generics)*> Serialize for $filter {
            /// Writes the plan, the hasher and a copy of all words.
            ///
            /// Returns an error if the hasher has a secret key.
            fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
                let words = $words(self);
                FilterParts { plan: *self.plan(), hasher: self.hasher(), words }.serialize(serializer)
            }
        }

        impl<'de, $($generics)*> Deserialize<'de> for $filter {
            /// Decodes a filter and checks its words in the same way as the words of a Tamis file.
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let (plan, hasher, bits) = parts(deserializer)?;
                let made: Result<Self, PlanError> = $restore(&plan, hasher, bits);
                made.map_err(D::Error::custom)
            }
        }
    )* };
}

serde_filters! {
    [S: Strategy] BloomFilter<S>, words_of, BloomFilter::restore;
    [S: Strategy] BloomFilter<S, AtomicBitmap>, words_of,
        |plan: &Plan, hasher, bits: Bitmap| {
            BloomFilter::<S>::restore(plan, hasher, bits).map(BloomFilter::into_shared)
        };
    [] Counting, words_of, Counting::restore;
    [] Cuckoo, words_of, Cuckoo::restore;
    [] Growing, words_of, Growing::restore;
    [] Window, words_of, Window::restore;
    [] AnyFilter, words_of, AnyFilter::restore;
}

/// Collects the words of a filter.
fn words_of(filter: &impl FilterWords) -> ByteString {
    let mut bytes = Vec::new();
    let Ok(()) = filter.each_words_from(0, |words| {
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        Ok::<(), std::convert::Infallible>(())
    });
    ByteString(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::bloom::Bloom;

    #[test]
    fn every_kind_is_the_same_after_json() {
        for kind in Kind::ALL {
            let plan = Plan::for_kind(kind, 300, 0.01).unwrap();
            let mut seen = AnyFilter::from_plan(&plan, Hasher::xxh3(7)).unwrap();
            (0..200_u64).for_each(|item| _ = seen.try_insert(&item).unwrap());
            let json = serde_json::to_string(&seen).unwrap();
            let back: AnyFilter = serde_json::from_str(&json).unwrap();
            assert_eq!((back.hasher(), back.plan().bits()), (seen.hasher(), seen.plan().bits()));
            assert!((0..200_u64).all(|item| back.contains(&item)), "{kind}");
            assert_eq!(serde_json::to_string(&back).unwrap(), json, "{kind}");
        }
    }

    #[test]
    fn a_filter_of_a_type_refuses_other_kinds_and_wrong_words() {
        let seen = Bloom::from_items(["a"], 0.01).unwrap();
        let json = serde_json::to_string(&seen).unwrap();
        assert_eq!(serde_json::from_str::<Bloom>(&json).unwrap(), seen);
        let shared: crate::SharedBloom = serde_json::from_str(&json).unwrap();
        assert!(shared.contains("a") && serde_json::to_string(&shared).unwrap() == json);
        assert!(serde_json::from_str::<Counting>(&json).is_err(), "another kind");
        let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
        value["words"].as_array_mut().unwrap().truncate(8);
        assert!(serde_json::from_value::<Bloom>(value.clone()).is_err(), "too few words");
        value["words"].as_array_mut().unwrap().truncate(7);
        assert!(serde_json::from_value::<Bloom>(value).is_err(), "half a word");
    }

    #[test]
    fn bits_past_the_end_are_refused() {
        let plan = Plan::from_parts(Kind::Classic, 10, 0.01, 100, Geometry::Probes(7)).unwrap();
        let filter = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
        let mut json = serde_json::to_value(&filter).unwrap();
        assert!(serde_json::from_value::<AnyFilter>(json.clone()).is_ok());
        let words = json["words"].as_array_mut().unwrap();
        assert_eq!(words.len(), 16);
        words[15] = 1.into();
        let error = serde_json::from_value::<AnyFilter>(json).unwrap_err();
        assert!(error.to_string().contains("past the end"), "{error}");
    }

    #[test]
    fn a_secret_key_is_not_written() {
        let seen = Bloom::builder(10, 0.01).key([1, 2]).build().unwrap();
        let error = serde_json::to_string(&seen).unwrap_err();
        assert!(error.to_string().contains("secret key"), "{error}");
        let keyed = r#"{"function": 2, "seed": 0}"#;
        assert!(serde_json::from_str::<Hasher>(keyed).is_err());
        let plan = Plan::new(10, 0.01).unwrap();
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
        assert!(serde_json::from_str::<Plan>(&json.replace("0.01", "1.5")).is_err());
    }
}
