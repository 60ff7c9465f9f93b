//! Reads certificates, and decides which servers a client trusts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::errors::plain_io::PlainIo;

/// The reason why a certificate or a key cannot be used.
#[derive(Debug)]
pub enum CertificateError {
    /// The file cannot be used.
    File {
        /// The path of the PEM file.
        path: PathBuf,
        /// A description of the problem in the file.
        why: String,
    },
    /// The certificates of the operating system cannot be read.
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

/// Returns the certificates that a client trusts. With `ca`, the client trusts the certificates in the PEM file `ca`.
/// With `None`, the client trusts the certificates of the operating system.
///
/// # Errors
///
/// [`CertificateError`] if the file contains no certificate, or the operating system has no certificate.
pub fn trusted(ca: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let usable = |certificate: &CertificateDer<'_>| {
        RootCertStore::empty().add(certificate.clone().into_owned())
    };
    let Some(path) = ca else {
        let mut found = rustls_native_certs::load_native_certs().certs;
        found.retain(|certificate| usable(certificate).is_ok());
        return if found.is_empty() { Err(CertificateError::System) } else { Ok(found) };
    };
    let listed = read(path)?;
    for certificate in &listed {
        usable(certificate).map_err(|error| fail(path, format!("cannot be trusted: {error}")))?;
    }
    Ok(listed)
}

/// Returns the settings of a TLS client. With `ca`, the client trusts a server certificate that is in the PEM file `ca`
/// or that is signed by a certificate in this file. With `None`, the client trusts the certificate authorities of the
/// operating system.
///
/// # Errors
///
/// [`CertificateError`] if the file contains no certificate, or the operating system has no certificate.
///
/// # Panics
///
/// Never panics: the function tests the certificates before rustls uses them.
pub fn client_config(ca: Option<&Path>) -> Result<ClientConfig, CertificateError> {
    let provider = Arc::new(ring::default_provider());
    let trusted = trusted(ca)?;
    let mut roots = RootCertStore::empty();
    for certificate in &trusted {
        roots.add(certificate.clone()).expect("`trusted` has added it to another store");
    }
    let listed = if ca.is_some() { trusted } else { Vec::new() };
    let signed =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let signed = signed.build().expect("there are roots, and no revocation lists");
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has suites for both versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { signed, listed }))
        .with_no_client_auth();
    Ok(config)
}

/// Accepts the certificates that `signed` accepts, and the certificates in a list.
///
/// The command `openssl req -x509` creates a self-signed certificate that is marked as a certificate authority. The
/// rules of the web PKI forbid a server certificate with the mark of an authority. The verifier accepts a listed
/// certificate with the mark, because the user has listed the certificate.
#[derive(Debug)]
struct Verifier {
    signed: Arc<WebPkiServerVerifier>,
    listed: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.signed.verify_server_cert(certificate, chain, name, ocsp_response, now) {
            // rustls tests the validity period before the key usage, so a certificate that reaches this code is within
            // its validity period.
            Err(rustls::Error::InvalidCertificate(rustls::CertificateError::Other(_)))
                if self.listed.contains(certificate) =>
            {
                rustls::client::verify_server_name(
                    &ParsedCertificate::try_from(certificate)?,
                    name,
                )?;
                Ok(ServerCertVerified::assertion())
            }
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// Reads the certificates in a PEM file.
///
/// # Errors
///
/// [`CertificateError::File`] if the file cannot be read or contains no certificate.
pub fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
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

/// Returns the reason why a PEM file cannot be read. The text contains no bytes of the file. `what` names the expected
/// content of the file.
#[must_use]
pub fn unreadable(error: &pem::Error, what: &str) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot be read: {}", PlainIo(error)),
        pem::Error::NoItemsFound => format!("has no {what} in PEM"),
        // Other variants of the error contain bytes of the file, which may be secret.
        _ => "not in PEM".to_owned(),
    }
}
