//! Reads certificates and keys.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::plain_io::PlainIo;
use crate::proxy::error::ProxyError;
use crate::proxy::options::{ProxyOptions, TlsFiles};

/// Reads the certificate of the proxy.
pub(super) fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, ProxyError> {
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| fail(&files.key, unreadable(&error, "private key")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has suites for both versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| {
            let certificate = files.certificate.display();
            fail(&files.key, format!("not the key of {certificate}: {error}"))
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Returns the settings of connections to the upstream.
pub(super) fn client_config(options: &ProxyOptions) -> Result<ClientConfig, ProxyError> {
    let mut roots = RootCertStore::empty();
    match &options.upstream_ca {
        Some(path) => {
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| fail(path, format!("cannot be trusted: {error}")))?;
            }
        }
        None if options.is_upstream_tls() => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err(ProxyError::SystemCertificates);
            }
        }
        None => {}
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has suites for both versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ProxyError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(read) if read.is_empty() => {
            Err(fail(path, unreadable(&pem::Error::NoItemsFound, "certificate")))
        }
        Ok(read) => Ok(read),
        Err(error) => Err(fail(path, unreadable(&error, "certificate"))),
    }
}

fn fail(path: &Path, why: String) -> ProxyError {
    ProxyError::File { path: path.to_owned(), why }
}

fn unreadable(error: &pem::Error, what: &str) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot be read: {}", PlainIo(error)),
        pem::Error::NoItemsFound => format!("has no {what} in PEM"),
        // Other details of the error contain bytes of the file, which may be secret.
        _ => "not in PEM".to_owned(),
    }
}
