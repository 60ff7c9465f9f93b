//! Reads the containers of a Roaring bitmap.

use crate::encoding::ByteReader;
use crate::errors::DecodeError;
use crate::formats::roaring::form::RoaringForm;

pub(super) const COOKIE: u32 = 12_346;
pub(super) const COOKIE_WITH_RUNS: u32 = 12_347;

/// The smallest number of containers for which a file with runs stores offsets.
pub(super) const MIN_OFFSETS: usize = 4;

/// The maximum number of values of a list. A container with more than 4,096 values is a bitmap.
pub(super) const MAX_LIST: u32 = 4096;

pub(super) const BITMAP_BYTES: usize = 65_536 / 8;

/// A container of a file: the values in a range of 65,536 integers.
pub(super) enum Container<'a> {
    List(&'a [[u8; 2]]),
    Bitmap(&'a [[u8; 8]]),
    /// The first value of each run, and the number of values after the first value of the run.
    Runs(&'a [[u8; 4]]),
}

/// Returns the first and the last value of a run. If the run overflows, the last value is 0.
pub(super) fn ends(&[a, b, c, d]: &[u8; 4]) -> (u16, u16) {
    let first = u16::from_le_bytes([a, b]);
    (first, first.checked_add(u16::from_le_bytes([c, d])).unwrap_or(0))
}

/// Returns the form of a file. The first bytes of the file show the form.
fn form_of(bytes: &[u8]) -> RoaringForm {
    let is_cookie = |at: usize| {
        let cookie = bytes.get(at..).and_then(<[u8]>::first_chunk);
        let cookie = cookie.map_or(0, |&cookie| u32::from_le_bytes(cookie));
        cookie == COOKIE || cookie & 0xffff == COOKIE_WITH_RUNS
    };
    // In a Java form, the first cookie follows a flag, a number of four bytes and a high half. In a 64-bit form, the
    // first cookie follows a number of eight bytes and a high half.
    let is_java = is_cookie(9) && !is_cookie(12) || bytes.get(1..) == Some(&[0; 4]);
    // The number of 32-bit bitmaps in a 64-bit bitmap may look like a cookie. In a 64-bit bitmap, the first 32-bit
    // bitmap has its own cookie at offset 12.
    let may_be_number = bytes.get(4..8) == Some(&[0; 4]) && is_cookie(12);
    match bytes.first() {
        _ if is_cookie(0) && (!may_be_number || is_bits32(bytes)) => RoaringForm::Bits32,
        Some(&flag @ 0..=1) if is_java => RoaringForm::Java { is_signed: flag == 1 },
        _ => RoaringForm::Bits64,
    }
}

/// Tests whether a file is a whole bitmap of 32 bits.
fn is_bits32(bytes: &[u8]) -> bool {
    let mut reader = ByteReader::new(bytes);
    walk_32(&mut reader, 0, &mut |_, _| {}).is_ok() && reader.end("containers").is_ok()
}

/// Visits all containers, each with the first value of its range. The containers are in order, except in a Java form
/// with signed values. Returns the form, and whether the bitmap can have runs.
pub(super) fn walk<'a>(
    bytes: &'a [u8],
    visit: &mut dyn FnMut(u64, Container<'a>),
) -> Result<(RoaringForm, bool), DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let form = form_of(bytes);
    // In a signed form, the high halves are in the order of signed numbers.
    let order = |high: u32| match form {
        RoaringForm::Java { is_signed: true } => high ^ 1 << 31,
        _ => high,
    };
    let maps = match form {
        RoaringForm::Bits32 => {
            let has_runs = walk_32(&mut reader, 0, visit)?;
            return reader.end("containers").map(|()| (form, has_runs));
        }
        RoaringForm::Bits64 => reader.u64("number of bitmaps")?,
        RoaringForm::Java { .. } => {
            reader.u8("sign flag")?;
            reader.array("number of bitmaps").map(u32::from_be_bytes)?.into()
        }
    };
    if maps > 1 << 32 {
        return Err(DecodeError::invalid(
            "cookie",
            0,
            "a cookie of 32 bits, or a number of bitmaps of 64",
        ));
    }
    let (mut before, mut has_runs) = (None, false);
    for _ in 0..maps {
        let at = reader.at();
        let high = match form {
            RoaringForm::Java { .. } => reader.array("high half").map(u32::from_be_bytes)?,
            _ => reader.u32("high half")?,
        };
        if before.is_some_and(|before| before >= order(high)) {
            return Err(DecodeError::invalid("high half", at, "above the previous one"));
        }
        before = Some(order(high));
        has_runs |= walk_32(&mut reader, u64::from(high) << 32, visit)?;
    }
    reader.end("containers").map(|()| (form, has_runs))
}

/// Visits the containers of a 32-bit bitmap. Returns true if the bitmap can have runs.
fn walk_32<'a>(
    reader: &mut ByteReader<'a>,
    high: u64,
    visit: &mut dyn FnMut(u64, Container<'a>),
) -> Result<bool, DecodeError> {
    let invalid = DecodeError::invalid;
    let start = reader.at();
    let cookie = reader.u32("cookie")?;
    let has_runs = cookie & 0xffff == COOKIE_WITH_RUNS;
    let len = match cookie {
        _ if has_runs => (cookie >> 16) as usize + 1,
        COOKIE => reader.u32("number of containers")? as usize,
        _ => return Err(invalid("cookie", start, "12346 or 12347")),
    };
    if len > 1 << 16 {
        return Err(invalid("number of containers", start + 4, "65,536 at most"));
    }
    let are_runs = if has_runs { reader.bytes("run flags", len.div_ceil(8))? } else { &[] };
    let heads_at = reader.at();
    let heads = reader.bytes("containers' heads", len * 4)?.as_chunks::<4>().0;
    let offsets_at = reader.at();
    let has_offsets = !has_runs || len >= MIN_OFFSETS;
    let offsets = reader.bytes("offsets", if has_offsets { len * 4 } else { 0 })?;
    let mut before = None;
    for (i, &[a, b, c, d]) in heads.iter().enumerate() {
        let key = u16::from_le_bytes([a, b]);
        if before.is_some_and(|before| before >= key) {
            return Err(invalid("key", heads_at + i * 4, "above the previous one"));
        }
        before = Some(key);
        let base = high | u64::from(key) << 16;
        let count = u32::from(u16::from_le_bytes([c, d])) + 1;
        let at = reader.at();
        if let Some(&offset) = offsets.as_chunks::<4>().0.get(i)
            && u32::from_le_bytes(offset) as usize != at - start
        {
            return Err(invalid("offset", offsets_at + i * 4, "where the container is"));
        }
        let is_run = are_runs.get(i / 8).is_some_and(|flags| flags >> (i % 8) & 1 == 1);
        let (container, is_right) = if is_run {
            let runs = reader.u16("number of runs")?;
            let runs = reader.bytes("runs", 4 * usize::from(runs))?.as_chunks().0;
            let (mut found, mut least) = (0, 0);
            let in_order = runs.iter().map(ends).all(|(first, last)| {
                let is_next = u32::from(first) >= least && first <= last;
                found += u32::from(last.wrapping_sub(first)) + 1;
                least = u32::from(last) + 1;
                is_next
            });
            (Container::Runs(runs), in_order && found == count)
        } else if count <= MAX_LIST {
            let list = reader.bytes("values", 2 * count as usize)?.as_chunks().0;
            let in_order =
                list.is_sorted_by(|&a, &b| u16::from_le_bytes(a) < u16::from_le_bytes(b));
            (Container::List(list), in_order)
        } else {
            let words = reader.bytes("bits", BITMAP_BYTES)?.as_chunks().0;
            let found: u32 = words.iter().map(|&word| u64::from_le_bytes(word).count_ones()).sum();
            (Container::Bitmap(words), found == count)
        };
        if !is_right {
            return Err(invalid(
                "container",
                at,
                "in ascending order with as many values as its header states",
            ));
        }
        visit(base, container);
    }
    Ok(has_runs)
}
