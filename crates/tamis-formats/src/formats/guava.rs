//! Guava's `BloomFilter` in the format of `writeTo`. Layout: `docs/formats/guava.md`.

use std::io;

use crate::encoding::{ByteReader, write_words};
use crate::errors::{CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format, Sniff, Versions};
use crate::formats::redis_bitmaps::RedisBitmaps;
use crate::rules::guava_rules::{Mitz32, Mitz64};
use crate::rules::guava_sizing::rule;

pub use crate::rules::guava_sizing::{GuavaRelease, GuavaStrategy, create, plan_bits, plan_probes};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "guava",
    extensions: &["guava"],
    summary: "Guava's BloomFilter, by writeTo",
    detection: Detection::ByBytes(sniff),
    versions: Some(Versions { expected: VERSIONS, are_plans: true }),
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: |options| {
        let (items, rate) = options.plan()?;
        create(items, rate, GuavaStrategy::default(), release_option(options)?).map(Contents::new)
    },
    ..Format::BASE
};

/// The values of [`DecodeOptions::version`]. The version affects only new filters.
const VERSIONS: &str = "14, 31 (before 33.4) or 33";

// Each offset is computed from the previous offset.
const STRATEGY_AT: usize = 0;
const PROBES_AT: usize = STRATEGY_AT + size_of::<u8>();
const WORDS_AT: usize = PROBES_AT + size_of::<u8>();

/// Returns the release that the version in the options names.
fn release_option(options: &DecodeOptions) -> Result<GuavaRelease, CreateError> {
    match options.version.as_deref() {
        None => Ok(GuavaRelease::default()),
        Some("14") => Ok(GuavaRelease::Until14),
        Some("31") => Ok(GuavaRelease::Until33),
        Some("33") => Ok(GuavaRelease::Since33),
        Some(version) => Err(CreateError::refused(format!(
            "\"{version}\" is not a release of Guava that this version of tamis knows: expected \
            {VERSIONS}"
        ))),
    }
}

/// Decodes the output of `writeTo`. Rejects trailing bytes.
///
/// # Errors
///
/// [`DecodeError`] if `readFrom` would fail, or if bytes follow the filter.
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let filter = read(&mut reader)?;
    reader.end("words")?;
    Ok(filter)
}

/// Decodes the output of `writeTo`. Returns the filter and the trailing bytes, which `readFrom`
/// ignores.
///
/// # Errors
///
/// [`DecodeError`] if Guava's `readFrom` would fail.
pub fn decode_start(bytes: &[u8]) -> Result<(ForeignBloom, &[u8]), DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let filter = read(&mut reader)?;
    Ok((filter, reader.rest()))
}

fn read(reader: &mut ByteReader<'_>) -> Result<ForeignBloom, DecodeError> {
    if is_java_serialized(reader.rest()) {
        let kind = DecodeErrorKind::Damaged {
            reason: "this is Java's serialized form of an object, not the output of writeTo: read \
                it in Java, and write it with BloomFilter.writeTo",
        };
        return Err(DecodeError::new("strategy", 0, kind));
    }
    let strategy = match reader.u8("strategy")? {
        0 => GuavaStrategy::Mitz32,
        1 => GuavaStrategy::Mitz64,
        found => {
            let expected = "0 (MITZ_32) or 1 (MITZ_64)";
            return Err(DecodeError::unexpected(
                "strategy",
                STRATEGY_AT,
                expected,
                found.cast_signed(),
            ));
        }
    };
    let probes = reader.u8("probes")?;
    let words = reader.i32_be("number of words")?;
    if probes == 0 {
        return Err(DecodeError::unexpected("number of probes", PROBES_AT, "1 to 255", 0));
    }
    let rule = u64::try_from(words)
        .ok()
        .and_then(|words| rule(strategy, words * 64, probes))
        .ok_or(DecodeError::unexpected("number of words", WORDS_AT, "1 or more", words))?;
    ForeignBloom::read_words(rule, reader, u64::from_be_bytes)
}

/// Tests whether bytes start like the output of an `ObjectOutputStream`.
fn is_java_serialized(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xac, 0xed, 0x00, 0x05])
}

fn sniff(bytes: &[u8]) -> Sniff {
    let name = b"com.google.common.hash.BloomFilter";
    if is_java_serialized(bytes) && bytes.windows(name.len()).take(64).any(|it| it == name) {
        return Sniff::Yes;
    }
    let Some((&[strategy, probes, a, b, c, d], data)) = bytes.split_first_chunk() else {
        return Sniff::No;
    };
    let words = u64::from(u32::from_be_bytes([a, b, c, d]));
    let is_whole = strategy <= 1 && probes > 0 && words > 0 && words * 8 == data.len() as u64;
    Sniff::maybe(is_whole)
}

fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    release_option(options)?;
    let joined;
    let filter = match contents.downcast_ref::<RedisBitmaps>() {
        Some(bitmaps) => {
            joined = bitmaps.to_one(options.union)?;
            &*joined
        }
        None => ForeignBloom::of(contents, "Guava")?,
    };
    let strategy = match filter.rule().downcast_ref::<Mitz32>() {
        Some(_) => GuavaStrategy::Mitz32,
        None => filter.rule_of::<Mitz64>("Guava").map(|_| GuavaStrategy::Mitz64)?,
    };
    let (bits, probes) = (filter.rule().bits(), filter.rule().probes());
    let Ok(words) = i32::try_from(bits / 64) else {
        return Err(EncodeError::refused(format!(
            "Guava stores at most 137,438,953,408 bits, not {bits}"
        )));
    };
    if !bits.is_multiple_of(64) {
        return Err(EncodeError::needs_items(format!(
            "Guava rounds {bits} bits up to a multiple of 64, so an item gets other bits"
        )));
    }
    let (Ok(probes @ 1..), true) = (u8::try_from(probes), words > 0) else {
        return Err(EncodeError::refused(format!(
            "Guava stores at least 1 and at most 255 probes, not {probes}"
        )));
    };
    out.write_all(&[strategy as u8, probes])?;
    out.write_all(&words.to_be_bytes())?;
    Ok(write_words(filter.words(), out, u64::to_be_bytes)?)
}
