//! The table of formats.

use std::io;
use std::path::Path;

use crate::contents::Contents;
use crate::create_error::CreateError;
use crate::decode_error::DecodeError;
use crate::decode_options::DecodeOptions;
use crate::encode_error::EncodeError;
use crate::funnel::Funnel;
use crate::parameter::Parameter;

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
pub type Create = fn(options: &DecodeOptions) -> Result<Contents, CreateError>;

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

impl Sniff {
    /// Returns [`Maybe`](Sniff::Maybe) if the bytes are possible, and [`No`](Sniff::No) otherwise.
    pub(crate) fn maybe(is_possible: bool) -> Self {
        if is_possible { Sniff::Maybe } else { Sniff::No }
    }

    /// Returns [`Yes`](Sniff::Yes) if the bytes are certain, and [`No`](Sniff::No) otherwise.
    pub(crate) fn yes(is_certain: bool) -> Self {
        if is_certain { Sniff::Yes } else { Sniff::No }
    }
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

    /// Tests whether [`encode`](Self::encode) would write `contents`, without writing them.
    ///
    /// Most formats answer without reading the bits.
    ///
    /// # Errors
    ///
    /// The error of [`encode`](Self::encode).
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::{Contents, DecodeOptions, EncodeError, Format, java_bitmap};
    ///
    /// let contents = Contents::new(java_bitmap::decode(&[1])?);
    /// let check = |format| Format::named(format).unwrap().check_encode(&contents, &DecodeOptions::default());
    /// assert!(check("roaring").is_ok());
    /// assert!(matches!(check("guava"), Err(EncodeError::NeedsItems(_))));
    /// # Ok::<(), tamis_formats::DecodeError>(())
    /// ```
    pub fn check_encode(
        &self,
        contents: &Contents,
        options: &DecodeOptions,
    ) -> Result<(), EncodeError> {
        let mut out = FirstWrite { is_reached: false };
        match (self.encode)(contents, options, &mut out) {
            // Formats check everything before their first write.
            Err(EncodeError::Io(_)) if out.is_reached => Ok(()),
            result => result,
        }
    }
}

/// Ends an encoding at its first write.
struct FirstWrite {
    is_reached: bool,
}

impl io::Write for FirstWrite {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        self.is_reached = true;
        Err(io::ErrorKind::Other.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
