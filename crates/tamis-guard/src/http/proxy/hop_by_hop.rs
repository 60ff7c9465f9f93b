//! Handles the headers that apply to one connection only (RFC 9110, section 7.6.1).

use http::HeaderMap;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// The error for a `Connection` header that is malformed or names a mandatory header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadConnection;

/// The features that the sender of a message requested for its connection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) upgrades: bool,
    pub(super) takes_trailers: bool,
}

/// Removes the headers that apply to one connection only, except `Transfer-Encoding` and `Upgrade`.
pub(super) fn remove(headers: &mut HeaderMap) -> Result<Asked, BadConnection> {
    let mut asked = Asked::default();
    let mut named = Vec::new();
    for value in headers.get_all(CONNECTION) {
        for name in value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            if name.is_empty() {
                continue;
            }
            let name = HeaderName::from_bytes(name).map_err(|_| BadConnection)?;
            if [HOST, CONTENT_LENGTH].contains(&name) {
                return Err(BadConnection);
            }
            asked.upgrades |= name == UPGRADE;
            named.push(name);
        }
    }
    asked.takes_trailers = headers.get_all(TE).iter().any(|value| {
        value
            .as_bytes()
            .split(|&byte| byte == b',')
            .any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    });
    named.retain(|name| ![TRANSFER_ENCODING, UPGRADE].contains(name));
    let fixed = [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, HTTP2_SETTINGS, TE];
    for name in named.iter().chain(&fixed) {
        headers.remove(name);
    }
    Ok(asked)
}

/// Tests whether the framing of a message is unambiguous: the message has one length or chunks, but not both.
pub(super) fn is_framing_clear(headers: &HeaderMap) -> bool {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_number =
        |value: &HeaderValue| !value.is_empty() && value.as_bytes().iter().all(u8::is_ascii_digit);
    // Every coding except `chunked` is rejected, because removing the header `Transfer-Encoding` would lose a coding
    // such as gzip.
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    let (length, coding) = (lengths.next(), codings.next());
    length.is_none_or(is_number)
        && coding.is_none_or(is_chunked)
        && (length.is_none() || coding.is_none())
        && lengths.next().is_none()
        && codings.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair =
            |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn headers_of_the_connection_are_removed() {
        let mut map = headers(&[
            ("connection", "close, X-Hop"),
            ("connection", "upgrade,,"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("te", "gzip, Trailers"),
            ("x-hop", "1"),
            ("x-end", "2"),
            ("upgrade", "websocket"),
            ("http2-settings", "AAA"),
        ]);
        let asked = remove(&mut map).unwrap();
        assert_eq!(asked, Asked { upgrades: true, takes_trailers: true });
        assert_eq!(map, headers(&[("x-end", "2"), ("upgrade", "websocket")]));
        for name in ["host", "close, Content-Length", "a b"] {
            assert_eq!(remove(&mut headers(&[("connection", name)])), Err(BadConnection), "{name}");
        }
    }

    #[test]
    fn only_one_framing_is_clear() {
        let (cl, te) = ("content-length", "transfer-encoding");
        for clear in [&[][..], &[(cl, "5")], &[(te, "chunked")], &[(te, "Chunked")]] {
            assert!(is_framing_clear(&headers(clear)), "{clear:?}");
        }
        for unclear in [
            &[(cl, "5"), (cl, "5")][..],
            &[(cl, "5"), (te, "chunked")],
            &[(te, "chunked"), (te, "chunked")],
            &[(te, "gzip, chunked")],
            &[(te, "identity")],
            &[(cl, "+5")],
            &[(cl, "5, 5")],
            &[(cl, "")],
        ] {
            assert!(!is_framing_clear(&headers(unclear)), "{unclear:?}");
        }
    }
}
