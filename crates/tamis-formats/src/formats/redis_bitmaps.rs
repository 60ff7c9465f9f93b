//! `RedisBitmaps` of Java articles: Redis bitmaps with Guava's second rule. When the newest bitmap is half full, the
//! class adds a bitmap. Layout: `docs/formats/redis-bitmaps.md`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use tamis::{Answers, OutOfMemory};

use crate::errors::{ChangeError, CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, FilterInfo, ForeignBloom, StoredFilter, try_answer_each};
use crate::format::{DecodeOptions, Detection, Format, Items, Parameter, Parameters};
use crate::items::{Charset, Funnel};
use crate::redis::rdb::{Rdb, SnapshotValue, write_snapshot};
use crate::redis::string;
use crate::rules::Rule;
use crate::rules::guava_rules::Mitz64;
use crate::rules::guava_sizing::{GuavaRelease, GuavaStrategy, plan};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "redis-bitmaps",
    extensions: &["rdb", "bitmap"],
    summary: "RedisBitmaps of Java: bitmaps of Redis that grow in number",
    detection: Detection::ByBytes(|bytes| {
        Rdb::sniff(bytes, |entry| number_of(entry.key()).is_some())
    }),
    items: Items::Default(Funnel::Text(Charset::Utf8)),
    parameters: Parameters { required: &[Parameter::Items, Parameter::Rate], ..Parameters::NONE },
    decode,
    encode,
    create: |options| options.create(RedisBitmaps::new),
    ..Format::BASE
};

/// The prefix of the keys that store the bitmaps.
const BITMAP: &str = "bloomfilter-";

/// A filter that adds a bitmap of the same size when its newest bitmap is half full.
///
/// # Examples
///
/// ```
/// use tamis_formats::RedisBitmaps;
///
/// let mut seen = RedisBitmaps::new(10, 0.1)?;
/// let new = (0..60).filter(|i| seen.insert(format!("x{i}").as_bytes()).unwrap()).count();
/// assert_eq!((new, seen.cursor()), (49, 3));
/// assert!(seen.contains(b"x1"));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RedisBitmaps {
    // Invariant: there is at least one bitmap, and all bitmaps have the same rule.
    bitmaps: Vec<ForeignBloom>,
    /// The number of bits that are set in the newest bitmap.
    ones: u64,
}

impl RedisBitmaps {
    /// The key that stores the number of the newest bitmap.
    pub const CURSOR: &'static [u8] = b"cursor";

    /// Returns the key of the bitmap with the given number. The first bitmap has the number 0.
    #[must_use]
    pub fn bitmap_key(number: u64) -> Vec<u8> {
        format!("{BITMAP}{number}").into_bytes()
    }

    /// Creates an empty filter. Each bitmap is planned for `items` items at `rate` as in Guava 31.
    ///
    /// # Errors
    ///
    /// [`CreateError`] if Guava refuses the plan.
    pub fn new(items: u64, rate: f64) -> Result<Self, CreateError> {
        let first = ForeignBloom::new(planned(items, rate)?)?;
        Ok(Self { bitmaps: vec![first], ones: 0 })
    }

    /// Plans one bitmap for `items` items at `rate`, without allocating memory.
    ///
    /// # Errors
    ///
    /// [`CreateError`] if Guava refuses the plan.
    pub fn plan(items: u64, rate: f64) -> Result<Rule, CreateError> {
        planned(items, rate)
    }

