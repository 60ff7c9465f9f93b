//! A Redis string as a set of integers, in the format of `SETBIT`. Layout: `docs/formats/redis-bits.md`.

use tamis::Order;

use crate::encoding::bitmap_file::{self, BitmapFile};
use crate::errors::DecodeError;
use crate::filters::{Contents, IntegerBitmap};
use crate::format::{Detection, Format, ItemDomain, Items};
use crate::items::Funnel;
use crate::redis::string;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "redis-bits",
    extensions: &["redisbits"],
    summary: "a string of Redis as a set of integers, by SETBIT",
    detection: Detection::ByOption,
    items: Items::Default(Funnel::Unsigned),
    item_domain: ItemDomain::Integers,
    parameters: bitmap_file::PARAMETERS,
    decode: |bytes, options| of_string(&string::of_any_file(bytes, options)?).map(Contents::new),
    encode: |contents, options, out| STRING.encode(contents, options, out),
    create: |options| Ok(Contents::new(IntegerBitmap::new(STRING.create(options.items)?, MAX))),
    ..Format::BASE
};

const STRING: BitmapFile =
    BitmapFile { value: "an offset of Redis", max: MAX, order: Order::MsbFirst };

/// The largest offset of `SETBIT`.
const MAX: u64 = u32::MAX as u64;

/// Decodes the bytes of a string. The bytes are the result of `GET` or `DUMP`. Inserting a value beyond the end extends
/// the string, as `SETBIT` does.
///
/// # Errors
///
/// [`DecodeError`] if there are more bytes than Redis allows, or if the allocation fails. Empty input is an empty set:
/// Redis treats a missing key as an empty string.
///
/// # Examples
///
/// ```
/// use tamis_formats::redis_bits;
///
/// // SETBIT ids 1 1
/// let set = redis_bits::decode(&[0b0100_0000])?;
/// assert!(set.values().contains(1));
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<IntegerBitmap, DecodeError> {
    of_string(&string::of_file(bytes))
}

fn of_string(bytes: &[u8]) -> Result<IntegerBitmap, DecodeError> {
    let max_bytes = MAX / 8 + 1;
    if bytes.len() as u64 > max_bytes {
        return Err(DecodeError::too_long("bits", max_bytes));
    }
    // An empty string stands for the same bits as a zero byte.
    let bytes = if bytes.is_empty() { &[0] } else { bytes };
    STRING.decode(bytes).map(|set| IntegerBitmap::new(set, MAX))
}
