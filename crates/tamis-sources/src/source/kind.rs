//! The trait of a source kind. The settings type of each kind implements the trait.

use std::fmt;

use crate::errors::source_error::SourceError;
use crate::ids::id::IdType;
use crate::source::audit_source::AuditSource;
use crate::source::run::{Reader, SourceOptions};

/// A kind of source. The implementing type contains the settings, which locate the ids.
/// [`Source::start`](crate::Source::start) takes these settings.
///
/// Threads share a kind by reference. The folder `kinds` has a file for each kind of this crate.
///
/// # Examples
///
/// This example implements a source whose ids never change:
///
/// ```
/// use std::sync::Arc;
/// use std::time::{Duration, Instant};
///
/// use tamis_sources::{AuditSource, IdSet, IdType, Source, SourceError};
/// use tamis_sources::{Reader, Run, SourceKind, SourceOptions, SyncState};
///
/// #[derive(Clone, Debug)]
/// struct Fixed(Vec<&'static str>);
///
/// impl SourceKind for Fixed {
///     fn reader(&self, _: &SourceOptions) -> Box<dyn Reader> {
///         Box::new(self.clone())
///     }
///
///     fn audit(&self, _: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
///         Ok(Box::new(self.clone()))
///     }
/// }
///
/// impl Reader for Fixed {
///     fn read(&mut self, run: &Run) -> Result<(), SourceError> {
///         let begun = Instant::now();
///         let generation = run.start_generation(self.0.len() as u64)?;
///         let mut loader = run.loader(&generation);
///         self.0.iter().try_for_each(|id| loader.row(Some(id.as_bytes())))?;
///         run.count(loader.finish()?);
///         run.publish_generation();
///         run.known_until(begun);
///         Ok(())
///     }
/// }
///
/// impl AuditSource for Fixed {
///     fn each_row(
///         &mut self,
///         each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
///     ) -> Result<(), SourceError> {
///         self.0.iter().try_for_each(|id| each(id.as_bytes()))
///     }
/// }
///
/// let ids = Arc::new(IdSet::new(IdType::text())?);
/// let source = Source::start(Arc::clone(&ids), Fixed(vec!["alice"]), SourceOptions::default());
/// let end = Instant::now() + Duration::from_secs(10);
/// while ids.state() != SyncState::Synced {
///     assert!(Instant::now() < end, "the source has not read the ids");
///     std::thread::sleep(Duration::from_millis(1));
/// }
/// assert!(ids.decide(b"alice").passes() && !ids.decide(b"bob").passes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait SourceKind: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the source for messages, such as `mysql shop.orders_07.id at db1:3306`. The name contains no
    /// password. The sources of one set must have different names.
    fn name(&self) -> String {
        "the source".to_owned()
    }

    /// Creates a reader without any state. A source creates one reader at its start, and a new reader after each panic
    /// of a reader.
    fn reader(&self, options: &SourceOptions) -> Box<dyn Reader>;

    /// Opens the source for an audit by [`audit`](crate::audit()).
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the source cannot be opened, or cannot list its ids.
    fn audit(&self, id: &IdType) -> Result<Box<dyn AuditSource>, SourceError>;

    /// Returns the resource that only one source may use at a time, for example a replication slot and its server.
    /// Returns `None` if several sources may read the same ids.
    fn exclusive(&self) -> Option<(&str, &str)> {
        None
    }

    /// Tests whether a snapshot of the ids can be published to other programs. Returns false for a copy of a filter
    /// with a foreign layout.
    fn is_publishable(&self) -> bool {
        true
    }
}
