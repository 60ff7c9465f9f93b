//! Reads the request of the client from a question of another proxy.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Uri};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use crate::http::authorize::other_proxy::{OtherProxy, RequestPlace};

/// The reason why the guard cannot decide about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadQuestion {
    /// The client sent a request with an invalid target or an invalid method.
    Request,
    /// The other proxy is configured wrongly. The field says what to change.
    Proxy(String),
}

/// The bytes that the parser of `http` rejects in a target. nginx and other proxies pass these bytes to the program.
const REJECTED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`');

/// Replaces the head of a question by the head of the client's request. All headers stay, because the other proxy
/// copies the headers of the client into its question.
///
/// # Errors
///
/// [`BadQuestion`] if the question lacks a valid description of the request.
pub(super) fn read_original(question: &mut Parts, proxy: OtherProxy) -> Result<(), BadQuestion> {
    let RequestPlace::Headers { target, method } = proxy.request_place() else {
        return Ok(());
    };
    let original = only_value(&question.headers, &target, proxy)?;
    let uri = target_of(original.as_bytes()).ok_or(BadQuestion::Request)?;
    let original = only_value(&question.headers, &method, proxy)?;
    let original = Method::from_bytes(original.as_bytes());
    question.method = original.map_err(|_| BadQuestion::Request)?;
    question.uri = uri;
    // The question has no body, and the length of the client's body belongs to no body.
    question.headers.remove(CONTENT_LENGTH);
    Ok(())
}

/// Returns the value of a header that the other proxy must set. If the proxy adds the header instead of replacing the
/// header, a client could choose the request about which the guard decides.
fn only_value<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
    proxy: OtherProxy,
) -> Result<&'h HeaderValue, BadQuestion> {
    let mut values = headers.get_all(name).iter();
    let wrong = |what: &str| {
        let (proxy, name) = (proxy.name(), name.as_str());
        BadQuestion::Proxy(format!(
            "the question of {proxy} {what} {name}: let {proxy} replace this header in each question"
        ))
    };
    let value = values.next().ok_or_else(|| wrong("has no header"))?;
    match values.next() {
        None => Ok(value),
        Some(_) => Err(wrong("has more than one header")),
    }
}

/// Parses the target of a request: a path with a query, an absolute URL, or `*`. Returns `None` if the target is none
/// of them. A number sign belongs to no target: some programs remove the text after the sign, and others do not. If the
/// guard chose one of the two readings, an absent id in the other reading would reach the program.
fn target_of(target: &[u8]) -> Option<Uri> {
    if target.contains(&b'#') {
        return None;
    }
    let target = if target.starts_with(b"/") { target } else { without_authority(target)? };
    let encoded: Cow<'_, str> = percent_encode(target, REJECTED).into();
    let bytes = Bytes::copy_from_slice(encoded.as_bytes());
    PathAndQuery::from_maybe_shared(bytes).ok().map(Uri::from)
}

/// Returns the path and the query of an absolute URL. The target `*` has no path, and is returned unchanged.
///
/// An authority with other characters than a host and a port have is invalid, because a proxy may find the path at
/// another place.
fn without_authority(target: &[u8]) -> Option<&[u8]> {
    if target == b"*" {
        return Some(target);
    }
    let scheme = [&b"http://"[..], b"https://"].into_iter().find(|scheme| {
        target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })?;
    let rest = &target[scheme.len()..];
    let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let is_in_authority = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:[]".contains(byte);
    let is_authority = !authority.is_empty() && authority.iter().all(is_in_authority);
    is_authority.then_some(if path.is_empty() { b"/" } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn question(headers: &[(&'static str, &[u8])]) -> Parts {
        let (mut parts, ()) = Request::get("/authorize").body(()).unwrap().into_parts();
        for (name, value) in headers {
            parts.headers.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        parts
    }

    fn target(text: &str) -> Option<String> {
        let mut parts = question(&[
            ("x-original-uri", text.as_bytes()),
            ("x-original-method", b"POST"),
            ("content-length", b"7"),
        ]);
        match read_original(&mut parts, OtherProxy::Nginx) {
            Ok(()) => {
                assert_eq!(parts.method, Method::POST);
                assert!(!parts.headers.contains_key("content-length"));
                Some(parts.uri.to_string())
            }
            Err(error) => {
                assert_eq!(error, BadQuestion::Request, "{text}");
                None
            }
        }
    }

    #[test]
    fn the_target_of_the_client_is_read_as_it_was_sent() {
        for (text, expected) in [
            ("/", "/"),
            ("/p/7?a=1&b=%20", "/p/7?a=1&b=%20"),
            ("//p//7", "//p//7"),
            ("/p/%E4%B8%83", "/p/%E4%B8%83"),
            ("/p/七", "/p/%E4%B8%83"),
            ("/p/a b\"<>", "/p/a%20b%22%3C%3E"),
            ("/p/\\7^`", "/p/%5C7%5E%60"),
            ("http://shop.example/p/7?x", "/p/7?x"),
            ("HTTPS://shop.example", "/"),
            ("http://[::1]:8080/p/7", "/p/7"),
            ("*", "*"),
        ] {
            assert_eq!(target(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_target_that_is_no_target_is_refused() {
        for text in ["", "p/7", "?id=7", "ftp://a/p/7", "http:/p/7", "http:///p/7", "../p/7", "**"]
        {
            assert_eq!(target(text), None, "{text}");
        }
        assert_eq!(target(&"p".repeat(70_000)), None);
        // The parser of `http` limits the length of a target.
        assert_eq!(target(&format!("/{}", "p".repeat(70_000))), None);
    }

    #[test]
    fn a_method_that_is_no_method_is_refused() {
        let mut parts = question(&[("x-original-uri", b"/p/7"), ("x-original-method", b"G T")]);
        assert_eq!(read_original(&mut parts, OtherProxy::Nginx), Err(BadQuestion::Request));
    }

    #[test]
    fn a_missing_or_doubled_header_names_the_proxy_and_the_header() {
        let message = |headers: &[(&'static str, &[u8])], proxy| match read_original(
            &mut question(headers),
            proxy,
        )
        .unwrap_err()
        {
            BadQuestion::Proxy(message) => message,
            BadQuestion::Request => panic!("the proxy is wrong, not the request"),
        };
        let uri: (&str, &[u8]) = ("x-original-uri", b"/p/7");
        let method: (&str, &[u8]) = ("x-original-method", b"GET");
        for (headers, proxy, expected) in [
            (&[][..], OtherProxy::Nginx, "nginx has no header x-original-uri"),
            (&[uri], OtherProxy::Haproxy, "haproxy has no header x-original-method"),
            (&[uri, method], OtherProxy::Caddy, "caddy has no header x-forwarded-uri"),
            (&[uri, uri, method], OtherProxy::Nginx, "more than one header x-original-uri"),
            (&[uri, method, method], OtherProxy::Nginx, "more than one header x-original-method"),
        ] {
            let message = message(headers, proxy);
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn envoy_asks_with_the_request_itself() {
        let (mut parts, ()) = Request::put("/p/7?a=1").body(()).unwrap().into_parts();
        parts.headers.insert("x-original-uri", HeaderValue::from_static("/p/8"));
        read_original(&mut parts, OtherProxy::Envoy).unwrap();
        assert_eq!((parts.method, parts.uri.to_string()), (Method::PUT, "/p/7?a=1".to_owned()));
    }
}
