//! `pybloom_live` of Python: `BloomFilter.tofile` and `ScalableBloomFilter.tofile`. Drawn in
//! `docs/formats/pybloom-live.md`.

use std::fmt;
use std::io;

use md5::Md5;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use xxhash_rust::xxh3::xxh3_128;

use crate::charset::Charset;
use crate::contents::{ChangeError, Contents, FilterInfo};
use crate::decode_options::{DecodeOptions, Parameter};
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::foreign_bloom::ForeignBloom;
use crate::format::{Format, ItemDomain, Items, Sniff};
use crate::funnel::Funnel;
use crate::layers::{Growth, Layer, Layers};
use crate::modulus::Modulus;
use crate::probe_positions::ProbePositions;
use crate::reader::Reader;
use crate::rule::{ProbeRule, Rule};

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "pybloom-live",
    extensions: &["pybloom"],
    summary: "BloomFilter of Python's pybloom_live, by tofile",
    sniff: Some(|bytes| maybe(decode(bytes, Short::default()).is_ok())),
    items: Items::Default(Funnel::Text(Charset::Utf8)),
    item_domain: ItemDomain::Bytes,
    required: &[],
    read_uses: &[Parameter::Md5],
    write_uses: &[Parameter::Md5],
    versions: None,
    decode: |bytes, options| decode(bytes, Short::options(options)).map(Contents::Layers),
    encode,
    create: |options| {
        let (items, rate, short) = planned(options)?;
        let layer = layer(items, rate, short).map_err(EncodeError::NoPlace)?;
        Ok(Contents::Layers(Layers { layers: vec![layer], growth: Growth::Refuses }))
    },
};

/// The row of [`FORMATS`](crate::FORMATS) for filters that grow.
pub(crate) const SCALABLE: Format = Format {
    name: "pybloom-live-scalable",
    extensions: &["pyscalable"],
    summary: "ScalableBloomFilter of Python's pybloom_live, by tofile",
    sniff: Some(|bytes| maybe(decode_scalable(bytes, Short::default()).is_ok())),
    items: Items::Default(Funnel::Text(Charset::Utf8)),
    item_domain: ItemDomain::Bytes,
    required: &[],
    read_uses: &[Parameter::Md5],
    write_uses: &[Parameter::Md5],
    versions: None,
    decode: |bytes, options| decode_scalable(bytes, Short::options(options)).map(Contents::Layers),
    encode: encode_scalable,
    create: |options| {
        let (capacity, rate, short) = planned(options)?;
        let scale = Scale { factor: 4, ratio: 0.9, capacity, rate, short };
        // What cannot be made is better said now than at the first item.
        scale.next_layer(None).map_err(|error| EncodeError::NoPlace(error.to_string().into()))?;
        Ok(Contents::Layers(Layers { layers: Vec::new(), growth: Growth::Scales(scale) }))
    },
};

fn maybe(is_possible: bool) -> Sniff {
    if is_possible { Sniff::Maybe } else { Sniff::No }
}

fn planned(options: &DecodeOptions) -> Result<(u64, f64, Short), EncodeError> {
    let (items, rate) = options.plan()?;
    Ok((items, rate, Short::options(options)))
}

/// The digest where 128 bits of it are enough, which no file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Short {
    /// XXH3 of 128 bits, since release 4.
    #[default]
    Xxh128,
    /// MD5, before.
    Md5,
}

impl Short {
    fn options(options: &DecodeOptions) -> Self {
        if options.md5 { Short::Md5 } else { Short::Xxh128 }
    }
}

/// How a `ScalableBloomFilter` grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// How many times as many items the next layer is planned for.
    pub factor: i32,
    /// What the rate of the next layer is multiplied by.
    pub ratio: f64,
    /// For how many items the first layer is planned.
    pub capacity: u64,
    /// The rate that was asked for; the first layer has it times the ratio.
    pub rate: f64,
    /// The digest of layers that need 128 bits at most.
    pub short: Short,
}

/// The slices that the original makes for the smallest rate above 0.
const MOST_SLICES: u64 = 1074;

/// The original grows twofold or fourfold.
const MAX_FACTOR: u64 = 16;

