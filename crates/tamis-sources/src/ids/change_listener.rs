//! The receiver of the changes of a set.

use std::any::Any;
use std::fmt;
use std::time::Instant;

use crate::ids::change_kind::ChangeKind;

/// Receives the changes of a set, for example to feed other programs. [`IdSet::listen`](crate::IdSet::listen) registers
/// the listener.
///
/// Each method must call its function argument exactly once. The listener may hold a lock while it calls the function
/// argument. With a lock, the listener records the changes of an id in the order in which the set applies the changes.
pub trait ChangeListener: Any + fmt::Debug + Send + Sync {
    /// Applies a change of an id by calling `apply`, and records the change.
    fn record(&self, kind: ChangeKind, id: &[u8], apply: &mut dyn FnMut());

    /// Replaces all ids of the set by calling `swap`, and records the replacement.
    fn replace(&self, swap: &mut dyn FnMut());

    /// Records that the set contains all ids that were committed before `moment`. `None` means that changes were lost.
    fn set_known_until(&self, moment: Option<Instant>);
}
