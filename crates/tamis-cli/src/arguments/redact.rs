//! Removes passwords from messages.

/// Removes the user and the password from each URL in a message: the text between `://` and the
/// last `@`.
pub fn redact(message: &str) -> String {
    let mut shown = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = url.find(|letter: char| letter.is_whitespace() || "'\"".contains(letter));
        let (url, after) = url.split_at(end.unwrap_or(url.len()));
        shown.push_str(url.rsplit_once('@').map_or(url, |(_, url)| url));
        rest = after;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_no_password() {
        for (message, shown) in [
            ("redis://me:secret@host/k: not found", "redis://host/k: not found"),
            ("'http://me:s@e/cr@host' is wrong", "'http://host' is wrong"),
            (
                "from redis://host/a%40b to redis://a:b@c/d",
                "from redis://host/a%40b to redis://c/d",
            ),
            ("nothing here", "nothing here"),
            ("me@host, see https://example.com", "me@host, see https://example.com"),
        ] {
            assert_eq!(redact(message), shown);
        }
    }
}