impl Scale {
    pub(crate) fn next_layer(&self, last: Option<&Layer>) -> Result<Layer, ChangeError> {
        let (capacity, rate) = match last {
            None => (self.capacity, self.rate),
            Some(last) => {
                let factor = u64::try_from(self.factor).unwrap_or(0);
                if factor > MAX_FACTOR || last.capacity > last.filter.rule().bits() {
                    return Err(ChangeError::refused(
                        "its next layer would be far larger than what is there, which no program plans: a damaged scale or capacity",
                    ));
                }
                (last.capacity.saturating_mul(factor), last.rate)
            }
        };
        layer(capacity, rate * self.ratio, self.short).map_err(ChangeError::Refused)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digest {
    Short(Short),
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Digest {
    /// Returns the digest of two pieces, and how long it is.
    fn of(self, salt: &[u8], key: &[u8]) -> ([u8; 64], usize) {
        fn by<D: sha2::Digest>(salt: &[u8], key: &[u8]) -> ([u8; 64], usize) {
            let digest = D::new().chain_update(salt).chain_update(key).finalize();
            padded(&digest)
        }
        fn padded(digest: &[u8]) -> ([u8; 64], usize) {
            let mut bytes = [0; 64];
            bytes[..digest.len()].copy_from_slice(digest);
            (bytes, digest.len())
        }
        match self {
            Digest::Short(Short::Xxh128) => padded(&xxh3_128(&[salt, key].concat()).to_be_bytes()),
            Digest::Short(Short::Md5) => by::<Md5>(salt, key),
            Digest::Sha1 => by::<Sha1>(salt, key),
            Digest::Sha256 => by::<Sha256>(salt, key),
            Digest::Sha384 => by::<Sha384>(salt, key),
            Digest::Sha512 => by::<Sha512>(salt, key),
        }
    }
}

/// Each probe has a slice of the bits for itself; their places are words of a digest under a salt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slices {
    // Invariant: 1 to `ProbePositions::MAX`, and slices times width fits.
    slices: u32,
    width: Modulus,
    digest: Digest,
    /// How many bytes of the digest make a place.
    word: usize,
    salts: Vec<Vec<u8>>,
}

impl Slices {
    fn new(slices: u64, width: u64, short: Short) -> Option<Self> {
        let slices =
            u32::try_from(slices).ok().filter(|it| (1..=ProbePositions::MAX).contains(it))?;
        // The words of more bits could not be counted.
        width.checked_mul(slices.into()).filter(|&total| total <= 1 << 62)?;
        let width = Modulus::new(width)?;
        let word = match width.bits() {
            0x8000_0000.. => 8,
            0x8000.. => 4,
            _ => 2,
        };
        let (digest, digest_len) = match slices as usize * word {
            0..=16 => (Digest::Short(short), 16),
            17..=20 => (Digest::Sha1, 20),
            21..=32 => (Digest::Sha256, 32),
            33..=48 => (Digest::Sha384, 48),
            49.. => (Digest::Sha512, 64),
        };
        let salts = (0..slices.div_ceil((digest_len / word) as u32))
            .map(|i| digest.of(&i.to_le_bytes(), &[]).0[..digest_len].to_vec())
            .collect();
        Some(Self { slices, width, digest, word, salts })
    }
}

impl ProbeRule for Slices {
    type Hash<'k> = ProbePositions;

    fn bits(&self) -> u64 {
        self.width.bits() * u64::from(self.slices)
    }

    fn probes(&self) -> u32 {
        self.slices
    }

    fn hash(&self, key: &[u8]) -> ProbePositions {
        let words = self.salts.iter().flat_map(|salt| {
            let (digest, len) = self.digest.of(salt, key);
            let word = self.word;
            (0..len / word).map(move |i| {
                let mut eight = [0; 8];
                eight[..word].copy_from_slice(&digest[i * word..][..word]);
                u64::from_le_bytes(eight)
            })
        });
        let width = self.width;
        ProbePositions::new(words.zip(0..).map(|(word, i)| i * width.bits() + width.reduce(word)))
    }

    #[inline]
    fn each_probe(&self, positions: Self::Hash<'_>) -> impl Iterator<Item = u64> {
        positions.iter(self.slices)
    }

    fn describe(&self, info: &mut FilterInfo) {
        if self.digest == Digest::Short(Short::Xxh128) {
            let warning = "its hash is taken for xxh128: of a file of pybloom_live before 4 it is MD5, which must be told, or its \
                           items are not found";
            info.warnings.push(warning.into());
        }
    }
}

impl fmt::Display for Slices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = match self.digest {
            Digest::Short(Short::Xxh128) => "xxh128",
            Digest::Short(Short::Md5) => "MD5",
            Digest::Sha1 => "SHA-1",
            Digest::Sha256 => "SHA-256",
            Digest::Sha384 => "SHA-384",
            Digest::Sha512 => "SHA-512",
        };
        write!(f, "{digest} under salts, a slice a probe")
    }
}

