//! The URL of a key: the URL of a server, followed by the key.

use std::fmt;

use redis::{ConnectionAddr, IntoConnectionInfo as _};

use crate::transport::server_url::{
    check_hosts, has_hidden_password, split_authority, without_password,
};

/// Pairs of schemes: the scheme of the key URL, and the scheme of the connection URL.
const SCHEMES: [(&str, &str); 6] = [
    ("redis://", "redis://"),
    ("rediss://", "rediss://"),
    ("valkey://", "redis://"),
    ("valkeys://", "rediss://"),
    ("redis+sentinel://", "redis+sentinel://"),
    ("rediss+sentinel://", "rediss+sentinel://"),
];

const SYNTAX: &str = "write redis://[USER:PASSWORD@]HOST[:PORT]/[DATABASE/]KEY, or \
                      redis+sentinel://HOST:PORT,HOST:PORT/PRIMARY/[DATABASE/]KEY";

/// A key on a server.
///
/// # Examples
///
/// ```
/// use tamis_redis::KeyUrl;
///
/// let url = KeyUrl::parse("redis://guard:secret@10.0.0.5/2/app/seen", None)?;
/// assert_eq!((&*url.key, &*url.name), (&b"app/seen"[..], "redis://10.0.0.5/2/app/seen"));
/// # Ok::<(), tamis_redis::KeyUrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct KeyUrl {
    /// The URL of the server, with the password.
    pub server: String,
    /// The key, which may contain any bytes. The URL writes bytes that are not UTF-8 as escapes
    /// such as `%AC%ED`. The default serializer of Spring writes keys that begin with the bytes AC
    /// and ED.
    pub key: Vec<u8>,
    /// The whole URL without the user and the password, for messages.
    pub name: String,
}

/// The debug text shows neither the user nor the password.
impl fmt::Debug for KeyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyUrl").field(&self.name).finish()
    }
}

/// The parts of the URL of one server, for a program that opens its own connections.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// The host name or the IP address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the connection uses TLS.
    pub is_encrypted: bool,
    /// The number of the database.
    pub database: i64,
    /// The user of the access control list.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
}

/// The debug text shows neither the user nor the password.
impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The reason why a text is not the URL of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUrlError {
    /// The text of the URL without the user and the password.
    pub name: String,
    /// The error in the text.
    pub why: &'static str,
}

impl fmt::Display for KeyUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, why } = self;
        write!(f, "{name}: {why}: {SYNTAX}")
    }
}

impl std::error::Error for KeyUrlError {}

/// Returns the text after the scheme, and the scheme for the connection.
fn split_scheme(text: &str) -> Option<(&str, &'static str)> {
    SCHEMES.into_iter().find_map(|(typed, scheme)| {
        let (start, rest) = text.split_at_checked(typed.len())?;
        start.eq_ignore_ascii_case(typed).then_some((rest, scheme))
    })
}

impl KeyUrl {
    /// Parses the URL of a key. `password` is the password for a URL without a password.
    ///
    /// # Errors
    ///
    /// [`KeyUrlError`] if the URL has an unknown scheme, a wrong host or port, no key, a slash in
    /// the password, or a wrong percent encoding.
    pub fn parse(text: &str, password: Option<&str>) -> Result<Self, KeyUrlError> {
        let name = without_password(text);
        let wrong = |why| KeyUrlError { name: name.clone(), why };
        if !text.contains("://") {
            return Err(wrong("has no scheme"));
        }
        let (rest, scheme) = split_scheme(text).ok_or_else(|| wrong("has an unknown scheme"))?;
        let (authority, rest) = split_authority(rest);
        if has_hidden_password(authority, rest) {
            return Err(wrong(
                "has an @ after a slash: write %2F for the slash of a password, and \
                              %40 for the @ of a key",
            ));
        }
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        let hosts = if hosts.is_empty() { "127.0.0.1" } else { hosts };
        check_hosts(hosts).map_err(wrong)?;
        if !scheme.contains('+') && hosts.contains(',') {
            return Err(wrong("names several hosts, which only redis+sentinel:// takes"));
        }
        let (primary, path) = match rest.strip_prefix('/') {
            Some(rest) if scheme.contains('+') => {
                let (primary, path) = rest.split_once('/').ok_or_else(|| wrong("has no key"))?;
                (format!("{primary}/"), path)
            }
            Some(path) => (String::new(), path),
            None => return Err(wrong("has no key")),
        };
        let (database, key) = match path.split_once('/') {
            Some((database, key)) if is_number(database) => (database, key),
            _ => ("0", path),
        };
        let key = decode(key).ok_or_else(|| wrong("has a broken percent encoding (% is %25)"))?;
        if key.is_empty() {
            return Err(wrong("has no key"));
        }
        let has_password = user.is_some_and(|user| user.contains(':'));
        let user = match (user, password.filter(|_| !has_password)) {
            (Some(user), None) => format!("{user}@"),
            (user, Some(password)) => format!("{}:{}@", user.unwrap_or(""), encode(password)),
            (None, None) => String::new(),
        };
        let server = format!("{scheme}{user}{hosts}/{primary}{database}");
        Ok(Self { server, key, name })
    }

    /// Returns the key as text, for filters whose names are text.
    ///
    /// # Errors
    ///
    /// [`KeyUrlError`] if the key is not UTF-8.
    pub fn text_key(&self) -> Result<&str, KeyUrlError> {
        let why = "has a key that is not UTF-8, which a filter of this kind cannot have";
        std::str::from_utf8(&self.key).map_err(|_| KeyUrlError { name: self.name.clone(), why })
    }

