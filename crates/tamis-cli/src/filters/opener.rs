//! Opens filter files of any format: detects the format, then decodes the filters.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tamis_formats::{
    DecodeErrorKind, DetectError, Format, Parameter, Rdb, RedisValue, Sniff, is_load_command,
};

use crate::arguments::decode_options::{DecodeArgs, missing};
use crate::arguments::unused_options::{FileKind, FilterLocation, UnusedOptions};
use crate::exit::Failure;
use crate::filters::column_table::ColumnTable;
use crate::filters::open_filter::{FilterContents, NoFilter, OpenFilter, Trust};
use crate::filters::redis_key::{RedisTarget, download, redisson_plan};
use crate::filters::redis_url::{self, is_url};
use crate::filters::server_filter;
use crate::filters::table_filters::check_one_column;
use crate::filters::unread_file::unread_file;
use crate::io::file_bytes::{Bytes, FileContent, LoadedFile};
use crate::io::input;

/// Opens the filters of a command. Rejects decode options that have no effect on any filter of the
/// command.
pub struct Opener<'a> {
    decode: &'a DecodeArgs,
    unused: UnusedOptions,
    names: Vec<String>,
}

impl<'a> Opener<'a> {
    /// Creates an opener that has not opened any file yet.
    pub fn new(decode: &'a DecodeArgs) -> Self {
        Self { decode, unused: UnusedOptions::of(decode), names: Vec::new() }
    }

    /// Opens the filter at `path`, in any format.
    ///
    /// # Errors
    ///
    /// A message for a missing or unreadable file, or a file with several filters. A message for a
    /// file that is not a complete filter of a known format.
    pub fn one(&mut self, path: &Path, trust: Trust) -> Result<OpenFilter, Failure> {
        only(path, self.all(path, trust)?)
    }

    /// Opens all filters at `path`. A Parquet table or an ORC file has one filter for each row group.
    ///
    /// # Errors
    ///
    /// The errors of [`one`](Self::one), except the error for several filters.
    pub fn all(
        &mut self,
        path: &Path,
        trust: Trust,
    ) -> Result<Vec<Result<OpenFilter, NoFilter>>, Failure> {
        let recognised = Recognised::open(path, self.decode, trust)?;
        self.names.push(input::name(path));
        self.unused.read(recognised.kind(), self.decode);
        match recognised.content {
            // No decode option has an effect on a Tamis filter, so a funnel without its charset is
            // not an error here. `finish` rejects every option without an effect.
            Content::Tamis(filter) => Ok(vec![Ok(*filter)]),
            _ => recognised.decode(self.decode),
        }
    }

    /// Opens the filter that a URL names, to add or look up items on the server. Returns `None` for
    /// a file. Returns `None` also if the server cannot look up items in the value.
    ///
    /// # Errors
    ///
    /// The errors of [`RedisTarget::open`].
    pub fn redis(&mut self, path: &Path) -> Result<Option<RedisTarget>, Failure> {
        if !is_url(path) {
            return Ok(None);
        }
        let target = RedisTarget::open(redis_url::parse(path)?, self.decode)?;
        if let Some(target) = &target {
            self.names.push(target.name.clone());
            self.unused.read(target.kind, self.decode);
        }
        Ok(target)
    }

    /// Records a filter of `tamis-redis`, on which no decode option has an effect.
    pub fn found_native(&mut self, path: &Path) {
        self.names.push(input::name(path));
    }

    /// Rejects the decode options that had no effect on any of the files.
    ///
    /// # Errors
    ///
    /// A message if an option had no effect.
    pub fn finish(&self) -> Result<(), Failure> {
        self.unused.check(&self.names.join(", "))
    }
}

/// Returns the filter at `path` if the file contains only one filter.
///
/// # Errors
///
/// A message if there are several filters, or a row group without a filter.
pub fn only(
    path: &Path,
    mut all: Vec<Result<OpenFilter, NoFilter>>,
) -> Result<OpenFilter, Failure> {
    check_one_column(&all)?;
    match (all.pop(), all.len()) {
        (Some(one), 0) => one.map_err(|none| none.failure("")),
        (_, others) => Err(Failure::new(format!(
            "{}: has {} row groups with a filter each: 'info' and 'check' take several, and \
             'convert --union' puts them together",
            input::name(path),
            others + 1
        ))),
    }
}

/// Opens a Tamis filter for a change in place.
///
/// # Errors
///
/// A message for a file that is missing, unreadable, compressed, or not a complete Tamis filter.
pub fn tamis_to_change(path: &Path) -> Result<OpenFilter, Failure> {
    let file = LoadedFile::read(path, false)?;
    if let FileContent::Bytes(bytes) = &file.content
        && let [format] = Format::of(bytes)[..]
        && format.name != "tamis"
    {
        return Err(Failure::new(format!(
            "{}: a file in the format {}: items can only be deleted from counting and cuckoo filters \
             in the format tamis",
            input::name(path),
            format.name
        )));
    }
    let filter = OpenFilter::tamis(path, file, Trust::Assume)?;
    filter.check_unpacked()?;
    filter.into_decoded()
}

