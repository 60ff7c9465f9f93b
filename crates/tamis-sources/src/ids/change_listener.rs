//! Who gets the changes of a set.

use std::any::Any;
use std::fmt;
use std::time::Instant;

use crate::ids::change_kind::ChangeKind;

/// Gets the changes of a set, such as a feed for other programs. [`IdSet::listen`](crate::IdSet::listen) registers it.
///
/// A listener must call each function that it gets exactly once, and may hold a lock meanwhile. It then knows the changes of
/// an id in the order in which the set has applied them.
pub trait ChangeListener: Any + fmt::Debug + Send + Sync {
    /// Applies a change of an id by calling `apply`, and records it.
    fn record(&self, kind: ChangeKind, id: &[u8], apply: &mut dyn FnMut());

    /// Replaces all ids of the set by calling `swap`, and records it.
    fn replace(&self, swap: &mut dyn FnMut());

    /// Records that the set has all ids that were committed before `moment`; `None` after changes were lost.
    fn set_known_until(&self, moment: Option<Instant>);
}
