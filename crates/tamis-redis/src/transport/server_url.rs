//! The URL of a server, and the names of URLs in messages.

use std::fmt;

use redis::Client;

/// The schemes of the URL of a server, and whether the scheme encrypts the connection.
const SCHEMES: [(&str, bool); 4] =
    [("redis", false), ("valkey", false), ("rediss", true), ("valkeys", true)];

const SYNTAX: &str = "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]";

/// The reason why a text is not the URL of a server. The message names the form that works, and
/// shows neither the user nor the password.
///
/// # Examples
///
/// ```
/// use tamis_redis::{Patience, SingleNode};
///
/// let error = SingleNode::new("localhost:29001", Patience::default()).err().unwrap();
/// assert_eq!(error.to_string(), "the URL localhost:29001 has no scheme: write redis://localhost:29001");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrlError {
    /// The subject of the message: the URL without the user and the password, or the list of URLs.
    pub subject: String,
    /// The predicate of the message: the error in the subject.
    pub why: &'static str,
    /// What the caller writes or does instead.
    pub advice: String,
}

impl fmt::Display for ServerUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, why, advice } = self;
        write!(f, "{subject} {why}: {advice}")
    }
}

impl std::error::Error for ServerUrlError {}

impl ServerUrlError {
    pub(crate) fn new(url: &str, why: &'static str, syntax: &str) -> Self {
        Self { subject: subject(url), why, advice: format!("write {syntax}") }
    }

    /// Returns the error for a list without a URL.
    pub(crate) fn no_url() -> Self {
        let advice = "give the URL of at least one server".to_owned();
        Self { subject: "the list of URLs".to_owned(), why: "is empty", advice }
    }
}

/// Returns the subject of a message about a URL.
pub(crate) fn subject(url: &str) -> String {
    match &*without_password(url) {
        "" => "the URL".to_owned(),
        name => format!("the URL {name}"),
    }
}

/// Parses the URL of a server. `has_tls` is true if the features of this crate include encrypted
/// connections.
pub(crate) fn client(url: &str, has_tls: bool) -> Result<Client, ServerUrlError> {
    let wrong = |why| ServerUrlError::new(url, why, SYNTAX);
    let Some((scheme, rest)) = url.split_once("://") else {
        let written = format!("redis://{}", without_password(url));
        return Err(ServerUrlError::new(url, "has no scheme", &written));
    };
    let scheme = scheme.to_ascii_lowercase();
    let known = SCHEMES.into_iter().find(|(name, _)| *name == scheme);
    // The path of a Unix socket has no host and no port.
    if !scheme.ends_with("unix") {
        let Some((_, is_encrypted)) = known else {
            return Err(match scheme.ends_with("+sentinel") {
                true => ServerUrlError {
                    advice: "use RedisNodes::connect or SentinelNode".to_owned(),
                    ..wrong("names Sentinels")
                },
                false => wrong("has an unknown scheme"),
            });
        };
        if is_encrypted && !has_tls {
            let advice = "enable the feature tls of the crate tamis-redis, or the feature \
                          async-tls for an asynchronous client";
            return Err(ServerUrlError { advice: advice.to_owned(), ..wrong("needs TLS") });
        }
        check_server(rest).map_err(wrong)?;
    }
    Client::open(url).map_err(|_| wrong("has a user, a password or an option that is not valid"))
}

/// Tests the part of a URL after the scheme: one host, and the number of a database.
fn check_server(rest: &str) -> Result<(), &'static str> {
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = split_authority(rest);
    if has_hidden_password(authority, path) {
        return Err("has an @ after a slash (write %2F for the slash of a password)");
    }
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    if hosts.contains(',') {
        return Err("names several hosts");
    }
    check_hosts(hosts)?;
    let database = path.strip_prefix('/').unwrap_or_default();
    if !database.is_empty() && database.parse::<u32>().is_err() {
        return Err("has a database that is not a number");
    }
    Ok(())
}

/// Returns a URL as text for messages. Removes the user and the password. Writes an `@` of the key
/// as `%40`, because another program may remove everything before an `@`.
#[must_use]
pub fn without_password(url: &str) -> String {
    let shown: String = url.chars().flat_map(escaped).collect();
    let (scheme, rest) = match shown.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), &*shown),
    };
    let (authority, path) = split_authority(rest);
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    if has_hidden_password(authority, path) {
        return format!("{scheme}...");
    }
    format!("{scheme}{hosts}{}", path.replace('@', "%40"))
}

/// Returns a character, or the escape sequence of a character that a terminal would interpret.
fn escaped(letter: char) -> impl Iterator<Item = char> {
    let (plain, escape) = if letter.is_control() {
        (None, Some(letter.escape_default()))
    } else {
        (Some(letter), None)
    };
    plain.into_iter().chain(escape.into_iter().flatten())
}

