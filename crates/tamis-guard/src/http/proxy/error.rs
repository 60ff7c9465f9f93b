//! The errors of starting a proxy.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use http::Uri;
use tamis_sources::{PlainIo, tls::CertificateError};

/// The reason why a proxy cannot start or cannot load new TLS files.
#[derive(Debug)]
pub enum ProxyError {
    /// The address of the upstream service is invalid.
    Upstream {
        /// The rejected address.
        uri: Uri,
        /// A description of the problem.
        why: &'static str,
    },
    /// `max_connections` is 0, or `max_head_bytes` is below 8192.
    Limit,
    /// The proxy cannot listen on an address.
    Listen {
        /// The rejected address.
        address: SocketAddr,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A certificate or a key cannot be used.
    File {
        /// The path of the file.
        path: PathBuf,
        /// A description of the problem and its solution.
        why: String,
    },
    /// The certificates of the operating system cannot be read.
    SystemCertificates,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upstream { uri, why } => {
                write!(f, "the upstream {uri} {why}; write http://HOST:PORT or https://HOST:PORT")
            }
            Self::Limit => f.write_str("max_connections must be above 0, and max_head at least 8K"),
            Self::Listen { address, error } => {
                write!(f, "cannot listen on {address}: {}", PlainIo(error))
            }
            Self::File { path, why } => write!(f, "{}: {why}", path.display()),
            Self::SystemCertificates => f.write_str(
                "the system has no certificates; name a file that signs the upstream's certificate",
            ),
        }
    }
}

impl std::error::Error for ProxyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<CertificateError> for ProxyError {
    fn from(error: CertificateError) -> Self {
        match error {
            CertificateError::File { path, why } => Self::File { path, why },
            CertificateError::System => Self::SystemCertificates,
        }
    }
}
