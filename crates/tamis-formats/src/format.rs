//! Defines a file format: one row of the table of formats.

mod decode_options;
pub(crate) mod parameter;

use std::io;
use std::path::Path;

use crate::errors::{CreateError, DecodeError, EncodeError};
use crate::filters::Contents;
use crate::items::{Charset, Funnel};
pub use decode_options::DecodeOptions;
pub use parameter::Parameter;

/// A file format of filters: a row of [`FORMATS`](crate::FORMATS).
#[derive(Debug)]
pub struct Format {
    /// The name on command lines, in messages, and of the page in `docs/formats`.
    pub name: &'static str,
    /// The file name extensions, without the dot.
    pub extensions: &'static [&'static str],
    /// A one-line description of the format.
    pub summary: &'static str,
    /// How a file of this format is recognised.
    pub detection: Detection,
    /// The default funnel of the items, if the format has a default funnel.
    pub items: Items,
    /// The kind of items that the format can store. A funnel for a different kind of items is rejected.
    pub item_domain: ItemDomain,
    /// The parameters that the file does not store.
    pub parameters: Parameters,
    /// The values of [`DecodeOptions::version`]. `None` if the format has only one version.
    pub versions: Option<Versions>,
    /// Reads a whole file. Reading takes memory of at most four times the size of the bytes, plus the memory that the
    /// decode options allow. Two kinds of files may take more memory than four times the size of the bytes:
    ///
    /// * A [`Roaring`](crate::formats::roaring::Roaring) bitmap of widely spaced values takes up to 18 times the size
    ///   of the bytes.
    /// * A compressed value of Redis counts with its expanded size. The expanded size is up to 88 times the compressed
    ///   size.
    pub decode: fn(bytes: &[u8], options: &DecodeOptions) -> Result<Contents, DecodeError>,
    /// Writes a whole file, if the format can store the contents. All checks of the contents come before the first
    /// write.
    pub encode: Encode,
    /// Creates an empty filter for the planned items and the planned rate in the options.
    pub create: Create,
}

/// The parameters of a format that its files do not store.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// The parameters that reading and writing require.
    pub required: &'static [Parameter],
    /// The optional parameters that reading uses.
    pub reading: &'static [Parameter],
    /// The optional parameters that writing uses.
    pub writing: &'static [Parameter],
    /// The parameters of a plan that decide which bits an item sets in a new filter.
    pub planning: &'static [Parameter],
}

impl Parameters {
    /// No parameters: the file stores all parameters. A new filter is planned for a number of items and a rate.
    pub(crate) const NONE: Self = Self {
        required: &[],
        reading: &[],
        writing: &[],
        planning: &[Parameter::Items, Parameter::Rate],
    };
}

/// The versions of a format.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    /// The names of the versions, listed in a sentence.
    pub expected: &'static str,
    /// Whether the versions differ only in the plan of a new filter. If the versions differ only in the plan, all
    /// versions have the same file layout.
    pub are_plans: bool,
}

/// The type of [`Format::create`].
pub type Create = fn(options: &DecodeOptions) -> Result<Contents, CreateError>;

/// The type of [`Format::encode`].
pub type Encode = fn(&Contents, &DecodeOptions, &mut dyn io::Write) -> Result<(), EncodeError>;

/// How a file of a format is recognised.
#[derive(Clone, Copy, Debug)]
pub enum Detection {
    /// The format is detected from all bytes of the file, in linear time.
    ByBytes(fn(bytes: &[u8]) -> Sniff),
    /// The format is detected from the extension of the file name. The header is too short to show the format, because
    /// files of many formats could start with the same bytes.
    ByName,
    /// The user must name the format: any bytes could be of this format.
    ByOption,
}

/// The result of format detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sniff {
    /// The bytes are not of the tested format.
    No,
    /// The bytes are probably of the tested format: about 32 bits of the header and of the file length match the
    /// format. No command changes a file whose format is only probable.
    Maybe,
    /// The bytes are of the tested format: a magic number or a checksum matches. The file may be damaged even if the
    /// magic number matches.
    Yes,
}

