//! A new filter that is filled before other clients see it.

use tamis::Item;

use crate::error::{RedisCreateError, RedisItemError};
use crate::filter::RedisFilter;
use crate::layouts::generation::RedisGeneration;
use crate::layouts::metadata::Metadata;
use crate::layouts::view::View;
use crate::operations::lifecycle::{prepare, publish};
use crate::plan::RedisPlan;
use crate::transport::blocking::Transport;
use crate::transport::exchange::{Blocking, complete};

/// A new filter that other clients do not see before it is [published](Self::publish).
///
/// A draft that is dropped leaves its keys on the server: call [`RedisGeneration::discard`].
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{Patience, RedisDraft, RedisPlan, SingleNode};
///
/// let node = SingleNode::new("redis://localhost", Patience::default())?;
/// let mut draft = RedisDraft::new(node, "users", &RedisPlan::new(1_000_000, 0.01)?)?;
/// draft.start()?;
/// for result in draft.insert_each(&["alice", "bob"]) {
///     result?;
/// }
/// let mut users = draft.publish()?;
/// assert!(users.contains("alice")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RedisDraft<T> {
    filter: RedisFilter<T>,
}

impl<T: Transport> RedisDraft<T> {
    /// Creates a draft in memory. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`RedisCreateError::Name`] for an empty name, or for a brace that is not part of a hash tag.
    ///
    /// # Panics
    ///
    /// If the plan is a window: its items expire, so use [`RedisFilter::create`].
    pub fn new(transport: T, name: &str, plan: &RedisPlan) -> Result<Self, RedisCreateError> {
        assert!(plan.window_span().is_none(), "a window is not filled before it is created");
        let view = View::new(name.as_bytes(), Metadata::new(plan, 0))?;
        Ok(Self { filter: RedisFilter { transport, view } })
    }

    /// Returns the keys of the filter, to delete them if the program is interrupted.
    pub fn generation(&self) -> RedisGeneration {
        let view = &self.filter.view;
        RedisGeneration::new(view.name(), view.metadata.generations[0].clone())
    }

    /// Creates the keys of the filter at their full size. Call it before the first insert.
    ///
    /// # Errors
    ///
    /// [`RedisCreateError::Exists`] if the key exists; [`RedisCreateError::Redis`] if the server or
    /// the connection fails. The call then deletes the keys that it created; if the server does not
    /// answer, they remain.
    pub fn start(&mut self) -> Result<(), RedisCreateError> {
        let RedisFilter { transport, view } = &mut self.filter;
        complete(prepare(&mut Blocking(transport), view))
    }

    /// Inserts a batch of items, as [`RedisFilter::insert_each`] does.
    pub fn insert_each<I: Item>(&mut self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.filter.insert_each(items)
    }

    /// Inserts a batch of items by their hashes, as [`RedisFilter::insert_hashes`] does.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Vec<Result<bool, RedisItemError>> {
        self.filter.insert_hashes(hashes)
    }

    /// Shows the filter to other clients.
    ///
    /// # Errors
    ///
    /// [`RedisCreateError::Exists`] if another client created the key in the meantime; the keys of
    /// the draft are then deleted. [`RedisCreateError::Redis`] if the server or the connection fails;
    /// the keys may remain.
    pub fn publish(mut self) -> Result<RedisFilter<T>, RedisCreateError> {
        self.filter.flush()?;
        let RedisFilter { transport, view } = &mut self.filter;
        complete(publish(&mut Blocking(transport), view))?;
        Ok(self.filter)
    }
}
