//! The probe rule of Hadoop's filters, and the plan of the size of a filter.

use crate::errors::CreateError;
use crate::format::DecodeOptions;
use crate::rules::ProbeRule;
use crate::rules::hash::jenkins::lookup3;
use crate::rules::hash::murmur2::hadoop_32;

/// The hash function of a filter. The value of a variant is the number that files store for the hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum HashType {
    /// `Hash.JENKINS_HASH`: lookup3.
    Jenkins = 0,
    /// `Hash.MURMUR_HASH`: a Murmur2 that reads the last bytes of an item as signed bytes.
    Murmur = 1,
}

/// The largest accepted number of probes. Real plans have fewer probes than this limit. A hostile file with more probes
/// than this limit would only waste time.
pub const MAX_PROBES: u32 = 255;

/// The rule of Hadoop: each hash of an item is the seed of the item's next hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hadoop {
    /// The number of bits. Invariant: the number is from 1 to 2³¹ − 1.
    pub(super) vector_size: u32,
    /// The number of probes. Invariant: the number is from 1 to [`MAX_PROBES`].
    pub(super) probes: u32,
    pub(super) hash_type: HashType,
}

impl Hadoop {
    /// Returns the positions of an item, in order. A position may repeat.
    pub(super) fn chain(self, key: &[u8]) -> impl Iterator<Item = u32> {
        let mut hash = 0;
        (0..self.probes).map(move |_| {
            hash = match self.hash_type {
                HashType::Jenkins => lookup3(key, hash),
                HashType::Murmur => hadoop_32(key, hash),
            };
            // Java's remainder keeps the sign of the hash. The absolute value of the remainder equals the remainder of
            // the absolute value.
            hash.cast_signed().unsigned_abs() % self.vector_size
        })
    }
}

impl ProbeRule for Hadoop {
    // The hash cannot be computed before the probes, because each probe hashes the whole item again.
    type Hash<'k> = &'k [u8];

    fn sizes(&self) -> (u64, u32) {
        (self.vector_size.into(), self.probes)
    }

    fn name(&self) -> String {
        match self.hash_type {
            HashType::Jenkins => "chained jenkins lookup3 of Hadoop",
            HashType::Murmur => "chained murmur2 of Hadoop",
        }
        .into()
    }

    fn hash<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key
    }

    fn each_probe(&self, key: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        self.chain(key).map(u64::from)
    }

    /// A probe is the absolute value of a signed hash of 32 bits.
    fn log2_values(&self) -> Option<u32> {
        Some(31)
    }
}

/// Returns the rule of a filter with the given sizes, if Hadoop supports the sizes.
pub(super) fn rule(
    vector_size: u32,
    probes: u32,
    hash_type: HashType,
) -> Result<Hadoop, CreateError> {
    if !(1..=i32::MAX.cast_unsigned()).contains(&vector_size) {
        return Err(CreateError::refused(format!(
            "Hadoop has 1 to 2,147,483,647 bits, not {vector_size}"
        )));
    }
    if !(1..=MAX_PROBES).contains(&probes) {
        return Err(CreateError::refused(format!(
            "1 to {MAX_PROBES} probes are supported, not {probes}"
        )));
    }
    Ok(Hadoop { vector_size, probes, hash_type })
}

/// Plans the bits and the probes with the textbook formulas. In Hadoop, the caller chooses the number of bits and the
/// number of probes.
pub(super) fn plan(options: &DecodeOptions) -> Result<(u32, u32), CreateError> {
    let (items, rate) = options.plan()?;
    CreateError::check_plan("Hadoop", items, rate)?;
    let (n, ln_2) = (items as f64, std::f64::consts::LN_2);
    let bits = (-n * rate.ln() / (ln_2 * ln_2)).ceil();
    if bits > f64::from(i32::MAX) {
        return Err(CreateError::refused(format!(
            "Hadoop has at most 2,147,483,647 bits, not {bits}: plan fewer items or a higher rate"
        )));
    }
    let probes = (bits / n * ln_2).round().clamp(1.0, f64::from(MAX_PROBES));
    Ok((bits.max(1.0) as u32, probes as u32))
}
