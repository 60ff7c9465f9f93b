//! The table of all formats.

use std::fmt;
use std::path::Path;

use crate::format::{Format, Sniff};
use crate::formats::{
    abloom, bip37, bip158, bits_and_blooms, bloom_filters, byte_buffer, c_hashcode, cassandra,
    dcso, guava, hadoop, hive, java_bitmap, leveldb, my_bloom_filter, orc, parquet, pybloom_live,
    pybloomfiltermmap, rbloom, redis_bitmap, redis_bitmaps, redis_bits, redisbloom, redisson,
    roaring, rocksdb, spark, stream_lib, tamis_file,
};

/// All formats. Tamis' own format is the first.
pub static FORMATS: &[Format] = &[
    tamis_file::FORMAT,
    guava::FORMAT,
    java_bitmap::FORMAT,
    my_bloom_filter::FORMAT,
    byte_buffer::FORMAT,
    c_hashcode::FORMAT,
    redis_bits::FORMAT,
    redis_bitmap::FORMAT,
    redis_bitmaps::FORMAT,
    redisbloom::FORMAT,
    redisson::FORMAT,
    bip37::FORMAT,
    bip158::FORMAT,
    parquet::FORMAT,
    spark::FORMAT,
    cassandra::FORMAT,
    hadoop::FORMAT,
    hadoop::COUNTING_FORMAT,
    hadoop::DYNAMIC_FORMAT,
    hive::FORMAT,
    orc::FORMAT,
    leveldb::FORMAT,
    rocksdb::FORMAT,
    pybloom_live::FORMAT,
    pybloom_live::SCALABLE,
    pybloomfiltermmap::FORMAT,
    rbloom::FORMAT,
    abloom::FORMAT,
    stream_lib::FORMAT,
    bits_and_blooms::FORMAT,
    bits_and_blooms::json::FORMAT,
    dcso::FORMAT,
    bloom_filters::FORMAT,
    roaring::FORMAT,
];

impl Format {
    /// Finds a format by its name. Upper and lower case are equal.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::Format;
    ///
    /// assert_eq!(Format::named("RedisBloom").unwrap().name, "redisbloom");
    /// assert!(Format::named("redis").is_none());
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name.eq_ignore_ascii_case(name))
    }

    /// Finds the formats of a file by the extension of its name.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use tamis_formats::Format;
    ///
    /// assert_eq!(Format::of_path(Path::new("users.guava"))[0].name, "guava");
    /// assert!(Format::of_path(Path::new("users")).is_empty());
    /// ```
    #[must_use]
    pub fn of_path(path: &Path) -> Vec<&'static Format> {
        let Some(extension) = path.extension().and_then(|it| it.to_str()) else { return vec![] };
        FORMATS.iter().filter(|format| format.extensions.contains(&extension)).collect()
    }

    /// Finds the formats of a file by all of its bytes. If one format is certain, returns only this format. If no
    /// format is certain, returns all likely formats.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::Format;
    ///
    /// assert!(Format::of(b"plain text").is_empty());
    /// assert_eq!(Format::of(b"\x89TAMIS\r\n")[0].name, "tamis");
    /// ```
    #[must_use]
    pub fn of(bytes: &[u8]) -> Vec<&'static Format> {
        let mut possible = Vec::new();
        for format in FORMATS {
            match format.sniff(bytes) {
                Sniff::Yes => return vec![format],
                Sniff::Maybe => possible.push(format),
                Sniff::No => {}
            }
        }
        possible
    }

    /// Detects the format of a file by all of its bytes, then by the file name. Linear time.
    ///
    /// If no format matches the bytes, the result is the format of the name: decoding reports the exact error. If several
    /// formats match the bytes, the name decides.
    ///
    /// # Errors
    ///
    /// [`DetectError::Unknown`] if neither the bytes nor the name show the format, and [`DetectError::Several`] if several
    /// formats match.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use tamis_formats::{DetectError, Format};
    ///
    /// assert_eq!(Format::detect(b"\x89TAMIS\r\n", None)?.name, "tamis");
    /// assert_eq!(Format::detect(b"damaged", Some(Path::new("users.guava")))?.name, "guava");
    /// assert!(matches!(Format::detect(b"plain text", None), Err(DetectError::Unknown)));
    /// # Ok::<(), DetectError>(())
    /// ```
    pub fn detect(bytes: &[u8], path: Option<&Path>) -> Result<&'static Format, DetectError> {
        let mut named = path.map(Format::of_path).unwrap_or_default();
        match &Format::of(bytes)[..] {
            [format] => return Ok(format),
            // An empty Redis string is a bitmap without set bits.
            [] => named.retain(|named| bytes.is_empty() || named.is_detectable()),
            several => {
                named.retain(|named| several.iter().any(|format| format.name == named.name));
                if named.len() != 1 {
                    return Err(DetectError::Several(several.to_vec()));
                }
            }
        }
        if let [format] = named[..] { Ok(format) } else { Err(DetectError::Unknown) }
    }
}

/// The reason why the format of a file is not known.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DetectError {
    /// Neither the bytes nor the name of the file show the format.
    Unknown,
    /// Several formats match the bytes, and the name of the file shows none of these formats.
    Several(Vec<&'static Format>),
}

impl fmt::Display for DetectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DetectError::Unknown => f.write_str("no format of filters is recognised"),
            DetectError::Several(formats) => {
                let names: Vec<_> = formats.iter().map(|format| format.name).collect();
                write!(f, "several formats match the bytes: {}", names.join(" or "))
            }
        }
    }
}

impl std::error::Error for DetectError {}
