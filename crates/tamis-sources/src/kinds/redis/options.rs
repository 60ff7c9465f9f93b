//! The settings of a Redis source.

use std::fmt;
use std::path::PathBuf;

use tamis_formats::{Format, Funnel};
use tamis_redis::{KeyUrl, KeyUrlError, without_password};

use crate::errors::redis_error::FORMATS;

/// The settings of a Redis source.
#[derive(Clone)]
pub struct RedisOptions {
    /// The URL of the server and the key: `redis://user:password@host:6379/database/key`. `rediss://` uses TLS.
    pub url: String,
    /// The PEM file of the CA that has signed the certificate of the server, for `rediss://`. With `None`, the client
    /// trusts the CAs of the operating system.
    pub ca: Option<PathBuf>,
    /// The maximum size of a value in bytes.
    pub max_bytes: u64,
    /// The minimum number of ids in a filter, as estimated from its bits or its counter. The source does not publish a
    /// filter with fewer ids than this number. The default 1 keeps the current ids if the filter is emptied.
    pub min_items: u64,
    /// The minimum number of ids in a new filter, as a share of the number of ids in the previous filter. The value 0
    /// turns this limit off.
    pub min_share: f64,
    /// The format of a string that does not identify its own format: `redis-bitmap`, `redis-bits` or `java-bitmap`.
    pub format: Option<&'static Format>,
    /// The number of items that the filter was planned for. Only some formats need this number.
    pub items_planned: Option<u64>,
    /// The rate that the filter was planned for. Only some formats need this rate.
    pub rate_planned: Option<f64>,
    /// The function with which the program converts ids to bytes. `None` selects the only funnel of the format, or the
    /// bytes of the canonical text.
    pub funnel: Option<Funnel>,
}

impl RedisOptions {
    /// The names of the string formats that the source reads.
    pub const FORMATS: [&str; 3] = FORMATS;

    /// Returns the default settings for a key.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            ca: None,
            max_bytes: 4 << 30,
            min_items: 1,
            min_share: 0.5,
            format: None,
            items_planned: None,
            rate_planned: None,
            funnel: None,
        }
    }

    /// Tests whether the URL is valid.
    ///
    /// # Errors
    ///
    /// [`KeyUrlError`] if the URL is not valid.
    pub fn check(&self) -> Result<(), KeyUrlError> {
        KeyUrl::parse(&self.url, None)?.address().map(drop)
    }

    /// Tests whether the URL encrypts the connection. Returns false for a URL that cannot be used.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        let address = KeyUrl::parse(&self.url, None).and_then(|url| url.address());
        address.is_ok_and(|address| address.is_encrypted)
    }

    /// Returns the URL without user name and password.
    pub(super) fn name(&self) -> String {
        without_password(&self.url)
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The output omits the password.
        f.debug_struct("RedisOptions").field("url", &self.name()).finish_non_exhaustive()
    }
}
