//! Reads and writes filters as the commands that load the filters. `redis-cli --pipe` accepts the commands that load a
//! filter.
//!
//! ```text
//! | *4 | BF.LOADCHUNK | key | 1 | header | *4 | BF.LOADCHUNK | key | position | bytes | ...
//! | *4 | RESTORE | key | 0 | payload |
//! ```
//!
//! Each argument is encoded as `$`, the length of the argument, a line end, the argument and a line end.

use std::io;

use tamis_redisbloom::{RedisBloom, RedisChunkError, RedisCuckoo, RedisHeaderError};

use crate::encoding::ByteReader;
use crate::errors::{DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, StoredFilter};
use crate::format::{DecodeOptions, Parameter};
use crate::formats::redisbloom::payload::decode_payload;

const LOAD_BLOOM: &str = "BF.LOADCHUNK";
const LOAD_CUCKOO: &str = "CF.LOADCHUNK";
const RESTORE: &str = "RESTORE";

/// A command that loads a filter under a key.
struct LoadCommand<'a> {
    name: Name,
    key: &'a [u8],
    /// The position of the chunk. The position is not used for `RESTORE`.
    position: &'a [u8],
    data: &'a [u8],
    at: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Name {
    Bloom,
    Cuckoo,
    Restore,
}

/// The maximum number of arguments of a command, including the options of `RESTORE`.
const MAX_WORDS: usize = 16;

/// Tests whether the bytes start with a command that loads a filter.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    let mut reader = ByteReader::new(bytes);
    let is_array = bytes.first() == Some(&b'*') && length(&mut reader, b'*').is_ok();
    is_array && word(&mut reader).is_ok_and(|word| name(word).is_some())
}

/// Decodes the filter under the key in the options, or under the only key if the options have no key.
pub(super) fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Contents, DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let (mut key, mut commands) = (options.key.as_deref(), Vec::new());
    while !reader.is_empty() {
        let command = command(&mut reader)?;
        if options.key.is_none() && key.is_some_and(|key| key != command.key) {
            return Err(refused(
                Parameter::Key.name(),
                0,
                DecodeErrorKind::Missing(Parameter::Key),
            ));
        }
        if *key.get_or_insert(command.key) == command.key {
            commands.push(command);
        }
    }
    let [first, chunks @ ..] = &commands[..] else {
        let why = "no command loads this key".into();
        return Err(refused("commands", 0, DecodeErrorKind::Refused { why }));
    };
    if first.name == Name::Restore {
        return match chunks {
            [] => decode_payload(first.data).map_err(|error| DecodeError { at: first.at, ..error }),
            [more, ..] => Err(more.refused("the key is restored twice: keep one command")),
        };
    }
    if first.position != b"1" {
        return Err(first.refused(
            "the first chunk is not the header, at position 1: write all chunks in order",
        ));
    }
    let needed = match first.name {
        Name::Bloom => bloom_bytes(first.data),
        _ => cuckoo_bytes(first.data),
    };
    let mut position = 1_u64;
    for chunk in chunks {
        position = position.saturating_add(chunk.data.len() as u64);
        if chunk.name != first.name || *chunk.position != *position.to_string().as_bytes() {
            let why = format!(
                "a chunk at position {position} must follow: write all chunks of a filter in order"
            );
            return Err(chunk.refused(&why));
        }
    }
    // The total length of the chunks is checked before the memory of the filter is allocated.
    if needed != Some(position - 1) {
        let (needed, found) = (needed.map_or("no".into(), |bytes| bytes.to_string()), position - 1);
        let why = format!(
            "the header states {needed} bytes, and the chunks have {found}: write all chunks of a \
            filter in order"
        );
        return Err(first.refused(&why));
    }
    match first.name {
        Name::Bloom => loaded(first, chunks, RedisBloom::from_header, RedisBloom::load_chunk),
        _ => loaded(first, chunks, RedisCuckoo::from_header, RedisCuckoo::load_chunk),
    }
}

/// Creates a filter from its header and loads its chunks.
fn loaded<F: StoredFilter>(
    header: &LoadCommand<'_>,
    chunks: &[LoadCommand<'_>],
    from_header: fn(&[u8]) -> Result<F, RedisHeaderError>,
    load_chunk: fn(&mut F, i64, &[u8]) -> Result<(), RedisChunkError>,
) -> Result<Contents, DecodeError> {
    let mut filter =
        from_header(header.data).map_err(|error| header.refused(&error.to_string()))?;
    let mut position = 1;
    for chunk in chunks {
        position += chunk.data.len() as i64;
        load_chunk(&mut filter, position, chunk.data)
            .map_err(|error| chunk.refused(&error.to_string()))?;
    }
    Ok(Contents::new(filter))
}

/// Returns the number of bytes in the chunks that a header describes. Returns `None` if fields of the header are
/// missing.
fn bloom_bytes(header: &[u8]) -> Option<u64> {
    let (_, layers) = header.split_at_checked(20)?;
    let (layers, []) = layers.as_chunks::<53>() else { return None };
    layers
        .iter()
        .try_fold(0_u64, |sum, layer| sum.checked_add(u64::from_le_bytes(*layer.first_chunk()?)))
}

fn cuckoo_bytes(header: &[u8]) -> Option<u64> {
    let mut fields = ByteReader::new(header);
    let mut wide = || fields.u64("header").ok();
    let [_, mut buckets, _, sub_filters] = [wide()?, wide()?, wide()?, wide()?];
    let mut narrow = || fields.u16("header").ok().map(u64::from);
    let [bucket_size, _, expansion] = [narrow()?, narrow()?, narrow()?];
    let mut sum = 0_u64;
    for _ in 0..u16::try_from(sub_filters).ok()? {
        sum = sum.checked_add(buckets.checked_mul(bucket_size)?)?;
        buckets = buckets.saturating_mul(expansion);
    }
    Some(sum)
}

impl LoadCommand<'_> {
    fn refused(&self, why: &str) -> DecodeError {
        refused("command", self.at, DecodeErrorKind::Refused { why: why.into() })
    }
}

