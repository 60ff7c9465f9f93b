//! The settings of a Redis source.

use std::fmt;
use std::path::PathBuf;

use tamis_formats::{Format, Funnel};
use tamis_redis::{KeyUrl, KeyUrlError, without_password};

use crate::errors::redis_error::FORMATS;

/// The settings of a source on a Redis server.
#[derive(Clone)]
pub struct RedisOptions {
    /// The server and the key: `redis://user:password@host:6379/database/key`. `rediss://` uses TLS.
    pub url: String,
    /// The certificates of the CA that has signed the certificate of the server, as PEM, for `rediss://`. With `None`,
    /// the CAs of the system are trusted.
    pub ca: Option<PathBuf>,
    /// The largest value in bytes.
    pub max_bytes: u64,
    /// The fewest ids of a filter that is used, as its bits or its counter show them. The default 1
    /// keeps the old ids if the filter is emptied.
    pub min_items: u64,
    /// The smallest share of the ids before that a new filter must have. 0 turns the test off.
    pub min_share: f64,
    /// The format of a string that does not say it itself: `redis-bitmap`, `redis-bits` or
    /// `java-bitmap`.
    pub format: Option<&'static Format>,
    /// The number of items that the filter of a string was planned for, if its format needs it.
    pub items_planned: Option<u64>,
    /// The rate that the filter of a string was planned for, if its format needs it.
    pub rate_planned: Option<f64>,
    /// How the program that adds ids converts them to bytes. `None` for the bytes of their canonical
    /// text, or the only way of the format.
    pub funnel: Option<Funnel>,
}

impl RedisOptions {
    /// The formats of strings that the source reads.
    pub const FORMATS: [&str; 3] = FORMATS;

    /// Returns the usual settings for a key.
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

    /// Tests whether the URL can be used.
    ///
    /// # Errors
    ///
    /// [`KeyUrlError`] if it cannot.
    pub fn check(&self) -> Result<(), KeyUrlError> {
        KeyUrl::parse(&self.url, None)?.address().map(drop)
    }

    /// Returns the URL without user and password.
    pub(super) fn name(&self) -> String {
        without_password(&self.url)
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the password.
        f.debug_struct("RedisOptions").field("url", &self.name()).finish_non_exhaustive()
    }
}
