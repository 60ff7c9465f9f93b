//! Where a leader is.

use std::path::PathBuf;

use http::Uri;

use crate::http::bearer_token::BearerToken;

/// A leader and its set.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderOptions {
    /// The set, such as `http://10.0.0.5:9090/filters/products`.
    pub url: Uri,
    /// The token of `publish` in the leader's configuration.
    pub token: BearerToken,
    /// The largest snapshot in bytes.
    pub max_bytes: u64,
    /// The PEM file of the CA of a leader with `https`. `None` for those of the system.
    pub ca: Option<PathBuf>,
}

impl LeaderOptions {
    /// Returns the usual settings: snapshots of at most 4 GiB.
    #[must_use]
    pub fn new(url: Uri, token: BearerToken) -> Self {
        Self { url, token, max_bytes: 4 << 30, ca: None }
    }
}