/// Tests whether the password contains an unescaped slash, which ends the authority of the URL too
/// early.
pub(crate) fn has_hidden_password(authority: &str, path: &str) -> bool {
    !authority.contains('@') && authority.contains(':') && path.contains('@')
}

/// Splits a URL without a scheme into the part before the first slash and the part from the slash
/// on.
pub(crate) fn split_authority(text: &str) -> (&str, &str) {
    text.split_at(text.find('/').unwrap_or(text.len()))
}

/// Tests whether all hosts of a comma-separated list are valid.
pub(crate) fn check_hosts(hosts: &str) -> Result<(), &'static str> {
    for host in hosts.split(',') {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (host, None),
        };
        if name.is_empty() {
            return Err("has no host");
        }
        if name.contains(':') && !(name.starts_with('[') && name.ends_with(']')) {
            return Err("has an IPv6 address without brackets (write an address such as [::1])");
        }
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err("has a port that is not a number from 0 to 65535");
        }
        if name.contains(|letter: char| letter.is_whitespace() || "?#%".contains(letter)) {
            return Err("has an invalid host name");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_servers_are_parsed() {
        for url in [
            "redis://localhost",
            "redis://localhost:29001/",
            "Redis://me:p%40ss@localhost:29001/3",
            "redis://:p@ss@[::1]:29001",
            "valkey://localhost/0?protocol=resp3",
            "unix:///tmp/redis.sock",
        ] {
            client(url, false).map(drop).unwrap_or_else(|error| panic!("{error}"));
        }
        #[cfg(feature = "tls")]
        client("rediss://localhost:29001", true).unwrap();
    }

    #[test]
    fn the_message_about_a_wrong_url_names_the_form_that_works_and_no_password() {
        const FORM: &str = "write redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]";
        const TLS: &str = "enable the feature tls of the crate tamis-redis, or the feature \
                           async-tls for an asynchronous client";
        for (url, name, why, advice) in [
            (
                "localhost:29001",
                "localhost:29001",
                "has no scheme",
                "write redis://localhost:29001",
            ),
            ("me:secret@host", "host", "has no scheme", "write redis://host"),
            ("me:sec/ret@host:1", "...", "has no scheme", "write redis://..."),
            ("", "", "has no scheme", "write redis://"),
            ("http://me:secret@host", "http://host", "has an unknown scheme", FORM),
            ("://host", "://host", "has an unknown scheme", FORM),
            ("rediss://me:secret@host", "rediss://host", "needs TLS", TLS),
            ("redis://", "redis://", "has no host", FORM),
            ("redis://:secret@:1", "redis://:1", "has no host", FORM),
            (
                "redis://:secret@host:x",
                "redis://host:x",
                "has a port that is not a number from 0 to 65535",
                FORM,
            ),
            (
                "redis://host:99999",
                "redis://host:99999",
                "has a port that is not a number from 0 to 65535",
                FORM,
            ),
            ("redis://a,b", "redis://a,b", "names several hosts", FORM),
            ("redis://host/key", "redis://host/key", "has a database that is not a number", FORM),
            (
                "redis://me:12/secret@host",
                "redis://...",
                "has an @ after a slash (write %2F for the slash of a password)",
                FORM,
            ),
            (
                "redis://:%ffsecret@host",
                "redis://host",
                "has a user, a password or an option that is not valid",
                FORM,
            ),
            (
                "redis+sentinel://:secret@a:1/main",
                "redis+sentinel://a:1/main",
                "names Sentinels",
                "use RedisNodes::connect or SentinelNode",
            ),
        ] {
            let error = client(url, false).unwrap_err();
            let subject = format!("the URL {name}");
            assert_eq!(
                (&*error.subject, error.why, &*error.advice),
                (subject.trim_end(), why, advice),
                "{url}"
            );
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("secret") && !shown.contains("ret@"), "{shown}");
        }
    }

    #[test]
    fn a_message_is_a_sentence_about_its_subject() {
        assert_eq!(
            ServerUrlError::no_url().to_string(),
            "the list of URLs is empty: give the URL of at least one server"
        );
        assert_eq!(
            client("redis://:secret@::1", false).unwrap_err().to_string(),
            "the URL redis://::1 has an IPv6 address without brackets (write an address such as \
             [::1]): write redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]"
        );
    }

    #[test]
    fn the_name_of_a_url_hides_the_password() {
        let name = without_password;
        assert_eq!(name("REDIS://me:secret@host/a@b"), "REDIS://host/a%40b");
        assert_eq!(name("redis://host/a\n\u{1b}[31m"), "redis://host/a\\n\\u{1b}[31m");
        assert_eq!(name("me:secret@host:1/a"), "host:1/a");
    }
}