/// A file whose format is known, but whose filters are not decoded yet.
pub struct Recognised {
    path: PathBuf,
    content: Content,
    // True if neither the user nor the file name nor a magic number states the format.
    is_guess: bool,
    // True if the bytes are read without decompression.
    is_raw: bool,
    is_packed: bool,
}

enum Content {
    Tamis(Box<OpenFilter>),
    Table(Bytes, ColumnTable),
    Filter(Bytes, &'static Format),
}

impl Recognised {
    /// Detects the format of the file at `path`.
    ///
    /// # Errors
    ///
    /// A message for a missing or unreadable file, or if neither the bytes nor the user state the
    /// format.
    pub fn open(path: &Path, decode: &DecodeArgs, trust: Trust) -> Result<Self, Failure> {
        let (is_raw, file) = if is_url(path) {
            let bytes = download(redis_url::parse(path)?, decode)?;
            (false, LoadedFile::of_bytes(bytes))
        } else {
            let is_raw = is_raw(path, decode);
            let file = LoadedFile::read(path, is_raw);
            (is_raw, file.map_err(|failure| redis_url::missing_scheme(path).unwrap_or(failure))?)
        };
        let is_packed = file.is_packed;
        let tamis = |file| OpenFilter::tamis(path, file, trust).map(Box::new).map(Content::Tamis);
        let mut is_guess = false;
        let table = match &file.content {
            FileContent::Tamis(_) => None,
            FileContent::Bytes(bytes) => ColumnTable::of(bytes),
        };
        let content = match (file.content, table) {
            (FileContent::Tamis(tamis_file), _) => {
                tamis(LoadedFile { content: FileContent::Tamis(tamis_file), is_packed })?
            }
            (FileContent::Bytes(bytes), Some(table)) => Content::Table(bytes, table),
            (FileContent::Bytes(bytes), None) => {
                let own = Format::named("tamis").expect("the first row");
                let is_own = !is_raw && own.sniff(&bytes) == Sniff::Yes;
                let format = match &decode.format {
                    _ if is_own => own,
                    Some(format) => Format::named(format).expect("clap checked the name"),
                    None => {
                        let format = find(&bytes, path, decode.key.as_deref())?;
                        let is_named =
                            Format::of_path(path).iter().any(|it| it.name == format.name);
                        let has_magic = format.sniff(&bytes) == Sniff::Yes || Rdb::is_one(&bytes);
                        is_guess = !is_named && !has_magic;
                        format
                    }
                };
                if format.name == own.name {
                    tamis(LoadedFile { content: FileContent::Bytes(bytes), is_packed })?
                } else {
                    Content::Filter(bytes, format)
                }
            }
        };
        Ok(Self { path: path.to_path_buf(), content, is_guess, is_raw, is_packed })
    }

    /// Returns the properties of the file that decide which decode options have an effect.
    pub fn kind(&self) -> FileKind {
        let named = |name| Format::named(name).expect("a row");
        match &self.content {
            Content::Tamis(_) => FileKind { format: named("tamis"), place: FilterLocation::File },
            Content::Table(_, table) => {
                FileKind { format: named(table.format()), place: FilterLocation::Columns }
            }
            Content::Filter(bytes, format) => {
                let has_keys = Rdb::is_one(bytes) || is_load_command(bytes);
                let place = if has_keys { FilterLocation::Keys } else { FilterLocation::File };
                FileKind { format, place }
            }
        }
    }

