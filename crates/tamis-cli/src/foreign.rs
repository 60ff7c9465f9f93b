//! Filters of other systems in files: found out, read, and replaced all or nothing.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tamis_formats::{
    Contents, DecodeErrorKind, EncodeError, Fact, Facts, Format, Funnel, ItemError, Rdb,
    RedisValue, Told,
};

use crate::column_type::ColumnType;
use crate::count::{About, Rate};
use crate::exit::{Exit, Failure, Outcome};
use crate::filter_file::{Sink, Source, Trust};
use crate::input::{self, Input};
use crate::items::Tally;
use crate::key::KeyRule;
use crate::map::Mapped;
use crate::output::{Output, is_same_file};
use crate::parquet_table;
use crate::progress::Progress;
use crate::records::{Blocks, records};
use crate::told::{TellArgs, funnel, missing, missing_to_write};

/// A filter of another system, read from a file.
pub struct Foreign {
    /// The file.
    pub path: PathBuf,
    /// The path as typed.
    pub name: String,
    /// What its bytes are.
    pub format: &'static Format,
    /// What they hold.
    pub contents: Contents,
    /// What the user says of it.
    pub told: Told,
    /// What its items are, if the user or the file says.
    pub funnel: Option<Funnel>,
    /// The column that it is of, which says what its items are unless the user does.
    pub column: Option<ColumnType>,
    /// The size of the file that it is in, unpacked.
    pub len_bytes: u64,
    /// Whether the file holds this filter and nothing else, so that it may be replaced.
    pub is_whole_file: bool,
}

/// A rate for which nobody plans a filter.
const MANY: f64 = 0.3;

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
    /// Opens the filter at `path`, whatever it is.
    ///
    /// # Errors
    ///
    /// A missing or unreadable file, or anything that is not a whole filter that is known for sure; a file of several.
    pub fn one(path: &Path, tell: &TellArgs, trust: Trust) -> Result<Self, Failure> {
        Self::only(path, Self::all(path, tell, trust)?)
    }

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

    /// Opens all filters at `path`: a Parquet table has one for each row group.
    ///
    /// # Errors
    ///
    /// As for [`one`](Self::one).
    pub fn all(path: &Path, tell: &TellArgs, trust: Trust) -> Result<Vec<Self>, Failure> {
        if tell.format.as_deref() == Some("tamis") {
            return Ok(vec![Opened::Tamis(Source::open(path, trust)?)]);
        }
        let (name, told, funnel) = (input::name(path), tell.told(), tell.funnel()?);
        let bytes = match Bytes::read(path, is_raw(path, tell))? {
            Found::Tamis(source) => return Ok(vec![Opened::Tamis(source)]),
            Found::Bytes(bytes) => bytes,
        };
        if parquet_table::is_table(&bytes) {
            return parquet_table::filters(path, &bytes, tell.column.as_deref(), &told, funnel);
        }
        let format = match &tell.format {
            Some(format) => Format::named(format).expect("clap checked the name"),
            None => find(&bytes, path)?,
        };
        if format.name == "tamis" {
            return Ok(vec![Opened::Tamis(Source::open(path, trust)?)]);
        }
        if let Some(version) = &told.version
            && format.versions.is_none_or(|versions| versions.are_plans)
        {
            return Err(Failure::new(format!(
                "{name}: {} has only one version: leave out --format-version {version}",
                format.name
            )));
        }
        let contents = (format.decode)(&bytes, &told).map_err(|error| match error.kind {
            DecodeErrorKind::Missing(fact) => missing(fact, tell, format, &name),
            DecodeErrorKind::SeveralKeys { keys } => Failure::new(format!(
                "{name}: its bytes do not say which of its keys: say --key KEY ({keys}); 'tamis info --keys' lists all"
            )),
            _ => Failure::new(format!("{name}: as {}: {error}", format.name)),
        })?;
        let is_dump = RedisValue::string_of(&bytes).is_some();
        let is_bits = !is_dump && !Rdb::is_one(&bytes);
        if is_raw(path, tell) && is_bits && bytes.ends_with(b"\n") {
            crate::notice::note(format_args!(
                "{name}: its last byte is a line feed, and is read as bits: if a program such as 'redis-cli --raw' appended it, leave \
                 it out (redis-cli -D \"\" --raw GET key)"
            ));
        }
        bytes.check_unchanged(&name)?;
        let mut file = Foreign {
            path: path.to_path_buf(),
            name,
            format,
            contents,
            told,
            funnel,
            column: None,
            len_bytes: bytes.len() as u64,
            is_whole_file: true,
        };
        // Snapshots and commands may be of several keys, and a key that is told is not always in the bytes.
        let may_be_part = is_dump
            || bytes.starts_with(b"REDIS")
            || bytes.starts_with(b"*")
            || file.told.key.is_some();
        file.is_whole_file = !may_be_part || file.is_written_as(&bytes);
        Ok(vec![Opened::Foreign(Box::new(file))])
    }
}

