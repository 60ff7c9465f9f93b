//! The probe rule of Python's `pybloom_live`. Each probe has its own part of the bits, called a slice.

use md5::Md5;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use xxhash_rust::xxh3::xxh3_128;

use tamis::Modulus;

use crate::filters::filter_info::FilterInfo;
use crate::rules::probe_positions::ProbePositions;
use crate::rules::probe_rule::{ProbeRule, fill};
use crate::rules::rates::drawn_fill::drawn_fill_of;
use crate::rules::rates::{EstimatedRate, chance};

/// The digest function of filters that need at most 128 bits of digest. The file does not store the digest function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShortDigest {
    /// XXH3 of 128 bits, since release 4 of `pybloom_live`.
    #[default]
    Xxh128,
    /// MD5, before release 4 of `pybloom_live`.
    Md5,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DigestFunction {
    Short(ShortDigest),
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl DigestFunction {
    /// Returns the digest of `salt` and `key`, padded with zeros, and the length of the digest.
    fn of(self, salt: &[u8], key: &[u8]) -> ([u8; 64], usize) {
        fn by<D: sha2::Digest>(salt: &[u8], key: &[u8]) -> ([u8; 64], usize) {
            let digest = D::new().chain_update(salt).chain_update(key).finalize();
            padded(&digest)
        }
        fn padded(digest: &[u8]) -> ([u8; 64], usize) {
            let mut bytes = [0; 64];
            bytes[..digest.len()].copy_from_slice(digest);
            (bytes, digest.len())
        }
        match self {
            DigestFunction::Short(ShortDigest::Xxh128) => {
                padded(&xxh3_128(&[salt, key].concat()).to_be_bytes())
            }
            DigestFunction::Short(ShortDigest::Md5) => by::<Md5>(salt, key),
            DigestFunction::Sha1 => by::<Sha1>(salt, key),
            DigestFunction::Sha256 => by::<Sha256>(salt, key),
            DigestFunction::Sha384 => by::<Sha384>(salt, key),
            DigestFunction::Sha512 => by::<Sha512>(salt, key),
        }
    }
}

/// The rule of `pybloom_live`. Each probe has a slice of the bits. The position in a slice is a word of a salted
/// digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slices {
    // Invariant: `slices` is 1 to `ProbePositions::MAX`, and the product of slices and width does not overflow.
    slices: u32,
    width: Modulus,
    digest: DigestFunction,
    /// The number of bytes of the digest for each position.
    word: usize,
    salts: Vec<Vec<u8>>,
}

impl Slices {
    pub(crate) fn new(slices: u64, width: u64, short: ShortDigest) -> Option<Self> {
        let slices =
            u32::try_from(slices).ok().filter(|it| (1..=ProbePositions::MAX).contains(it))?;
        // With more than 2⁶² bits in all slices together, the number of bits could overflow.
        width.checked_mul(slices.into()).filter(|&total| total <= 1 << 62)?;
        let width = Modulus::new(width)?;
        let word = match width.bits() {
            0x8000_0000.. => 8,
            0x8000.. => 4,
            _ => 2,
        };
        let (digest, digest_len) = match slices as usize * word {
            0..=16 => (DigestFunction::Short(short), 16),
            17..=20 => (DigestFunction::Sha1, 20),
            21..=32 => (DigestFunction::Sha256, 32),
            33..=48 => (DigestFunction::Sha384, 48),
            49.. => (DigestFunction::Sha512, 64),
        };
        let salts = (0..slices.div_ceil((digest_len / word) as u32))
            .map(|i| digest.of(&i.to_le_bytes(), &[]).0[..digest_len].to_vec())
            .collect();
        Some(Self { slices, width, digest, word, salts })
    }
}

impl Slices {
    /// Returns the number of bits of a slice.
    pub(crate) fn width(&self) -> u64 {
        self.width.bits()
    }
}

impl ProbeRule for Slices {
    type Hash<'k> = ProbePositions;

    fn sizes(&self) -> (u64, u32) {
        (self.width.bits() * u64::from(self.slices), self.slices)
    }

    fn name(&self) -> String {
        let digest = match self.digest {
            DigestFunction::Short(ShortDigest::Xxh128) => "xxh128",
            DigestFunction::Short(ShortDigest::Md5) => "MD5",
            DigestFunction::Sha1 => "SHA-1",
            DigestFunction::Sha256 => "SHA-256",
            DigestFunction::Sha384 => "SHA-384",
            DigestFunction::Sha512 => "SHA-512",
        };
        format!("salted {digest}, one slice per probe")
    }

    fn hash(&self, key: &[u8]) -> ProbePositions {
        let words = self.salts.iter().flat_map(|salt| {
            let (digest, len) = self.digest.of(salt, key);
            let word = self.word;
            (0..len / word).map(move |i| {
                let mut eight = [0; 8];
                eight[..word].copy_from_slice(&digest[i * word..][..word]);
                u64::from_le_bytes(eight)
            })
        });
        let width = self.width;
        ProbePositions::new(words.zip(0..).map(|(word, i)| i * width.bits() + width.reduce(word)))
    }

    #[inline]
    fn each_probe(&self, positions: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        positions.iter(self.slices)
    }

    /// Estimates the rate as the product of the fills of the slices. The position in a slice is the remainder of a
    /// digest word, which often has only 16 bits.
    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let (bits, slices) = self.sizes();
        let width = self.width.bits();
        let log2_values = 8 * self.word as u32;
        let slice = |i: u64| drawn_fill_of(words, i * width..(i + 1) * width, log2_values);
        EstimatedRate {
            rate: (0..slices.into()).map(slice).product(),
            std_error: chance(fill(words, bits), bits, slices),
        }
    }

    fn describe(&self, info: &mut FilterInfo) {
        if self.digest == DigestFunction::Short(ShortDigest::Xxh128) {
            let warning = "the hash is assumed to be xxh128: files of pybloom_live before 4 use \
                MD5, which must be given, or no item is found";
            info.warnings.push(warning.into());
        }
    }
}
