//! TLS: reads certificates and keys from files and verifies client certificates.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore, ServerConfig};

use crate::config::{ClientCertificates, Config};
use crate::system::system_error::without_code;

/// The reason why a server cannot use TLS.
#[derive(Debug)]
pub struct TlsError {
    /// The option that is missing or invalid.
    pub option: &'static str,
    /// The file of the option, if the option names a file.
    pub path: Option<PathBuf>,
    /// The problem, and what to do.
    pub why: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {}: {}", self.option, path.display(), self.why),
            None => write!(f, "{}: {}", self.option, self.why),
        }
    }
}

impl std::error::Error for TlsError {}

/// Reads the TLS files and builds the TLS configuration for new connections.
pub(crate) fn read(config: &Config) -> Result<Arc<ServerConfig>, TlsError> {
    let cert_file = given("tls-cert-file", config.tls_cert_file.as_deref())?;
    let key_file = given("tls-key-file", config.tls_key_file.as_deref())?;
    let wrong_cert = fail("tls-cert-file", cert_file);
    let chain = certificates("tls-cert-file", cert_file)?;
    check_time(&chain).map_err(wrong_cert)?;
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| {
        let why = match &error {
            pem::Error::NoItemsFound => "there is no private key in it: give one in PEM".to_owned(),
            error => unreadable(error),
        };
        fail("tls-key-file", key_file)(why)
    })?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring has suites for both versions");
    let builder = match verifier(config)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let tls = builder.with_single_cert(chain, key).map_err(|error| {
        fail("tls-key-file", key_file)(format!("not the key of {}: {error}", cert_file.display()))
    })?;
    Ok(Arc::new(tls))
}

/// Builds the verifier of client certificates. Returns `None` if the server does not request client
/// certificates.
fn verifier(config: &Config) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    let ca_file = match (config.tls_auth_clients, config.tls_ca_cert_file.as_deref()) {
        (ClientCertificates::NotRequested, _) => return Ok(None),
        (_, Some(path)) => path,
        (_, None) => {
            return Err(TlsError {
                option: "tls-ca-cert-file",
                path: None,
                why: "missing: give the certificates that sign those of clients, or say \
                      tls-auth-clients no"
                    .to_owned(),
            });
        }
    };
    let wrong = fail("tls-ca-cert-file", ca_file);
    let mut roots = RootCertStore::empty();
    for certificate in certificates("tls-ca-cert-file", ca_file)? {
        if let Err(error) = roots.add(certificate) {
            return Err(wrong(format!("cannot be trusted: {error}")));
        }
    }
    let provider = Arc::new(ring::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match config.tls_auth_clients {
        ClientCertificates::Optional => builder.allow_unauthenticated(),
        _ => builder,
    };
    builder.build().map(Some).map_err(|error| wrong(format!("cannot be used: {error}")))
}

/// Rejects a server certificate outside its validity period. If the server used an expired
/// certificate, each client would reject the certificate, and the log would not show the reason.
fn check_time(chain: &[CertificateDer<'_>]) -> Result<(), String> {
    let (first, others) = chain.split_first().expect("read as not empty");
    let mut roots = RootCertStore::empty();
    roots.add(first.clone()).map_err(|error| format!("not a certificate: {error}"))?;
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|error| format!("not a certificate: {error}"))?;
    // Ignore all other errors, because the verifier checks rules for client certificates that do
    // not apply to a server certificate.
    match verifier.verify_client_cert(first, others, UnixTime::now()) {
        Err(Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => Err("the certificate has expired: renew it".to_owned()),
        Err(Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        )) => Err("the certificate is not valid yet: look at the clock of this machine".to_owned()),
        Err(Error::InvalidCertificate(CertificateError::BadEncoding)) => {
            Err("not a certificate".to_owned())
        }
        _ => Ok(()),
    }
}

fn certificates(
    option: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| fail(option, path)(unreadable(&error)))?;
    if read.is_empty() {
        let why = "there is no certificate in it: give some in PEM".to_owned();
        return Err(fail(option, path)(why));
    }
    Ok(read)
}

fn given<'p>(option: &'static str, path: Option<&'p Path>) -> Result<&'p Path, TlsError> {
    let why = "missing: tls-port needs tls-cert-file and tls-key-file".to_owned();
    path.ok_or(TlsError { option, path: None, why })
}

fn fail(option: &'static str, path: &Path) -> impl Fn(String) -> TlsError {
    move |why| TlsError { option, path: Some(path.to_owned()), why }
}

fn unreadable(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot be read: {}", without_code(error)),
        // Do not show the details of any other error: these details contain bytes of the file,
        // which may be a secret.
        _ => "not in PEM".to_owned(),
    }
}