/// Returns how `pybloom_live` plans: `(slices, bits of each)`.
///
/// # Examples
///
/// ```
/// assert_eq!(tamis_formats::pybloom_live::plan(10_000, 0.01), (7, 13_693));
/// ```
#[must_use]
pub fn plan(items: u64, rate: f64) -> (u64, u64) {
    let (n, p, ln_2) = (items as f64, rate, std::f64::consts::LN_2);
    let slices = ((1.0 / p).ln() / ln_2).ceil();
    // In this order, as in Python.
    let width = (n * p.ln().abs() / (slices * (ln_2 * ln_2))).ceil();
    (slices as u64, width as u64)
}

fn layer(capacity: u64, rate: f64, short: Short) -> Result<Layer, Box<str>> {
    if !(rate > 0.0 && rate < 1.0) || capacity == 0 {
        return Err(format!(
            "pybloom_live makes no filter of {capacity} items at a rate of {rate}: one at least, and between 0 and 1"
        )
        .into());
    }
    let (slices, width) = plan(capacity, rate);
    let rule = Slices::new(slices, width, short).ok_or_else(|| {
        format!(
            "{slices} slices of {width} bits for {capacity} items are too large: {} slices and what memory holds at most",
            ProbePositions::MAX
        )
    })?;
    let filter = ForeignBloom::new(Rule::Slices(rule))
        .map_err(|error| format!("{} bytes do not fit in memory: plan fewer items", error.bytes))?;
    Ok(Layer { filter, capacity, rate, added: Some(0) })
}

// Each offset from the one before.
const RATE_AT: usize = 0;
const SLICES_AT: usize = RATE_AT + size_of::<f64>();
const WIDTH_AT: usize = SLICES_AT + size_of::<u64>();
const CAPACITY_AT: usize = WIDTH_AT + size_of::<u64>();
const ADDED_AT: usize = CAPACITY_AT + size_of::<u64>();
const BITS_AT: usize = ADDED_AT + size_of::<u64>();

/// Reads what `BloomFilter.tofile` wrote.
///
/// # Errors
///
/// [`DecodeError`] if the bytes are none of it.
pub fn decode(bytes: &[u8], short: Short) -> Result<Layers, DecodeError> {
    let layer = decode_layer(bytes, short)?;
    Ok(Layers { layers: vec![layer], growth: Growth::Refuses })
}

fn decode_layer(bytes: &[u8], short: Short) -> Result<Layer, DecodeError> {
    let mut reader = Reader::new(bytes);
    let rate = between_0_and_1(&mut reader, "error rate")?;
    let slices = reader.u64("number of slices")?;
    let width = reader.u64("bits per slice")?;
    let capacity = reader.u64("capacity")?;
    let added = reader.u64("count")?;
    let invalid = |field, at: usize, reason| {
        let kind = DecodeErrorKind::Invalid { reason };
        DecodeError { field, at: at as u64, kind }
    };
    if slices > ProbePositions::MAX.into() && slices <= MOST_SLICES {
        let why = format!(
            "its rate of {rate:e} takes {slices} slices, and tamis reads filters of up to {}: make it for a rate of 1e-19 or more",
            ProbePositions::MAX
        );
        let kind = DecodeErrorKind::Refused { why: why.into() };
        return Err(DecodeError { field: "number of slices", at: SLICES_AT as u64, kind });
    }
    if !(1..=MOST_SLICES).contains(&slices) {
        return Err(invalid("number of slices", SLICES_AT, "1 to 1,074"));
    }
    // Before there is memory for the bits.
    let len = width.checked_mul(slices).map(|bits| bits.div_ceil(8));
    let len = len.and_then(|len| usize::try_from(len).ok());
    let Some(len @ 1..) = len else {
        return Err(invalid("bits per slice", WIDTH_AT, "1 or more, as many as memory holds"));
    };
    let bits = reader.bytes("bits", len)?;
    reader.end("bits")?;
    let rule = Slices::new(slices, width, short).ok_or(invalid(
        "bits per slice",
        WIDTH_AT,
        "as many as memory holds",
    ))?;
    let filter = ForeignBloom::from_bytes(Rule::Slices(rule), bits).map_err(|memory| {
        let kind = DecodeErrorKind::Memory(memory);
        DecodeError { field: "bits", at: BITS_AT as u64, kind }
    })?;
    Ok(Layer { filter, capacity, rate, added: Some(added) })
}

