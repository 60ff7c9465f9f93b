//! Parses the URL of a key: the URL of a server, followed by the key.

use std::path::Path;

pub use tamis_redis::KeyUrl as RedisUrl;

use crate::exit::Failure;

/// The environment variable with the password, the same as for `redis-cli`.
const PASSWORD: &str = "REDISCLI_AUTH";

/// Tests whether an argument is the URL of a key and not the path of a file.
pub fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(|text| {
        let scheme = text.split("://").next().unwrap_or_default().to_ascii_lowercase();
        scheme.len() < text.len() && (scheme.starts_with("redis") || scheme.starts_with("valkey"))
    })
}

/// Returns a path as text for messages. Removes the user and the password of a URL.
pub fn without_password(path: &Path) -> String {
    let text = path.display().to_string();
    if is_url(path) { tamis_redis::without_password(&text) } else { text }
}

/// Parses the URL of a key. Reads the password from `REDISCLI_AUTH` if the URL has no password.
///
/// # Errors
///
/// A message for an argument that is not the URL of a key.
pub fn parse(path: &Path) -> Result<RedisUrl, Failure> {
    let password = std::env::var(PASSWORD).ok().filter(|it| !it.is_empty());
    let not_text = || Failure::new(format!("{}: is not UTF-8", without_password(path)));
    let text = path.to_str().ok_or_else(not_text)?;
    RedisUrl::parse(text, password.as_deref()).map_err(|error| Failure::new(error.to_string()))
}

/// Returns the key of a URL as text.
///
/// # Errors
///
/// A message for a key that is not UTF-8.
pub fn text_key(url: &RedisUrl) -> Result<&str, Failure> {
    url.text_key().map_err(Failure::new)
}

/// Returns the failure of a command that accepts only files.
pub fn not_a_file(path: &Path) -> Failure {
    Failure::new(format!(
        "{}: this command takes filters in files; info, check, add, build, merge and convert take \
         keys of Redis too",
        without_password(path)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_recognised_and_a_file_is_not() {
        for url in ["redis://host/users", "Valkeys://host/users", "redis+tls://host/users"] {
            assert!(is_url(Path::new(url)), "{url}");
        }
        for file in ["users.tamis", "http://host/users", "redis", "redis:/host/users"] {
            assert!(!is_url(Path::new(file)), "{file}");
        }
    }
}