    /// Inserts an item, as `put` does. Returns true if the item is certainly new.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if the allocation of a new bitmap fails. The item has been inserted even if the allocation
    /// fails.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, OutOfMemory> {
        // If the filter has one bitmap, the Java class inserts an item without a test. The number of changed bits shows
        // whether the item is new.
        let is_new = if self.bitmaps.len() > 1 && self.contains(key) {
            false
        } else {
            let newest = self.cursor();
            let changed = self.bitmaps[newest].insert_counted(key);
            self.ones += u64::from(changed);
            changed > 0
        };
        let rule = self.bitmaps[0].rule();
        if 2 * self.ones > rule.bits() {
            let next = ForeignBloom::new(rule.clone())?;
            self.bitmaps.push(next);
            self.ones = 0;
        }
        Ok(is_new)
    }

    /// Tests whether an item may be in any bitmap.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.bitmaps.iter().any(|bitmap| bitmap.contains(key))
    }

    /// Removes all items, and all bitmaps except the first, as `reset` does.
    pub fn reset(&mut self) {
        self.bitmaps.truncate(1);
        self.bitmaps[0].clear();
        self.ones = 0;
    }

    /// Returns the number of the newest bitmap.
    #[must_use]
    pub fn cursor(&self) -> usize {
        self.bitmaps.len() - 1
    }

    /// Returns the bitmaps, oldest first.
    #[must_use]
    pub fn bitmaps(&self) -> &[ForeignBloom] {
        &self.bitmaps
    }

    /// Returns the union of all bitmaps. The union is a valid filter with a higher rate than each bitmap.
    #[must_use]
    pub fn union(&self) -> ForeignBloom {
        let mut one = self.bitmaps[0].clone();
        for other in &self.bitmaps[1..] {
            let is_merged = one.merge(other);
            debug_assert!(is_merged, "all bitmaps have one rule");
        }
        one
    }

    /// Returns one filter: the only bitmap, or the union of all bitmaps if `union` is true.
    pub(crate) fn to_one(&self, union: bool) -> Result<Cow<'_, ForeignBloom>, EncodeError> {
        match &self.bitmaps[..] {
            [one] => Ok(Cow::Borrowed(one)),
            _ if union => Ok(Cow::Owned(self.union())),
            all => {
                let rate = self.union().estimate_rate();
                Err(EncodeError::Several { filters: all.len(), rate })
            }
        }
    }

    /// Returns the rate of all bitmaps together if each bitmap is as full as possible. The rate of each bitmap is the
    /// rate of a full bitmap or `planned`, whichever is higher. `planned` is the planned rate of one bitmap.
    fn planned_rate(&self, planned: Option<f64>) -> f64 {
        let rule = self.bitmaps[0].rule();
        // The item that makes the bitmap half full may set a bit with each of its probes.
        let most = rule.bits() / 2 + u64::from(rule.probes());
        let fill = (most as f64 / rule.bits() as f64).min(1.0);
        let of_one = fill.powf(rule.probes().into()).max(planned.unwrap_or(0.0));
        1.0 - (1.0 - of_one).powf(self.bitmaps.len() as f64)
    }
}

impl StoredFilter for RedisBitmaps {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        ForeignBloom::any_contains_each(self.bitmaps.iter(), keys, answers);
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        try_answer_each(keys, answers, |key| self.insert(key).map_err(ChangeError::Memory))
    }

    /// Merges each bitmap of `other` into the newest bitmap if the newest bitmap stays at most half full. If the newest
    /// bitmap would be more than half full, inserts the bitmap of `other` before the newest bitmap.
    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        let is_alike = self.bitmaps[0].rule() == other.bitmaps[0].rule();
        if !is_alike {
            return Ok(false);
        }
        for bitmap in &other.bitmaps {
            let newest = self.cursor();
            let mut both = self.bitmaps[newest].clone();
            let is_merged = both.merge(bitmap);
            debug_assert!(is_merged, "all bitmaps have one rule");
            let ones = both.count_ones();
            if 2 * ones > both.rule().bits() {
                self.bitmaps.insert(newest, bitmap.clone());
            } else {
                self.bitmaps[newest] = both;
                self.ones = ones;
            }
        }
        Ok(true)
    }

    fn info(&self) -> FilterInfo {
        let rule = self.bitmaps[0].rule();
        let all = ForeignBloom::info_of_all(self.bitmaps.iter());
        let rate = all.rate_now;
        let mut warnings = Vec::new();
        if self.cursor() > 0 {
            let union = self.union().estimate_rate();
            let times = match self.cursor() {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            };
            warnings.push(format!(
                "it has grown {times}: the false positive rate of all bitmaps together is \
                {rate:.2e}; their union, as one filter of Guava, would have {union:.2e}"
            ));
        }
        FilterInfo {
            layout: format!("{rule}, RedisBitmaps"),
            rate_std_error: 0.0,
            rate_planned: Some(self.planned_rate(None)),
            details: vec![("cursor", self.cursor().to_string())],
            warnings,
            ..all
        }
    }

    fn exceeded_rate(&self, info: &FilterInfo, planned: Option<f64>) -> Option<f64> {
        Some(self.planned_rate(planned)).filter(|&planned| info.is_over(planned))
    }
}

