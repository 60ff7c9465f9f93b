//! Recognises files whose filters have a format that Tamis does not read. The error names the type
//! of the file and an alternative.

use std::path::Path;

use crate::filters::orc_file::{MAGIC, is_orc};

/// The advice for a file whose end is missing.
const COPY: &str = "copy the whole file";

/// Describes a file at `path` that Tamis recognises but does not read. Returns the type of the file
/// and the advice.
pub fn unread_file(bytes: &[u8], path: &Path) -> Option<(String, &'static str)> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    let ends = |magic: &[u8]| bytes.ends_with(magic);
    if let Some(class) = java_class(bytes) {
        return Some(java_object(class));
    }
    if let Some(name) = module_type(bytes) {
        return Some((
            format!("the DUMP of a Redis value of the module type {name}"),
            "tamis reads the types of RedisBloom; build a filter from the items with 'tamis build'",
        ));
    }
    let (what, advice) = if starts(b"PARE") && ends(b"PARE") {
        (
            "a Parquet table with an encrypted footer",
            "decrypt the table, or write it with a footer in plain text",
        )
    } else if starts(MAGIC) && !is_orc(bytes) && is_binary(bytes) {
        ("an ORC file whose end is missing", COPY)
    } else if starts(b"PAR1") && !ends(b"PAR1") && is_binary(bytes) {
        ("a Parquet file whose end is missing", COPY)
    } else if path.extension().is_some_and(|it| it == "sst" || it == "ldb") && !bytes.is_empty() {
        (
            "neither a whole block-based table of LevelDB or RocksDB nor the filter block of one",
            "if its end is missing, copy the whole file; if it has another format, give it with --format",
        )
    } else if is_json_with(bytes, &["\"type\"", "\"_seed\""]) {
        (
            "JSON of npm's bloom-filters, but not of its class BloomFilter",
            "build a filter from the items with 'tamis build'",
        )
    } else {
        return None;
    };
    Some((what.into(), advice))
}

/// Tests whether bytes are binary. Text may begin with the letters of a magic number, but contains
/// no control characters.
fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(4096).any(|&byte| byte < b'\t')
}

/// Describes an object that the serialization of Java wrote.
fn java_object(class: &str) -> (String, &'static str) {
    let (what, advice) = match class.strip_prefix("cn.hutool.bloomfilter.") {
        Some(class) => (
            format!("Hutool's {class}"),
            "tamis does not read Java objects, and Hutool writes its filters in no other format: \
             build a filter from the items with 'tamis build'",
        ),
        None => (
            format!("an object of the class {class}"),
            "tamis does not read Java objects: write the filter by its own method, such as Guava's \
             writeTo, or build one from the items with 'tamis build'",
        ),
    };
    (format!("{what}, serialized by Java's ObjectOutputStream"), advice)
}

/// Returns the class name of an object written by Java's serialization.
fn java_class(bytes: &[u8]) -> Option<&str> {
    let (&[high, low], rest) = bytes.strip_prefix(b"\xac\xed\0\x05sr")?.split_first_chunk()?;
    let class = rest.get(..usize::from(u16::from_be_bytes([high, low])))?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._$".contains(byte);
    std::str::from_utf8(class).ok().filter(|_| !class.is_empty() && class.iter().all(is_name))
}

/// Returns the name of the type in the DUMP of a module's value: nine characters of six bits, and a
/// version of ten bits.
fn module_type(bytes: &[u8]) -> Option<String> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const NAME_LEN: u32 = 9;
    let id = u64::from_be_bytes(*bytes.strip_prefix(b"\x07\x81")?.first_chunk()?);
    let letter = |i: u32| LETTERS[(id >> (58 - 6 * i) & 63) as usize];
    Some((0..NAME_LEN).map(|i| char::from(letter(i))).collect())
}

/// Tests whether bytes begin like a JSON object and contain all of `names`.
fn is_json_with(bytes: &[u8], names: &[&str]) -> bool {
    let has = |name: &&str| bytes.windows(name.len()).any(|it| it == name.as_bytes());
    bytes.starts_with(b"{") && bytes.trim_ascii_end().ends_with(b"}") && names.iter().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_files_are_named() {
        // The type of valkey-bloom: nine characters of six bits, and encoding version 1.
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let digit = |byte: u8| letters.iter().position(|&it| it == byte).unwrap() as u64;
        let id = b"bloomfltr".iter().fold(0, |id, &byte| id << 6 | digit(byte)) << 10 | 1;
        let dump = [&[7, 0x81][..], &id.to_be_bytes(), &[0; 20]].concat();
        for (bytes, name, expected) in [
            (&dump[..], "a", "the module type bloomfltr"),
            (b"PARE....PARE", "a.parquet", "encrypted footer"),
            (b"PAR1\x15\0...", "a", "a Parquet file whose end is missing"),
            (b"ORC\x01...ORC\x17 and no more", "a", "an ORC file whose end is missing"),
            (b"table", "a.sst", "neither a whole block-based table"),
            (b"table", "a.ldb", "neither a whole block-based table"),
            (br#"{"type":"CuckooFilter","_size":96,"_seed":1}"#, "a", "bloom-filters"),
            (b"\xac\xed\0\x05sr\0\x03a.B", "a", "the class a.B"),
        ] {
            let (what, _) = unread_file(bytes, Path::new(name)).unwrap();
            assert!(what.contains(expected), "{what}");
        }
        for bytes in [
            &b""[..],
            b"ORC",
            b"ORCHARD\n",
            b"PAR1 is a magic number\n",
            b"PAR1\x15\0...PAR1",
            b"ORC\x01...\x82\xf4\x03\x03ORC\x17",
            b"text\n",
            b"{\"id\":1}\n",
            b"\x07\x81short",
        ] {
            assert!(unread_file(bytes, Path::new("a.txt")).is_none(), "{bytes:?}");
        }
    }
}
