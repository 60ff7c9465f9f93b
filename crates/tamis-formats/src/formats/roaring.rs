//! Roaring bitmaps in the portable format, of 32 and of 64 bits. Layout: `docs/formats/roaring.md`.

mod containers;
mod encoding;
mod form;

use std::convert::Infallible;
use std::io::{self, Write};

use tamis::{Answers, CompressedSet};

use crate::errors::{ChangeError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{
    Contents, FilterInfo, IntegerBitmap, ItemCount, StoredFilter, answer_each, try_answer_each,
};
use crate::format::{
    DecodeOptions, Detection, Format, ItemDomain, Items, Parameters, Sniff, Versions,
};
use crate::formats::roaring::containers::{Container, ends, walk};
use crate::formats::roaring::encoding::{ContainerPlan, each_container, header};
use crate::items::Funnel;
use crate::items::integer_keys::{min_and_max, no_value, value};

pub use crate::formats::roaring::form::RoaringForm;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "roaring",
    extensions: &["roaring", "roaring64"],
    summary: "a Roaring bitmap of 32 or 64 bits, in the portable format or Java's legacy one",
    detection: Detection::ByBytes(sniff),
    items: Items::Default(Funnel::Unsigned),
    item_domain: ItemDomain::Integers,
    parameters: Parameters { planning: &[], ..Parameters::NONE },
    versions: Some(Versions { expected: VERSIONS, are_plans: false }),
    decode: |bytes, options| decode_version(bytes, options).map(Contents::new),
    encode,
    create: |_| Ok(Contents::new(Roaring::new(CompressedSet::new()))),
};

/// The values of [`DecodeOptions::version`].
const VERSIONS: &str =
    "32 or 64, the bits of a value, or java, the legacy form of Roaring64NavigableMap";

/// An exact set of integers, and the form in which the set is written.
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
    /// The form in which the values are written.
    pub form: RoaringForm,
    /// Whether to write a container as runs if runs are smaller, as `runOptimize` does.
    pub has_runs: bool,
    /// Whether a change converted a bitmap of 32 bits to a bitmap of 64 bits.
    pub is_widened: bool,
}

/// The note that is reported if [`Roaring::is_widened`] is true.
const WIDENED: &str = "was a 32-bit Roaring bitmap and is now a 64-bit one: programs that read 32-bit bitmaps cannot read the file";

impl PartialEq for Roaring {
    /// Compares only the values, not the written forms.
    fn eq(&self, other: &Self) -> bool {
        self.set == other.set
    }
}

impl Roaring {
    /// Creates a bitmap with the smallest written form.
    #[must_use]
    pub fn new(set: CompressedSet) -> Self {
        Self { set, form: RoaringForm::Bits32, has_runs: true, is_widened: false }
    }

    /// Returns the containers of a file, in order.
    fn plans(&self) -> Vec<ContainerPlan> {
        let mut plans = Vec::new();
        let Ok(()) = each_container::<Infallible>(&self.set, |key, lows| {
            plans.push(ContainerPlan::of(key, lows, self.has_runs));
            Ok(())
        });
        plans
    }

    /// Returns the size of the bitmap in a file, in bytes.
    fn len_bytes(&self) -> u64 {
        let plans = self.plans();
        let maps = plans.chunk_by(|a, b| a.key >> 16 == b.key >> 16);
        let (mut count, mut len) = (0, 0);
        for map in maps {
            count += 1;
            let containers: u64 = map.iter().map(|plan| u64::from(plan.len_bytes())).sum();
            len += header(map).len() as u64 + containers;
        }
        match self.written_form() {
            RoaringForm::Bits64 => 8 + 4 * count + len,
            RoaringForm::Java { .. } => 5 + 4 * count + len,
            RoaringForm::Bits32 if plans.is_empty() => header(&[]).len() as u64,
            RoaringForm::Bits32 => len,
        }
    }

    fn is_wide(&self) -> bool {
        self.written_form() != RoaringForm::Bits32
    }

    /// Returns the form for writing the values.
    fn written_form(&self) -> RoaringForm {
        let is_large = self.set.max().is_some_and(|max| max > u32::MAX.into());
        if is_large && self.form == RoaringForm::Bits32 { RoaringForm::Bits64 } else { self.form }
    }
}

