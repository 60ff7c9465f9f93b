//! Reads ids from a file: a list, a column of a CSV or Parquet file, or a filter.
//!
//! The reader compares the signature of the file at each interval. If the signature differs from the published
//! generation, the reader opens the file only after the new signature has stayed unchanged for [`FileOptions::quiet`].
//! With the wait for `quiet`, the reader does not publish a file that a program is still writing. The wait also lets
//! the reader detect two changes within one tick of the file system's clock. A starting reader does not wait if the last
//! change of the file is older than a minute and older than `quiet`. The reader publishes the ids only if the signature is
//! still unchanged after the last byte.
//!
//! If a snapshot has the same signature as the file, a starting reader uses the snapshot and does not read the file.

mod list;
#[cfg(feature = "databases")]
mod parquet;
mod signature;
mod unpacked;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tamis::AnyFilter;
use tamis_formats::TamisFile;

use crate::errors::source_error::SourceError;
use crate::ids::generation::Generation;
use crate::ids::id::IdType;
use crate::ids::snapshot::SnapshotOptions;
use crate::source::audit_source::AuditSource;
use crate::source::kind::SourceKind;
use crate::source::priority;
use crate::source::run::{Reader, Run, SourceOptions};
use crate::source::snapshots::Snapshots;
use crate::source::status::Rows;
pub use list::CsvColumn;
#[cfg(feature = "databases")]
pub(crate) use signature::Identity;
pub(crate) use signature::Signature;
use unpacked::unpacked;

/// The format in which a file stores ids.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFormat {
    /// Each line contains one id. The reader skips empty lines. The file may be compressed with gzip or Zstandard. A
    /// CSV file may also be compressed with gzip or Zstandard.
    Lines,
    /// A column of a CSV file. A missing closing quote hides all following rows.
    Csv {
        /// The column that contains the ids.
        column: CsvColumn,
        /// The delimiter between two fields.
        delimiter: u8,
    },
    /// A column of a Parquet file. The column contains integers, texts or UUIDs. A UUID may be stored as 16 bytes.
    #[cfg(feature = "databases")]
    Parquet {
        /// The column, such as `id`. A nested field is written as `shop.id`.
        column: String,
    },
    /// A filter that `tamis build` has written. The items of the filter are ids in their canonical text. The filter
    /// keeps its rate and its hash key, so a client that has the key can choose absent ids that pass.
    Filter,
}

/// The settings of a file source.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The path of the file.
    pub path: PathBuf,
    /// The format in which the file stores ids.
    pub format: FileFormat,
    /// The time for which a changed file must stay unchanged before the reader opens the file. This time must exceed
    /// the pauses of the program that writes the file, and the resolution of the file system's clock. `stale_after` of
    /// [`SourceOptions`](crate::SourceOptions) must exceed this time. If the file changes at shorter intervals than
    /// this time, the reader never reads the file and the set becomes stale.
    pub quiet: Duration,
    /// The minimum number of ids in a list. The source does not publish a list with fewer ids than this number. The
    /// default 1 keeps the last generation when the file is truncated.
    pub min_items: u64,
    /// The minimum number of ids in a new list, as a share of the ids in the last generation. The value 0 turns this
    /// limit off. The limit does not apply to filter files.
    pub min_share: f64,
    /// The maximum share of rows that are not ids.
    pub max_invalid: f64,
    /// The maximum size of the filter in bytes.
    pub max_bytes: u64,
}

impl FileOptions {
    /// Returns the default settings for a file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, format: FileFormat) -> Self {
        Self {
            path: path.into(),
            format,
            quiet: Duration::from_secs(2),
            min_items: 1,
            min_share: 0.5,
            max_invalid: 0.5,
            max_bytes: 4 << 30,
        }
    }

    /// Returns the identity of the source for its snapshot: the format and the path.
    fn identity(&self) -> String {
        format!("{:?} of {}", self.format, self.path.display())
    }
}

