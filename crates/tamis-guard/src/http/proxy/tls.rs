//! Reads the TLS files of the proxy.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, ServerConfig};

use crate::http::proxy::error::ProxyError;
use crate::http::proxy::options::{ProxyOptions, TlsFiles};
use tamis_sources::tls::{self, CertificateError};

/// Returns the TLS settings of the proxy with its certificate.
pub(super) fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, ProxyError> {
    let chain = tls::read(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| {
        let why = tls::unreadable(&error, "private key");
        CertificateError::File { path: files.key.clone(), why }
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has suites for both versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| {
            let certificate = files.certificate.display();
            let why = format!("not the key of {certificate}: {error}");
            CertificateError::File { path: files.key.clone(), why }
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Returns the TLS settings for connections to the upstream service.
pub(super) fn client_config(options: &ProxyOptions) -> Result<ClientConfig, ProxyError> {
    Ok(tls::client_config(options.upstream_ca.as_deref())?)
}
