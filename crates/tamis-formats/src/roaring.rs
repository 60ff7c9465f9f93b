//! Roaring bitmaps in the portable format, of 32 and of 64 bits. Drawn in `docs/formats/roaring.md`.

use std::io;

use tamis::{Answers, CompressedSet};

use crate::answer_each::{answer_each, try_answer_each};
use crate::change_error::ChangeError;
use crate::contents::Contents;
use crate::decode_error::{DecodeError, DecodeErrorKind};
use crate::decode_options::DecodeOptions;
use crate::encode_error::EncodeError;
use crate::filter_info::FilterInfo;
use crate::format::{Format, ItemDomain, Items, Sniff, Versions};
use crate::funnel::Funnel;
use crate::integer_bitmap::IntegerBitmap;
use crate::integer_keys::{min_and_max, no_value, value};
use crate::reader::Reader;
use crate::stored_filter::StoredFilter;

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "roaring",
    extensions: &["roaring", "roaring64"],
    summary: "a Roaring bitmap of 32 or 64 bits, in the portable format",
    sniff: Some(|bytes| Sniff::maybe(walk(bytes, &mut |_, _| {}).is_ok())),
    items: Items::Default(Funnel::Unsigned),
    item_domain: ItemDomain::Integers,
    required: &[],
    read_uses: &[],
    write_uses: &[],
    versions: Some(Versions { expected: VERSIONS, are_plans: false }),
    decode: |bytes, options| decode_version(bytes, options).map(Contents::new),
    encode,
    create: |_| Ok(Contents::new(Roaring::new(CompressedSet::new()))),
};

/// What is expected of [`DecodeOptions::version`].
const VERSIONS: &str = "32 or 64, the bits of a value";

const COOKIE: u32 = 12_346;
const COOKIE_WITH_RUNS: u32 = 12_347;

/// Below as many containers a file with runs has no offsets.
const MIN_OFFSETS: usize = 4;

/// A container is a list of as many values, and a bitmap above that.
const MAX_LIST: u32 = 4096;

const BITMAP_BYTES: usize = 65_536 / 8;

/// An exact set of integers, and how its file writes it.
///
/// # Examples
///
/// ```
/// use tamis_formats::roaring;
///
/// let bytes = [0x3a, 0x30, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 16, 0, 0, 0, 5, 0, 7, 0];
/// let set = roaring::decode(&bytes)?.set;
/// assert_eq!(set.iter().collect::<Vec<_>>(), [2 << 16 | 5, 2 << 16 | 7]);
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Roaring {
    /// The values.
    pub set: CompressedSet,
    /// Whether it is written as one of 64 bits even if its values have 32.
    pub is_64: bool,
    /// Whether runs are written where they are smaller, as `runOptimize` does.
    pub has_runs: bool,
}

impl PartialEq for Roaring {
    /// Compares the values; how they are written makes no other set.
    fn eq(&self, other: &Self) -> bool {
        self.set == other.set
    }
}

impl Roaring {
    /// Takes a set, to be written as small as can be.
    #[must_use]
    pub fn new(set: CompressedSet) -> Self {
        Self { set, is_64: false, has_runs: true }
    }

    fn is_wide(&self) -> bool {
        self.is_64 || self.set.max().is_some_and(|max| max > u32::MAX.into())
    }
}

impl StoredFilter for Roaring {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        answer_each(keys, answers, |key| value(key).is_some_and(|value| self.set.contains(value)));
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        try_answer_each(keys, answers, |key| {
            let value = value(key).ok_or_else(no_value)?;
            Ok(self.set.insert(value))
        })
    }

    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        self.set.or(&other.set);
        self.is_64 |= other.is_64;
        self.has_runs |= other.has_runs;
        Ok(true)
    }

    fn info(&self) -> FilterInfo {
        let width = if self.is_wide() { 64 } else { 32 };
        let mut more = min_and_max(self.set.min(), self.set.max());
        more.push(("width", format!("{width} bits")));
        FilterInfo {
            rule: "exact set of integers, a Roaring bitmap".into(),
            bits: self.set.memory_bytes() * 8,
            items: self.set.len() as f64,
            are_items_counted: true,
            more,
            ..FilterInfo::default()
        }
    }
}

