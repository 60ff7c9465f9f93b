//! The key of a request: the parts of the request on which a 404 response may depend.

use std::hash::Hasher as _;
use std::sync::LazyLock;

use http::Method;
use http::header::{CONTENT_LENGTH, HeaderName, TRANSFER_ENCODING};
use http::request::Parts;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Headers whose values differ between requests, but do not change whether the response is 404.
const IGNORED: [&str; 13] = [
    "age",
    "b3",
    "cache-control",
    "if-modified-since",
    "if-none-match",
    "pragma",
    "range",
    "referer",
    "traceparent",
    "tracestate",
    "x-b3-traceid",
    "x-b3-spanid",
    "x-request-id",
];

/// The 128-bit hash of all parts of a request on which the response may depend: the method, the target and the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestKey(u128);

impl RequestKey {
    /// Returns the key of a request. Returns `None` if the method is neither GET nor HEAD, because the cache stores
    /// only responses to GET and HEAD. Also returns `None` if the head announces a body, because the key does not contain
    /// the body.
    ///
    /// # Panics
    ///
    /// Panics if the operating system returns no random bytes.
    #[must_use]
    pub fn of(parts: &Parts) -> Option<Self> {
        // The hash key is secret, so that an attacker cannot choose two requests with the same hash.
        static HASHER: LazyLock<SipHasher13> = LazyLock::new(|| {
            let mut key = [0; 16];
            getrandom::fill(&mut key).expect("the system has random bytes");
            SipHasher13::new_with_key(&key)
        });
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return None;
        }
        let has_length = parts.headers.get_all(CONTENT_LENGTH).iter().any(|length| length != "0");
        if has_length || parts.headers.contains_key(TRANSFER_ENCODING) {
            return None;
        }
        let mut hasher = *HASHER;
        let mut write = |bytes: &[u8]| {
            // A header value may contain each byte from 0x80 to 0xff, so no byte separates the parts unambiguously.
            hasher.write_u64(bytes.len() as u64);
            hasher.write(bytes);
        };
        write(parts.method.as_str().as_bytes());
        write(parts.uri.authority().map_or(&b""[..], |host| host.as_str().as_bytes()));
        write(parts.uri.path_and_query().map_or(&b""[..], |path| path.as_str().as_bytes()));
        for (name, value) in &parts.headers {
            if !is_ignored(name) {
                write(name.as_str().as_bytes());
                write(value.as_bytes());
            }
        }
        Some(Self(hasher.finish128().as_u128()))
    }

    /// Returns the digest of the pair of an id and this request. `id` is the 128-bit keyed hash of the id.
    ///
    /// Both hashes have secret keys. Two different pairs have the same digest with a probability of 2⁻¹²⁸.
    pub(super) fn digest_with(self, id: u128) -> u128 {
        self.0 ^ id
    }
}

fn is_ignored(name: &HeaderName) -> bool {
    IGNORED.contains(&name.as_str())
}

#[cfg(test)]
pub(super) mod tests {
    use http::Request;

    use super::*;

    /// Returns the key of a GET request.
    pub fn key(uri: &str, headers: &[(&str, &str)]) -> RequestKey {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        RequestKey::of(&request.body(()).unwrap().into_parts().0).unwrap()
    }

    #[test]
    fn only_the_same_request_has_the_same_key() {
        let plain = key("/products/7", &[("host", "a"), ("cookie", "user=1")]);
        assert_eq!(plain, key("/products/7", &[("host", "a"), ("cookie", "user=1")]));
        let traced = [("host", "a"), ("cookie", "user=1"), ("x-request-id", "5")];
        assert_eq!(plain, key("/products/7", &traced));
        for (uri, headers) in [
            ("/products/7/", &[("host", "a"), ("cookie", "user=1")][..]),
            ("/products/7?", &[("host", "a"), ("cookie", "user=1")]),
            ("/products/7", &[("host", "b"), ("cookie", "user=1")]),
            ("/products/7", &[("host", "a"), ("cookie", "user=2")]),
            ("/products/7", &[("host", "a"), ("token", "user=1")]),
            ("/products/7", &[("host", "a")]),
        ] {
            assert_ne!(plain, key(uri, headers), "{uri} {headers:?}");
        }
        // A part must not look like several parts.
        let split = Request::builder().uri("/products/7").header("host", "a");
        let joined = http::HeaderValue::from_bytes(b"a\xffcookie\xffuser=1").unwrap();
        let joined = Request::builder().uri("/products/7").header("host", joined);
        let of = |request: http::request::Builder| {
            RequestKey::of(&request.body(()).unwrap().into_parts().0).unwrap()
        };
        assert_ne!(of(joined), of(split.header("cookie", "user=1")));
        for (name, value, is_kept) in [
            ("content-length", "0", true),
            ("content-length", "9", false),
            ("transfer-encoding", "chunked", false),
        ] {
            let request =
                Request::builder().uri("/products/7").header(name, value).body(()).unwrap();
            assert_eq!(
                RequestKey::of(&request.into_parts().0).is_some(),
                is_kept,
                "{name}: {value}"
            );
        }
        let post = Request::builder().method("POST").uri("/products/7").body(()).unwrap();
        assert_eq!(RequestKey::of(&post.into_parts().0), None);
    }
}