    /// Returns the parts of the server's URL.
    ///
    /// # Errors
    ///
    /// [`KeyUrlError`] if the URL names Sentinels instead of the server, or if the user or the
    /// password cannot be decoded.
    pub fn address(&self) -> Result<ServerAddress, KeyUrlError> {
        let wrong = |why| KeyUrlError { name: self.name.clone(), why };
        if self.server.contains("+sentinel") {
            return Err(wrong("names Sentinels; give the address of the primary"));
        }
        // Without the feature `tls`, the crate `redis` cannot parse the scheme `rediss`.
        let (is_encrypted, plain) = match self.server.strip_prefix("rediss://") {
            Some(rest) => (true, format!("redis://{rest}")),
            None => (false, self.server.clone()),
        };
        let info = plain.into_connection_info();
        let info = info.map_err(|_| wrong("has a user or password that cannot be decoded"))?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(wrong("names no server"));
        };
        let settings = info.redis_settings();
        Ok(ServerAddress {
            host: host.clone(),
            port: *port,
            is_encrypted,
            database: settings.db(),
            user: settings.username().map(str::to_owned),
            password: settings.password().map(str::to_owned),
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Decodes percent encodings such as `%2F`. Returns `None` if an encoding is wrong.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        let digits = digits.iter().map(|&digit| char::from(digit).to_digit(16));
        let byte =
            digits.collect::<Option<Vec<u32>>>()?.into_iter().fold(0, |all, it| 16 * all + it);
        bytes.push(byte as u8);
        rest = after;
    }
    Some(bytes)
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<KeyUrl, KeyUrlError> {
        KeyUrl::parse(text, None)
    }

    #[test]
    fn urls_of_keys_are_parsed() {
        for (text, server, key) in [
            ("redis://host/users", "redis://host/0", "users"),
            ("redis://host:7000/3/users", "redis://host:7000/3", "users"),
            ("redis://host/app/users", "redis://host/0", "app/users"),
            ("redis://host/0/2024/users", "redis://host/0", "2024/users"),
            ("redis://host/7", "redis://host/0", "7"),
            ("Redis://host/users", "redis://host/0", "users"),
            ("redis://host/user@example.com", "redis://host/0", "user@example.com"),
            ("redis:///users", "redis://127.0.0.1/0", "users"),
            ("redis://host/a%2Fb%25?x#y", "redis://host/0", "a/b%?x#y"),
            ("redis://host/%E7%94%A8%E6%88%B7", "redis://host/0", "用户"),
            ("redis://host/用户", "redis://host/0", "用户"),
            ("valkey://host/users", "redis://host/0", "users"),
            ("valkeys://host/users", "rediss://host/0", "users"),
            ("rediss://me:p%40ss@host/1/users", "rediss://me:p%40ss@host/1", "users"),
            ("redis://[::1]:7000/users", "redis://[::1]:7000/0", "users"),
            ("redis+sentinel://a:1,b/main/users", "redis+sentinel://a:1,b/main/0", "users"),
            ("redis+sentinel://:p@a/main/2/users", "redis+sentinel://:p@a/main/2", "users"),
        ] {
            let url = parse(text).unwrap();
            assert_eq!((&*url.server, url.text_key()), (server, Ok(key)), "{text}");
        }
        let spring = parse("redis://host/%AC%ED%00%05t%00%04seen").unwrap();
        assert_eq!(spring.key, b"\xac\xed\0\x05t\0\x04seen");
        assert!(spring.text_key().unwrap_err().to_string().contains("%AC%ED%00%05t%00%04seen"));
    }

    #[test]
    fn wrong_urls_are_refused_without_their_password() {
        for text in [
            "redis://host",
            "redis://host/",
            "redis://me:secret@host",
            "redis://me:sec/ret@host/%zz",
            "redis://host/%f",
            "redis+sentinel://host/main",
            "redis+sentinel://host/main/",
            "redis://me:12/secret@host/key",
            "redis://host/2/",
            "redis://host:99999/key",
            "redis://host:/key",
            "redis://::1/key",
            "redis://a:1,b:2/key",
            "redis:// host/key",
            "redis+tls://me:secret@host/key",
            "redis://:6379/key",
            "redis+sentinel://a:1,,b:2/main/key",
            "host:6379/key",
            "me:secret@host:6379/key",
            "http://me:secret@host/key",
        ] {
            let message = parse(text).unwrap_err().to_string();
            let hides = !message.contains("secret") && !message.contains("ret@");
            assert!(hides && message.contains("[DATABASE/]KEY"), "{message}");
        }
    }

    #[test]
    fn the_caller_has_the_password_that_the_url_lacks() {
        let server = |text: &str| KeyUrl::parse(text, Some("p@")).unwrap().server;
        assert_eq!(server("redis://host/users"), "redis://:%70%40@host/0");
        assert_eq!(server("redis://me@host/users"), "redis://me:%70%40@host/0");
        assert_eq!(server("redis://me:x@host/users"), "redis://me:x@host/0");
    }

    #[test]
    fn an_address_has_all_parts_and_hides_the_secret_ones() {
        let url = parse("rediss://me:p%40ss@host/3/users").unwrap();
        let address = url.address().unwrap();
        assert_eq!((&*address.host, address.port, address.is_encrypted), ("host", 6379, true));
        assert_eq!(address.database, 3);
        assert_eq!(address.user.as_deref(), Some("me"));
        assert_eq!(address.password.as_deref(), Some("p@ss"));
        assert_eq!(format!("{url:?} {address:?}"), "KeyUrl(\"rediss://host/3/users\") host:6379");
        let sentinels = parse("redis+sentinel://:p@a/main/2/users").unwrap().address();
        assert!(sentinels.unwrap_err().to_string().contains("address of the primary"));
    }
}
