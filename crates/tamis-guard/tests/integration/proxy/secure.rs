//! TLS on both sides, and HTTP/2.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{Certificate, KeyPair};
use tamis_guard::{ProxyError, TlsFiles};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, client};

use super::support::*;
use crate::service::Script;

/// Writes a certificate of `localhost` that signs itself.
pub fn write_certificate(folder: &Path) -> TlsFiles {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    write_files(folder, &made.cert, &made.signing_key)
}

fn write_files(folder: &Path, certificate: &Certificate, key: &KeyPair) -> TlsFiles {
    let files = TlsFiles { certificate: folder.join("cert.pem"), key: folder.join("key.pem") };
    fs::write(&files.certificate, certificate.pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    files
}

/// Starts a proxy that trusts the certificate `trusted`, in front of an upstream that uses TLS with the
/// certificate `upstream` and returns the requests.
async fn start_secure(upstream: &TlsFiles, trusted: &TlsFiles, tls: Option<TlsFiles>) -> Running {
    let address = secure_echo(upstream).await;
    start_set(address, |options| {
        options.upstream = format!("https://localhost:{}", address.port()).parse().unwrap();
        options.upstream_ca = Some(trusted.certificate.clone());
        options.tls = tls;
    })
    .await
}

/// Connects to the proxy with TLS.
async fn connect(
    address: SocketAddr,
    certificate: &Path,
    protocol: &[u8],
) -> std::io::Result<client::TlsStream<tokio::net::TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = tokio::net::TcpStream::connect(address).await?;
    let name = "localhost".try_into().unwrap();
    in_time("the handshake", TlsConnector::from(Arc::new(config)).connect(name, stream)).await
}

