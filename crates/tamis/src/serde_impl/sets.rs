//! Exact sets for serde.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use crate::batch::answers::Answers;
use crate::exact::digest_set::{Digest, DigestSet};
#[cfg(feature = "roaring")]
use crate::exact::integer_set::CompressedSet;
use crate::exact::integer_set::{DenseSet, Order};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::serde_impl::ByteString;

/// The serialized form of a [`DigestSet`].
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "DigestSet", deny_unknown_fields)]
struct DigestParts {
    /// The width of a digest, in bits.
    bits: u32,
    /// The digests in ascending order, little-endian.
    digests: ByteString,
}

impl<D: Digest> Serialize for DigestSet<D> {
    /// Writes the digests in ascending order, so that equal sets give equal bytes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut digests: Vec<u128> = self.iter().map(D::to_u128).collect();
        digests.sort_unstable();
        let digest_bytes = D::BITS as usize / 8;
        let mut bytes = Vec::with_capacity(digests.len() * digest_bytes);
        for digest in digests {
            bytes.extend_from_slice(&digest.to_le_bytes()[..digest_bytes]);
        }
        DigestParts { bits: D::BITS, digests: ByteString(bytes) }.serialize(serializer)
    }
}

impl<'de, D: Digest> Deserialize<'de> for DigestSet<D> {
    fn deserialize<Z: Deserializer<'de>>(deserializer: Z) -> Result<Self, Z::Error> {
        let DigestParts { bits, digests } = DigestParts::deserialize(deserializer)?;
        let digest_bytes = D::BITS as usize / 8;
        if bits != D::BITS || !digests.0.len().is_multiple_of(digest_bytes) {
            return Err(Z::Error::custom(format_args!(
                "{} bytes are not digests of {} bits: the set has digests of {bits} bits",
                digests.0.len(),
                D::BITS
            )));
        }
        let digests: Vec<D> = (digests.0.chunks_exact(digest_bytes))
            .map(|bytes| {
                let mut wide = [0; 16];
                wide[..digest_bytes].copy_from_slice(bytes);
                D::from_u128(u128::from_le_bytes(wide))
            })
            .collect();
        if !digests.is_sorted_by_key(|digest| digest.to_u128()) {
            return Err(Z::Error::custom("the digests of a set are not in ascending order"));
        }
        if !Self::is_spread(&digests) {
            return Err(Z::Error::custom("hundreds of digests have the same first bits"));
        }
        let mut set = Self::new();
        set.insert_each(&digests, &mut Answers::new()).map_err(Z::Error::custom)?;
        Ok(set)
    }
}

/// The serialized form of a [`DenseSet`].
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "DenseSet", deny_unknown_fields)]
struct DenseParts {
    first: u64,
    last: u64,
    /// One bit for each value of the range, the lowest value of a byte in its least significant bit.
    bits: ByteString,
}

impl Serialize for DenseSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (first, last) = (*self.range().start(), *self.range().end());
        DenseParts { first, last, bits: ByteString(self.to_bytes(Order::LsbFirst)) }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DenseSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let DenseParts { first, last, bits } = DenseParts::deserialize(deserializer)?;
        let width = last.checked_sub(first);
        if width.map(|width| width / 8 + 1) != Some(bits.0.len() as u64) {
            return Err(D::Error::custom(format_args!(
                "{} bytes are not one bit for each value from {first} to {last}",
                bits.0.len()
            )));
        }
        let used = width.map_or(0, |width| width % 8 + 1);
        if bits.0.last().is_some_and(|&byte| u32::from(byte) >> used != 0) {
            return Err(D::Error::custom("the bits past the end of a set are not zero"));
        }
        let mut set = DenseSet::new(first..=last).map_err(D::Error::custom)?;
        set.fill_from_bytes(&bits.0, Order::LsbFirst);
        Ok(set)
    }
}

/// The number of values that one serialized range of a [`CompressedSet`] may span. A range has one
/// window of values, from a multiple of `RANGE_VALUES`. A short text can therefore not describe a
/// set that takes gigabytes: a range takes at most 16 blocks of values in memory.
#[cfg(feature = "roaring")]
const RANGE_VALUES: u64 = 1 << 20;

#[cfg(feature = "roaring")]
impl Serialize for CompressedSet {
    /// Writes the ranges of consecutive values, in ascending order, each as its first and its last
    /// value. A range ends at the latest before the next multiple of 2²⁰.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for value in self.iter() {
            let continues = |last: u64| last.checked_add(1) == Some(value);
            match ranges.last_mut() {
                Some((_, last)) if continues(*last) && !value.is_multiple_of(RANGE_VALUES) => {
                    *last = value;
                }
                _ => ranges.push((value, value)),
            }
        }
        ranges.serialize(serializer)
    }
}

