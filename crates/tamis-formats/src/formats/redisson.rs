//! Redisson's `RBloomFilter`: a Redis bitmap, and a hash that stores the settings. Layout: `docs/formats/redisson.md`.

use std::io;

use highway::{HighwayHash as _, HighwayHasher, Key};

use tamis::Modulus;

use crate::errors::{CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, FilterInfo};
use crate::format::{DecodeOptions, Detection, Format, Parameter, Parameters, Sniff};
use crate::redis::rdb::{Rdb, RdbEntry, SnapshotValue, write_snapshot};
use crate::redis::string;
use crate::rules::guava_sizing::{GuavaRelease, plan_bits, plan_probes};
use crate::rules::rates::alternating::Alternating;
use crate::rules::{EstimatedRate, ProbeRule, Rule, fill};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "redisson",
    extensions: &["rdb", "bitmap"],
    summary: "Redisson's RBloomFilter: a bitmap of Redis and its settings",
    // The key of the settings shows the format, because only Redisson stores the settings of a filter under a key that
    // ends in `:config`.
    detection: Detection::ByBytes(|bytes| {
        let has_config = |rdb: Rdb<'_>| rdb.entries().flatten().any(|entry| is_config(&entry));
        Sniff::yes(Rdb::has_magic(bytes) && Rdb::new(bytes).is_ok_and(has_config))
    }),
    parameters: Parameters {
        required: &[Parameter::Items, Parameter::Rate],
        reading: &[Parameter::Key],
        writing: &[Parameter::Key],
        ..Parameters::NONE
    },
    decode,
    encode,
    create: |options| string::create(options, planned).map(Contents::new),
    ..Format::BASE
};

/// The rule of Redisson: the two halves of a 128-bit HighwayHash are added alternately.
///
/// For the halves `a` and `b`, the probes are `a`, `a + b`, `2a + b`, `2a + 2b`, … in 64 bits, with the sign bit
/// cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redisson {
    bits: Modulus,
    probes: u32,
}

const MAX_BITS: u64 = 4_294_967_294;

/// The largest accepted number of probes. Real plans have fewer probes than this limit. A hostile file with more probes
/// than this limit would only waste time.
const MAX_PROBES: u32 = 65_535;

/// The key of HighwayHash, which is a constant of Redisson.
const KEY: Key = Key([
    0x9e37_79b9_7f4a_7c15,
    0xf39c_c060_5ced_c834,
    0x1082_276b_f3a2_7251,
    0xf86c_6a11_d0c1_8e95,
]);

impl Redisson {
    /// Creates the plan of `tryInit(items, rate)`.
    ///
    /// # Errors
    ///
    /// [`CreateError`] if Redisson refuses the plan.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::redisson::Redisson;
    ///
    /// let plan = Redisson::plan(100, 0.03)?;
    /// assert_eq!((plan.size(), plan.hash_iterations()), (729, 5));
    /// assert!(plan.offsets(b"a").eq([103, 242, 345, 539, 642]));
    /// # Ok::<(), tamis_formats::CreateError>(())
    /// ```
    pub fn plan(items: u64, rate: f64) -> Result<Self, CreateError> {
        if !(0.0..=1.0).contains(&rate) {
            let why =
                format!("Redisson takes rates from 0 to 1, not {rate}, for any number of items");
            return Err(CreateError::refused(why));
        }
        let rate = if rate == 0.0 { f64::from_bits(1) } else { rate };
        // Guava plans zero items as one item, but Redisson plans zero items as 0 bits.
        let bits = if items == 0 { 0 } else { plan_bits(items, rate).0 };
        if bits > MAX_BITS {
            return Err(CreateError::refused(format!(
                "Redisson has at most {MAX_BITS} bits, not {bits}: plan fewer items or a higher \
                rate"
            )));
        }
        let probes = plan_probes(items, bits, rate, GuavaRelease::Until33) as u32;
        let bits = Modulus::new(bits).ok_or_else(|| {
            CreateError::refused(
                "Redisson makes no filter of 0 bits: plan more items or a lower rate",
            )
        })?;
        Ok(Self { bits, probes })
    }

    /// Creates the rule from stored settings. Returns `None` if the settings are invalid.
    fn of_config(bits: u64, probes: u32) -> Option<Self> {
        let is_one = bits <= MAX_BITS && (1..=MAX_PROBES).contains(&probes);
        Some(Self { bits: Modulus::new(bits).filter(|_| is_one)?, probes })
    }