/// Starts an upstream with TLS that returns the requests it gets.
async fn secure_echo(files: &TlsFiles) -> SocketAddr {
    let chain = vec![CertificateDer::from_pem_file(&files.certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    upstream(move |stream| {
        let accepted = acceptor.accept(stream);
        async move {
            if let Ok(stream) = accepted.await {
                echo_on(stream).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn both_sides_may_use_tls() {
    let folder = tempfile::tempdir().unwrap();
    let files = write_certificate(folder.path());
    let proxy = start_secure(&files, &files, Some(files.clone())).await;
    let mut stream = connect(proxy.address, &files.certificate, b"http/1.1").await.unwrap();
    let answer = ask(&mut stream, "GET /x HTTP/1.1\r\nhost: shop\r\n\r\n").await;
    assert!(answer.contains("\r\nhost: shop\r\n"), "{answer}");
    assert!(answer.contains("\r\nx-forwarded-proto: https\r\n"), "{answer}");
    // Plain HTTP on the port of TLS gets no answer of the upstream.
    assert!(!proxy.exchange("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.contains("200 OK"));
}

/// The certificate that `openssl req -x509 -addext subjectAltName=DNS:localhost` makes.
#[tokio::test]
async fn a_certificate_authority_may_be_the_certificate_of_the_upstream() {
    for (host, is_expired, status) in
        [("localhost", false, "200"), ("localhost", true, "502"), ("other", false, "502")]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut params = rcgen::CertificateParams::new([host.to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        if is_expired {
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let files = write_files(folder.path(), &params.self_signed(&key).unwrap(), &key);
        let answer = start_secure(&files, &files, None).await.get("/").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{host} {is_expired}: {answer}"
        );
    }
}

#[tokio::test]
async fn an_upstream_with_an_unknown_certificate_is_not_used() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = [&one, &other].map(|folder| write_certificate(folder.path()));
    let proxy = start_secure(&files[0], &files[1], None).await;
    let answer = proxy.get("/").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    // With the right certificate in the file, it is used.
    fs::copy(one.path().join("cert.pem"), other.path().join("cert.pem")).unwrap();
    proxy.handle.reload_tls().unwrap();
    let answer = proxy.get("/").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn the_tls_files_are_read_again_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let files = write_certificate(folder.path());
    let proxy = start_set(echo().await, |options| options.tls = Some(files.clone())).await;
    let mut open = connect(proxy.address, &files.certificate, b"http/1.1").await.unwrap();
    write_certificate(folder.path());
    assert!(connect(proxy.address, &files.certificate, b"http/1.1").await.is_err());
    proxy.handle.reload_tls().unwrap();
    connect(proxy.address, &files.certificate, b"http/1.1").await.unwrap();
    // A file that cannot be used changes nothing.
    fs::write(&files.key, "nonsense").unwrap();
    let error = proxy.handle.reload_tls().unwrap_err();
    assert!(matches!(&error, ProxyError::File { path, .. } if *path == files.key), "{error}");
    connect(proxy.address, &files.certificate, b"http/1.1").await.unwrap();
    let answer = ask(&mut open, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

pub async fn http2(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> http2::SendRequest<Script> {
    let io = TokioIo::new(stream);
    let handshake = http2::handshake(TokioExecutor::new(), io);
    let (sender, connection) = in_time("the handshake", handshake).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn text(answer: Response<Incoming>) -> String {
    let body = in_time("the body", answer.into_body().collect()).await.unwrap();
    String::from_utf8(body.to_bytes().into()).unwrap()
}

#[tokio::test]
async fn http_2_clients_are_served_with_and_without_tls() {
    let folder = tempfile::tempdir().unwrap();
    let files = write_certificate(folder.path());
    let upstream = echo().await;
    let plain = start(upstream).await;
    let secure = start_set(upstream, |options| options.tls = Some(files.clone())).await;
    let tls = connect(secure.address, &files.certificate, b"h2").await.unwrap();
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    for (mut sender, proto) in
        [(http2(plain.connect().await).await, "http"), (http2(tls).await, "https")]
    {
        let requests = (0..20).map(|i| {
            let request = Request::get(format!("{proto}://shop.example/a/../%2F?{i}"))
                .header("cookie", "a=1")
                .header("cookie", "b=2")
                .body(Script::whole(""));
            let answer = sender.send_request(request.unwrap());
            async move { (i, text(in_time("an answer", answer).await.unwrap()).await) }
        });
        let requests: Vec<_> = requests.map(tokio::spawn).collect();
        for request in requests {
            let (i, got) = in_time("an answer", request).await.unwrap();
            let start = format!("GET /a/../%2F?{i} HTTP/1.1\r\n");
            assert!(got.starts_with(&start), "{got}");
            assert_eq!(got.matches("\r\nhost: shop.example\r\n").count(), 1, "{got}");
            assert!(got.contains("\r\ncookie: a=1; b=2\r\n"), "{got}");
            assert!(got.contains(&format!("\r\nx-forwarded-proto: {proto}\r\n")), "{got}");
            assert!(!got.contains("transfer-encoding"), "{got}");
        }
    }
}

#[tokio::test]
async fn an_http_2_body_of_unknown_length_is_sent_in_chunks() {
    let proxy = start(echo().await).await;
    let mut sender = http2(proxy.connect().await).await;
    for method in ["POST", "GET"] {
        let body = Script::chunked(["one", "two"].map(str::as_bytes));
        let request = Request::builder().method(method).uri("http://a/").body(body);
        let answer = in_time("an answer", sender.send_request(request.unwrap())).await.unwrap();
        let got = text(answer).await;
        assert!(got.contains("\r\ntransfer-encoding: chunked\r\n"), "{got}");
        assert!(got.contains("one") && got.ends_with("two\r\n0\r\n\r\n"), "{got}");
    }
    // A host that contradicts the target is refused.
    let request = Request::get("http://a/").header("host", "b").body(Script::whole("")).unwrap();
    let answer = in_time("an answer", sender.send_request(request)).await.unwrap();
    assert_eq!(answer.status(), 400);
}

#[tokio::test]
async fn an_http_2_client_sees_that_a_body_is_broken() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let proxy = start(answering(answer).await).await;
        let mut sender = http2(proxy.connect().await).await;
        let request = Request::get("http://a/").body(Script::whole("")).unwrap();
        let answer = in_time("an answer", sender.send_request(request)).await.unwrap();
        assert!(in_time("the body", answer.into_body().collect()).await.is_err());
    }
}
