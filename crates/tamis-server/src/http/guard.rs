//! Checks the method, the requested host, the user and the password of a request.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};

use crate::http::answer::{self, Answer};
use crate::http::console::Console;
use crate::shared_state::SharedState;
use crate::users::User;

/// Returns the error response of a request that is not allowed. Returns `None` if the request is
/// allowed.
pub(super) fn refuse(console: &Console, request: &Request<Incoming>) -> Option<Answer> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refusal = answer::error(
            StatusCode::METHOD_NOT_ALLOWED,
            "the console only reads: send GET or HEAD, and commands to the Redis port",
        );
        refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(refusal);
    }
    if !request.body().is_end_stream() {
        return Some(closing(answer::error(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the console accepts no request body: put the parameters into the address",
        )));
    }
    // Prevent DNS rebinding: a page of another site, whose host name resolves to this address, must
    // not read the data.
    if console.address.ip().is_loopback() && !is_local(request) {
        return Some(answer::error(
            StatusCode::MISDIRECTED_REQUEST,
            "this console is for this machine: ask localhost or 127.0.0.1, or set http-bind",
        ));
    }
    None
}

/// Returns the user of a request. A request without credentials has the default user if the default
/// user needs no password.
pub(super) fn user_of(shared: &SharedState, headers: &HeaderMap) -> Option<Arc<User>> {
    let Some((name, password)) = headers.get(header::AUTHORIZATION).and_then(credentials) else {
        return Some(shared.users.default_user()).filter(|user| user.is_open());
    };
    let user = shared.users.authenticate(&name, &password);
    if user.is_none() {
        tracing::warn!("authentication for the console failed: wrong user or password");
    }
    user
}

/// The header that the page sets in its own requests.
const CONSOLE_HEADER: &str = "x-tamis-console";

/// Returns a response that requests a user and a password. The browser shows its login form, unless
/// the console page sent the request, because the page has its own form.
pub(super) fn unauthorized(headers: &HeaderMap) -> Answer {
    let mut refusal = answer::error(
        StatusCode::UNAUTHORIZED,
        "give user and password as for the Redis port; the user is 'default' unless there are \
        others",
    );
    if !headers.contains_key(CONSOLE_HEADER) {
        let challenge = HeaderValue::from_static("Basic realm=\"Tamis\", charset=\"UTF-8\"");
        refusal.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    refusal
}

/// Closes the connection after the response, so that the server reads no further request from the
/// connection.
pub(super) fn closing(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Tests whether every host name in a request is a loopback name of this machine.
fn is_local(request: &Request<Incoming>) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let is_local_target =
        request.uri().authority().is_none_or(|authority| names_loopback(authority.as_str()));
    hosts.next().is_none() && host.is_some_and(names_loopback) && is_local_target
}

/// Tests whether `host` or `host:port` is a loopback name of this machine.
fn names_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Decodes the user and the password of HTTP Basic authentication.
fn credentials(header: &HeaderValue) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, encoded) = header.as_bytes().split_at_checked(6)?;
    let decoded = scheme.eq_ignore_ascii_case(b"basic ").then(|| from_base64(encoded))??;
    let colon = decoded.iter().position(|&c| c == b':')?;
    Some((decoded[..colon].to_vec(), decoded[colon + 1..].to_vec()))
}

/// Decodes base64 as in RFC 4648, with or without padding.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|&c| c != b'=').map_or(0, |last| last + 1);
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(end), 0_u32, 0);
    for &c in &text[..end] {
        let digit = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_strictly() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYmFy", b"foobar"),
            ("/+8=", b"\xff\xef"),
        ] {
            assert_eq!(from_base64(text.as_bytes()).as_deref(), Some(bytes), "{text}");
        }
        for text in ["Zm 9v", "Zm=9v", "-_", "\u{e9}"] {
            assert_eq!(from_base64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn credentials_end_at_the_first_colon() {
        let read = |text: &str| credentials(&HeaderValue::from_str(text).unwrap());
        let pair = Some((b"default".to_vec(), b"a:b".to_vec()));
        assert_eq!(read("basic ZGVmYXVsdDphOmI="), pair);
        for text in ["Basic", "Basic ", "Basic ZGVmYXVsdA==", "Bearer ZGVmYXVsdDphOmI=", ""] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn only_names_of_loopback_are_local() {
        for host in
            ["localhost", "LocalHost:8379", "127.0.0.1", "127.1.2.3:1", "[::1]:8379", "[::1]"]
        {
            assert!(names_loopback(host), "{host}");
        }
        for host in [
            "",
            ":8379",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8379",
            "0.0.0.0",
            "10.0.0.1",
            "127.0.0.1:80@evil.example",
            "[::2]",
        ] {
            assert!(!names_loopback(host), "{host}");
        }
    }
}
