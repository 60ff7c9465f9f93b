//! Filters of any format in files: recognised, then decoded.

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

/// A filter of this project, or of another system.
pub enum Opened {
    /// Used where it lies.
    Tamis(Source),
    /// A copy.
    Foreign(Box<Foreign>),
    /// A row group of a Parquet table without a filter of its column, by name: any item may be in it.
    Unfiltered(String),
}

impl Opened {
    /// Returns the only one of the filters at `path`.
    ///
    /// # Errors
    ///
    /// If there are several.
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

/// Opens the filters of a command, and refuses decode options that have no effect on any of them.
pub struct Opener<'a> {
    tell: &'a TellArgs,
    unused: Unused,
    names: Vec<String>,
}

impl<'a> Opener<'a> {
    /// Creates an opener that has opened nothing.
    pub fn new(tell: &'a TellArgs) -> Self {
        Self { tell, unused: Unused::of(tell), names: Vec::new() }
    }

    /// Opens the filter at `path`, whatever its format.
    ///
    /// # Errors
    ///
    /// A missing or unreadable file, or anything that is not a whole filter of a known format; a file of several filters.
    pub fn one(&mut self, path: &Path, trust: Trust) -> Result<Opened, Failure> {
        Opened::only(path, self.all(path, trust)?)
    }

    /// Opens all filters at `path`: a Parquet table has one for each row group.
    ///
    /// # Errors
    ///
    /// As for [`one`](Self::one).
    pub fn all(&mut self, path: &Path, trust: Trust) -> Result<Vec<Opened>, Failure> {
        let recognised = Recognised::open(path, self.tell, trust)?;
        self.names.push(input::name(path));
        self.unused.read(recognised.kind(), self.tell);
        recognised.decode(self.tell)
    }

    /// Refuses the decode options that had no effect on any of the files.
    ///
    /// # Errors
    ///
    /// If there are any.
    pub fn finish(&self) -> Result<(), Failure> {
        self.unused.check(&self.names.join(", "))
    }
}

/// A file whose format is known, not decoded yet.
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
    /// Finds out of which format the file at `path` is.
    ///
    /// # Errors
    ///
    /// A missing or unreadable file, or one of a format that neither its bytes nor the user name.
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

    /// Returns what decides which decode options have an effect.
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
    /// Bytes that are damaged, or that need decode options which the user did not give: the failure names all of these.
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
        // Snapshots and commands may hold several keys.
        let may_be_part = is_dump
            || bytes.starts_with(b"REDIS")
            || bytes.starts_with(b"*")
            || file.told.key.is_some();
        file.is_whole_file = !may_be_part || file.is_written_as(&bytes);
        Ok(vec![Opened::Foreign(Box::new(file))])
    }
}

/// Finds out what the bytes of a file are.
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
        // Decoding it as the format of its name reports what is wrong with its bytes.
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
            // What its name says, if its bytes may be that.
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

/// Refuses an object that Java's serialization wrote.
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

/// Returns the class of the object that Java's serialization wrote.
fn java_class(bytes: &[u8]) -> Option<&str> {
    let (&[high, low], rest) = bytes.strip_prefix(b"\xac\xed\0\x05sr")?.split_first_chunk()?;
    let class = rest.get(..usize::from(u16::from_be_bytes([high, low])))?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._$".contains(byte);
    std::str::from_utf8(class).ok().filter(|_| !class.is_empty() && class.iter().all(is_name))
}