fn between_0_and_1(reader: &mut Reader<'_>, field: &'static str) -> Result<f64, DecodeError> {
    let at = reader.at() as u64;
    let value = f64::from_le_bytes(reader.array(field)?);
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    let kind = DecodeErrorKind::Invalid { reason: "between 0 and 1" };
    Err(DecodeError { field, at, kind })
}

/// Reads what `ScalableBloomFilter.tofile` wrote.
///
/// # Errors
///
/// [`DecodeError`] if the bytes are none of it.
pub fn decode_scalable(bytes: &[u8], short: Short) -> Result<Layers, DecodeError> {
    let mut reader = Reader::new(bytes);
    let factor = reader.u32("scale")?.cast_signed();
    if factor < 1 {
        let kind = DecodeErrorKind::Unexpected { expected: "1 or more", found: factor.into() };
        return Err(DecodeError { field: "scale", at: 0, kind });
    }
    let ratio = between_0_and_1(&mut reader, "ratio")?;
    let capacity = reader.u64("initial capacity")?;
    let rate = between_0_and_1(&mut reader, "error rate")?;
    let count = reader.u32("number of filters")?;
    // Each length takes eight bytes, so that the bytes at hand bound how many there are.
    let lengths = reader.bytes("lengths", (count as usize).saturating_mul(8))?;
    let mut layers = Vec::new();
    for &length in lengths.as_chunks().0 {
        let at = reader.at() as u64;
        let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
        let bytes = reader.bytes("filter", length)?;
        let layer = decode_layer(bytes, short);
        layers.push(layer.map_err(|error| DecodeError { at: at + error.at, ..error })?);
    }
    reader.end("filters")?;
    let scale = Scale { factor, ratio, capacity, rate, short };
    Ok(Layers { layers, growth: Growth::Scales(scale) })
}

fn encode(
    contents: &Contents,
    _: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    match contents {
        Contents::Layers(Layers { layers, growth: Growth::Refuses }) if layers.len() == 1 => {
            encode_layer(&layers[0], out)
        }
        _ => no_place(),
    }
}

fn no_place() -> Result<(), EncodeError> {
    let why = "pybloom_live has a slice a probe, and a file of each kind of its own: build one from the items";
    Err(EncodeError::NoPlace(why.into()))
}

fn encode_scalable(
    contents: &Contents,
    _: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let Contents::Layers(Layers { layers, growth: Growth::Scales(scale) }) = contents else {
        return no_place();
    };
    out.write_all(&scale.factor.to_le_bytes())?;
    out.write_all(&scale.ratio.to_le_bytes())?;
    out.write_all(&scale.capacity.to_le_bytes())?;
    out.write_all(&scale.rate.to_le_bytes())?;
    out.write_all(&(layers.len() as u32).to_le_bytes())?;
    for layer in layers {
        let len = BITS_AT as u64 + layer.filter.rule().bits().div_ceil(8);
        out.write_all(&len.to_le_bytes())?;
    }
    layers.iter().try_for_each(|layer| encode_layer(layer, out))
}

fn encode_layer(layer: &Layer, out: &mut dyn io::Write) -> Result<(), EncodeError> {
    let Rule::Slices(rule) = layer.filter.rule() else { return no_place() };
    out.write_all(&layer.rate.to_le_bytes())?;
    for number in [rule.slices.into(), rule.width.bits(), layer.capacity, layer.added.unwrap_or(0)]
    {
        out.write_all(&number.to_le_bytes())?;
    }
    layer.filter.write_bytes(out)
}