impl SourceKind for FileOptions {
    fn name(&self) -> String {
        let path = self.path.display();
        match &self.format {
            FileFormat::Lines => format!("lines {path}"),
            FileFormat::Csv { column: CsvColumn::Name(name), .. } => {
                format!("csv {name} in {path}")
            }
            FileFormat::Csv { column: CsvColumn::Number(index), .. } => {
                format!("csv {} in {path}", index + 1)
            }
            #[cfg(feature = "databases")]
            FileFormat::Parquet { column } => format!("parquet {column} in {path}"),
            FileFormat::Filter => format!("filter {path}"),
        }
    }

    fn reader(&self, options: &SourceOptions) -> Box<dyn Reader> {
        Box::new(FileReader::new(self.clone(), options.snapshot.clone()))
    }

    fn audit(&self, _: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
        Ok(Box::new(self.clone()))
    }
}

impl AuditSource for FileOptions {
    /// Reads the whole file in its present version.
    fn each_row(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let io = |error| SourceError::Io { path: self.path.clone(), error };
        // This call rejects pipes and devices.
        Signature::of_path(&self.path)?;
        let file = File::open(&self.path).map_err(io)?;
        each_row(self, &file, &|| false, each)
    }
}

/// The minimum time since the last change of a file that a starting reader opens at once. A file server may have another
/// clock than this machine, so the time is longer than the usual difference of two clocks.
const SETTLED: Duration = Duration::from_secs(60);

/// Reads a file again when the file changes.
#[derive(Debug)]
struct FileReader {
    options: FileOptions,
    /// The signature of the published file, and the number of its ids.
    published: Option<(Signature, u64)>,
    /// The last signature that differs from the published signature, and the time at which the reader first saw the new
    /// signature.
    changed: Option<(Signature, Instant)>,
    snapshots: Snapshots,
}

impl Reader for FileReader {
    fn read(&mut self, run: &Run) -> Result<(), SourceError> {
        let start = Instant::now();
        let signature = Signature::of_path(&self.options.path)?;
        // The snapshot is not loaded while the file changes.
        if self.published.is_none() && self.changed.is_none() {
            self.load_snapshot(run, signature);
        }
        if self.published.is_some_and(|(published, _)| published == signature) {
            self.changed = None;
            run.known_until(start);
            if self.snapshots.is_due() {
                self.snapshots.save(run, Some(signature.to_string().into_bytes()), Vec::new);
            }
            return if run.is_rebuild_asked() {
                self.publish(run, signature, start)
            } else {
                Ok(())
            };
        }
        match self.changed {
            Some((changed, since)) if changed == signature => {
                if since.elapsed() < self.options.quiet {
                    return Ok(());
                }
            }
            // At the start, the reader does not wait for a file that has not changed for a long time.
            None if self.published.is_none()
                && signature
                    .is_unchanged_for(self.options.quiet.max(SETTLED), SystemTime::now()) => {}
            _ => {
                // The time is read after the signature, so that `quiet` does not end too early.
                self.changed = Some((signature, Instant::now()));
                return Ok(());
            }
        }
        self.publish(run, signature, start)
    }

    fn stop(&mut self, run: &Run) {
        let signature = self.published.map(|(signature, _)| signature);
        let position = signature.map(|it| it.to_string().into_bytes());
        self.snapshots.finish(run, position, Vec::new);
    }
}

impl FileReader {
    fn new(options: FileOptions, snapshot: Option<SnapshotOptions>) -> Self {
        let is_list = options.format != FileFormat::Filter;
        let snapshots = Snapshots::new(snapshot.filter(|_| is_list), options.identity());
        Self { options, published: None, changed: None, snapshots }
    }

    /// Publishes the ids of the snapshot, if the snapshot has the same signature as the file.
    fn load_snapshot(&mut self, run: &Run, signature: Signature) {
        let Some(snapshot) = self.snapshots.load(run) else { return };
        if snapshot.head.position == signature.to_string().as_bytes() {
            self.published = Some((signature, snapshot.generation.items()));
            run.publish_snapshot(snapshot);
        } else {
            self.snapshots.refuse(run, "the file has changed");
        }
    }

