//! Filters of RedisBloom, in any of the ways in which a server gives them out. Drawn in `docs/formats/redisbloom.md`.

use std::io;

use tamis::{Answers, RedisBloom, RedisBloomOptions, RedisCuckoo, RedisInsertError};

use crate::contents::{ChangeError, Contents, Facts};
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::format::{Format, Items, Sniff, Takes};
use crate::funnel::Funnel;
use crate::rdb::coding::MAX_EXPANSION;
use crate::rdb::{Entry, Rdb};
use crate::redis_payload::{PayloadError, RedisValue};
use crate::rule::noise;
use crate::told::{Fact, Told};

mod commands;

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "redisbloom",
    extensions: &["dump", "rdb", "resp"],
    summary: "RedisBloom's Bloom and cuckoo filters: DUMP, snapshots, and chunks as commands",
    sniff: Some(sniff),
    items: Items::Are(Funnel::Bytes),
    takes: Takes::Bytes,
    asks: &[],
    reads_with: &[Fact::Key],
    writes_with: &[Fact::Key],
    versions: None,
    decode,
    encode,
    create,
};

fn sniff(bytes: &[u8]) -> Sniff {
    if Rdb::has_magic(bytes) {
        return Rdb::sniff(bytes, is_filter);
    }
    let is_payload =
        bytes.split_first().is_some_and(|(&kind, value)| RedisValue::is_filter(kind, value));
    if is_payload || commands::is_one(bytes) { Sniff::Yes } else { Sniff::No }
}

fn is_filter(entry: &Entry<'_>) -> bool {
    entry.is_filter()
}

fn decode(bytes: &[u8], told: &Told) -> Result<Contents, DecodeError> {
    if Rdb::has_magic(bytes) {
        let rdb = Rdb::new(bytes)?;
        let entry = rdb.find_told(told, "a filter of RedisBloom", is_filter, |key| key)?;
        return of_value(entry.value()?, |why| entry.refused(format!("is {why}")));
    }
    if bytes.first() == Some(&b'*') {
        return commands::decode(bytes, told);
    }
    decode_payload(bytes)
}

/// Reads what `DUMP` gives, also with the line feed that `redis-cli` puts behind it: the checksum tells that it is none of it.
/// Tests whether bytes begin with a command that loads a filter under a key: `BF.LOADCHUNK`, `CF.LOADCHUNK` or `RESTORE`.
#[must_use]
pub fn is_load_command(bytes: &[u8]) -> bool {
    commands::is_one(bytes)
}

fn decode_payload(bytes: &[u8]) -> Result<Contents, DecodeError> {
    let max_bytes = MAX_EXPANSION * bytes.len() as u64;
    let read = match (RedisValue::from_payload(bytes, max_bytes), bytes.split_last()) {
        (Err(PayloadError::Checksum), Some((b'\n', rest))) => {
            RedisValue::from_payload(rest, max_bytes)
        }
        (read, _) => read,
    };
    let error = |field, at: usize, kind| DecodeError { field, at: at as u64, kind };
    let refused = |why: &str| error("value", 0, DecodeErrorKind::Refused { why: why.into() });
    match read {
        Ok(value) => of_value(value, |why| refused(&format!("this is {why}"))),
        Err(PayloadError::Checksum) => {
            Err(error("checksum", bytes.len().saturating_sub(8), DecodeErrorKind::Checksum))
        }
        Err(other) => Err(refused(&other.to_string())),
    }
}

fn of_value(
    value: RedisValue,
    refused: impl FnOnce(&str) -> DecodeError,
) -> Result<Contents, DecodeError> {
    Err(refused(match value {
        RedisValue::Bloom(filter) => return Ok(Contents::RedisBloom(filter)),
        RedisValue::Cuckoo(filter) => return Ok(Contents::RedisCuckoo(filter)),
        RedisValue::String(_) => {
            "a string, no filter of RedisBloom: bitmaps are read as redis-bitmap, redis-bitmaps or redisson"
        }
        RedisValue::Tamis(_) => {
            "a filter of a layout that only `tamis serve` reads: RESTORE it there; with `bf-layout redisbloom` it makes ones for Redis"
        }
    }))
}

/// Writes what `RESTORE` takes; with a key, the commands that load it in parts.
fn encode(contents: &Contents, told: &Told, out: &mut dyn io::Write) -> Result<(), EncodeError> {
    let value = match (contents, &told.key) {
        (Contents::RedisBloom(filter), Some(key)) => {
            return commands::write_bloom(filter, key, out);
        }
        (Contents::RedisCuckoo(filter), Some(key)) => {
            return commands::write_cuckoo(filter, key, out);
        }
        (Contents::RedisBloom(filter), None) => RedisValue::Bloom(filter.clone()),
        (Contents::RedisCuckoo(filter), None) => RedisValue::Cuckoo(filter.clone()),
        (_, _) => {
            let why = "RedisBloom has no place for such a filter, as it places items otherwise: build one from the items";
            return Err(EncodeError::NoPlace(why.into()));
        }
    };
    Ok(out.write_all(&value.to_payload())?)
}

