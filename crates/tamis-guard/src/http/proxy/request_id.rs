//! Request ids: the header `X-Request-Id` correlates the log lines of several programs.

use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Generates ids for requests without an id. An id consists of a random number of this process and a counter, so an id
/// is unique but predictable.
#[derive(Debug)]
pub(super) struct RequestIds {
    process: u64,
    next: AtomicU64,
}

impl RequestIds {
    pub(super) fn new() -> Self {
        let process = getrandom::u64().expect("the system has random bytes");
        Self { process, next: AtomicU64::new(0) }
    }

    /// Returns the id of a request. If the request has no id, generates an id and adds it to the headers.
    pub(super) fn of(&self, headers: &mut HeaderMap) -> HeaderValue {
        let id = headers.entry(REQUEST_ID).or_insert_with(|| {
            // Relaxed: the only requirement is that the numbers differ.
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let text = format!("{:016x}{number:016x}", self.process);
            HeaderValue::try_from(text).expect("hexadecimal digits")
        });
        id.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_the_client_stays_and_new_ids_differ() {
        let ids = RequestIds::new();
        let mut headers = HeaderMap::new();
        headers.append(REQUEST_ID, HeaderValue::from_static("first"));
        headers.append(REQUEST_ID, HeaderValue::from_static("second"));
        assert_eq!(ids.of(&mut headers), "first");
        assert_eq!(headers.get_all(REQUEST_ID).iter().count(), 2);
        let (mut a, mut b) = (HeaderMap::new(), HeaderMap::new());
        assert_ne!(ids.of(&mut a), ids.of(&mut b));
        assert_eq!(a[REQUEST_ID].len(), 32);
    }
}
