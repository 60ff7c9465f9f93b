//! Extracts the path of an address in a header, such as `Location`.

use std::borrow::Cow;

/// Returns the path of an address. A relative address is resolved against the path of the request (RFC 3986, section
/// 5.2). The function does not resolve dot segments.
pub(super) fn path_of<'a>(address: &'a str, request_path: &str) -> Cow<'a, str> {
    let end = address.find(['?', '#']).unwrap_or(address.len());
    let address = without_scheme(&address[..end]);
    if let Some(rest) = address.strip_prefix("//") {
        let path = rest.find('/').map_or("/", |start| &rest[start..]);
        return Cow::Borrowed(path);
    }
    if address.is_empty() {
        return Cow::Owned(request_path.to_owned());
    }
    if address.starts_with('/') {
        return Cow::Borrowed(address);
    }
    let folder = request_path.rfind('/').map_or("/", |slash| &request_path[..=slash]);
    Cow::Owned(format!("{folder}{address}"))
}

/// Removes a scheme such as `https:`.
fn without_scheme(address: &str) -> &str {
    match address.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        _ => address,
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_absolute_or_relative() {
        for (address, path) in [
            ("https://shop.example:8443/p/7", "/p/7"),
            ("https://shop.example", "/"),
            ("//shop.example/p/7#x", "/p/7"),
            ("/p/7?x=http://y/", "/p/7"),
            ("/p/7:8", "/p/7:8"),
            ("7", "/shop/7"),
            ("../p/7", "/shop/../p/7"),
            ("?page=2", "/shop/orders"),
            ("", "/shop/orders"),
        ] {
            assert_eq!(path_of(address, "/shop/orders"), path, "{address}");
        }
        assert_eq!(path_of("7", ""), "/7");
    }
}
