//! Python's `pybloom_live`: the output of `BloomFilter.tofile` and `ScalableBloomFilter.tofile`. Layout:
//! `docs/formats/pybloom-live.md`.

use std::io::Write;

use crate::encoding::ByteReader;
use crate::errors::{CreateError, DecodeError, EncodeError};
use crate::filters::layers::new_layer;
use crate::filters::{Contents, ForeignBloom, Growth, Layer, Layers};
use crate::format::{
    DecodeOptions, Detection, Format, ItemDomain, Items, Parameter, Parameters, Sniff,
};
use crate::items::{Charset, Funnel};
use crate::rules::Rule;
use crate::rules::probe_positions::ProbePositions;
use crate::rules::pybloom_rule::Slices;

pub use crate::filters::layers::{Scale, plan};
pub use crate::rules::pybloom_rule::ShortDigest;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "pybloom-live",
    extensions: &["pybloom"],
    summary: "BloomFilter of Python's pybloom_live, by tofile",
    detection: Detection::ByBytes(|bytes| {
        Sniff::maybe(decode(bytes, ShortDigest::default()).is_ok())
    }),
    items: Items::Default(Funnel::Text(Charset::Utf8)),
    // A filter never contains plain bytes, because Python's `str()` converts `bytes` to text that starts with `b'`.
    item_domain: ItemDomain::Text,
    parameters: Parameters {
        reading: &[Parameter::Md5],
        writing: &[Parameter::Md5],
        ..Parameters::NONE
    },
    versions: None,
    decode: |bytes, options| decode(bytes, short_digest(options)).map(Contents::new),
    encode,
    create: |options| {
        let (items, rate, short) = planned(options)?;
        let layer = new_layer(items, rate, short)?;
        Ok(Contents::new(Layers::new(vec![layer], Growth::Refuses)))
    },
};

/// The row of [`FORMATS`](crate::FORMATS) for filters that grow.
pub(crate) const SCALABLE: Format = Format {
    name: "pybloom-live-scalable",
    extensions: &["pyscalable"],
    summary: "ScalableBloomFilter of Python's pybloom_live, by tofile",
    detection: Detection::ByBytes(|bytes| {
        Sniff::maybe(decode_scalable(bytes, ShortDigest::default()).is_ok())
    }),
    decode: |bytes, options| decode_scalable(bytes, short_digest(options)).map(Contents::new),
    encode: encode_scalable,
    create: |options| {
        let (capacity, rate, short) = planned(options)?;
        let scale = Scale { factor: 4, ratio: 0.9, capacity, rate, short };
        // Checks the plan of the first layer when the filter is created, not at the first insert.
        scale.next_layer(None).map_err(|error| CreateError::refused(error.to_string()))?;
        Ok(Contents::new(Layers::new(Vec::new(), Growth::Scales(scale))))
    },
    ..FORMAT
};

/// Returns the digest function that the options select.
fn short_digest(options: &DecodeOptions) -> ShortDigest {
    if options.md5 { ShortDigest::Md5 } else { ShortDigest::Xxh128 }
}

fn planned(options: &DecodeOptions) -> Result<(u64, f64, ShortDigest), CreateError> {
    let (items, rate) = options.plan()?;
    Ok((items, rate, short_digest(options)))
}

/// The number of slices that the original library creates for the smallest rate above 0.
const MOST_SLICES: u64 = 1074;

// Each offset is computed from the previous offset.
const RATE_AT: usize = 0;
const SLICES_AT: usize = RATE_AT + size_of::<f64>();
const WIDTH_AT: usize = SLICES_AT + size_of::<u64>();
const CAPACITY_AT: usize = WIDTH_AT + size_of::<u64>();
const ADDED_AT: usize = CAPACITY_AT + size_of::<u64>();
const BITS_AT: usize = ADDED_AT + size_of::<u64>();

/// Decodes the output of `BloomFilter.tofile`.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one filter.
pub fn decode(bytes: &[u8], short: ShortDigest) -> Result<Layers, DecodeError> {
    let layer = decode_layer(bytes, short)?;
    Ok(Layers::new(vec![layer], Growth::Refuses))
}