/// The bytes of a file: mapped where it is a plain one, otherwise a copy.
enum Bytes {
    Mapped(Mapped),
    Copied(Vec<u8>),
}

/// What a stream held.
enum Found {
    /// A filter of ours: read as it came, not copied from bytes.
    Tamis(Source),
    Bytes(Bytes),
}

impl Bytes {
    /// Reads a file, unpacked; as it is if `is_raw`.
    fn read(path: &Path, is_raw: bool) -> Result<Found, Failure> {
        if path.is_dir() {
            return Err(Failure::new(format!(
                "{}: is a directory, not a filter",
                input::name(path)
            )));
        }
        if is_raw { Self::raw(path) } else { Self::unpacked(path) }
    }

    fn raw(path: &Path) -> Result<Found, Failure> {
        let name = input::name(path);
        if path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
            let found = Self::mapped(path)?;
            if let Found::Bytes(bytes) = &found
                && input::starts_packed(bytes)
            {
                note!(
                    "{name}: begins as packed data does, and is read as bits: if it is packed, name it .gz or .zst"
                );
            }
            return Ok(found);
        }
        let mut bytes = Vec::new();
        let read = if input::is_stdin(path) {
            io::stdin().read_to_end(&mut bytes)
        } else {
            File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
        };
        read.map_err(|error| Failure::io(name, &error))?;
        Ok(Found::Bytes(Bytes::Copied(bytes)))
    }

    fn mapped(path: &Path) -> Result<Found, Failure> {
        let failure = |error: &io::Error| Failure::io(input::name(path), error);
        let file = File::open(path).map_err(|error| failure(&error))?;
        let bytes = Mapped::new(file).map_err(|error| failure(&error))?;
        Ok(Found::Bytes(Bytes::Mapped(bytes)))
    }

    /// Refuses to go on if the file was written to since it was opened.
    fn check_unchanged(&self, name: &str) -> Result<(), Failure> {
        match self {
            Bytes::Mapped(bytes) => bytes.check_unchanged(name),
            Bytes::Copied(_) => Ok(()),
        }
    }

    fn unpacked(path: &Path) -> Result<Found, Failure> {
        let mut stream = Input::open(path)?;
        if stream.len_bytes().is_some_and(|len| len > 0) && !stream.is_packed() {
            return Self::mapped(path);
        }
        let mut bytes = Vec::new();
        let start = stream.by_ref().take(8).read_to_end(&mut bytes);
        start.map_err(|error| stream.failure(&error))?;
        if let [Format { name: "tamis", .. }] = Format::of(&bytes)[..] {
            return Source::read_from(input::name(path), bytes.chain(stream)).map(Found::Tamis);
        }
        stream.read_to_end(&mut bytes).map_err(|error| stream.failure(&error))?;
        Ok(Found::Bytes(Bytes::Copied(bytes)))
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(bytes) => bytes,
            Bytes::Copied(bytes) => bytes,
        }
    }
}

/// Reads all bytes of a file that is no filter of Tamis, unpacked.
///
/// # Errors
///
/// A file that cannot be read, or a filter of Tamis.
pub fn file_bytes(path: &Path) -> Result<impl std::ops::Deref<Target = [u8]> + use<>, Failure> {
    match Bytes::read(path, false)? {
        Found::Bytes(bytes) => Ok(bytes),
        Found::Tamis(_) => {
            Err(Failure::new(format!("{}: is a filter of Tamis", input::name(path))))
        }
    }
}

