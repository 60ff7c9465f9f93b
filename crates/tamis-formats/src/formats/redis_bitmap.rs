//! `BloomFilterHelper` of Java articles: the probes of Guava's first rule as bits of a Redis string. Layout:
//! `docs/formats/redis-bitmap.md`.

use std::io;

use crate::errors::{CreateError, DecodeError, EncodeError};
use crate::filters::Contents;
use crate::format::{DecodeOptions, Detection, Format, Parameter, Parameters};
use crate::redis::rdb::{Rdb, RdbEntry};
use crate::redis::string;
use crate::rules::guava_rules::Mitz32;
use crate::rules::{ProbeRule as _, Rule};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "redis-bitmap",
    extensions: &["bitmap", "rdb"],
    summary: "BloomFilterHelper of Java over a bitmap of Redis",
    detection: Detection::ByBytes(|bytes| Rdb::sniff(bytes, |entry| entry.type_name() == "string")),
    parameters: Parameters {
        required: &[Parameter::Items, Parameter::Rate],
        reading: &[Parameter::Key],
        ..Parameters::NONE
    },
    decode,
    encode,
    create: |options| {
        let (items, rate) = options.plan()?;
        check_clipped(items, rate)?;
        string::create(options, planned).map(Contents::new)
    },
    ..Format::BASE
};

/// The sizes that the Java class computes, including unusable sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisBitmapPlan {
    /// `bitSize`. If the size is 0, the Java class fails at the first item. A negative size has the same effect as its
    /// absolute value.
    pub bits: i32,
    /// `numHashFunctions`. The number of hash functions has no limit: for the rate 0, the number is 1074.
    pub probes: u32,
}

impl RedisBitmapPlan {
    /// Creates the plan of `new BloomFilterHelper<>(funnel, items, rate)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::redis_bitmap::RedisBitmapPlan;
    ///
    /// assert_eq!(RedisBitmapPlan::new(1_000_000, 0.03), RedisBitmapPlan { bits: 7_298_440, probes: 5 });
    /// assert_eq!(RedisBitmapPlan::new(0, 0.03).bits, 0);
    /// ```
    #[must_use]
    pub fn new(items: i32, rate: f64) -> Self {
        let ln_2 = std::f64::consts::LN_2;
        let rate = if rate == 0.0 { f64::from_bits(1) } else { rate };
        // The order of operations is the order of the Java code. The number of bits is clamped to the range of a Java
        // `int`.
        let bits = (f64::from(items.wrapping_neg()) * rate.ln() / (ln_2 * ln_2)) as i32;
        let k = f64::from(bits) / f64::from(items) * ln_2;
        // Java rounds half up.
        Self { bits, probes: ((k + 0.5).floor() as i32).max(1).cast_unsigned() }
    }

    /// Tests whether the plan needs more bits than an `int` can count. If the plan needs more bits than an `int` can
    /// count, the rate of the filter is above the planned rate.
    #[must_use]
    pub fn is_clipped(&self) -> bool {
        self.bits == i32::MAX
    }

    /// Computes the rate of a filter whose share of set bits is `fill`. The rate is above `fill` to the power of the
    /// number of probes, because the probes of an item often repeat. Takes up to a few milliseconds.
    #[must_use]
    pub fn rate_at_fill(&self, fill: f64) -> f64 {
        let bits = u64::from(self.bits.unsigned_abs());
        let rule = Mitz32::new(bits, self.probes).and_then(|rule| rule.progression());
        let items = -(-fill).ln_1p() * bits as f64 / f64::from(self.probes);
        rule.map_or(1.0, |rule| rule.rate(fill, items))
    }

    /// Returns the offsets that the class passes to `SETBIT` for an item. `key` is the item in the bytes of its
    /// [`Funnel`](crate::Funnel). Returns `None` if the class divides by zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::redis_bitmap::RedisBitmapPlan;
    ///
    /// let plan = RedisBitmapPlan::new(1_000, 0.1);
    /// assert!(plan.offsets(b"a").unwrap().eq([2542, 3259, 815]));
    /// ```
    pub fn offsets(&self, key: &[u8]) -> Option<impl Iterator<Item = u32> + use<>> {
        let rule = Mitz32::new(self.bits.unsigned_abs().into(), self.probes)?;
        // All offsets are below 2³¹.
        let offsets: Vec<u32> = rule.each_probe(rule.hash(key)).map(|bit| bit as u32).collect();
        Some(offsets.into_iter())
    }
}

/// Rejects a plan whose number of bits is clipped, if the rate of the filter exceeds the planned rate by more than a
/// tenth.
fn check_clipped(items: u64, rate: f64) -> Result<(), CreateError> {
    let Ok(count) = i32::try_from(items) else { return Ok(()) };
    let plan = RedisBitmapPlan::new(count, rate);
    if !plan.is_clipped() {
        return Ok(());
    }
    let probes = f64::from(plan.probes);
    let kept = (-(-probes * items as f64 / f64::from(plan.bits)).exp_m1()).powf(probes);
    if kept <= 1.1 * rate {
        return Ok(());
    }
    Err(CreateError::refused(format!(
        "BloomFilterHelper has at most {} bits: its rate for {items} items would be {kept:.2e}, not \
        {rate}; plan fewer items or a higher rate",
        plan.bits
    )))
}

fn planned(items: u64, rate: f64) -> Result<Rule, CreateError> {
    let why = match i32::try_from(items) {
        Err(_) => {
            format!("BloomFilterHelper counts items in an int: at most 2,147,483,647, not {items}")
        }
        Ok(items) => {
            let plan = RedisBitmapPlan::new(items, rate);
            match u64::try_from(plan.bits) {
                Ok(bits @ 1..) => {
                    return Ok(Rule::new(Mitz32::new(bits, plan.probes).expect("at least a bit")));
                }
                Ok(_) => format!(
                    "BloomFilterHelper plans 0 bits for {items} items at rate {rate}, and divides \
                    by them: plan more items or a lower rate"
                ),
                Err(_) => format!(
                    "BloomFilterHelper plans a negative number of bits for {items} items at rate \
                    {rate}: plan at a rate below 1"
                ),
            }
        }
    };
    Err(CreateError::refused(why))
}

fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Contents, DecodeError> {
    if !Rdb::has_magic(bytes) {
        let rule = string::rule_to_decode(options, planned)?;
        return string::decode(rule, &string::of_file(bytes), 0).map(Contents::new);
    }
    // Finds the key first, because the plan belongs to the filter with this key.
    let is_string = |entry: &RdbEntry<'_>| entry.type_name() == "string";
    let entry = Rdb::new(bytes)?.find_key(options, "a string", is_string, |key| key)?;
    let rule = string::rule_to_decode(options, planned)?;
    let string = entry.string(rule.bits().div_ceil(8))?;
    string::decode(rule, &string, entry.at()).map(Contents::new)
}

fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let filter = string::fitting::<Mitz32>(contents, options, "BloomFilterHelper", planned)?;
    Ok(out.write_all(&string::grown(filter))?)
}