/// Makes what `BF.RESERVE key rate items` makes.
fn create(told: &Told) -> Result<Contents, EncodeError> {
    let (capacity, rate) = told.plan()?;
    let options = RedisBloomOptions { capacity, rate, ..RedisBloomOptions::default() };
    let created = RedisBloom::new(&options).map(Contents::RedisBloom);
    created.map_err(|error| EncodeError::NoPlace(error.to_string().into()))
}

/// Inserts as `BF.MADD` does, up to the first item that finds no place.
pub(crate) fn insert_bloom(
    filter: &mut RedisBloom,
    keys: &[impl AsRef<[u8]>],
    answers: &mut Answers,
) -> Result<(), ChangeError> {
    filter.limit_growth(most_growth_bytes(filter.size_bytes()));
    insert_each(keys, answers, |keys, answer| filter.insert_each(keys, answer))
}

/// Inserts as `CF.INSERTNX` does, which leaves out what is present, up to the first item that finds no place.
pub(crate) fn insert_cuckoo(
    filter: &mut RedisCuckoo,
    keys: &[impl AsRef<[u8]>],
    answers: &mut Answers,
) -> Result<(), ChangeError> {
    filter.limit_growth(most_growth_bytes(filter.size_bytes()));
    insert_each(keys, answers, |keys, answer| filter.insert_absent_each(keys, answer))
}

/// Returns how large the next part of a filter may be that has `bytes` bytes now.
///
/// A file of some kilobytes may ask for an expansion of 32,768 at its first insert. Filters that people make grow twofold or
/// fourfold.
fn most_growth_bytes(bytes: u64) -> u64 {
    (64 * bytes).max(64 << 20)
}

fn insert_each(
    keys: &[impl AsRef<[u8]>],
    answers: &mut Answers,
    insert: impl FnOnce(&[&[u8]], &mut dyn FnMut(Result<bool, RedisInsertError>) -> bool),
) -> Result<(), ChangeError> {
    let (words, mut i, mut failed) = (answers.reset(keys.len()), 0, Ok(()));
    insert(&slices(keys), &mut |answer| {
        match answer {
            Ok(is_new) => words[i / 64] |= u64::from(is_new) << (i % 64),
            Err(error) => failed = Err(ChangeError::refused(error.to_string())),
        }
        i += 1;
        failed.is_ok()
    });
    failed
}

/// Keys as items of the library.
pub(crate) fn slices(keys: &[impl AsRef<[u8]>]) -> Vec<&[u8]> {
    keys.iter().map(AsRef::as_ref).collect()
}

/// Tells all there is to tell of a Bloom filter. Reads all bits.
pub(crate) fn bloom_facts(filter: &RedisBloom) -> Facts {
    let (mut bits, mut ones, mut all_miss, mut planned, mut variance) = (0, 0, 1.0, 0.0, 0.0);
    let (mut more, mut position) = (Vec::new(), 1);
    for layer in filter.layers() {
        let (mut left, mut ones_of_layer) = (layer.bytes, 0);
        while let Some((next, chunk)) = (left > 0).then(|| filter.chunk(position)).flatten() {
            ones_of_layer += count_ones(&chunk);
            left = left.saturating_sub(chunk.len() as u64);
            position = next;
        }
        // Very old filters use a power of two of them.
        let used = if layer.log2_bits == 0 { layer.bits } else { 1 << layer.log2_bits };
        let fill = (ones_of_layer as f64 / used as f64).min(1.0);
        let rate_of_layer = double_hashing_rate(fill, used, layer.probes);
        variance += (rate_of_layer * noise(fill, used, layer.probes)).powi(2);
        all_miss *= 1.0 - rate_of_layer;
        (bits, ones, planned) = (bits + used, ones + ones_of_layer, planned + layer.rate);
        let (items, capacity, probes, rate) =
            (layer.items, layer.capacity, layer.probes, layer.rate);
        more.push((
            "layer",
            format!(
                "{items} of {capacity} items, {used} bits, {probes} probes, planned for {rate}"
            ),
        ));
    }
    let newest = *filter.layers().next_back().expect("a filter has a layer");
    more.push(("expansion", filter.expansion().map_or("none".into(), |times| times.to_string())));
    let rate = 1.0 - all_miss;
    let mut warnings = Vec::new();
    if newest.items > newest.capacity {
        let (items, capacity) = (newest.items, newest.capacity);
        warnings.push(format!("the newest layer holds {items} items and was planned for {capacity}: its rate is above the planned one"));
    } else if !filter.is_scaling() && newest.items == newest.capacity {
        warnings.push("full: refuses adds, and does not grow: reserve a larger one".into());
    }
    if filter.hash_bits() == 32 {
        warnings.push("its hashes have 32 bits, as very old servers made them: some items in 4 billion are one, whatever the rate".into());
    }
    if rate > 2.0 * planned {
        warnings.push(format!("absent items are taken for present ones at {rate:.2e}, twice what its layers were planned for ({planned:.2e}): reserve a larger one"));
    }
    let layers = match filter.layers().len() {
        1 => "1 layer".into(),
        several => format!("{several} layers"),
    };
    Facts {
        rule: format!("murmur2 x64 {}, RedisBloom, {layers}", filter.hash_bits()),
        bits,
        probes: (filter.layers().len() == 1).then_some(newest.probes),
        fill: ones as f64 / bits as f64,
        items: filter.len() as f64,
        rate,
        noise: if rate > 0.0 { variance.sqrt() / rate } else { 0.0 },
        // Of all its layers, as each has its chance to be wrong.
        planned_rate: Some(planned),
        more,
        warnings,
    }
}