#[cfg(feature = "roaring")]
impl<'de> Deserialize<'de> for CompressedSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut set = CompressedSet::new();
        for (first, last) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            if first > last || first / RANGE_VALUES != last / RANGE_VALUES {
                return Err(D::Error::custom(format_args!("no range is from {first} to {last}")));
            }
            set.insert_range(first..=last);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Geometry, Kind, Span};

    fn back<T: Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
        serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
    }

    #[test]
    fn every_set_is_the_same_after_json() {
        let mut digests = DigestSet::<u64>::new();
        let mut wide = DigestSet::<u128>::new();
        let mut dense = DenseSet::new(5..=1_000).unwrap();
        let mut reversed = DigestSet::<u64>::new();
        for i in 0..500_u64 {
            digests.insert(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap();
            reversed.insert((499 - i).wrapping_mul(0x9e37_79b9_7f4a_7c15)).unwrap();
            wide.insert(u128::from(i).wrapping_mul(u128::MAX / 3)).unwrap();
            dense.insert(5 + i * i % 996).unwrap();
        }
        assert_eq!(back(&digests), digests);
        assert_eq!(back(&wide), wide);
        assert_eq!(back(&dense), dense);
        assert_eq!(back(&DigestSet::<u64>::new()), DigestSet::new());
        let json = [&digests, &reversed].map(|set| serde_json::to_string(set).unwrap());
        assert_eq!(json[0], json[1], "the order of the inserts does not matter");
        assert!(serde_json::from_str::<DigestSet<u128>>(&json[0]).is_err(), "another width");
    }

    #[cfg(feature = "roaring")]
    #[test]
    fn a_compressed_set_is_its_ranges_in_json() {
        let mut set = CompressedSet::new();
        set.insert_range(3..=70_000);
        set.insert(u64::MAX);
        set.insert(0);
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(json, format!("[[0,0],[3,70000],[{0},{0}]]", u64::MAX));
        assert_eq!(back(&set), set);
        for json in ["[[2,1]]", "[[0,1048576]]", "[[0,18446744073709551615]]"] {
            assert!(serde_json::from_str::<CompressedSet>(json).is_err(), "{json}");
        }
        let mut long = CompressedSet::new();
        long.insert_range(1_000_000..=3_000_000);
        let json = serde_json::to_string(&long).unwrap();
        assert!(json.starts_with("[[1000000,1048575],[1048576,2097151]"), "{json}");
        assert_eq!(back(&long), long);
    }

    #[test]
    fn sets_with_wrong_bytes_are_refused() {
        for json in [
            r#"{"first":0,"last":8,"bits":[1]}"#,
            r#"{"first":0,"last":8,"bits":[1,2]}"#,
            r#"{"first":8,"last":0,"bits":[]}"#,
            r#"{"first":0,"last":18446744073709551615,"bits":[]}"#,
        ] {
            assert!(serde_json::from_str::<DenseSet>(json).is_err(), "{json}");
        }
        assert!(serde_json::from_str::<DenseSet>(r#"{"first":0,"last":8,"bits":[1,1]}"#).is_ok());
        for json in [
            r#"{"bits":64,"digests":[1]}"#,
            r#"{"bits":32,"digests":[1,2,3,4]}"#,
            r#"{"bits":64,"digests":[2,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0]}"#,
        ] {
            assert!(serde_json::from_str::<DigestSet>(json).is_err(), "{json}");
        }
        // Digests with the same first bits would take quadratic time to insert.
        let digests = ByteString((0..20_000_u64).flat_map(u64::to_le_bytes).collect());
        let json = serde_json::to_string(&DigestParts { bits: 64, digests }).unwrap();
        let error = serde_json::from_str::<DigestSet>(&json).unwrap_err();
        assert!(error.to_string().contains("same first bits"), "{error}");
    }

    #[test]
    fn kinds_spans_and_geometries_have_names_in_json() {
        assert_eq!(serde_json::to_string(&Kind::SplitBlock).unwrap(), r#""split-block""#);
        assert_eq!(serde_json::to_string(&Span::Millis(5)).unwrap(), r#"{"millis":5}"#);
        let slots = Geometry::Slots { bits: 12, bucket: 2 };
        assert_eq!(serde_json::to_string(&slots).unwrap(), r#"{"slots":{"bits":12,"bucket":2}}"#);
        Kind::ALL.iter().for_each(|kind| assert_eq!(back(kind), *kind));
        assert_eq!((back(&Span::Items(7)), back(&slots)), (Span::Items(7), slots));
        assert!(serde_json::from_str::<Kind>(r#""bloom""#).is_err());
    }
}
