//! Finds the Bloom filters of the columns in a whole ORC file. Layout: `docs/formats/orc.md`.
//!
//! A reader reads the file from its end: the PostScript, the footer, and then the footer of each
//! stripe. The footer of a stripe lists the streams of the stripe. Every length is checked against
//! the file size before an allocation. The total size of all parts of a file is limited. A part may
//! exceed the size limit by at most one chunk of 8 MiB.

mod chunks;
pub mod error;
mod protobuf;
pub mod schema;

use std::borrow::Cow;
use std::ops::Range;

use crate::filters::orc_file::chunks::Decompressor;
use crate::filters::orc_file::error::OrcError;
use crate::filters::orc_file::protobuf::{Fields, Value};
use crate::filters::orc_file::schema::Schema;

/// The magic bytes at the start of a file and at the end of its PostScript.
pub const MAGIC: &[u8] = b"ORC";

/// The maximum size of the decompressed footer of a file or a stripe, in bytes.
const MOST_FOOTER_BYTES: u64 = 64 << 20;
/// The maximum number of stripes in a file.
const MOST_STRIPES: usize = 1_000_000;
/// The maximum number of filter streams in a file.
const MOST_STREAMS: usize = 1_000_000;
/// The maximum number of row group filters that a reader of a file should keep.
pub const MOST_ROW_GROUPS: usize = 200_000;

/// The field 8000, the last field of a PostScript: tag, length and magic bytes. Text never contains
/// the first two bytes.
const MAGIC_FIELD: &[u8] = b"\x82\xf4\x03\x03ORC";

/// Tests whether `bytes` are a whole ORC file. The last byte of a whole file is the length of the
/// PostScript, and the PostScript ends with the magic bytes.
pub fn is_orc(bytes: &[u8]) -> bool {
    let rest = bytes.strip_prefix(MAGIC).and_then(|rest| rest.split_last());
    rest.is_some_and(|(_, rest)| rest.ends_with(MAGIC_FIELD))
}

/// The program that wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrcWriter {
    /// The Java writer of ORC.
    Java,
    /// The C++ writer of ORC, which pyarrow uses.
    Cpp,
    /// A program other than the Java writer and the C++ writer.
    Other(u64),
}

/// An ORC file whose footer has been read.
pub struct OrcFile<'a> {
    bytes: &'a [u8],
    decompressor: Decompressor,
    /// The types of the columns.
    pub schema: Schema,
    /// The stripes, in order.
    pub stripes: Vec<Stripe>,
    /// The number of rows in a row group. The number is zero if the file has no row groups.
    pub row_group_rows: u64,
    /// The program that wrote the file.
    pub writer: OrcWriter,
    /// True if the version of the writer computes hashes that differ from the specification of ORC.
    pub has_wrong_hashes: bool,
    /// The roots of the encrypted columns.
    encrypted: Vec<u32>,
}

/// A stripe: consecutive rows of a file, with their index, data and footer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stripe {
    offset: u64,
    index_bytes: u64,
    data_bytes: u64,
    footer_bytes: u64,
    /// The number of rows.
    pub rows: u64,
}

/// The filters of a column in a stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterStream {
    /// The number of the stripe.
    pub stripe: usize,
    /// The number of the column.
    pub column: u32,
    /// True for `BLOOM_FILTER_UTF8`, false for the older `BLOOM_FILTER`.
    pub is_utf8: bool,
    /// True if the writer states that times are hashed in UTC (ORC-135).
    pub is_utc: bool,
    bytes: Range<usize>,
}