/// The values of a stretch of 65,536, as a file has them.
enum Container<'a> {
    List(&'a [[u8; 2]]),
    Bitmap(&'a [[u8; 8]]),
    /// Starts, and how many follow each.
    Runs(&'a [[u8; 4]]),
}

/// Reads the bytes of a bitmap of 32 or 64 bits.
///
/// Memory is 18 times the bytes at most: of a file of 64 bits that holds one value in each stretch of 2³².
///
/// # Errors
///
/// [`DecodeError`] if the bytes are none: also where containers or values are out of order, which no library writes.
pub fn decode(bytes: &[u8]) -> Result<Roaring, DecodeError> {
    let mut set = CompressedSet::new();
    let (mut values, mut new) = (Vec::new(), Answers::new());
    // Of a file that turns out damaged at its end, nothing is to be built.
    let (is_64, has_runs) = walk(bytes, &mut |_, _| {})?;
    walk(bytes, &mut |base, container| {
        values.clear();
        match container {
            Container::List(list) => {
                values.extend(list.iter().map(|&low| base | u64::from(u16::from_le_bytes(low))));
            }
            Container::Bitmap(words) => {
                for (&word, at) in words.iter().zip((base..).step_by(64)) {
                    let mut word = u64::from_le_bytes(word);
                    while word != 0 {
                        values.push(at + u64::from(word.trailing_zeros()));
                        word &= word - 1;
                    }
                }
            }
            Container::Runs(runs) => {
                // What comes first decides how the stretch is kept: if it is a value or two, as a list, of which a long
                // run behind it would make a bitmap of 8 KiB, whatever the file has.
                let longest = runs.iter().map(ends).max_by_key(|(first, last)| last - first);
                for (first, last) in longest.into_iter().chain(runs.iter().map(ends)) {
                    set.insert_range(base | u64::from(first)..=base | u64::from(last));
                }
            }
        }
        set.insert_each(&values, &mut new);
    })?;
    Ok(Roaring { set, is_64, has_runs })
}

/// Reads a bitmap, and checks that it has the width that the caller names.
fn decode_version(bytes: &[u8], options: &DecodeOptions) -> Result<Roaring, DecodeError> {
    let error = |kind| DecodeError { field: "width", at: 0, kind };
    let is_64 = match options.version.as_deref() {
        None => return decode(bytes),
        Some("32") => false,
        Some("64") => true,
        Some(_) => return Err(error(DecodeErrorKind::WrongOption { expected: VERSIONS })),
    };
    let bitmap = decode(bytes)?;
    if bitmap.is_64 != is_64 {
        let expected =
            if bitmap.is_64 { "64 bits, as its bytes say" } else { "32 bits, as its bytes say" };
        return Err(error(DecodeErrorKind::WrongOption { expected }));
    }
    Ok(bitmap)
}

/// Returns the first and the last value of a run; the last is 0 where it is none.
fn ends(&[a, b, c, d]: &[u8; 4]) -> (u16, u16) {
    let first = u16::from_le_bytes([a, b]);
    (first, first.checked_add(u16::from_le_bytes([c, d])).unwrap_or(0))
}

/// Goes through all containers in order, each with its stretch's first value; returns `(is_64, has_runs)`.
fn walk<'a>(
    bytes: &'a [u8],
    visit: &mut dyn FnMut(u64, Container<'a>),
) -> Result<(bool, bool), DecodeError> {
    let cookie = bytes.first_chunk().map_or(0, |&cookie| u32::from_le_bytes(cookie));
    let is_32 = cookie == COOKIE || cookie & 0xffff == COOKIE_WITH_RUNS;
    let mut reader = Reader::new(bytes);
    if is_32 {
        let has_runs = walk_32(&mut reader, 0, visit)?;
        return reader.end("containers").map(|()| (false, has_runs));
    }
    let maps = reader.u64("number of bitmaps")?;
    if maps > 1 << 32 {
        let kind = DecodeErrorKind::Invalid {
            reason: "a cookie of 32 bits, or a number of bitmaps of 64",
        };
        return Err(DecodeError { field: "cookie", at: 0, kind });
    }
    let (mut before, mut has_runs) = (None, false);
    for _ in 0..maps {
        let at = reader.at() as u64;
        let high = reader.u32("high half")?;
        if before.is_some_and(|before| before >= high) {
            let kind = DecodeErrorKind::Invalid { reason: "above the one before" };
            return Err(DecodeError { field: "high half", at, kind });
        }
        before = Some(high);
        has_runs |= walk_32(&mut reader, u64::from(high) << 32, visit)?;
    }
    reader.end("containers").map(|()| (true, has_runs))
}

/// Goes through the containers of a bitmap of 32 bits; tells whether it may have runs.
fn walk_32<'a>(
    reader: &mut Reader<'a>,
    high: u64,
    visit: &mut dyn FnMut(u64, Container<'a>),
) -> Result<bool, DecodeError> {
    let invalid = |field, at: usize, reason| {
        let kind = DecodeErrorKind::Invalid { reason };
        DecodeError { field, at: at as u64, kind }
    };
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
            return Err(invalid("key", heads_at + i * 4, "above the one before"));
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
                "in ascending order and as many values as its head says",
            ));
        }
        visit(base, container);
    }
    Ok(has_runs)
}

/// What is known of a stretch of 65,536 values before any of it is written.
struct Stretch {
    /// The values without their low 16 bits.
    key: u64,
    count: u32,
    runs: u32,
    is_run: bool,
}

