//! Opens filter files of any format: detects the format, then decodes the filters.

use std::path::{Path, PathBuf};

use tamis_formats::{DecodeErrorKind, Format, Parameter, Rdb, RedisValue, Sniff, is_load_command};

use crate::decode_option::{FileKind, Place, Unused};
use crate::exit::Failure;
use crate::file_bytes::{Bytes, Found, is_raw};
use crate::filter_file::{Source, Trust};
use crate::foreign::Foreign;
use crate::input;
use crate::parquet_table;
use crate::told::{TellArgs, missing};

/// A filter of Tamis or of another system.
pub enum Opened {
    /// A Tamis filter, used in place.
    Tamis(Source),
    /// A copy of a filter of another system.
    Foreign(Box<Foreign>),
    /// The name of a row group in a Parquet table without a filter of its column. The row group may
    /// contain any item.
    Unfiltered(String),
}

impl Opened {
    /// Returns the filter at `path` if it is the only one.
    ///
    /// # Errors
    ///
    /// A message if there are several filters.
    pub fn only(path: &Path, mut all: Vec<Self>) -> Result<Self, Failure> {
        parquet_table::check_one_column(&all)?;
        match (all.pop(), all.len()) {
            (Some(one), 0) => Ok(one),
            (_, others) => Err(Failure::new(format!(
                "{}: has {} row groups with a filter each: 'info' and 'check' take several, and 'convert --union' puts them together",
                input::name(path),
                others + 1
            ))),
        }
    }
}

/// Opens the filters of a command and rejects decode options that have no effect on any of them.
pub struct Opener<'a> {
    tell: &'a TellArgs,
    unused: Unused,
    names: Vec<String>,
}

impl<'a> Opener<'a> {
    /// Creates an opener without files.
    pub fn new(tell: &'a TellArgs) -> Self {
        Self { tell, unused: Unused::of(tell), names: Vec::new() }
    }

    /// Opens the filter at `path`, in any format.
    ///
    /// # Errors
    ///
    /// A message for a missing or unreadable file, a file that is not a complete filter of a known
    /// format, or a file with several filters.
    pub fn one(&mut self, path: &Path, trust: Trust) -> Result<Opened, Failure> {
        Opened::only(path, self.all(path, trust)?)
    }

    /// Opens all filters at `path`. A Parquet table has one filter for each row group.
    ///
    /// # Errors
    ///
    /// The errors of [`one`](Self::one), except for several filters.
    pub fn all(&mut self, path: &Path, trust: Trust) -> Result<Vec<Opened>, Failure> {
        let recognised = Recognised::open(path, self.tell, trust)?;
        self.names.push(input::name(path));
        self.unused.read(recognised.kind(), self.tell);
        recognised.decode(self.tell)
    }

    /// Rejects the decode options that had no effect on any of the files.
    ///
    /// # Errors
    ///
    /// A message if such options exist.
    pub fn finish(&self) -> Result<(), Failure> {
        self.unused.check(&self.names.join(", "))
    }
}

/// A file whose format is known, but which is not decoded yet.
pub struct Recognised {
    path: PathBuf,
    content: Content,
}

enum Content {
    Tamis(Source),
    Table(Bytes),
    Filter(Bytes, &'static Format),
}

impl Recognised {
    /// Detects the format of the file at `path`.
    ///
    /// # Errors
    ///
    /// A message for a missing or unreadable file, or if neither the bytes nor the user state the
    /// format.
    pub fn open(path: &Path, tell: &TellArgs, trust: Trust) -> Result<Self, Failure> {
        let is_raw = is_raw(path, tell);
        let content = match Bytes::read(path, is_raw)? {
            Found::Tamis(source) => Content::Tamis(source),
            Found::Bytes(bytes) if parquet_table::is_table(&bytes) => Content::Table(bytes),
            Found::Bytes(bytes) => {
                let own = Format::named("tamis").expect("the first row");
                let is_own = !is_raw && own.sniff.is_some_and(|sniff| sniff(&bytes) == Sniff::Yes);
                let format = match &tell.format {
                    _ if is_own => own,
                    Some(format) => Format::named(format).expect("clap checked the name"),
                    None => find(&bytes, path)?,
                };
                if format.name == own.name {
                    drop(bytes);
                    Content::Tamis(Source::open(path, trust)?)
                } else {
                    Content::Filter(bytes, format)
                }
            }
        };
        Ok(Self { path: path.to_path_buf(), content })
    }

    /// Returns the properties of the file that decide which decode options have an effect.
    pub fn kind(&self) -> FileKind {
        let named = |name| Format::named(name).expect("a row");
        match &self.content {
            Content::Tamis(_) => FileKind { format: named("tamis"), place: Place::File },
            Content::Table(_) => FileKind { format: named("parquet"), place: Place::Columns },
            Content::Filter(bytes, format) => {
                let has_keys = Rdb::is_one(bytes) || is_load_command(bytes);
                let place = if has_keys { Place::Keys } else { Place::File };
                FileKind { format, place }
            }
        }
    }