/// Tells whether a file is read as it is, never unpacked: the format that was told is bits and nothing else, which may begin
/// as packed data does, and the name is not that of packed data.
pub fn is_raw(path: &Path, tell: &TellArgs) -> bool {
    let is_bits = |format: &Format| !format.shows() || format.asks.contains(&Fact::Items);
    tell.format.as_deref().and_then(Format::named).is_some_and(is_bits)
        && !input::is_named_packed(path)
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
        // Reading it as what its name says tells what is wrong with its bytes.
        [] if let [format] = Format::of_name(path)[..]
            && format.shows() =>
        {
            Ok(format)
        }
        [] if let Some(class) = java_class(bytes) => Err(Failure::new(format!(
            "{name}: a Java object of class {class}, as ObjectOutputStream writes it: tamis does not read those; write the filter by its own \
             method, such as Guava's writeTo, or build one from the items"
        ))),
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
            let mut named = Format::of_name(path);
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

/// Returns the class of the object that Java's serialization wrote.
fn java_class(bytes: &[u8]) -> Option<&str> {
    let (&[high, low], rest) = bytes.strip_prefix(b"\xac\xed\0\x05sr")?.split_first_chunk()?;
    let class = rest.get(..usize::from(u16::from_be_bytes([high, low])))?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._$".contains(byte);
    std::str::from_utf8(class).ok().filter(|_| !class.is_empty() && class.iter().all(is_name))
}

impl Foreign {
    /// Returns what its items are.
    ///
    /// # Errors
    ///
    /// If the file does not store it and the user did not give it.
    pub fn funnel(&self) -> Result<Funnel, Failure> {
        funnel(self.format, self.funnel, &self.name)
    }

    fn is_written_as(&self, bytes: &[u8]) -> bool {
        let mut written = Vec::new();
        let encoded = (self.format.encode)(&self.contents, &self.told, &mut written);
        encoded.is_ok() && written == bytes
    }

    /// Refuses to write to the file that it was read from, if that holds more than it.
    ///
    /// # Errors
    ///
    /// If so.
    pub fn check_output(&self, output: &Path) -> Result<(), Failure> {
        if self.is_whole_file || !is_same_file(&self.path, output) {
            return Ok(());
        }
        let format = self.format.name;
        Err(Failure::new(format!(
            "{}: the file holds more than this filter: copy the filter to a file of its own with \
             'tamis convert --to {format}', and change the copy",
            self.name
        )))
    }

    /// Writes the warnings about this filter to stderr.
    pub fn warn(&self, facts: &Facts) {
        for warning in &facts.warnings {
            note!("{}: {warning}", self.name);
        }
    }

    /// Returns a line if the filter is over its planned rate.
    pub fn over_rate(&self, facts: &Facts) -> Option<String> {
        let planned = self.contents.passed_rate(facts, self.told.rate)?;
        Some(format!(
            "{}: over its rate: holds about {} items, its rate is {}, not {}",
            self.name,
            About(facts.items),
            Rate(facts.rate),
            Rate(planned)
        ))
    }

    /// Writes a note to stderr if the filter is over-full or over its rate.
    pub fn judge(&self, facts: &Facts) -> Exit {
        if facts.rate > MANY {
            note!("{}: over-full: finds {:.0} % of absent items", self.name, facts.rate * 100.0);
        }
        self.over_rate(facts).map_or(Exit::Yes, |state| {
            note!("{state}");
            Exit::OverRate
        })
    }

    /// Writes it to `path` in `format`, in place of what is there once all is on disk.
    ///
    /// # Errors
    ///
    /// If the format has no place for it; a full disk. The old file is untouched then.
    pub fn save(&self, path: &Path, format: &Format, told: &Told) -> Result<(), Failure> {
        let mut sink = Sink { output: Output::open(Some(path))?, failure: None };
        let written = self.write(&mut sink, path, format, told);
        if let Some(failure) = sink.failure.take() {
            return Err(failure);
        }
        written?;
        sink.output.finish()
    }

    /// Writes it to `out`, which is to become `path`.
    ///
    /// # Errors
    ///
    /// If the format has no place for it; those of `out`.
    pub fn write(
        &self,
        out: &mut dyn io::Write,
        path: &Path,
        format: &Format,
        told: &Told,
    ) -> Result<(), Failure> {
        let (name, to) = (&self.name, format.name);
        (format.encode)(&self.contents, told, out).map_err(|error| match error {
            EncodeError::Missing(fact) => {
                missing_to_write(fact, told, format, &input::name(path))
            }
            EncodeError::Several { filters, rate } => Failure::new(format!(
                "{name}: {to} holds one filter, and this file has {filters}: joined, their rate is {}; accept it with \
                 --union, or build one filter from the items with --items FILE",
                Rate(rate)
            )),
            EncodeError::Io(error) => Failure::io(input::name(path), &error),
            error => Failure::new(format!("{name}: {error}")),
        })
    }
}

/// The items of a block as another system hashes them.
#[derive(Default)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The indices of records that have no key.
    pub keyless: Vec<usize>,
}