fn planned(items: u64, rate: f64) -> Result<Rule, CreateError> {
    plan(items, rate, GuavaStrategy::Mitz64, GuavaRelease::Until33)
}

/// Returns the number in the key of a bitmap.
fn number_of(key: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(key.strip_prefix(BITMAP.as_bytes())?).ok()?;
    number.parse().ok().filter(|parsed: &u64| parsed.to_string() == number)
}

/// Decodes a snapshot with all keys, or the string of one bitmap. The string of one bitmap becomes a filter with one
/// bitmap.
fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Contents, DecodeError> {
    let rule = string::rule_to_decode(options, planned)?;
    if !Rdb::has_magic(bytes) {
        whole_length(&rule, &string::of_file(bytes), 0)?;
        return string::decode(rule, &string::of_file(bytes), 0).map(Contents::new);
    }
    let rdb = Rdb::new(bytes)?;
    let [cursor] = rdb.find([RedisBitmaps::CURSOR])?;
    let cursor = match cursor {
        None => 0,
        Some(entry) => {
            let text = entry.string(MAX_CURSOR_BYTES)?;
            let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse::<u64>().ok());
            number.ok_or_else(|| entry.refused("is no decimal number"))?
        }
    };
    let mut found = BTreeMap::new();
    for entry in rdb.entries() {
        let entry = entry?;
        // A reset of the filter leaves bitmaps with a number above the cursor in the database.
        if let Some(number) = number_of(entry.key()).filter(|&number| number <= cursor) {
            entry.only(found.get(&number))?;
            found.insert(number, entry);
        }
    }
    let mut bitmaps = Vec::new();
    for number in 0..=cursor {
        let entry = found.get(&number).ok_or_else(|| {
            rdb.refused(format!(
                "key \"{BITMAP}{number}\" is missing, and the cursor is {cursor}: save all of them"
            ))
        })?;
        let string = entry.string(rule.bits() / 8)?;
        whole_length(&rule, &string, entry.at())?;
        bitmaps.push(string::decode(rule.clone(), &string, entry.at())?);
    }
    let ones = bitmaps.last().map_or(0, ForeignBloom::count_ones);
    Ok(Contents::new(RedisBitmaps { bitmaps, ones }))
}

/// The largest number of digits of a 64-bit number.
const MAX_CURSOR_BYTES: u64 = 20;

/// Checks that a string has the full length of a bitmap, because the Java class creates the string with its full
/// length.
fn whole_length(rule: &Rule, string: &[u8], at: u64) -> Result<(), DecodeError> {
    let (planned, found) = (rule.bits() / 8, string.len() as u64);
    if found >= planned {
        return Ok(());
    }
    let why = format!(
        "the plan has {planned} bytes, and the bitmap has {found}: give the items and the rate \
        that it was planned for"
    );
    Err(DecodeError { field: "bits", at, kind: DecodeErrorKind::Refused { why: why.into() } })
}

fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let Some(all) = contents.downcast_ref::<RedisBitmaps>() else {
        let filter = string::fitting::<Mitz64>(contents, options, "RedisBitmaps", planned)?;
        return Ok(out.write_all(&string::whole(filter))?);
    };
    let cursor = (
        RedisBitmaps::CURSOR.to_vec(),
        SnapshotValue::String(all.cursor().to_string().into_bytes()),
    );
    let bitmaps = all.bitmaps.iter().enumerate().map(|(number, bitmap)| {
        let string = SnapshotValue::String(string::whole(bitmap));
        (RedisBitmaps::bitmap_key(number as u64), string)
    });
    Ok(write_snapshot([cursor].into_iter().chain(bitmaps), out)?)
}
