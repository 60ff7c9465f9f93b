//! The JSON of Go's `bits-and-blooms/bloom` in the format of `MarshalJSON`. Layout:
//! `docs/formats/bits-and-blooms-json.md`.

use std::borrow::Cow;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde::Deserialize;

use crate::encoding::{ByteReader, write_words};
use crate::errors::{DecodeError, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format, Items, Sniff};
use crate::formats::bits_and_blooms::{BitsAndBlooms, planned, rule};
use crate::items::Funnel;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "bits-and-blooms-json",
    summary: "BloomFilter of Go's bits-and-blooms, as JSON by MarshalJSON",
    detection: Detection::ByBytes(sniff),
    items: Items::Default(Funnel::Bytes),
    decode: |bytes, _| decode(bytes).map(Contents::new),
    encode,
    create: planned,
    ..Format::BASE
};

/// The JSON object. Unknown members of the object are ignored, as in Go.
#[derive(Deserialize)]
struct Object<'a> {
    m: u64,
    k: u64,
    #[serde(borrow)]
    b: Cow<'a, str>,
}

/// Decodes the output of `MarshalJSON`.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one JSON object of a filter. White space around the object is allowed.
///
/// # Examples
///
/// ```
/// use tamis_formats::bits_and_blooms;
///
/// let filter = bits_and_blooms::json::decode(br#"{"m":64,"k":3,"b":"AAAAAAAAAEB-XU_n-v__3w=="}"#)?;
/// assert_eq!(filter.count_ones(), 51);
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let object: Object<'_> = serde_json::from_slice(bytes).map_err(|error| {
        DecodeError::refused("object", 0, format!("is not the JSON of a filter: {error}"))
    })?;
    let unexpected =
        |field, expected, found: u64| DecodeError::unexpected(field, 0, expected, found);
    let words = URL_SAFE
        .decode(&*object.b)
        .map_err(|_| DecodeError::invalid("b", 0, "base64 for URLs, with padding"))?;
    let mut reader = ByteReader::new(&words);
    let len = reader.array("b").map(u64::from_be_bytes)?;
    if object.m == 0 || object.m > 1 << 62 {
        return Err(unexpected("m", "1 or more, as many as fit into memory", object.m));
    }
    if len != object.m {
        return Err(unexpected("length of the bit set in b", "m", len));
    }
    let rule = rule(object.m, object.k).ok_or_else(|| unexpected("k", "1 to 65,535", object.k))?;
    let filter = ForeignBloom::read_words(rule, &mut reader, u64::from_be_bytes)?;
    reader.end("b")?;
    Ok(filter)
}

/// Compares both copies of the number of bits in the file: `m`, and the length in `b`.
fn sniff(bytes: &[u8]) -> Sniff {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Sniff::No;
    }
    let Ok(object) = serde_json::from_slice::<Object<'_>>(bytes) else { return Sniff::No };
    let length = object.b.get(..LENGTH_CHARS).and_then(|text| URL_SAFE.decode(text).ok());
    match length.as_deref().and_then(<[u8]>::first_chunk) {
        Some(&length) if u64::from_be_bytes(length) == object.m => Sniff::Yes,
        _ => Sniff::No,
    }
}

/// The number of base64 characters that contain the length of the bit set. Twelve characters are nine bytes, and eight
/// of these bytes are the length.
const LENGTH_CHARS: usize = 12;

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let (filter, rule) = ForeignBloom::with_rule::<BitsAndBlooms>(contents, "bits-and-blooms")?;
    let (bits, probes) = (rule.bits.bits(), rule.probes);
    write!(out, "{{\"m\":{bits},\"k\":{probes},\"b\":\"")?;
    let mut base64 = base64::write::EncoderWriter::new(&mut *out, &URL_SAFE);
    base64.write_all(&bits.to_be_bytes())?;
    write_words(filter.words(), &mut base64, u64::to_be_bytes)?;
    base64.finish()?;
    drop(base64);
    Ok(out.write_all(b"\"}")?)
}
