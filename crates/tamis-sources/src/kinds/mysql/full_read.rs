//! Reads all ids of the table over several connections concurrently.
//!
//! The bounds split the ids into ranges, and each thread takes the next range:
//!
//! ```text
//! id < b₁ │ b₁ ≤ id < b₂ │ … │ bₙ ≤ id
//! ```
//!
//! Each id is in at least one range, for any order of the database, and for any bounds that the database can compare with
//! the id. Proof: let bᵢ be the last bound with bᵢ ≤ id. Then id < bᵢ₊₁, or no further bound exists. Unsuitable bounds
//! therefore only cost time. An id that is in two ranges is read twice, which is harmless.

use std::sync::Arc;

use mysql_async::prelude::Queryable as _;

use crate::errors::source_error::SourceError;
use crate::ids::generation::Generation;
use crate::ids::id_set::IdSet;
use crate::kinds::mysql::column::ColumnKind;
use crate::kinds::mysql::explain::explained;
use crate::kinds::mysql::options::MysqlOptions;
use crate::kinds::mysql::quoted::quoted;
use crate::kinds::mysql::row_reader::RowReader;
use crate::kinds::mysql::server::Server;
use crate::kinds::mysql::table::Table;
use crate::kinds::mysql::visible::Visible;
use crate::source::loader::Loader;
use crate::source::read_threads::{Ranges, ReadJob, ReadThreads};
use crate::source::run::Run;
use crate::source::runtime::runtime;
use crate::source::status::Rows;
use crate::source::stop_flag::StopFlag;

/// If a table has fewer rows than this number, the source reads the table over one connection.
const FEW_ROWS: u64 = 50_000;

/// The number of ranges, which exceeds the number of threads so that no thread waits long for the last range.
const RANGES: u64 = 32;

/// A full read on separate threads. Dropping the `FullRead` stops the threads.
#[derive(Debug)]
pub(super) struct FullRead(ReadThreads);

/// The data that the threads of a full read share.
struct Job {
    options: MysqlOptions,
    table: Table,
    /// The identity of the server.
    identity: String,
    /// The transactions for which each thread waits before it reads. The value is `None` for a polled table.
    visible: Option<Visible>,
    /// The SQL conditions of the ranges.
    ranges: Ranges,
    generation: Arc<Generation>,
    ids: Arc<IdSet>,
}

impl FullRead {
    /// Starts a full read of the table into a new generation.
    pub(super) async fn start(
        run: &Run,
        server: &mut Server,
        generation: Arc<Generation>,
        visible: Option<Visible>,
    ) -> Result<Self, SourceError> {
        let rows = server.rows().await;
        let bounds = if rows < FEW_ROWS { Vec::new() } else { server.bounds(RANGES).await? };
        let job = Arc::new(Job {
            options: server.options.clone(),
            table: server.table.clone(),
            identity: server.identity.clone(),
            visible,
            ranges: Ranges::new(ranges(&quoted(&server.table.column), &bounds)),
            generation,
            ids: Arc::clone(&run.ids),
        });
        Ok(Self(ReadThreads::start(&job, job.ranges.len())?))
    }

    /// Waits until all ids are read. Returns the number of rows. The caller may drop the returned future: the next call
    /// continues the wait.
    pub(super) async fn finish(&mut self) -> Result<Rows, SourceError> {
        self.0.finish().await
    }
}

/// Returns the SQL condition of each range between the bounds.
fn ranges(column: &str, bounds: &[String]) -> Vec<String> {
    let Some((first, last)) = bounds.first().zip(bounds.last()) else {
        return vec!["TRUE".to_owned()];
    };
    let mut ranges = vec![format!("({column} < {first} OR {column} IS NULL)")];
    for pair in bounds.windows(2) {
        ranges.push(format!("{column} >= {} AND {column} < {}", pair[0], pair[1]));
    }
    ranges.push(format!("{column} >= {last}"));
    ranges
}

impl Server {
    /// Returns bounds as SQL that split the ids into about `ranges` ranges. Returns no bounds if the column has no
    /// index, because without an index, each range would scan the whole table.
    async fn bounds(&mut self, ranges: u64) -> Result<Vec<String>, SourceError> {
        if !self.table.has_index {
            return Ok(Vec::new());
        }
        let bounds = match self.table.kind {
            ColumnKind::Signed | ColumnKind::Unsigned(_) | ColumnKind::Decimal(_) => {
                let column = quoted(&self.table.column);
                let table = self.table.quoted();
                // The query casts the bounds to texts, so that all integer types use one decoder.
                let sql = format!(
                    "SELECT CAST(MIN({column}) AS CHAR), CAST(MAX({column}) AS CHAR) FROM {table}"
                );
                let ends = self.connection.query_first::<(Option<String>, Option<String>), _>(sql);
                let (low, high) = ends
                    .await
                    .map_err(|error| explained(&error, &self.options))?
                    .unwrap_or_default();
                let number = |text: Option<String>| text.and_then(|text| text.parse::<i128>().ok());
                let (Some(low), Some(high)) = (number(low), number(high)) else {
                    return Ok(Vec::new());
                };
                // A DECIMAL may have 65 digits. The step is slightly too short, so the last range is slightly longer.
                let step = high / i128::from(ranges) - low / i128::from(ranges);
                // The product may overflow, but the sum is between `low` and `high`.
                let bound = |i| low.wrapping_add(step.wrapping_mul(i));
                (1..i128::from(ranges)).map(|i| bound(i).to_string()).collect()
            }
            // In MariaDB, a comparison of a UUID with a bound that is no whole UUID is NULL, so no range would find the row.
            ColumnKind::Uuid => Vec::new(),
            ColumnKind::Binary => {
                (1..ranges).map(|i| format!("x'{:02x}'", 256 * i / ranges)).collect()
            }
            // The bounds are digits and letters, because many texts are UUIDs or begin with a digit.
            ColumnKind::Text(_) => "123456789abcdefghijklmnopqrstuvwxyz"
                .chars()
                .map(|first| format!("'{first}'"))
                .collect(),
        };
        Ok(bounds)
    }
}

impl ReadJob for Job {
    fn read(&self, is_first: bool, stop: &StopFlag) -> Result<Rows, SourceError> {
        runtime()?.block_on(stop.until_requested(self.read_ranges(is_first)))
    }
}

impl Job {
    async fn read_ranges(&self, is_first: bool) -> Result<Rows, SourceError> {
        let mut loader = Loader::new(&self.ids.options().id, &self.generation);
        let reader = RowReader::open(&self.options, &self.identity, self.visible.as_ref()).await;
        let mut reader = match reader {
            Ok(reader) => reader,
            // If the server limits the number of connections, the first thread reads all ranges.
            Err(_) if !is_first => return loader.finish(),
            Err(error) => return Err(error),
        };
        while let Some(range) = self.ranges.take() {
            reader.each_row(&self.table, range, |text| loader.row(text)).await?;
        }
        loader.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_no_gaps() {
        assert_eq!(ranges("`id`", &[]), ["TRUE"]);
        let bounds = ["10", "20"].map(str::to_owned);
        assert_eq!(
            ranges("`id`", &bounds),
            ["(`id` < 10 OR `id` IS NULL)", "`id` >= 10 AND `id` < 20", "`id` >= 20"]
        );
    }
}
