//! The table of formats.

use std::io;
use std::path::Path;

use crate::contents::Contents;
use crate::decode_options::{DecodeOptions, Parameter};
use crate::error::{DecodeError, EncodeError};
use crate::funnel::Funnel;
use crate::{
    bip37, bip158, bits_and_blooms, byte_buffer, c_hashcode, cassandra, guava, hadoop, hive,
    java_bitmap, leveldb, my_bloom_filter, orc, parquet, pybloom_live, pybloomfiltermmap, rbloom,
    redis_bitmap, redis_bitmaps, redis_bits, redisbloom, redisson, roaring, rocksdb, spark,
    stream_lib, tamis_file,
};

/// A way to write filters as bytes: a row of [`FORMATS`].
#[derive(Debug)]
pub struct Format {
    /// The name on command lines, in messages and of the page in `docs/formats`.
    pub name: &'static str,
    /// What file names end in, without the dot.
    pub extensions: &'static [&'static str],
    /// What it is, in a line.
    pub summary: &'static str,
    /// Tells from all bytes of a file whether it is of this format, no slower than by reading them once; `None` if any bytes
    /// could be.
    pub sniff: Option<fn(bytes: &[u8]) -> Sniff>,
    /// What its items are.
    pub items: Items,
    /// What its items can be at all: another funnel is not for it.
    pub item_domain: ItemDomain,
    /// The decode options that reading or writing one requires.
    pub required: &'static [Parameter],
    /// Further decode options that reading one uses if they are given.
    pub read_uses: &'static [Parameter],
    /// Further decode options that writing one uses if they are given.
    pub write_uses: &'static [Parameter],
    /// What [`DecodeOptions::version`] may be; `None` if there is but one.
    pub versions: Option<Versions>,
    /// Reads a whole file. Memory stays within four times the bytes, and what was told. Two take more: [`Contents::Roaring`] up
    /// to 18 times the bytes, of values that are far apart; and compressed values of Redis, whose bytes count as they are once
    /// expanded, up to 88 times as many.
    pub decode: fn(bytes: &[u8], options: &DecodeOptions) -> Result<Contents, DecodeError>,
    /// Writes a whole file, if the format has a place for such contents.
    pub encode: Encode,
    /// Creates an empty filter for the number of items and the rate in `told`.
    pub create: Create,
}

/// Which versions a format has.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    /// What they are called, in words.
    pub expected: &'static str,
    /// Whether they differ in how filters are planned alone, so that the bytes of a file are the same in all of them.
    pub are_plans: bool,
}

/// The type of [`Format::create`].
pub type Create = fn(options: &DecodeOptions) -> Result<Contents, EncodeError>;

/// The type of [`Format::encode`].
pub type Encode = fn(&Contents, &DecodeOptions, &mut dyn io::Write) -> Result<(), EncodeError>;

/// Whether bytes are of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sniff {
    /// They are not.
    No,
    /// They may be: lengths agree, but other bytes could look the same by chance.
    Maybe,
    /// They are, whole or damaged: a magic number or a checksum says so.
    Yes,
}

/// What the items of a format are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// Always this, unless the user says otherwise.
    Default(Funnel),
    /// The bytes do not say, and no program should guess.
    Unspecified,
}

/// What a filter can have as items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemDomain {
    /// Bytes, whatever they come from.
    Bytes,
    /// Integers from 0 on.
    Integers,
    /// What `hashCode()` of Java gives.
    HashCodes,
    /// Hashes of 128 bits.
    Hashes,
    /// Bytes, and numbers whose highest byte comes first.
    BigEndian,
    /// ORC's hashes of 64 bits.
    OrcHashes,
}

impl ItemDomain {
    /// Tells whether items through this funnel are such.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::{Format, Funnel};
    ///
    /// let roaring = Format::named("roaring").unwrap();
    /// assert!(roaring.item_domain.accepts(Funnel::Long));
    /// assert!(!roaring.item_domain.accepts(Funnel::Chars), "no text");
    /// ```
    #[must_use]
    pub fn accepts(self, funnel: Funnel) -> bool {
        match self {
            ItemDomain::Bytes => true,
            ItemDomain::Integers => matches!(funnel, Funnel::Int | Funnel::Long | Funnel::Unsigned),
            ItemDomain::HashCodes => matches!(funnel, Funnel::HashCode(_)),
            ItemDomain::Hashes => funnel == Funnel::Hash128,
            ItemDomain::BigEndian => matches!(
                funnel,
                Funnel::Bytes
                    | Funnel::Hex
                    | Funnel::Text(_)
                    | Funnel::LongBigEndian
                    | Funnel::DoubleBigEndian
            ),
            ItemDomain::OrcHashes => matches!(funnel, Funnel::Orc(_)),
        }
    }
}

impl Format {
    /// Finds a format by its name, in any case.
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

    /// Finds the formats that a file may be of by what its name ends in.
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

    /// Returns the [`DecodeOptions::version`] that a file's name asks for: what follows the format's first extension in it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use tamis_formats::Format;
    ///
    /// let roaring = Format::named("roaring").unwrap();
    /// assert_eq!(roaring.version_of_path(Path::new("ids.roaring64")), Some("64"));
    /// assert_eq!(roaring.version_of_path(Path::new("ids.roaring")), None);
    /// ```
    #[must_use]
    pub fn version_of_path(&self, path: &Path) -> Option<&'static str> {
        let extension = path.extension().and_then(|it| it.to_str())?;
        let named = self.extensions.iter().find(|it| **it == extension)?;
        let version = named.strip_prefix(*self.extensions.first()?)?;
        self.versions.as_ref().and(Some(version)).filter(|version| !version.is_empty())
    }

    /// Tests whether reading a file of this format uses a decode option.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::{Parameter, Format};
    ///
    /// assert!(Format::named("pybloom-live").unwrap().reads(Parameter::Md5));
    /// assert!(!Format::named("tamis").unwrap().reads(Parameter::Items), "the file stores them");
    /// ```
    #[must_use]
    pub fn reads(&self, parameter: Parameter) -> bool {
        let has_versions = || self.versions.is_some_and(|versions| !versions.are_plans);
        self.required.contains(&parameter)
            || self.read_uses.contains(&parameter)
            || parameter == Parameter::Version && has_versions()
    }

    /// Tests whether writing a file of this format uses a decode option. [`Parameter::Version`] is [`versions`](Self::versions).
    #[must_use]
    pub fn writes(&self, parameter: Parameter) -> bool {
        self.required.contains(&parameter) || self.write_uses.contains(&parameter)
    }

    /// Tells whether files of this format can be recognised by their bytes.
    #[must_use]
    pub fn is_detectable(&self) -> bool {
        self.sniff.is_some()
    }

    /// Finds the formats that all of a file's bytes may be of: the one that they certainly are of, or all that are possible.
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
            match format.sniff.map(|sniff| sniff(bytes)) {
                Some(Sniff::Yes) => return vec![format],
                Some(Sniff::Maybe) => possible.push(format),
                Some(Sniff::No) | None => {}
            }
        }
        possible
    }
}

/// Every format, the project's own first.
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
    stream_lib::FORMAT,
    bits_and_blooms::FORMAT,
    roaring::FORMAT,
];
