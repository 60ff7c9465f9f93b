//! A slot to which the guard writes its verdict about a request.

use std::sync::{Arc, OnceLock};

use http::Extensions;
use tamis_sources::Verdict;

/// A slot for the verdict about one request. If the request has the slot as an extension, the guard writes its verdict
/// to the slot. A request without the slot costs one lookup in an empty map.
#[derive(Clone, Debug, Default)]
pub(crate) struct VerdictSlot(Arc<OnceLock<Decided>>);

/// The verdict and the name of its route.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) route: String,
    pub(crate) verdict: Verdict,
}

impl VerdictSlot {
    /// Writes a verdict if the request has a slot.
    pub(crate) fn write(extensions: &Extensions, route: &str, verdict: Verdict) {
        if let Some(Self(slot)) = extensions.get() {
            // The guard decides only once about a request.
            _ = slot.set(Decided { route: route.to_owned(), verdict });
        }
    }

    /// Returns the verdict. Returns `None` if no route matched, or if the client disconnected before the decision.
    pub(crate) fn get(&self) -> Option<&Decided> {
        self.0.get()
    }
}
