//! The headers that describe the client to the upstream service.

use std::io::Write as _;
use std::net::IpAddr;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{FORWARDED, HOST, HeaderName, HeaderValue};

use crate::request::place::is_same_header;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Removes the headers that only a trusted proxy may set. The function also removes variants of the header names with
/// `_` instead of `-`.
pub(super) fn remove(headers: &mut HeaderMap) {
    let names = [FOR, PROTO, FORWARDED_HOST, REAL_IP, FORWARDED];
    for name in &names {
        headers.remove(name);
    }
    let is_forged = |name: &&HeaderName| names.iter().any(|other| is_same_header(name, other));
    let forged: Vec<HeaderName> = headers.keys().filter(is_forged).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
}

/// Appends the client to `X-Forwarded-For`. Adds `X-Forwarded-Proto` and `X-Forwarded-Host` if the request does not
/// contain them.
pub(super) fn add(headers: &mut HeaderMap, client: IpAddr, is_tls: bool) {
    let mut chain = Vec::new();
    for value in headers.get_all(FOR) {
        chain.extend_from_slice(value.as_bytes());
        chain.extend_from_slice(b", ");
    }
    // Writing to a `Vec` never fails.
    _ = write!(chain, "{}", client.to_canonical());
    let chain = HeaderValue::from_maybe_shared(Bytes::from(chain));
    headers.insert(FOR, chain.expect("header values and an address"));
    let proto = HeaderValue::from_static(if is_tls { "https" } else { "http" });
    headers.entry(PROTO).or_insert(proto);
    if let Some(host) = headers.get(HOST).cloned() {
        headers.entry(FORWARDED_HOST).or_insert(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(is_trusted: bool) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "shop.example"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-forwarded-for", "10.0.0.2, 10.0.0.3"),
            ("x-forwarded-proto", "ftp"),
            ("forwarded", "for=10.0.0.9"),
            ("x-real-ip", "10.0.0.8"),
            ("x_forwarded_for", "10.0.0.7"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        if !is_trusted {
            remove(&mut headers);
        }
        add(&mut headers, "::ffff:192.0.2.1".parse().unwrap(), true);
        headers
    }

    #[test]
    fn values_of_a_trusted_proxy_stay() {
        let headers = sent(true);
        assert_eq!(headers["x-forwarded-for"], "10.0.0.1, 10.0.0.2, 10.0.0.3, 192.0.2.1");
        assert_eq!(headers["x-forwarded-proto"], "ftp");
        assert_eq!(headers["x-forwarded-host"], "shop.example");
        assert_eq!(headers["forwarded"], "for=10.0.0.9");
    }

    #[test]
    fn values_of_a_client_are_removed() {
        let headers = sent(false);
        assert_eq!(headers["x-forwarded-for"], "192.0.2.1");
        assert_eq!(headers["x-forwarded-proto"], "https");
        for name in ["forwarded", "x-real-ip", "x_forwarded_for"] {
            assert!(!headers.contains_key(name), "{name}");
        }
    }
}
