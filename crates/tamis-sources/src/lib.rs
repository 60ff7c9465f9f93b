//! Keeps a set of ids in sync with a table, a file or a filter.
//!
//! An [`IdSet`] contains the ids that exist. A [`Source`] reads the ids on its own thread, and follows their changes
//! until the source is stopped or dropped. A source guarantees:
//!
//! > While the state is [`SyncState::Synced`], the set contains every id that was committed more than
//! > [`SourceOptions::stale_after`] before the request.
//!
//! Each successful read proves that the set contains all ids that were committed before the start of the read. A second
//! thread watches the start time of the last successful read. If the start time is older than `stale_after`, the second
//! thread sets the state to [`SyncState::Stale`], even if the source hangs in a read.
//!
//! [`IdSet::from_ids`] creates a set of known ids without a source.
//!
//! [`Sources`] fills one set from several sources, for example from the tables of a sharded database. A [`PushSource`]
//! can insert ids into the same set.
//!
//! Another program can add a kind of source by implementing [`SourceKind`]. The page of [`SourceKind`] has an example.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use std::time::{Duration, Instant};
//!
//! use tamis_sources::{FileFormat, FileOptions, IdSet, IdType, Source, SourceOptions, SyncState};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("ids.txt");
//! std::fs::write(&path, "17\n42\n")?;
//! let ids = Arc::new(IdSet::new(IdType::integer())?);
//! let file = FileOptions { quiet: Duration::ZERO, ..FileOptions::new(path, FileFormat::Lines) };
//! let options = SourceOptions { interval: Duration::from_millis(10), ..SourceOptions::default() };
//! let source = Source::start(Arc::clone(&ids), file, options);
//! let end = Instant::now() + Duration::from_secs(10);
//! while ids.state() != SyncState::Synced {
//!     assert!(Instant::now() < end, "{:?}", source.status().last_error);
//!     std::thread::sleep(Duration::from_millis(1));
//! }
//! assert!(ids.decide(b"42").passes() && !ids.decide(b"43").passes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod audit;
mod errors;
mod ids;
mod kinds;
mod source;
#[cfg(feature = "tls")]
pub mod tls;

pub use audit::{AuditOptions, AuditReport, audit};
pub use errors::escaped::Escaped;
pub use errors::plain_io::PlainIo;
#[cfg(feature = "databases")]
pub use errors::redis_error::RedisSourceError;
pub use errors::source_error::SourceError;
pub use ids::change_kind::ChangeKind;
pub use ids::change_listener::ChangeListener;
pub use ids::generation::Generation;
pub use ids::generations::Generations;
pub use ids::id::{IdType, IntegerForm, NotAnId};
pub use ids::id_error::IdError;
pub use ids::id_set::IdSet;
pub use ids::id_set_options::IdSetOptions;
pub use ids::negative_cache::{Passed, RequestKey};
pub use ids::snapshot::{Snapshot, SnapshotError, SnapshotHead, SnapshotOptions, SnapshotStore};
pub use ids::state::{Policies, Policy, SyncState};
pub use ids::to_id::ToId;
pub use ids::verdict::{PassReason, RefuseReason, Verdict};
#[cfg(feature = "databases")]
pub use kinds::condition::InvalidCondition;
pub use kinds::file::{CsvColumn, FileFormat, FileOptions};
#[cfg(feature = "databases")]
pub use kinds::mysql::MysqlOptions;
#[cfg(feature = "databases")]
pub use kinds::poll::{ChangeColumn, PollOptions};
#[cfg(feature = "databases")]
pub use kinds::postgres::PostgresOptions;
#[cfg(feature = "databases")]
pub use kinds::redis::RedisOptions;
#[cfg(feature = "databases")]
pub use kinds::sqlite::SqliteOptions;
pub use source::Source;
pub use source::audit_source::AuditSource;
pub use source::follow::{Effect, Event, Follow, LogPosition};
pub use source::kind::SourceKind;
pub use source::loader::Loader;
pub use source::push::{PushError, PushSource, Pushed};
pub use source::run::{Reader, Run, SourceOptions};
pub use source::sources::Sources;
pub use source::status::{Rows, SnapshotStatus, SourceStatus};
pub use tamis::PlanError;
