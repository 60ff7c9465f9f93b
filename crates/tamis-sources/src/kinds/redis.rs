//! Reads ids from a filter on a Redis server, on `tamis serve`, or on another server with the Redis protocol.
//!
//! The guard decides with a copy of the filter, so a request needs no round trip to the server.
//!
//! ```text
//! connection 1:  WATCH key                            MULTI EXEC: unchanged?   WATCH key
//! connection 2:              TYPE, DUMP, GET ...      WATCH key                MULTI EXEC ...
//!                            the copy is published
//! ```
//!
//! * **The check is cheap and reliable.** `EXEC` fails if any client has changed a watched key since `WATCH`. A change
//!   is an added item, a deletion, a replacement or an expiry. The number of items cannot show a change, because a
//!   replaced filter may have the same number of items as the old filter.
//! * **The check misses no change.** The second connection watches the keys before the first connection runs `EXEC`.
//!   After the check, the two connections exchange their roles.
//! * **A copy lacks no item.** The source watches the keys before it reads the values. One command reads a whole value.
//!   The source reads the shards of `tamis-redis` one by one. Reading the shards one by one is correct, because clients
//!   only set bits.
//! * **The server is a primary.** The source checks the role of the server before each check of the keys. A replica
//!   lags. A replaced primary receives no new items.
//! * **The source reads a changed filter as a whole.** If the filter always changes, the source reads the whole filter
//!   at each interval.
//!
//! After a broken connection, the source reads the filter again, because it may have missed a change.

mod connection;
mod copied;
mod options;
mod value;
mod watch;

use std::time::Instant;

use tamis_redis::{KeyUrl, ServerAddress};

pub use options::RedisOptions;

use crate::errors::redis_error::RedisSourceError;
use crate::errors::source_error::SourceError;
use crate::ids::base::Base;
use crate::ids::generation::Generation;
use crate::ids::id::IdType;
use crate::source::audit_source::AuditSource;
use crate::source::kind::SourceKind;
use crate::source::run::{Reader, Run, SourceOptions};
use watch::Watch;

impl SourceKind for RedisOptions {
    fn reader(&self, _: &SourceOptions) -> Box<dyn Reader> {
        Box::new(RedisReader { options: self.clone(), watch: None, items: None })
    }

    /// Returns an error, because a filter cannot list its ids.
    fn audit(&self, _: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
        Err(SourceError::NoList)
    }

    fn is_publishable(&self) -> bool {
        false
    }
}

/// Reads a filter again when its keys change.
#[derive(Debug)]
struct RedisReader {
    options: RedisOptions,
    /// The watch on the keys of the current copy. The value is `None` before the first copy and after a connection
    /// error.
    watch: Option<Watch>,
    /// The number of ids in the current generation.
    items: Option<u64>,
}

impl Reader for RedisReader {
    fn read(&mut self, run: &Run) -> Result<(), SourceError> {
        self.update(run).map_err(|error| {
            self.watch = None;
            match error {
                RedisSourceError::Stopped => SourceError::Stopped,
                RedisSourceError::Plan(error) => SourceError::Plan(error),
                RedisSourceError::TooFew { items, least } => SourceError::TooFew { items, least },
                error => SourceError::Redis { name: self.options.name(), error },
            }
        })
    }
}

impl RedisReader {
    fn update(&mut self, run: &Run) -> Result<(), RedisSourceError> {
        let start = Instant::now();
        let is_stopped = || run.is_stopped();
        if let Some(watch) = &mut self.watch
            && !run.is_rebuild_asked()
        {
            match watch.check_role(&is_stopped).and_then(|()| watch.is_unchanged(&is_stopped)) {
                Ok(true) => {
                    run.known_until(start);
                    return Ok(());
                }
                Ok(false) => {}
                Err(RedisSourceError::Stopped) => return Err(RedisSourceError::Stopped),
                // The server may have restarted: the next read opens new connections.
                Err(_) => self.watch = None,
            }
        }
        let url = KeyUrl::parse(&self.options.url, None)?;
        let address: ServerAddress = url.address()?;
        let watch = match &mut self.watch {
            Some(watch) => watch,
            None => {
                let ca = self.options.ca.as_deref();
                self.watch.insert(Watch::connect(&address, ca, &is_stopped)?)
            }
        };
        watch.check_role(&is_stopped)?;
        watch.restart(&is_stopped)?;
        let base = value::read(watch, &url.key, &self.options, &is_stopped)?;
        self.publish(run, base, start)
    }

    fn publish(&mut self, run: &Run, base: Base, start: Instant) -> Result<(), RedisSourceError> {
        let items = base.items;
        let before = self.items.unwrap_or_else(|| run.published_items()) as f64;
        let least = (before * self.options.min_share).ceil() as u64;
        let least = least.max(self.options.min_items);
        if items < least {
            return Err(RedisSourceError::TooFew { items, least });
        }
        let generation = Generation::over(base, run.rate())?;
        run.start_generation_from(generation);
        run.publish_generation();
        self.items = Some(items);
        run.known_until(start);
        Ok(())
    }
}
