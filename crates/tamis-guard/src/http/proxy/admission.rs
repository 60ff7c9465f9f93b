//! Rejects ambiguous requests, and normalizes all other requests for the upstream service.
//!
//! If two programs interpret one request differently, an attacker can hide a request from the guard (request
//! smuggling). `hyper` has already rejected malformed heads.

use http::header::{CONNECTION, COOKIE, EXPECT, HOST, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, Method, StatusCode, Uri, Version};
use http_body::Body;

use crate::http::proxy::answer::Failure;
use crate::http::proxy::hop_by_hop::{self, Asked};
use crate::http::proxy::options::ProxyOptions;
use crate::http::proxy::{forwarded, tunnel};

const fn bad(message: &'static str) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, message)
}

/// Checks the head of a request and prepares the head for the upstream service.
pub(super) fn admit(
    parts: &mut Parts,
    body: &impl Body,
    options: &ProxyOptions,
) -> Result<(), Failure> {
    if parts.method == Method::CONNECT {
        let message = "this proxy opens no connections to other hosts";
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, message));
    }
    if !hop_by_hop::is_framing_clear(&parts.headers) {
        return Err(bad("the length of the body is ambiguous"));
    }
    check_host(parts)?;
    parts.uri = target(parts)?;
    let asked = hop_by_hop::remove(&mut parts.headers)
        .map_err(|_| bad("the Connection header is not valid"))?;
    if parts.version == Version::HTTP_2 {
        join_cookies(&mut parts.headers);
    }
    set_framing(parts, body);
    // The proxy handles `100-continue` itself: it requests the body when the upstream service reads the body. All
    // expectations except `100-continue` stay in the head.
    let is_continue = |it: &HeaderValue| it.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if parts.headers.get_all(EXPECT).iter().all(is_continue) {
        parts.headers.remove(EXPECT);
    }
    if !options.trust_forwarded {
        forwarded::remove(&mut parts.headers);
    }
    set_connection(parts, &asked, body);
    parts.version = Version::HTTP_11;
    Ok(())
}

/// Ensures that the request has exactly one host, and that the target does not contradict this host.
fn check_host(parts: &mut Parts) -> Result<(), Failure> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(bad("there is more than one Host header"));
    }
    let target = parts.uri.authority().map(Authority::as_str);
    match (host, target) {
        (Some(host), target) => {
            let is_host = |host: &str| {
                !host.contains('@') && host.parse::<Authority>().is_ok_and(|it| it.host() != "")
            };
            match host.to_str() {
                Ok(host) if is_host(host) => {
                    if target.is_some_and(|target| !target.eq_ignore_ascii_case(host)) {
                        return Err(bad("the target and the Host header name different hosts"));
                    }
                }
                _ => return Err(bad("the Host header is not valid")),
            }
        }
        (None, Some(target)) if parts.version != Version::HTTP_11 => {
            if target.contains('@') {
                return Err(bad("the target names a user"));
            }
            let host = HeaderValue::from_str(target).map_err(|_| bad("the host is not valid"))?;
            parts.headers.insert(HOST, host);
        }
        (None, None) if parts.version == Version::HTTP_10 => {}
        (None, _) => return Err(bad("there is no Host header")),
    }
    Ok(())
}

/// Returns the path and the query of the target without any change.
fn target(parts: &Parts) -> Result<Uri, Failure> {
    let path = parts.uri.path_and_query().map_or("", PathAndQuery::as_str);
    let is_path = path.starts_with('/') || path.starts_with('?') && parts.uri.scheme().is_some();
    let is_star = path == "*" && parts.method == Method::OPTIONS;
    if !is_path && !is_star {
        return Err(bad("the target is not valid"));
    }
    let path = parts.uri.path_and_query().expect("checked above").clone();
    Ok(Uri::from(path))
}

/// Joins the parts of a cookie, because HTTP/2 may split a cookie (RFC 9113, section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let parts: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if parts.len() > 1 {
        let joined = parts.join(&b"; "[..]);
        let joined = HeaderValue::from_bytes(&joined).expect("parts of header values");
        headers.insert(COOKIE, joined);
    }
}

/// Adds the header `Transfer-Encoding` to an HTTP/2 request whose body has an unknown length, because HTTP/1.1 needs
/// the header.
fn set_framing(parts: &mut Parts, body: &impl Body) {
    if parts.version == Version::HTTP_2
        && !body.is_end_stream()
        && body.size_hint().exact().is_none()
    {
        parts.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

/// Sets the headers for the connection to the upstream service.
fn set_connection(parts: &mut Parts, asked: &Asked, body: &impl Body) {
    let protocols = tunnel::protocols(&parts.headers).unwrap_or_default();
    // If an upgrade request had a body, the proxy and the upstream service could disagree about the end of the HTTP
    // message.
    let upgrades = asked.upgrades
        && body.is_end_stream()
        && parts.version == Version::HTTP_11
        && !protocols.is_empty()
        && protocols.iter().all(|protocol| tunnel::is_allowed(protocol));
    parts.headers.remove(UPGRADE);
    let connection = match (upgrades, asked.takes_trailers) {
        (true, true) => "upgrade, te",
        (true, false) => "upgrade",
        (false, true) => "te",
        (false, false) => return,
    };
    if upgrades {
        let value = HeaderValue::from_str(&protocols.join(", ")).expect("parts of header values");
        parts.headers.insert(UPGRADE, value);
    }
    if asked.takes_trailers {
        parts.headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    parts.headers.insert(CONNECTION, HeaderValue::from_static(connection));
}