/// Returns the rate of probes at `a + i·b` mod the number of bits: in small layers they often repeat themselves.
///
/// With `r` the bits over what `b` shares with them, they are at `r` places only: φ(r) of all `b` do so.
fn double_hashing_rate(fill: f64, bits: u64, probes: u32) -> f64 {
    let at_once = fill.powf(probes.into());
    let repeated =
        (1..probes.min(MAX_REPEATED)).filter(|&r| bits.is_multiple_of(r.into())).map(|r| {
            let coprime = (1..=r).filter(|&i| gcd(i, r) == 1).count();
            coprime as f64 / bits as f64 * (fill.powf(r.into()) - at_once)
        });
    at_once + repeated.sum::<f64>()
}

/// More places than these are seldom all set by chance.
const MAX_REPEATED: u32 = 64;

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Tells all there is to tell of a cuckoo filter.
pub(crate) fn cuckoo_facts(filter: &RedisCuckoo) -> Facts {
    let bucket_size = u64::from(filter.bucket_size());
    let mut buckets = filter.buckets();
    let mut slots = 0;
    for _ in 0..filter.sub_filters() {
        slots += buckets * bucket_size;
        buckets = buckets.saturating_mul(u64::from(filter.expansion().max(1)));
    }
    let fill = filter.len() as f64 / slots as f64;
    let mut warnings = Vec::new();
    if filter.sub_filters() > 1 {
        let parts = filter.sub_filters();
        warnings.push(format!("it has grown to {parts} parts, each of which adds to the rate and to the time of an answer: reserve a larger one"));
    }
    if filter.expansion() == 0 && fill > 0.5 {
        warnings.extend(refusals(filter));
    }
    Facts {
        rule: "murmur2 x64 64, RedisBloom's cuckoo filter".into(),
        bits: 8 * slots,
        probes: None,
        fill,
        items: filter.len() as f64,
        rate: filter.estimate_rate(u64::MAX),
        noise: 0.0,
        planned_rate: None,
        more: vec![
            ("sub-filters", filter.sub_filters().to_string()),
            ("buckets", filter.buckets().to_string()),
            ("bucket size", bucket_size.to_string()),
            ("iterations", filter.max_iterations().to_string()),
            ("expansion", filter.expansion().to_string()),
            ("removed", filter.removed().to_string()),
        ],
        warnings,
    }
}

/// Says that a filter which does not grow refuses items, found out by adding some to a copy.
fn refusals(filter: &RedisCuckoo) -> Option<String> {
    const TRIED: u64 = 64;
    /// A larger one is not copied for this.
    const MOST_BYTES: u64 = 256 << 20;
    if filter.size_bytes() > MOST_BYTES {
        return None;
    }
    let mut copy = filter.clone();
    let refused = (0..TRIED).filter(|item| copy.insert(item).is_err()).count() as u64;
    match refused {
        0 => None,
        _ if refused * 2 > TRIED => {
            Some("full: refuses adds, and does not grow: reserve a larger one".into())
        }
        _ => Some("nearly full, and does not grow: refuses some adds: reserve a larger one".into()),
    }
}

fn count_ones(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(byte.count_ones())).sum()
}
