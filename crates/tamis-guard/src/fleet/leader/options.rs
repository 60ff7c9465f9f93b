//! The settings of a leader source.

use std::path::PathBuf;

use http::Uri;

use crate::http::bearer_token::BearerToken;

/// The address of a set on a leader.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderOptions {
    /// The URL of the set, such as `http://10.0.0.5:9090/filters/products`.
    pub url: Uri,
    /// The token of `publish` in the leader's configuration.
    pub token: BearerToken,
    /// The maximum size of a snapshot in bytes.
    pub max_bytes: u64,
    /// The PEM file of the CA of a leader with `https`. With `None`, the client trusts the CAs of the operating system.
    pub ca: Option<PathBuf>,
}

impl LeaderOptions {
    /// Returns the default settings: snapshots of at most 4 GiB.
    #[must_use]
    pub fn new(url: Uri, token: BearerToken) -> Self {
        Self { url, token, max_bytes: 4 << 30, ca: None }
    }
}
