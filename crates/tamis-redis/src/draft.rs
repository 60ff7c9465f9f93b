//! A new filter that is filled before other clients see it.

use tamis::Item;

use crate::error::{RedisCreateError, RedisItemError};
use crate::exchange::{Blocking, complete};
use crate::filter::RedisFilter;
use crate::generation::RedisGeneration;
use crate::lifecycle::{prepare, publish};
use crate::metadata::Metadata;
use crate::plan::RedisPlan;
use crate::transport::Transport;
use crate::view::View;

/// A new filter that other clients do not see before it is [published](Self::publish).
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
    /// Prepares a filter. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`RedisCreateError::Name`] for a name with a brace.
    ///
    /// # Panics
    ///
    /// If the plan is a window: its items would expire while it is filled. Create it.
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

    /// Allocates the memory of the filter.
    ///
    /// # Errors
    ///
    /// [`RedisCreateError::Exists`] if the key exists; [`RedisCreateError::Redis`] if the server or
    /// the connection fails. Nothing is left then, as far as the server answers.
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
    /// [`RedisCreateError::Exists`] if another client has created the key meanwhile. The items are
    /// then deleted. [`RedisCreateError::Redis`] if the server or the connection fails.
    pub fn publish(mut self) -> Result<RedisFilter<T>, RedisCreateError> {
        self.filter.flush()?;
        let RedisFilter { transport, view } = &mut self.filter;
        complete(publish(&mut Blocking(transport), view))?;
        Ok(self.filter)
    }
}
