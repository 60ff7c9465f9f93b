//! The routes of a layer, and the routes that have checked no id.

use std::ops::Deref;
#[cfg(feature = "layer")]
use std::sync::atomic::{AtomicU64, Ordering};

use crate::request::route::Route;

/// After this number of requests, the layer logs each route that has checked no id.
#[cfg(feature = "layer")]
const FIRST_REQUESTS: u64 = 10_000;

/// The routes of a layer. The layer and its services share the routes.
#[derive(Debug)]
pub(crate) struct Routes {
    routes: Box<[Route]>,
    /// The number of requests, until the number is [`FIRST_REQUESTS`].
    #[cfg(feature = "layer")]
    requests: AtomicU64,
}

impl Routes {
    pub(crate) fn new(routes: impl IntoIterator<Item = Route>) -> Self {
        Self {
            routes: routes.into_iter().collect(),
            #[cfg(feature = "layer")]
            requests: AtomicU64::new(0),
        }
    }

    /// Returns the routes that have checked no id, without the exempt routes.
    pub(crate) fn idle(&self) -> impl Iterator<Item = &Route> {
        let checks = self.routes.iter().filter(|route| !route.is_exempt());
        checks.filter(|route| route.counters.checked() == 0)
    }

    /// Counts a request, and logs the idle routes after the first requests.
    #[cfg(feature = "layer")]
    pub(crate) fn count_request(&self) {
        // Relaxed: the number publishes no other data. After the first requests, the number is only read.
        if self.requests.load(Ordering::Relaxed) >= FIRST_REQUESTS
            || self.requests.fetch_add(1, Ordering::Relaxed) + 1 != FIRST_REQUESTS
        {
            return;
        }
        for route in self.idle() {
            let places: Vec<_> = route.ids().iter().map(|id| id.place.to_string()).collect();
            let states: Vec<_> = route.ids().iter().map(|id| id.ids.state().name()).collect();
            tracing::warn!(
                route = %route.name,
                path = %route.path(),
                ?places,
                ?states,
                unsure = route.counters.unsure(),
                requests = FIRST_REQUESTS,
                "the route has checked no id: compare its path, methods and places with a request; \
                 a router that nests the guard removes the prefix of the path; while a set is not \
                 synced, unknown ids pass, and `unsure` is the number of these requests"
            );
        }
    }
}

impl Deref for Routes {
    type Target = [Route];

    fn deref(&self) -> &[Route] {
        &self.routes
    }
}