    fn publish(
        &mut self,
        run: &Run,
        signature: Signature,
        start: Instant,
    ) -> Result<(), SourceError> {
        let path = &self.options.path;
        let io = |error| SourceError::Io { path: path.clone(), error };
        let file = File::open(path).map_err(io)?;
        let is_same = || -> Result<bool, SourceError> {
            let opened = Signature::new(&file.metadata().map_err(io)?);
            Ok(opened == signature && Signature::of_path(path)? == signature)
        };
        if !is_same()? {
            self.changed = None;
            return Ok(());
        }
        let generation = self.load(run, &file);
        // If the file has changed during the read, the reader ignores the error, because the next read may succeed.
        if !is_same()? {
            run.abandon_generation();
            self.changed = None;
            return Ok(());
        }
        let generation = generation?;
        let items = generation.items();
        run.publish_generation();
        self.published = Some((signature, items));
        self.changed = None;
        run.known_until(start);
        self.snapshots.save(run, Some(signature.to_string().into_bytes()), Vec::new);
        Ok(())
    }

    fn load(&self, run: &Run, file: &File) -> Result<Arc<Generation>, SourceError> {
        if self.options.format == FileFormat::Filter {
            let file = TamisFile::read_from(file, self.options.max_bytes);
            let filter = file.map_err(SourceError::Filter)?.filter;
            if matches!(filter, AnyFilter::Window(_)) {
                return Err(SourceError::Forgets);
            }
            let generation = Generation::with_base(filter, run.rate())?;
            return Ok(run.start_generation_from(generation));
        }
        let io = |error| SourceError::Io { path: self.options.path.clone(), error };
        let expected = match &self.options.format {
            #[cfg(feature = "databases")]
            FileFormat::Parquet { .. } => parquet::count_rows(file)?,
            _ => list::count_lines(unpacked(file).map_err(io)?).map_err(io)?,
        };
        let generation = run.start_generation(expected)?;
        // This thread does no other work, so a lower priority delays no request.
        priority::lower();
        let mut loader = run.loader(&generation);
        each_row(&self.options, file, &|| run.is_stopped(), &mut |text| {
            let Rows { ids, invalid } = loader.rows();
            if (ids + invalid) % 1024 == 0 && run.is_stopped() {
                return Err(SourceError::Stopped);
            }
            loader.row(Some(text))
        })?;
        let rows = loader.finish()?;
        run.count(rows);
        self.check(run, rows, generation.items())?;
        Ok(generation)
    }

    /// Tests whether a list is plausibly complete.
    fn check(&self, run: &Run, rows: Rows, items: u64) -> Result<(), SourceError> {
        let all = rows.ids + rows.invalid;
        if rows.invalid as f64 > all as f64 * self.options.max_invalid {
            return Err(SourceError::Invalid { invalid: rows.invalid, rows: all });
        }
        let before = self.published.map_or_else(|| run.published_items(), |(_, items)| items);
        let least = (before as f64 * self.options.min_share).ceil() as u64;
        let least = least.max(self.options.min_items);
        if items < least { Err(SourceError::TooFew { items, least }) } else { Ok(()) }
    }
}

/// Passes the id of each row of a list to `row`. A Parquet file may contain many rows without an id, so its reader also
/// tests `is_stopped` between two rows.
fn each_row(
    options: &FileOptions,
    file: &File,
    #[cfg_attr(not(feature = "databases"), expect(unused_variables))] is_stopped: &dyn Fn() -> bool,
    row: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let io = |error| SourceError::Io { path: options.path.clone(), error };
    match &options.format {
        FileFormat::Lines => list::each_line(unpacked(file).map_err(io)?, io, row),
        FileFormat::Csv { column, delimiter } => {
            list::each_field(unpacked(file).map_err(io)?, column, *delimiter, row)
        }
        #[cfg(feature = "databases")]
        FileFormat::Parquet { column } => parquet::each_value(file, column, is_stopped, row),
        FileFormat::Filter => Err(SourceError::NoList),
    }
}