impl<'a> OrcFile<'a> {
    /// Reads the footer of a file.
    ///
    /// # Errors
    ///
    /// [`OrcError`] for a damaged file, or for an unsupported compression.
    pub fn open(bytes: &'a [u8]) -> Result<Self, OrcError> {
        let (&len, before) = bytes.split_last().ok_or(OrcError::Damaged("it is empty"))?;
        let at = before.len().checked_sub(len.into()).filter(|_| len > 0);
        let at = at.ok_or(OrcError::Damaged("the length of its PostScript is wrong"))?;
        let (before, tail) = before.split_at(at);
        let PostScript { footer_bytes, compression, chunk_bytes } = PostScript::decode(tail)?;
        let at = usize::try_from(footer_bytes).ok().and_then(|len| before.len().checked_sub(len));
        let at = at.ok_or(OrcError::Damaged("its footer is longer than the file"))?;
        let mut decompressor = Decompressor::new(compression, chunk_bytes)?;
        let footer = decompressor.part(&before[at..], MOST_FOOTER_BYTES)?;
        let (mut rows, mut writer_version) = (0, None);
        let mut file = Self {
            bytes,
            decompressor,
            schema: Schema::default(),
            stripes: Vec::new(),
            row_group_rows: 0,
            writer: OrcWriter::Java,
            has_wrong_hashes: false,
            encrypted: Vec::new(),
        };
        for field in Fields::new(&footer) {
            match field? {
                (3, Value::Bytes(stripe)) => {
                    if file.stripes.len() == MOST_STRIPES {
                        return Err(OrcError::Refused(
                            "has more than 1,000,000 stripes, which tamis does not read".into(),
                        ));
                    }
                    file.stripes.push(Stripe::decode(stripe)?);
                }
                (4, Value::Bytes(of_column)) => file.schema.push(of_column)?,
                (6, Value::Number(number)) => rows = number,
                (8, Value::Number(rows)) => file.row_group_rows = rows,
                (9, Value::Number(writer)) => {
                    file.writer = match writer {
                        0 => OrcWriter::Java,
                        1 => OrcWriter::Cpp,
                        other => OrcWriter::Other(other),
                    };
                }
                (10, Value::Bytes(encryption)) => file.encrypted = encrypted_roots(encryption)?,
                (12, Value::Bytes(version)) => writer_version = Some(version),
                _ => {}
            }
        }
        file.schema.link()?;
        // A stripe without rows is not read.
        let of_stripes = file.stripes.iter().try_fold(0_u64, |sum, it| sum.checked_add(it.rows));
        if of_stripes != Some(rows) {
            return Err(OrcError::Damaged("its stripes do not have as many rows as the file"));
        }
        file.has_wrong_hashes = file.writer == OrcWriter::Cpp && has_wrong_hashes(writer_version);
        Ok(file)
    }

    /// Returns for each column number whether the column is encrypted. The file may also store
    /// unencrypted filters of an encrypted column, but these filters contain masked values.
    pub fn encrypted_columns(&self) -> Vec<bool> {
        self.schema.inside(&self.encrypted)
    }

    /// Returns the number of row groups in a stripe. Each row group has one filter per column.
    ///
    /// # Errors
    ///
    /// [`OrcError`] if the file has no row groups.
    pub fn row_groups(&self, stripe: &Stripe) -> Result<u64, OrcError> {
        if self.row_group_rows == 0 {
            return Err(OrcError::Damaged("it has filters, but its row groups have no rows"));
        }
        Ok(stripe.rows.div_ceil(self.row_group_rows))
    }

    /// Reads the footers of all stripes that have rows. Returns the streams with filters, in order.
    ///
    /// # Errors
    ///
    /// [`OrcError`] for a stripe that is damaged or outside of the file, or for more streams than
    /// any real file has.
    pub fn filter_streams(&mut self) -> Result<Vec<FilterStream>, OrcError> {
        let mut streams = Vec::new();
        for index in 0..self.stripes.len() {
            if self.stripes[index].rows > 0 {
                self.streams_of(index, &mut streams)?;
            }
        }
        Ok(streams)
    }

    /// Appends the filter streams of a stripe.
    fn streams_of(
        &mut self,
        index: usize,
        streams: &mut Vec<FilterStream>,
    ) -> Result<(), OrcError> {
        const UTF8: u64 = 8;
        const ORIGINAL: u64 = 7;
        const OUTSIDE: OrcError = OrcError::Damaged("a stripe is not inside of the file");
        let stripe = self.stripes[index];
        let streams_end = stripe.offset.checked_add(stripe.index_bytes);
        let streams_end = streams_end.and_then(|end| end.checked_add(stripe.data_bytes));
        let streams_end = streams_end.ok_or(OUTSIDE)?;
        let end = streams_end.checked_add(stripe.footer_bytes).ok_or(OUTSIDE)?;
        let footer = self.range(streams_end, end).map(|range| &self.bytes[range]).ok_or(OUTSIDE)?;
        let footer = self.decompressor.part(footer, MOST_FOOTER_BYTES)?;
        let (mut at, mut encodings) = (stripe.offset, Vec::new());
        let first = streams.len();
        for field in Fields::new(&footer) {
            match field? {
                (1, Value::Bytes(stream)) => {
                    let [kind, column, len] = numbers(stream, [1, 2, 3])?;
                    let start = at;
                    at = at.checked_add(len).filter(|&at| at <= streams_end).ok_or(
                        OrcError::Damaged("the streams of a stripe are longer than the stripe"),
                    )?;
                    if ![UTF8, ORIGINAL].contains(&kind) || len == 0 {
                        continue;
                    }
                    if streams.len() >= MOST_STREAMS {
                        return Err(OrcError::Refused(
                            "has more than 1,000,000 streams of filters, which tamis does not read"
                                .into(),
                        ));
                    }
                    streams.push(FilterStream {
                        stripe: index,
                        column: u32::try_from(column).unwrap_or(u32::MAX),
                        is_utf8: kind == UTF8,
                        is_utc: false,
                        bytes: self.range(start, at).ok_or(OUTSIDE)?,
                    });
                }
                (2, Value::Bytes(encoding)) => {
                    let [of_filter] = numbers(encoding, [3])?;
                    encodings.push(of_filter == 1);
                }
                _ => {}
            }
        }
        for stream in &mut streams[first..] {
            stream.is_utc = encodings.get(stream.column as usize) == Some(&true);
        }
        Ok(())
    }

