//! Reads certificates, and decides which servers a client trusts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::plain_io::PlainIo;

/// Why a certificate or key cannot be used.
#[derive(Debug)]
pub(crate) enum CertificateError {
    /// The file cannot be used.
    File { path: PathBuf, why: String },
    /// The certificates of the system cannot be read.
    System,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, why } => write!(f, "{}: {why}", path.display()),
            Self::System => f.write_str(
                "the system has no CA certificates; set the PEM file of the CA of the server",
            ),
        }
    }
}

/// Returns the settings of connections to servers whose certificates are signed by those in the
/// file, or by those of the system.
pub(crate) fn client_config(ca: Option<&Path>) -> Result<ClientConfig, CertificateError> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in read(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| fail(path, format!("cannot be trusted: {error}")))?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err(CertificateError::System);
            }
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has suites for both versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// Reads the certificates in a file.
pub(crate) fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(read) if read.is_empty() => {
            Err(fail(path, unreadable(&pem::Error::NoItemsFound, "certificate")))
        }
        Ok(read) => Ok(read),
        Err(error) => Err(fail(path, unreadable(&error, "certificate"))),
    }
}

fn fail(path: &Path, why: String) -> CertificateError {
    CertificateError::File { path: path.to_owned(), why }
}

/// Returns why a PEM file cannot be read. `what` is what it must have.
pub(crate) fn unreadable(error: &pem::Error, what: &str) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot be read: {}", PlainIo(error)),
        pem::Error::NoItemsFound => format!("has no {what} in PEM"),
        // Other details of the error contain bytes of the file, which may be secret.
        _ => "not in PEM".to_owned(),
    }
}