/// The items of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// The default funnel, which converts the items unless the user gives a funnel.
    Default(Funnel),
    /// The file does not store the funnel, so the user must give the funnel.
    Unspecified,
}

/// The kind of items that a format can store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemDomain {
    /// Any bytes.
    Bytes,
    /// Unsigned integers.
    Integers,
    /// Results of Java's `hashCode()`.
    HashCodes,
    /// Hashes of 128 bits.
    Hashes,
    /// Bytes and big-endian numbers.
    BigEndian,
    /// ORC's hashes of 64 bits.
    OrcHashes,
    /// abloom's hashes of 64 bits.
    AbloomHashes,
    /// Text in UTF-8. The original system converts an object of a type other than text to text before hashing.
    Text,
}

impl Sniff {
    /// Returns [`Maybe`](Sniff::Maybe) if `is_possible` is true, and [`No`](Sniff::No) otherwise.
    pub(crate) fn maybe(is_possible: bool) -> Self {
        if is_possible { Sniff::Maybe } else { Sniff::No }
    }

    /// Returns [`Yes`](Sniff::Yes) if `is_certain` is true, and [`No`](Sniff::No) otherwise.
    pub(crate) fn yes(is_certain: bool) -> Self {
        if is_certain { Sniff::Yes } else { Sniff::No }
    }
}

impl ItemDomain {
    /// Tests whether the items of a funnel belong to the kind `self`.
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
            ItemDomain::AbloomHashes => matches!(funnel, Funnel::Abloom(_)),
            ItemDomain::Text => funnel == Funnel::Text(Charset::Utf8),
        }
    }
}

impl Format {
    /// The default values of the fields: an item is any bytes, the file stores all parameters, and there is one
    /// version. A row sets the name, the summary, the three functions, and the fields that differ from the default.
    pub(crate) const BASE: Self = Self {
        name: "",
        extensions: &[],
        summary: "",
        detection: Detection::ByOption,
        items: Items::Unspecified,
        item_domain: ItemDomain::Bytes,
        parameters: Parameters::NONE,
        versions: None,
        decode: |_, _| unreachable!("each row has a decoder"),
        encode: |_, _, _| unreachable!("each row has an encoder"),
        create: |_| unreachable!("each row creates filters"),
    };

    /// Returns the version in the extension of a file name, for [`DecodeOptions::version`]. The version is the part of
    /// the extension that follows the format's first extension.
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
        self.parameters.required.contains(&parameter)
            || self.parameters.reading.contains(&parameter)
            || parameter == Parameter::Version && has_versions()
    }

    /// Tests whether writing a file of this format uses a decode option. For [`Parameter::Version`], use
    /// [`versions`](Self::versions).
    #[must_use]
    pub fn writes(&self, parameter: Parameter) -> bool {
        self.parameters.required.contains(&parameter)
            || self.parameters.writing.contains(&parameter)
    }

    /// Tests whether the bits of a new filter depend on a parameter of its plan.
    #[must_use]
    pub fn plans_by(&self, parameter: Parameter) -> bool {
        self.parameters.planning.contains(&parameter)
    }

    /// Detects whether the bytes of a file are of this format. Linear time.
    #[must_use]
    pub fn sniff(&self, bytes: &[u8]) -> Sniff {
        match self.detection {
            Detection::ByBytes(sniff) => sniff(bytes),
            Detection::ByName | Detection::ByOption => Sniff::No,
        }
    }

    /// Tests whether this is Tamis' own format, the first row of [`FORMATS`](crate::FORMATS).
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.name == "tamis"
    }

    /// Tests whether files of this format can be detected from their bytes or their name.
    #[must_use]
    pub fn is_detectable(&self) -> bool {
        !matches!(self.detection, Detection::ByOption)
    }

    /// Tests whether [`encode`](Self::encode) could write `contents`, without writing the contents.
    ///
    /// For most formats, the test does not read the bits.
    ///
    /// # Errors
    ///
    /// The errors of [`encode`](Self::encode).
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
            // Every format makes all checks before its first write.
            Err(EncodeError::Io(_)) if out.is_reached => Ok(()),
            result => result,
        }
    }
}

/// A writer that stops an encoding at its first write.
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