    /// Reads the filters of a column in a stripe, as a message of Protocol Buffers.
    ///
    /// # Errors
    ///
    /// [`OrcError`] for a damaged stream.
    pub fn read(&mut self, stream: &FilterStream) -> Result<Cow<'a, [u8]>, OrcError> {
        self.decompressor.part(&self.bytes[stream.bytes.clone()], u64::MAX)
    }

    /// Returns the range, or `None` if the range is not inside the file.
    fn range(&self, start: u64, end: u64) -> Option<Range<usize>> {
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        (start <= end && end <= self.bytes.len()).then_some(start..end)
    }
}

/// Returns the error for a file with more row groups than [`MOST_ROW_GROUPS`].
pub fn too_many() -> OrcError {
    OrcError::Refused(
        "has more than 200,000 filters of row groups: choose one column with --column, or write \
         larger row groups"
            .into(),
    )
}

/// Tests whether this version of the C++ writer computes wrong hashes of numbers (ORC-1024).
/// Versions before 1.6.12 and 1.7.1 compute wrong hashes. Old files do not contain the version of
/// the writer.
fn has_wrong_hashes(version: Option<&[u8]>) -> bool {
    let Some(version) = version else { return true };
    let release = version.split(|&byte| byte == b'-').next().unwrap_or_default();
    if release == b"1.7.0" {
        return true;
    }
    let patch = release.strip_prefix(b"1.6.").and_then(|patch| std::str::from_utf8(patch).ok());
    patch.is_some_and(|patch| patch.parse::<u32>().is_ok_and(|patch| patch < 12))
}

/// The fields of the PostScript that the reader uses.
struct PostScript {
    footer_bytes: u64,
    compression: u64,
    chunk_bytes: u64,
}

impl PostScript {
    fn decode(message: &[u8]) -> Result<Self, OrcError> {
        // The default chunk size of ORC.
        const CHUNK_BYTES: u64 = 256 << 10;
        let (mut this, mut has_magic) =
            (Self { footer_bytes: 0, compression: 0, chunk_bytes: CHUNK_BYTES }, false);
        for field in Fields::new(message) {
            match field? {
                (1, Value::Number(bytes)) => this.footer_bytes = bytes,
                (2, Value::Number(kind)) => this.compression = kind,
                (3, Value::Number(bytes)) => this.chunk_bytes = bytes,
                (8000, Value::Bytes(MAGIC)) => has_magic = true,
                _ => {}
            }
        }
        if has_magic {
            Ok(this)
        } else {
            Err(OrcError::Damaged("its PostScript does not end with ORC"))
        }
    }
}

impl Stripe {
    fn decode(message: &[u8]) -> Result<Self, OrcError> {
        let [offset, index_bytes, data_bytes, footer_bytes, rows] =
            numbers(message, [1, 2, 3, 4, 5])?;
        Ok(Self { offset, index_bytes, data_bytes, footer_bytes, rows })
    }
}

/// Returns the values of numeric fields in a message. The value of a missing field is 0.
fn numbers<const N: usize>(message: &[u8], fields: [u64; N]) -> Result<[u64; N], OrcError> {
    let mut numbers = [0; N];
    for field in Fields::new(message) {
        if let (number, Value::Number(value)) = field?
            && let Some(index) = fields.iter().position(|&field| field == number)
        {
            numbers[index] = value;
        }
    }
    Ok(numbers)
}

/// Returns the roots of the encrypted columns, from the encryption message of the footer.
fn encrypted_roots(encryption: &[u8]) -> Result<Vec<u32>, OrcError> {
    const VARIANT: u64 = 3;
    let mut roots = Vec::new();
    for field in Fields::new(encryption) {
        if let (VARIANT, Value::Bytes(variant)) = field? {
            let [root] = numbers(variant, [1])?;
            roots.push(u32::try_from(root).unwrap_or(u32::MAX));
        }
    }
    Ok(roots)
}