    /// Returns the number of bits, which Redisson calls `size`.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bits.bits()
    }

    /// Returns the number of probes of an item, which Redisson calls `hashIterations`.
    #[must_use]
    pub fn hash_iterations(&self) -> u32 {
        self.probes
    }

    /// Returns the offsets that Redisson passes to `SETBIT` for an item. `key` is the item in the bytes of Redisson's
    /// codec.
    pub fn offsets(&self, key: &[u8]) -> impl Iterator<Item = u64> + use<> {
        let rule = *self;
        let (mut next, steps) = (0, rule.hash(key));
        (0..rule.probes).map(move |i| rule.probe(i, &mut next, steps))
    }

    /// Computes the rate of a filter whose share of set bits is `fill`. The rate is above `fill` to the power of the
    /// number of probes, because the probes of an item are multiples of one number. Takes up to a few milliseconds.
    #[must_use]
    pub fn rate_at_fill(&self, fill: f64) -> f64 {
        Alternating { bits: self.bits, probes: self.probes }.rate_at_fill(fill)
    }

    /// Returns probe `i` and advances the sum.
    #[inline(always)]
    fn probe(&self, i: u32, sum: &mut u64, (a, b): (u64, u64)) -> u64 {
        *sum = sum.wrapping_add(if i.is_multiple_of(2) { a } else { b });
        self.bits.reduce(*sum & i64::MAX.cast_unsigned())
    }
}

impl ProbeRule for Redisson {
    type Hash<'k> = (u64, u64);

    fn sizes(&self) -> (u64, u32) {
        (self.bits.bits(), self.probes)
    }

    fn name(&self) -> String {
        "highway 128, Redisson".into()
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> (u64, u64) {
        HighwayHasher::new(KEY).hash128(key).into()
    }

    #[inline]
    fn each_probe(&self, hash: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        let mut sum = 0;
        (0..self.probes).map(move |i| self.probe(i, &mut sum, hash))
    }

    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        let fill = fill(words, self.bits.bits());
        let rule = Alternating { bits: self.bits, probes: self.probes };
        rule.estimate_rate(words, fill, |hash| self.each_probe(hash))
    }

    fn describe(&self, info: &mut FilterInfo) {
        let warning = "items are found only if Redisson uses StringCodec, LongCodec or \
            ByteArrayCodec: the bytes of its default codec cannot be computed here";
        info.warnings.push(warning.into());
    }
}

fn planned(items: u64, rate: f64) -> Result<Rule, CreateError> {
    Redisson::plan(items, rate).map(Rule::new)
}

/// The field names of the settings.
mod field {
    pub const SIZE: &str = "size";
    pub const HASH_ITERATIONS: &str = "hashIterations";
    pub const EXPECTED_INSERTIONS: &str = "expectedInsertions";
    pub const FALSE_PROBABILITY: &str = "falseProbability";
}

const CONFIG: &[u8] = b":config";

/// Returns the key of the settings of the filter `name`.
///
/// # Examples
///
/// ```
/// use tamis_formats::redisson::config_key;
///
/// assert_eq!(config_key(b"users"), b"{users}:config");
/// assert_eq!(config_key(b"shop{1}"), b"shop{1}:config");
/// ```
#[must_use]
pub fn config_key(name: &[u8]) -> Vec<u8> {
    let braces: [&[u8]; 2] = if name.contains(&b'{') { [b"", b""] } else { [b"{", b"}"] };
    [braces[0], name, braces[1], CONFIG].concat()
}

/// Returns the name of the filter whose settings are stored under `config`.
fn name_of(config: &[u8]) -> Option<&[u8]> {
    let name = config.strip_suffix(CONFIG)?;
    let inner = name.strip_prefix(b"{").and_then(|name| name.strip_suffix(b"}"));
    inner.or(Some(name)).filter(|name| config_key(name) == config)
}

fn is_config(entry: &RdbEntry<'_>) -> bool {
    name_of(entry.key()).is_some()
        && entry.fields().is_ok_and(|fields| fields.contains_key(field::SIZE.as_bytes()))
}

fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Contents, DecodeError> {
    if !Rdb::has_magic(bytes) {
        let rule = string::rule_to_decode(options, planned)?;
        return string::decode(rule, &string::of_file(bytes), 0).map(Contents::new);
    }
    let rdb = Rdb::new(bytes)?;
    let name = match &options.key {
        Some(name) => name.clone(),
        None => {
            let what = "the settings of a filter of Redisson";
            let config =
                rdb.find_key(options, what, is_config, |config| name_of(config).unwrap_or(config))?;
            name_of(config.key()).expect("tested by `is_config`").to_vec()
        }
    };
    let [bitmap, config] = rdb.find([&name, &config_key(&name)])?;
    let config = config.ok_or_else(|| {
        let key = String::from_utf8_lossy(&config_key(&name)).into_owned();
        rdb.refused(format!(
            "there is no key {key:?}, so Redisson treats the filter as not initialized"
        ))
    })?;
    let rule = rule_of(&config, options, bytes.len() as u64)?;
    let Some(bitmap) = bitmap else {
        // Redis has no bitmap before the first item is inserted.
        return empty(rule, config.at());
    };
    if bitmap.database() != config.database() {
        return Err(bitmap.refused(
            "and its settings are in different databases: save a server that has both in \
                one database",
        ));
    }
    let string = bitmap.string(rule.bits().div_ceil(8))?;
    string::decode(rule, &string, bitmap.at()).map(Contents::new)
}

fn empty(rule: Rule, at: u64) -> Result<Contents, DecodeError> {
    string::decode(rule, b"", at).map(Contents::new)
}

/// Reads the rule from the settings. `file_bytes` is the size of the file.
fn rule_of(
    config: &RdbEntry<'_>,
    options: &DecodeOptions,
    file_bytes: u64,
) -> Result<Rule, DecodeError> {
    let fields = config.fields()?;
    let number = |name: &str| -> Option<u64> {
        std::str::from_utf8(fields.get(name.as_bytes())?).ok()?.parse().ok()
    };
    let rule =
        number(field::SIZE).zip(number(field::HASH_ITERATIONS)).and_then(|(size, probes)| {
            Redisson::of_config(size, u32::try_from(probes).ok()?).map(Rule::new)
        });
    let rule = rule.ok_or_else(|| {
        config.refused(format!(
            "has no `size` from 1 to {MAX_BITS} and `hashIterations` from 1 to {MAX_PROBES}"
        ))
    })?;
    if options.items.is_some() && options.rate.is_some() {
        let planned = string::rule_to_decode(options, planned)?;
        return if planned == rule {
            Ok(rule)
        } else {
            Err(config.refused(format!(
                "states {} bits and {} probes, and the given items and rate need {} and {}: leave \
                them out",
                rule.bits(),
                rule.probes(),
                planned.bits(),
                planned.probes()
            )))
        };
    }
    // A small file may state a size of 512 MiB. If the stated size is large relative to the file, the decode options
    // must confirm the size.
    if rule.bits() / 8 > FREE_BYTES.saturating_add(4 * file_bytes) {
        let parameter = if options.items.is_none() { Parameter::Items } else { Parameter::Rate };
        let kind = DecodeErrorKind::Missing(parameter);
        return Err(DecodeError { field: parameter.name(), at: config.at(), kind });
    }
    Ok(rule)
}

/// The memory in bytes that is allowed for a filter regardless of the size of its file.
const FREE_BYTES: u64 = 1 << 20;

/// Writes the string of the bitmap. If the options have a key, writes a snapshot of the string and the settings.
fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let filter = string::fitting::<Redisson>(contents, options, "Redisson", planned)?;
    let string = string::grown(filter);
    let (Some(key), Some(items), Some(rate)) = (&options.key, options.items, options.rate) else {
        return Ok(out.write_all(&string)?);
    };
    let config = SnapshotValue::Hash(vec![
        (field::SIZE, filter.rule().bits().to_string()),
        (field::HASH_ITERATIONS, filter.rule().probes().to_string()),
        (field::EXPECTED_INSERTIONS, items.to_string()),
        (field::FALSE_PROBABILITY, rate.to_string()),
    ]);
    let values = [(config_key(key), config), (key.clone(), SnapshotValue::String(string))];
    // Redis does not store an empty bitmap.
    let written = values
        .into_iter()
        .filter(|(_, value)| !matches!(value, SnapshotValue::String(bytes) if bytes.is_empty()));
    Ok(write_snapshot(written, out)?)
}