impl StoredFilter for Roaring {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        answer_each(keys, answers, |key| value(key).is_some_and(|value| self.set.contains(value)));
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        let was_wide = self.is_wide();
        let inserted = try_answer_each(keys, answers, |key| {
            let value = value(key).ok_or_else(no_value)?;
            Ok(self.set.insert(value))
        });
        self.is_widened |= !was_wide && self.is_wide();
        inserted
    }

    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        self.is_widened |= !self.is_wide() && other.is_wide();
        self.set.or(&other.set);
        if self.form == RoaringForm::Bits32 && other.form != RoaringForm::Bits32 {
            self.form = RoaringForm::Bits64;
        }
        self.has_runs |= other.has_runs;
        Ok(true)
    }

    fn info(&self) -> FilterInfo {
        let width = if self.is_wide() { 64 } else { 32 };
        let mut more = min_and_max(self.set.min(), self.set.max());
        let form = match self.form {
            RoaringForm::Java { .. } => ", in Java's legacy form",
            _ => "",
        };
        more.push(("width", format!("{width} bits{form}")));
        FilterInfo {
            layout: "exact set of integers, a Roaring bitmap".into(),
            bits: self.len_bytes() * 8,
            items: self.set.len() as f64,
            items_are: ItemCount::Exact,
            details: more,
            changes: self.is_widened.then(|| WIDENED.to_owned()).into_iter().collect(),
            ..FilterInfo::default()
        }
    }
}

/// Decodes a bitmap of 32 or 64 bits.
///
/// The memory is at most 18 times the size of the bytes. The worst case for the memory is a 64-bit bitmap with one
/// value in each range of 2³² values.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one bitmap. Containers and values out of order, which no library writes,
/// are rejected.
pub fn decode(bytes: &[u8]) -> Result<Roaring, DecodeError> {
    let mut set = CompressedSet::new();
    let (mut values, mut new) = (Vec::new(), Answers::new());
    // A first pass checks the whole file before any value is inserted. If the end of a file is damaged, the first pass
    // rejects the file before memory is allocated for the values.
    let (form, has_runs) = walk(bytes, &mut |_, _| {})?;
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
                // The first insert decides the representation of a range of 65,536 values. If the first insert has one
                // or two values, the representation is a list. A long run after a short run would convert the list to a
                // bitmap of 8 KiB. To avoid the conversion of a list to a bitmap, the longest run is inserted first.
                let longest = runs.iter().map(ends).max_by_key(|(first, last)| last - first);
                for (first, last) in longest.into_iter().chain(runs.iter().map(ends)) {
                    set.insert_range(base | u64::from(first)..=base | u64::from(last));
                }
            }
        }
        set.insert_each(&values, &mut new);
    })?;
    Ok(Roaring { form, has_runs, ..Roaring::new(set) })
}

/// Each bitmap of 32 bits starts with a cookie, a magic number. A bitmap of 64 bits has a cookie for each range of 2³²
/// values. Only the empty bitmap of 64 bits, which is eight zero bytes, has no cookie.
fn sniff(bytes: &[u8]) -> Sniff {
    match walk(bytes, &mut |_, _| {}) {
        // The empty bitmap of Java is five bytes: a flag and four zero bytes.
        Ok(_) => Sniff::yes(bytes != [0; 8] && bytes.len() > 5),
        Err(_) => Sniff::No,
    }
}

/// Decodes a bitmap and checks that the bitmap has the width in the options.
fn decode_version(bytes: &[u8], options: &DecodeOptions) -> Result<Roaring, DecodeError> {
    let error = |kind| DecodeError::new("width", 0, kind);
    let wanted = options.version.as_deref();
    if !matches!(wanted, None | Some("32" | "64" | "java")) {
        return Err(error(DecodeErrorKind::WrongOption { expected: VERSIONS }));
    }
    let bitmap = decode(bytes)?;
    let (found, expected) = match bitmap.form {
        RoaringForm::Bits32 => ("32", "32 bits, as in the file"),
        RoaringForm::Bits64 => ("64", "64 bits, as in the file"),
        RoaringForm::Java { .. } => ("java", "java, as in the file"),
    };
    if wanted.is_some_and(|wanted| wanted != found) {
        return Err(error(DecodeErrorKind::WrongOption { expected }));
    }
    Ok(bitmap)
}

fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn Write,
) -> Result<(), EncodeError> {
    if let Some(roaring) = contents.downcast_ref::<Roaring>() {
        return Ok(write(roaring, form_to_write(roaring, options)?, out)?);
    }
    let Some(bitmap) = contents.downcast_ref::<IntegerBitmap>() else {
        return Err(EncodeError::needs_items("a Roaring bitmap stores only integers"));
    };
    let roaring = Roaring::new(bitmap.values().to_compressed());
    Ok(write(&roaring, form_to_write(&roaring, options)?, out)?)
}

/// Returns the form that the version in the options names, or the form of the bitmap if the options have no version.
fn form_to_write(roaring: &Roaring, options: &DecodeOptions) -> Result<RoaringForm, EncodeError> {
    Ok(match options.version.as_deref() {
        None => roaring.written_form(),
        Some("64") => RoaringForm::Bits64,
        Some("32") if roaring.set.max().is_none_or(|max| max <= u32::MAX.into()) => {
            RoaringForm::Bits32
        }
        Some("java") if matches!(roaring.form, RoaringForm::Java { .. }) => roaring.form,
        Some("java") => RoaringForm::Java { is_signed: false },
        Some("32") => {
            return Err(EncodeError::refused(
                "a Roaring bitmap of 32 bits stores values up to at most 4,294,967,295: write one \
                of 64 bits",
            ));
        }
        Some(other) => {
            return Err(EncodeError::refused(format!(
                "\"{other}\" is not a width of a Roaring bitmap: expected {VERSIONS}"
            )));
        }
    })
}

/// Writes the bitmap in the given form. The values are read twice: for the container headers, and for the containers.
fn write(roaring: &Roaring, form: RoaringForm, out: &mut dyn Write) -> io::Result<()> {
    let mut plans = roaring.plans();
    // A signed form starts with the values of 2⁶³ and above.
    let is_negative = |key: u64| key >> 47 == 1;
    let passes: &[bool] = match form {
        RoaringForm::Java { is_signed: true } => {
            let first = plans.partition_point(|plan| !is_negative(plan.key));
            plans.rotate_left(first);
            &[true, false]
        }
        _ => &[],
    };
    let maps: Vec<&[ContainerPlan]> = plans.chunk_by(|a, b| a.key >> 16 == b.key >> 16).collect();
    let mut heads = maps.iter();
    match form {
        RoaringForm::Bits64 => out.write_all(&(maps.len() as u64).to_le_bytes())?,
        RoaringForm::Java { is_signed } => {
            out.write_all(&[u8::from(is_signed)])?;
            out.write_all(&(maps.len() as u32).to_be_bytes())?;
        }
        RoaringForm::Bits32 if maps.is_empty() => out.write_all(&header(&[]))?,
        RoaringForm::Bits32 => {}
    }
    let (mut bytes, mut next, mut left) = (Vec::new(), plans.iter(), 0);
    let mut write = |key: u64, lows: &[u16]| {
        if left == 0 {
            let map = heads.next().expect("the first pass saw the same values");
            let high = (key >> 16) as u32;
            match form {
                RoaringForm::Bits32 => {}
                RoaringForm::Bits64 => out.write_all(&high.to_le_bytes())?,
                RoaringForm::Java { .. } => out.write_all(&high.to_be_bytes())?,
            }
            out.write_all(&header(map))?;
            left = map.len();
        }
        left -= 1;
        bytes.clear();
        next.next().expect("the first pass saw the same values").write(lows, &mut bytes);
        out.write_all(&bytes)
    };
    if passes.is_empty() {
        each_container(&roaring.set, &mut write)?;
    }
    for &pass in passes {
        each_container(&roaring.set, |key, lows| {
            if is_negative(key) == pass { write(key, lows) } else { Ok(()) }
        })?;
    }
    Ok(())
}