fn decode_layer(bytes: &[u8], short: ShortDigest) -> Result<Layer, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let rate = between_0_and_1(&mut reader, "error rate")?;
    let slices = reader.u64("number of slices")?;
    let width = reader.u64("bits per slice")?;
    let capacity = reader.u64("capacity")?;
    let added = reader.u64("count")?;
    let invalid = DecodeError::invalid;
    if slices > ProbePositions::MAX.into() && slices <= MOST_SLICES {
        let why = format!(
            "its rate of {rate:e} takes {slices} slices, more than the {} that tamis reads: create \
            it with a rate of 1e-19 or more",
            ProbePositions::MAX
        );
        return Err(DecodeError::refused("number of slices", SLICES_AT, why));
    }
    if !(1..=MOST_SLICES).contains(&slices) {
        return Err(invalid("number of slices", SLICES_AT, "1 to 1,074"));
    }
    if width.checked_mul(slices).is_none_or(|bits| bits == 0) {
        return Err(invalid("bits per slice", WIDTH_AT, "1 or more, as many as fit into memory"));
    }
    let too_large = invalid("bits per slice", WIDTH_AT, "as many as fit into memory");
    let rule = Slices::new(slices, width, short).ok_or(too_large)?;
    let filter = ForeignBloom::read_bytes(Rule::new(rule), &mut reader)?;
    reader.end("bits")?;
    Ok(Layer { filter, capacity, rate, added: Some(added) })
}

fn between_0_and_1(reader: &mut ByteReader<'_>, field: &'static str) -> Result<f64, DecodeError> {
    let at = reader.at();
    let value = f64::from_le_bytes(reader.array(field)?);
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    Err(DecodeError::invalid(field, at, "between 0 and 1"))
}

/// Decodes the output of `ScalableBloomFilter.tofile`.
///
/// # Errors
///
/// [`DecodeError`] unless `bytes` are exactly one filter.
pub fn decode_scalable(bytes: &[u8], short: ShortDigest) -> Result<Layers, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let factor = reader.u32("scale")?.cast_signed();
    if factor < 1 {
        return Err(DecodeError::unexpected("scale", 0, "1 or more", factor));
    }
    let ratio = between_0_and_1(&mut reader, "ratio")?;
    let capacity = reader.u64("initial capacity")?;
    let rate = between_0_and_1(&mut reader, "error rate")?;
    let count = reader.u32("number of filters")?;
    // Each length takes eight bytes, so the input limits the number of lengths.
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
    Ok(Layers::new(layers, Growth::Scales(scale)))
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let layers = contents.downcast_ref::<Layers>().ok_or_else(needs_items)?;
    match (layers.growth(), layers.layers()) {
        (Growth::Refuses, [layer]) => encode_layer(layer, out),
        _ => Err(needs_items()),
    }
}

fn needs_items() -> EncodeError {
    EncodeError::needs_items(
        "pybloom_live has a slice of the bits for each probe, and a file format for each of its \
        classes",
    )
}

fn encode_scalable(
    contents: &Contents,
    _: &DecodeOptions,
    out: &mut dyn Write,
) -> Result<(), EncodeError> {
    let layers = contents.downcast_ref::<Layers>().ok_or_else(needs_items)?;
    let Growth::Scales(scale) = layers.growth() else { return Err(needs_items()) };
    let layers = layers.layers();
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

fn encode_layer(layer: &Layer, out: &mut dyn Write) -> Result<(), EncodeError> {
    let rule = layer.filter.rule_of::<Slices>("pybloom_live")?;
    out.write_all(&layer.rate.to_le_bytes())?;
    let (slices, width) = (u64::from(layer.filter.rule().probes()), rule.width());
    for number in [slices, width, layer.capacity, layer.added.unwrap_or(0)] {
        out.write_all(&number.to_le_bytes())?;
    }
    Ok(layer.filter.write_bytes(out)?)
}
