//! Where the guard writes what it decided about a request, for a caller that asks for it.

use std::sync::{Arc, OnceLock};

use http::Extensions;
use tamis_sources::Verdict;

/// A place for the decision about one request. As an extension of the request, it makes the guard
/// write its decision there. Without it, a request costs one lookup in an empty map.
#[derive(Clone, Debug, Default)]
pub(crate) struct VerdictSlot(Arc<OnceLock<Decided>>);

/// What was decided, and by which route.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) route: String,
    pub(crate) verdict: Verdict,
}

impl VerdictSlot {
    /// Writes a decision, if the caller asks for it.
    pub(crate) fn write(extensions: &Extensions, route: &str, verdict: Verdict) {
        if let Some(Self(slot)) = extensions.get() {
            // A request is decided about once.
            _ = slot.set(Decided { route: route.to_owned(), verdict });
        }
    }

    /// Returns the decision; `None` if no route matched, or the client went away before.
    pub(crate) fn get(&self) -> Option<&Decided> {
        self.0.get()
    }
}