    /// Decodes the filters of the file.
    ///
    /// # Errors
    ///
    /// A message for damaged bytes, or for decode options that the user did not give. The message
    /// names all missing options.
    pub fn decode(self, decode: &DecodeArgs) -> Result<Vec<Result<OpenFilter, NoFilter>>, Failure> {
        let Self { path, content, is_guess, is_raw, is_packed } = self;
        let (name, options) = (input::name(&path), decode.options());
        let (bytes, format) = match content {
            Content::Tamis(filter) => {
                return Ok(vec![Ok(OpenFilter { options, funnel: decode.funnel()?, ..*filter })]);
            }
            Content::Table(bytes, table) => {
                let column = decode.column.as_deref();
                return table.filters(&path, &bytes, column, &options, decode.funnel()?);
            }
            Content::Filter(bytes, format) => (bytes, format),
        };
        if format.name == "redisbloom"
            && let Some(mut filter) = server_filter::open(&path, &bytes, &options, decode)?
        {
            bytes.check_unchanged(&name)?;
            filter.is_packed = is_packed;
            // A snapshot may contain other keys besides this filter.
            filter.is_whole_file = !Rdb::is_one(&bytes) && is_encoding_of(&bytes, &filter);
            return Ok(vec![Ok(filter)]);
        }
        let contents = (format.decode)(&bytes, &options).map_err(|error| match error.kind {
            DecodeErrorKind::Missing(parameter) => missing(parameter, "", decode, format, &name),
            DecodeErrorKind::SeveralKeys { keys } => {
                missing(Parameter::Key, &keys, decode, format, &name)
            }
            _ => Failure::new(format!("{name}: as {}: {error}", format.name)),
        })?;
        let funnel = decode.funnel()?;
        let is_dump = RedisValue::string_of(&bytes).is_some();
        let is_bits = !is_dump && !Rdb::is_one(&bytes);
        if is_raw && is_bits && bytes.ends_with(b"\n") {
            note!(
                "{name}: its last byte is a line feed, and is read as bits: if a program such as \
                 'redis-cli --raw' appended it, leave it out (redis-cli -D \"\" --raw GET key)"
            );
        }
        bytes.check_unchanged(&name)?;
        let mut filter = OpenFilter {
            format,
            options,
            funnel,
            len_bytes: bytes.len() as u64,
            is_packed,
            is_guess,
            ..OpenFilter::new(&path, FilterContents::Decoded(contents))
        };
        // Snapshots, files of commands and tables may contain other data besides this filter.
        let may_be_part = is_dump
            || Rdb::is_one(&bytes)
            || tamis_formats::is_sorted_table(&bytes)
            || bytes.starts_with(b"*")
            || filter.options.key.is_some();
        if is_url(&filter.path)
            && let Some((items, rate)) = redisson_plan(&bytes)
        {
            filter.options.items = filter.options.items.or(Some(items));
            filter.options.rate = filter.options.rate.or(Some(rate));
            // With the key, the encoder of Redisson also writes the settings.
            filter.options.key = Some(redis_url::parse(&filter.path)?.key);
        }
        filter.is_whole_file =
            !may_be_part || is_url(&filter.path) || is_encoding_of(&bytes, &filter);
        Ok(vec![Ok(filter)])
    }
}

/// Tests whether `bytes` are the encoding of this filter, without other data.
fn is_encoding_of(bytes: &[u8], filter: &OpenFilter) -> bool {
    let mut written = Vec::new();
    let encoded = (filter.format.encode)(filter.contents(), &filter.options, &mut written);
    encoded.is_ok() && written == bytes
}

/// Tests whether a file is read without decompression, because plain bits may begin like compressed
/// data. A file is read without decompression if the user gives a format of plain bits, and the
/// file name does not end like the name of compressed data.
fn is_raw(path: &Path, decode: &DecodeArgs) -> bool {
    let is_bits = |format: &Format| {
        !format.is_detectable() || format.parameters.required.contains(&Parameter::Items)
    };
    decode.format.as_deref().and_then(Format::named).is_some_and(is_bits)
        && !input::is_named_packed(path)
}

/// Detects the format of a file by its bytes, then by its name. In a snapshot, the type of the key decides
/// between a filter and the bits of a string.
fn find(bytes: &[u8], path: &Path, key: Option<&OsStr>) -> Result<&'static Format, Failure> {
    let name = input::name(path);
    if Rdb::is_one(bytes) {
        let whole = Rdb::new(bytes).and_then(|rdb| rdb.check());
        whole.map_err(|error| Failure::new(format!("{name}: a snapshot of Redis: {error}")))?;
    }
    if RedisValue::string_of(bytes).is_some() {
        return Err(Failure::new(format!(
            "{name}: the DUMP of a Redis string, whose bits may have several formats: give one \
             with --format (redis-bits, java-bitmap, redis-bitmap, redis-bitmaps or redisson)"
        )));
    }
    let matching = Format::of(bytes);
    if matching.is_empty()
        && let Some((what, advice)) = unread_file(bytes, path)
    {
        return Err(Failure::new(format!("{name}: {what}: {advice}")));
    }
    if matching.len() > 1
        && let Some(key) = key
        && let Some(is_string) = is_string_in_snapshot(bytes, key)
    {
        let is_filter = |format: &Format| format.name == "redisbloom";
        let mut of_type = matching.iter().filter(|format| is_filter(format) != is_string);
        if let (Some(format), None) = (of_type.next(), of_type.next()) {
            return Ok(format);
        }
    }
    Format::detect(bytes, Some(path)).map_err(|error| match error {
        DetectError::Several(several) => {
            let names: Vec<_> = several.iter().map(|format| format.name).collect();
            Failure::new(format!(
                "{name}: several formats match its bytes: choose one with --format ({})",
                names.join(" or ")
            ))
        }
        _ => {
            let state = if bytes.is_empty() {
                "is empty"
            } else {
                "not a Tamis filter, and no other format is recognised"
            };
            Failure::new(format!(
                "{name}: {state}; if it is a filter, give its format with --format: 'tamis \
                 formats' lists them"
            ))
        }
    })
}

/// Tests whether the value of `key` is a string. Returns `None` if the bytes are not a snapshot
/// with this key.
fn is_string_in_snapshot(bytes: &[u8], key: &OsStr) -> Option<bool> {
    let snapshot = Rdb::is_one(bytes).then(|| Rdb::new(bytes).ok()).flatten()?;
    let mut entries = snapshot.entries().filter_map(Result::ok);
    let entry = entries.find(|entry| entry.key() == key.as_encoded_bytes())?;
    Some(entry.type_name() == "string")
}