impl Stretch {
    fn of(key: u64, lows: &[u16], has_runs: bool) -> Self {
        let breaks = lows.windows(2).filter(|pair| pair[1] - pair[0] != 1).count() as u32;
        let (count, runs) = (lows.len() as u32, breaks + 1);
        let otherwise = if count <= MAX_LIST { 2 * count } else { BITMAP_BYTES as u32 };
        Self { key, count, runs, is_run: has_runs && 2 + 4 * runs < otherwise }
    }

    fn len_bytes(&self) -> u32 {
        match self.count {
            _ if self.is_run => 2 + 4 * self.runs,
            ..=MAX_LIST => 2 * self.count,
            _ => BITMAP_BYTES as u32,
        }
    }

    fn write(&self, lows: &[u16], out: &mut Vec<u8>) {
        if self.is_run {
            out.extend((self.runs as u16).to_le_bytes());
            for run in lows.chunk_by(|a, b| b - a == 1) {
                out.extend(run[0].to_le_bytes());
                out.extend(((run.len() - 1) as u16).to_le_bytes());
            }
        } else if self.count <= MAX_LIST {
            out.extend(lows.iter().flat_map(|low| low.to_le_bytes()));
        } else {
            let start = out.len();
            out.resize(start + BITMAP_BYTES, 0);
            for &low in lows {
                out[start + usize::from(low) / 8] |= 1 << (low % 8);
            }
        }
    }
}

/// Calls for each stretch that has values, in order.
fn each_stretch<E>(
    set: &CompressedSet,
    mut visit: impl FnMut(u64, &[u16]) -> Result<(), E>,
) -> Result<(), E> {
    let mut lows = Vec::new();
    let mut values = set.iter().peekable();
    while let Some(&first) = values.peek() {
        lows.clear();
        while let Some(value) = values.next_if(|value| value >> 16 == first >> 16) {
            lows.push(value as u16);
        }
        visit(first >> 16, &lows)?;
    }
    Ok(())
}

fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let made;
    let roaring = if let Some(roaring) = contents.downcast_ref::<Roaring>() {
        roaring
    } else if let Some(bitmap) = contents.downcast_ref::<IntegerBitmap>() {
        made = Roaring::new(bitmap.values().to_compressed());
        &made
    } else {
        return Err(EncodeError::needs_items("a Roaring bitmap stores only integers"));
    };
    let mut stretches = Vec::new();
    each_stretch::<EncodeError>(&roaring.set, |key, lows| {
        stretches.push(Stretch::of(key, lows, roaring.has_runs));
        Ok(())
    })?;
    let maps: Vec<&[Stretch]> = stretches.chunk_by(|a, b| a.key >> 16 == b.key >> 16).collect();
    let mut heads = maps.iter();
    let is_wide = match options.version.as_deref() {
        None => roaring.is_wide(),
        Some("64") => true,
        Some("32") if roaring.set.max().is_none_or(|max| max <= u32::MAX.into()) => false,
        Some("32") => {
            return Err(EncodeError::refused(
                "a Roaring bitmap of 32 bits stores values up to at most 4,294,967,295: write one of 64 bits",
            ));
        }
        Some(other) => {
            return Err(EncodeError::refused(format!(
                "\"{other}\" is not a width of a Roaring bitmap: expected {VERSIONS}"
            )));
        }
    };
    if is_wide {
        out.write_all(&(maps.len() as u64).to_le_bytes())?;
    } else if maps.is_empty() {
        out.write_all(&header(&[]))?;
    }
    let (mut bytes, mut next, mut left) = (Vec::new(), stretches.iter(), 0);
    each_stretch(&roaring.set, |key, lows| {
        if left == 0 {
            let map = heads.next().expect("the first pass saw the same values");
            if is_wide {
                out.write_all(&((key >> 16) as u32).to_le_bytes())?;
            }
            out.write_all(&header(map))?;
            left = map.len();
        }
        left -= 1;
        bytes.clear();
        next.next().expect("the first pass saw the same values").write(lows, &mut bytes);
        out.write_all(&bytes)
    })?;
    Ok(())
}

/// Returns all that stands before the containers of a bitmap of 32 bits.
fn header(map: &[Stretch]) -> Vec<u8> {
    let mut header = Vec::new();
    let has_runs = map.iter().any(|it| it.is_run);
    if has_runs {
        header.extend((COOKIE_WITH_RUNS | (map.len() as u32 - 1) << 16).to_le_bytes());
        let flags = map.chunks(8).map(|eight| {
            eight.iter().enumerate().fold(0, |flags, (i, it)| flags | u8::from(it.is_run) << i)
        });
        header.extend(flags);
    } else {
        header.extend(COOKIE.to_le_bytes());
        header.extend((map.len() as u32).to_le_bytes());
    }
    for it in map {
        header.extend((it.key as u16).to_le_bytes());
        header.extend(((it.count - 1) as u16).to_le_bytes());
    }
    if !has_runs || map.len() >= MIN_OFFSETS {
        let mut at = (header.len() + 4 * map.len()) as u32;
        for it in map {
            header.extend(at.to_le_bytes());
            at += it.len_bytes();
        }
    }
    header
}
