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

/// Returns the password in `REDISCLI_AUTH`, or `None` if the variable is missing or empty.
pub fn password_of_environment() -> Option<String> {
    std::env::var(PASSWORD).ok().filter(|it| !it.is_empty())
}

/// Parses the URL of a key. Reads the password from `REDISCLI_AUTH` if the URL has no password.
///
/// # Errors
///
/// A message for an argument that is not the URL of a key.
pub fn parse(path: &Path) -> Result<RedisUrl, Failure> {
    let password = password_of_environment();
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

/// Returns a failure that names the URL, if a path is no file but looks like `HOST:PORT/KEY`.
pub fn missing_scheme(path: &Path) -> Option<Failure> {
    let text = path.to_str().filter(|_| !path.exists())?;
    let (authority, _) = text.split_once('/')?;
    let (_, port) = authority.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let name = tamis_redis::without_password(text);
    Some(Failure::new(format!("{name}: no such file: for a key on a server, write redis://{name}")))
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

    #[test]
    fn an_address_without_a_scheme_is_recognised() {
        let message = |path: &str| match missing_scheme(Path::new(path)) {
            Some(Failure::Message(message)) => message,
            _ => String::new(),
        };
        let advice = "no such file: for a key on a server, write redis://localhost:6379/users";
        assert!(message("localhost:6379/users").ends_with(advice));
        assert!(message("me:secret@localhost:6379/users").ends_with(advice));
        assert!(!message("me:secret@localhost:6379/users").contains("secret"));
        for file in ["users.tamis", "localhost/users", "a:b/users", "localhost:6379"] {
            assert_eq!(message(file), "", "{file}");
        }
    }
}
