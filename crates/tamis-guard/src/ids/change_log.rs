//! Passes the changes of a set to the feed of its followers, if the set is published.

use std::time::Instant;

#[cfg(feature = "proxy")]
use crate::fleet::feed::Feed;
use crate::ids::change_kind::ChangeKind;

/// Passes the changes of a set to its feed, if it has one.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    #[cfg(feature = "proxy")]
    feed: std::sync::OnceLock<std::sync::Arc<Feed>>,
}

#[cfg(feature = "proxy")]
impl ChangeLog {
    /// Returns the feed, and creates it if there is none. It gets all changes from now on.
    pub(crate) fn feed(&self, max_bytes: usize) -> std::sync::Arc<Feed> {
        let feed = self.feed.get_or_init(|| std::sync::Arc::new(Feed::new(max_bytes)));
        std::sync::Arc::clone(feed)
    }

    pub(crate) fn record<R>(&self, kind: ChangeKind, id: &[u8], apply: impl FnOnce() -> R) -> R {
        match self.feed.get() {
            Some(feed) => feed.record(kind, id, apply),
            None => apply(),
        }
    }

    pub(crate) fn replace(&self, swap: impl FnOnce()) {
        match self.feed.get() {
            Some(feed) => feed.replace(swap),
            None => swap(),
        }
    }

    pub(crate) fn set_known_until(&self, moment: Option<Instant>) {
        if let Some(feed) = self.feed.get() {
            feed.set_known_until(moment);
        }
    }
}

/// Without the proxy, no set is published.
#[cfg(not(feature = "proxy"))]
impl ChangeLog {
    pub(crate) fn record<R>(&self, _: ChangeKind, _: &[u8], apply: impl FnOnce() -> R) -> R {
        apply()
    }

    pub(crate) fn replace(&self, swap: impl FnOnce()) {
        swap();
    }

    pub(crate) fn set_known_until(&self, _: Option<Instant>) {}
}
