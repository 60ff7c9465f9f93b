//! A new filter that a client fills before other clients see the filter.

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

/// A new filter that is invisible to other clients until the client [publishes](Self::publish) the
/// filter.
///
/// If a program drops a draft, the keys of the draft stay on the server. To delete the keys of a
/// draft, call [`RedisGeneration::discard`].
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{Patience, RedisDraft, RedisPlan, SingleNode};
///
/// let node = SingleNode::new("redis://localhost", Patience::default())?;
/// let draft = RedisDraft::new(node, "users", &RedisPlan::new(1_000_000, 0.01)?)?;
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
    /// Creates a draft in memory. Sends no command to the server.
    ///
    /// # Errors
    ///
    /// [`RedisCreateError::Name`] if the name is empty, or has a brace outside a hash tag.
    ///
    /// # Panics
    ///
    /// Panics if the plan is a window. For a window, use [`RedisFilter::create`], because the items
    /// of a window expire.
    pub fn new(transport: T, name: &str, plan: &RedisPlan) -> Result<Self, RedisCreateError> {
        assert!(plan.window_span().is_none(), "a window is not filled before it is created");
        let view = View::new(name.as_bytes(), Metadata::new(plan, 0))?;
        Ok(Self { filter: RedisFilter { transport, view } })
    }

    /// Returns the keys of the filter. A program that is interrupted uses this generation to delete
    /// the keys of the draft.
    pub fn generation(&self) -> RedisGeneration {
        let view = &self.filter.view;
        RedisGeneration::new(view.name(), view.metadata.generations[0].clone())
    }

    /// Creates the keys of the filter at their full size. Call this method before the first insert.
    ///
    /// # Errors
    ///
    /// [`RedisCreateError::Exists`] if the key exists; [`RedisCreateError::Redis`] if the server or
    /// the connection fails. After an error, `start` deletes the new keys. If the server does not
    /// reply to the deletion, the new keys remain.
    pub fn start(&self) -> Result<(), RedisCreateError> {
        let RedisFilter { transport, view } = &self.filter;
        complete(prepare(&mut Blocking(transport), view))
    }

    /// Inserts a batch of items, like [`RedisFilter::insert_each`].
    pub fn insert_each<I: Item>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.filter.insert_each(items)
    }

    /// Inserts a batch of items by their hashes, like [`RedisFilter::insert_hashes`].
    pub fn insert_hashes(&self, hashes: &[u64]) -> Vec<Result<bool, RedisItemError>> {
        self.filter.insert_hashes(hashes)
    }

    /// Makes the filter visible to other clients.
    ///
    /// # Errors
    ///
    /// [`RedisCreateError::Exists`] if another client created the key before this call. If the key
    /// exists, `publish` deletes the keys of the draft. [`RedisCreateError::Redis`] if the server
    /// or the connection fails. After a failure of the server or the connection, the keys of the
    /// draft may remain.
    pub fn publish(self) -> Result<RedisFilter<T>, RedisCreateError> {
        self.filter.flush()?;
        let RedisFilter { transport, view } = &self.filter;
        complete(publish(&mut Blocking(transport), &mut view.latest()))?;
        Ok(self.filter)
    }
}
