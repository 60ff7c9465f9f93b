//! Parses the URL of a key: the URL of a server, followed by the key.

use std::path::Path;

#[cfg(feature = "network")]
pub use tamis_redis::KeyUrl as RedisUrl;

use crate::exit::Failure;

/// The environment variable with the password, the same as for `redis-cli`.
#[cfg(feature = "network")]
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
    if is_url(path) { hide_password(&text) } else { text }
}

/// Returns the password in `REDISCLI_AUTH`, or `None` if the variable is missing or empty.
#[cfg(feature = "network")]
pub fn password_of_environment() -> Option<String> {
    std::env::var(PASSWORD).ok().filter(|it| !it.is_empty())
}

/// Parses the URL of a key. Reads the password from `REDISCLI_AUTH` if the URL has no password.
///
/// # Errors
///
/// A message for an argument that is not the URL of a key.
#[cfg(feature = "network")]
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
#[cfg(feature = "network")]
pub fn text_key(url: &RedisUrl) -> Result<&str, Failure> {
    url.text_key().map_err(Failure::new)
}

/// The URL of a key. The small program has no value of this type.
#[cfg(not(feature = "network"))]
pub struct RedisUrl {
    /// The key.
    pub key: Vec<u8>,
    pub(super) never: std::convert::Infallible,
}

#[cfg(not(feature = "network"))]
impl RedisUrl {
    /// Shows the compiler that the caller's branch never runs, because no value of this type exists.
    pub fn not_in_this_program(&self) -> ! {
        match self.never {}
    }
}

/// Rejects the URL of a key, because the small program uses no network.
///
/// # Errors
///
/// Always returns the message that names the packages with the whole program.
#[cfg(not(feature = "network"))]
pub fn parse(path: &Path) -> Result<RedisUrl, Failure> {
    Err(crate::exit::only_in_whole_program(without_password(path)))
}

/// Returns a URL without the user and the password.
#[cfg(feature = "network")]
fn hide_password(url: &str) -> String {
    tamis_redis::without_password(url)
}

/// Returns a URL without the text between `//` and the last `@` before the path, which is the user and the password.
#[cfg(not(feature = "network"))]
fn hide_password(url: &str) -> String {
    let hidden = url.split_once("://").and_then(|(scheme, rest)| {
        let host = rest.split_once('/').map_or(rest, |(host, _)| host);
        let secret = host.rfind('@')? + 1;
        Some(format!("{scheme}://{}", &rest[secret..]))
    });
    hidden.unwrap_or_else(|| url.to_owned())
}

/// Returns a failure that names the URL, if a path is no file but looks like `HOST:PORT/KEY`.
pub fn missing_scheme(path: &Path) -> Option<Failure> {
    let text = path.to_str().filter(|_| !path.exists())?;
    let (authority, _) = text.split_once('/')?;
    let (_, port) = authority.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let name = hide_password(text);
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