fn refused(field: &'static str, at: u64, kind: DecodeErrorKind) -> DecodeError {
    DecodeError { field, at, kind }
}

fn name(word: &[u8]) -> Option<Name> {
    [(LOAD_BLOOM, Name::Bloom), (LOAD_CUCKOO, Name::Cuckoo), (RESTORE, Name::Restore)]
        .into_iter()
        .find_map(|(text, name)| word.eq_ignore_ascii_case(text.as_bytes()).then_some(name))
}

/// Reads a command.
fn command<'a>(reader: &mut ByteReader<'a>) -> Result<LoadCommand<'a>, DecodeError> {
    let at = reader.at() as u64;
    let words = length(reader, b'*')?;
    if !(4..=MAX_WORDS).contains(&words) {
        let kind =
            DecodeErrorKind::Unexpected { expected: "4 or a few more", found: words as i128 };
        return Err(refused("number of words", at, kind));
    }
    let [first, key, position, data] = [word(reader)?, word(reader)?, word(reader)?, word(reader)?];
    // The arguments after the fourth argument are the options of `RESTORE`.
    for _ in 4..words {
        word(reader)?;
    }
    let Some(name) = name(first) else {
        let why = "not BF.LOADCHUNK, CF.LOADCHUNK or RESTORE: leave other commands out".into();
        return Err(refused("command", at, DecodeErrorKind::Refused { why }));
    };
    Ok(LoadCommand { name, key, position, data, at })
}

/// Reads an argument.
fn word<'a>(reader: &mut ByteReader<'a>) -> Result<&'a [u8], DecodeError> {
    let len = length(reader, b'$')?;
    let word = reader.bytes("word", len)?;
    line_end(reader)?;
    Ok(word)
}

/// Reads the byte `sign`, a number, and the line end.
fn length(reader: &mut ByteReader<'_>, sign: u8) -> Result<usize, DecodeError> {
    let wrong = reader.invalid("length", "`*` or `$` and digits, as RESP has it");
    if reader.u8("length")? != sign {
        return Err(wrong);
    }
    let mut len = None;
    loop {
        match reader.u8("length")? {
            digit @ b'0'..=b'9' => {
                let longer = len.unwrap_or(0_usize).checked_mul(10);
                len = longer.and_then(|len| len.checked_add(usize::from(digit - b'0')));
                len.ok_or(wrong.clone())?;
            }
            b'\r' => break,
            _ => return Err(wrong),
        }
    }
    if reader.u8("length")? != b'\n' {
        return Err(wrong);
    }
    len.ok_or(wrong)
}

fn line_end(reader: &mut ByteReader<'_>) -> Result<(), DecodeError> {
    let wrong = reader.invalid("line end", "0d 0a");
    if reader.bytes("line end", 2)? == b"\r\n" { Ok(()) } else { Err(wrong) }
}

/// Writes the commands that load a Bloom filter.
pub(super) fn write_bloom(
    filter: &RedisBloom,
    key: &[u8],
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    write(out, LOAD_BLOOM, key, &filter.header(), |position| filter.chunk(position))
}

/// Writes the commands that load a cuckoo filter.
pub(super) fn write_cuckoo(
    filter: &RedisCuckoo,
    key: &[u8],
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    if filter.is_empty() {
        return Err(EncodeError::refused(
            "a cuckoo filter without items has no chunks: write it without a key, for RESTORE, or \
            reserve a new one",
        ));
    }
    write(out, LOAD_CUCKOO, key, &filter.header(), |position| filter.chunk(position))
}

fn write(
    out: &mut dyn io::Write,
    name: &str,
    key: &[u8],
    header: &[u8],
    chunk: impl Fn(i64) -> Option<(i64, Vec<u8>)>,
) -> Result<(), EncodeError> {
    let mut write = |position: i64, data: &[u8]| -> io::Result<()> {
        out.write_all(b"*4\r\n")?;
        for word in [name.as_bytes(), key, position.to_string().as_bytes(), data] {
            write!(out, "${}\r\n", word.len())?;
            out.write_all(word)?;
            out.write_all(b"\r\n")?;
        }
        Ok(())
    };
    write(1, header)?;
    let mut position = 1;
    while let Some((next, data)) = chunk(position) {
        write(next, &data)?;
        position = next;
    }
    Ok(())
}