impl Keys {
    /// Cuts a block into keys, in place of those of the last one.
    ///
    /// # Errors
    ///
    /// The index of the first record that is no item of such a filter, with what is wrong with it.
    pub fn read(
        &mut self,
        block: &[u8],
        delimiter: u8,
        rule: &KeyRule,
        funnel: Funnel,
    ) -> Result<(), (usize, String)> {
        self.bytes.clear();
        self.ends.clear();
        self.keyless.clear();
        let (mut of_record, mut of_item) = (Vec::new(), Vec::new());
        for (index, record) in records(block, delimiter).enumerate() {
            match rule.of(record, &mut of_record) {
                Some(item) => {
                    let key = funnel.key(item, &mut of_item);
                    let key = key.map_err(|error| (index, wrong_item(item, error)))?;
                    self.bytes.extend_from_slice(key);
                }
                None => self.keyless.push(index),
            }
            self.ends.push(self.bytes.len());
        }
        Ok(())
    }

    /// Returns a key for each record, empty for those that have none.
    pub fn all(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start..end]).collect()
    }
}

/// Hands the items of `paths` to `each` in order, a block at a time.
///
/// # Errors
///
/// Those of reading, and of `each`; a record that is no item of such a filter, by its file and line.
pub fn each_keys(
    paths: &[PathBuf],
    rule: &KeyRule,
    delimiter: u8,
    funnel: Funnel,
    mut each: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
) -> Result<Tally, Failure> {
    let mut progress = Progress::new(input::total_len_bytes(paths));
    let (mut keys, mut done_bytes, mut tally) = (Keys::default(), 0, Tally::default());
    for path in paths {
        let mut blocks = Blocks::new(Input::open(path)?, delimiter);
        let mut line = 0;
        while let Some(block) =
            blocks.next_block().map_err(|error| Failure::io(input::name(path), &error))?
        {
            keys.read(block, delimiter, rule, funnel)
                .map_err(|(index, error)| no_item(path, line + index as u64, &error, None))?;
            let all = keys.all();
            line += all.len() as u64;
            let mut keyless = keys.keyless.iter().copied().peekable();
            let with_key: Vec<&[u8]> = (0..all.len())
                .filter(|&index| keyless.next_if_eq(&index).is_none())
                .map(|index| all[index])
                .collect();
            tally.items += with_key.len() as u64;
            tally.skipped += (all.len() - with_key.len()) as u64;
            each(&with_key)?;
            progress.at(done_bytes + blocks.reader().consumed_bytes());
        }
        done_bytes += blocks.reader().consumed_bytes();
    }
    Ok(tally)
}

/// Says which record is no item, and what one is in the column asked; lines are counted from one.
pub fn no_item(path: &Path, line: u64, why: &str, column: Option<&ColumnType>) -> Failure {
    let state = format!("{}: line {}: {why}", input::name(path), line + 1);
    Failure::new(match column {
        Some(column) => format!("{state}; an item of the column is {}", column.item),
        None => state,
    })
}

/// Says what was read, its control characters spelled out, such as the `\r` that Windows puts before each end of a line.
fn wrong_item(item: &[u8], error: ItemError) -> String {
    const SHOWN: usize = 40;
    let text = String::from_utf8_lossy(item);
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("{error}: {shown:?}{more}")
}

/// Ends a command that changed a filter of another system.
///
/// # Errors
///
/// If it is over the rate that was told, unless that is wanted.
pub fn judge_changed(file: &Foreign, force: bool) -> Outcome {
    let facts = file.contents.facts();
    if let Some(state) = file.over_rate(&facts).filter(|_| !force) {
        return Err(Failure::new(format!(
            "{state}; nothing was written: build one for more items, or accept it with --force"
        )));
    }
    Ok(file.judge(&facts))
}