    /// Decodes the filters of the file.
    ///
    /// # Errors
    ///
    /// A message for damaged bytes, or for decode options that the user did not give. The message
    /// names all of these options.
    pub fn decode(self, tell: &TellArgs) -> Result<Vec<Opened>, Failure> {
        let (path, name, told) = (&self.path, input::name(&self.path), tell.told());
        let (bytes, format) = match self.content {
            Content::Tamis(source) => return Ok(vec![Opened::Tamis(source)]),
            Content::Table(bytes) => {
                let column = tell.column.as_deref();
                return parquet_table::filters(path, &bytes, column, &told, tell.funnel()?);
            }
            Content::Filter(bytes, format) => (bytes, format),
        };
        let contents = (format.decode)(&bytes, &told).map_err(|error| match error.kind {
            DecodeErrorKind::Missing(parameter) => missing(parameter, "", tell, format, &name),
            DecodeErrorKind::SeveralKeys { keys } => {
                missing(Parameter::Key, &keys, tell, format, &name)
            }
            _ => Failure::new(format!("{name}: as {}: {error}", format.name)),
        })?;
        let funnel = tell.funnel()?;
        let is_dump = RedisValue::string_of(&bytes).is_some();
        let is_bits = !is_dump && !Rdb::is_one(&bytes);
        if is_raw(path, tell) && is_bits && bytes.ends_with(b"\n") {
            note!(
                "{name}: its last byte is a line feed, and is read as bits: if a program such as 'redis-cli --raw' appended it, leave \
                 it out (redis-cli -D \"\" --raw GET key)"
            );
        }
        bytes.check_unchanged(&name)?;
        let mut file = Foreign {
            path: path.clone(),
            name,
            format,
            contents,
            told,
            funnel,
            column: None,
            len_bytes: bytes.len() as u64,
            is_whole_file: true,
        };
        // Snapshots and commands may hold other keys besides this filter.
        let may_be_part = is_dump
            || bytes.starts_with(b"REDIS")
            || bytes.starts_with(b"*")
            || file.told.key.is_some();
        file.is_whole_file = !may_be_part || file.is_written_as(&bytes);
        Ok(vec![Opened::Foreign(Box::new(file))])
    }
}

/// Detects the format of a file by its bytes, then by its name.
fn find(bytes: &[u8], path: &Path) -> Result<&'static Format, Failure> {
    let name = input::name(path);
    if Rdb::is_one(bytes) {
        let whole = Rdb::new(bytes).and_then(|rdb| rdb.check());
        whole.map_err(|error| Failure::new(format!("{name}: a snapshot of Redis: {error}")))?;
    }
    if RedisValue::string_of(bytes).is_some() {
        return Err(Failure::new(format!(
            "{name}: the DUMP of a string of Redis: say what its bits are with --format (redis-bits, java-bitmap, redis-bitmap, redis-bitmaps or redisson)"
        )));
    }
    match Format::of(bytes)[..] {
        [format] => Ok(format),
        // No format matches the bytes. Decoding them as the format of the file name reports what is
        // wrong.
        [] if let [format] = Format::of_path(path)[..]
            && format.is_detectable() =>
        {
            Ok(format)
        }
        [] if let Some(class) = java_class(bytes) => Err(java_object(&name, class)),
        [] => {
            let state = if bytes.is_empty() {
                "is empty"
            } else {
                "not a Tamis filter, nor one of another system that shows what it is"
            };
            Err(Failure::new(format!(
                "{name}: {state}; if it is a filter, say which with --format: 'tamis formats' lists them"
            )))
        }
        ref several => {
            // Several formats match the bytes. The file name decides if it belongs to one of them.
            let mut named = Format::of_path(path);
            named.retain(|named| several.iter().any(|format| format.name == named.name));
            if let [format] = named[..] {
                return Ok(format);
            }
            let names: Vec<_> = several.iter().map(|format| format.name).collect();
            Err(Failure::new(format!(
                "{name}: may be of several formats: say which with --format ({})",
                names.join(" or ")
            )))
        }
    }
}

/// Returns the failure for an object written by Java's serialization.
fn java_object(name: &str, class: &str) -> Failure {
    let (what, advice) = match class.strip_prefix("cn.hutool.bloomfilter.") {
        Some(class) => (
            format!("Hutool's {class}"),
            "and Hutool writes its filters in no other format: build a filter from the items with 'tamis build'",
        ),
        None => (
            format!("an object of the class {class}"),
            "write the filter by its own method, such as Guava's writeTo, or build one from the items with 'tamis build'",
        ),
    };
    Failure::new(format!(
        "{name}: {what}, serialized by Java's ObjectOutputStream; tamis does not read Java objects: {advice}"
    ))
}

/// Returns the class name of an object written by Java's serialization.
fn java_class(bytes: &[u8]) -> Option<&str> {
    let (&[high, low], rest) = bytes.strip_prefix(b"\xac\xed\0\x05sr")?.split_first_chunk()?;
    let class = rest.get(..usize::from(u16::from_be_bytes([high, low])))?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._$".contains(byte);
    std::str::from_utf8(class).ok().filter(|_| !class.is_empty() && class.iter().all(is_name))
}
