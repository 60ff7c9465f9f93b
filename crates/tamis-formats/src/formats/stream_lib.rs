//! stream-lib's `BloomFilter` in the format of `BloomFilter.serialize`. Layout: `docs/formats/stream-lib.md`.

use std::io::Write;

use tamis::Modulus;

use crate::encoding::{ByteReader, write_words};
use crate::errors::{CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format, Items, Sniff};
use crate::formats::cassandra;
use crate::items::{Charset, Funnel};
use crate::rules::hash::murmur2::hadoop_32;
use crate::rules::{ProbeRule, Progression, Rule, Sums};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "stream-lib",
    extensions: &["streamlib"],
    summary: "BloomFilter of Java's stream-lib, by BloomFilter.serialize",
    detection: Detection::ByBytes(sniff),
    items: Items::Default(Funnel::Text(Charset::Utf16)),
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: |options| options.create(create),
    ..Format::BASE
};

/// The bytes that Java's serialization writes before the number of words of a `java.util.BitSet`.
const BIT_SET: &[u8] = b"\xac\xed\0\x05sr\0\x10java.util.BitSet\x6e\xfd\x88\x7e\x39\x34\xab\x21\x03\0\x01[\0\x04bitst\0\x02[Jxp\
    ur\0\x02[J\x78\x20\x04\xb5\x12\xb1\x75\x93\x02\0\0xp";

/// The byte that Java's serialization writes after the words.
const END: u8 = b'x';

/// The largest number of words, because the number of bits is a Java `int`.
const MAX_WORDS: u32 = (i32::MAX / 64).cast_unsigned();

/// The rule of stream-lib: double hashing with two 32-bit hashes. The first hash is the seed of the second hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLib {
    /// The number of words. Invariant: the number is from 1 to [`MAX_WORDS`].
    words: u32,
    probes: u32,
}

impl ProbeRule for StreamLib {
    type Hash<'k> = (i32, i32);

    fn sizes(&self) -> (u64, u32) {
        (u64::from(self.words) * 64, self.probes)
    }

    fn name(&self) -> String {
        "murmur2 with a signed tail, h1 + i·h2 (stream-lib)".into()
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> (i32, i32) {
        let h1 = hadoop_32(key, 0);
        (h1.cast_signed(), hadoop_32(key, h1).cast_signed())
    }

    #[inline]
    fn each_probe(&self, (mut c, step): Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let bits = self.words * 64;
        (0..self.probes).map(move |_| {
            // In Java, `abs(sum % bits)` equals `abs(sum) % bits`, because the remainder keeps the
            // sign of the sum.
            let bit = c.unsigned_abs() % bits;
            c = c.wrapping_add(step);
            bit.into()
        })
    }

    fn progression(&self) -> Option<Progression> {
        let bits = Modulus::new(u64::from(self.words) * 64)?;
        Some(Progression { bits, probes: self.probes, sums: Sums::Absolute(32) })
    }
}

/// Creates an empty filter for `items` items. The bits and the probes come from Cassandra's table. stream-lib contains
/// only the part of the table up to 15 bits per item.
///
/// # Errors
///
/// [`CreateError`] if no entry of the table reaches the rate, or if `items` is 0. [`CreateError`] if the filter exceeds
/// stream-lib's maximum size, or if the allocation fails.
///
/// # Examples
///
/// ```
/// let filter = tamis_formats::stream_lib::create(300, 0.01)?;
/// assert_eq!((filter.rule().bits(), filter.rule().probes()), (3072, 5));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
pub fn create(items: u64, rate: f64) -> Result<ForeignBloom, CreateError> {
    let plan = cassandra::plan(rate).filter(|&(bits_per_item, _)| bits_per_item <= 15);
    let Some((bits_per_item, probes)) = plan.filter(|_| items > 0) else {
        return Err(CreateError::refused(format!(
            "stream-lib has no filter of {items} items at a rate of {rate}: plan at least one \
            item, and a rate from 0.00075 to below 1"
        )));
    };
    let bits = items.checked_mul(bits_per_item).and_then(|bits| bits.checked_add(20));
    let words = bits.map_or(u64::MAX, |bits| bits.div_ceil(64));
    let Some(words) = u32::try_from(words).ok().filter(|&words| words <= MAX_WORDS) else {
        return Err(CreateError::refused(format!(
            "{items} items at a rate of {rate} need more than the 2,147,483,584 bits of \
            stream-lib: plan fewer items or a higher rate"
        )));
    };
    Ok(ForeignBloom::new(Rule::new(StreamLib { words, probes }))?)
}

/// The largest accepted number of probes. Real plans have fewer probes than this limit. A hostile file with more probes
/// than this limit would only waste time.
const MAX_PROBES: u32 = 255;

/// Decodes the output of `serialize`. Rejects trailing bytes.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one filter.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let probes = reader.count_be("number of probes", 1..=MAX_PROBES, "1 to 255")?;
    let invalid = DecodeError::invalid;
    let at = reader.at();
    if reader.bytes("bit set", BIT_SET.len())? != BIT_SET {
        return Err(invalid("bit set", at, "a java.util.BitSet, as Java serializes it"));
    }
    let words = reader.count_be("number of words", 1..=MAX_WORDS, "1 to 33,554,431")?;
    let rule = Rule::new(StreamLib { words, probes });
    let filter = ForeignBloom::read_words(rule, &mut reader, u64::from_be_bytes)?;
    let end_at = reader.at();
    if reader.u8("end of the bit set")? != END {
        return Err(invalid("end of the bit set", end_at, "0x78"));
    }
    reader.end("end of the bit set")?;
    Ok(filter)
}

fn sniff(bytes: &[u8]) -> Sniff {
    let rest = bytes.get(size_of::<u32>()..);
    Sniff::yes(rest.is_some_and(|it| it.starts_with(BIT_SET)))
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let (filter, rule) = ForeignBloom::with_rule::<StreamLib>(contents, "stream-lib")?;
    out.write_all(&rule.probes.to_be_bytes())?;
    out.write_all(BIT_SET)?;
    out.write_all(&rule.words.to_be_bytes())?;
    write_words(filter.words(), out, u64::to_be_bytes)?;
    Ok(out.write_all(&[END])?)
}
