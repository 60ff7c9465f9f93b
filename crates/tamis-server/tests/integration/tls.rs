//! TLS: accepted and refused connections, and the service to other clients meanwhile.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{config, serve, start_with};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use tamis_resp::Reply;
use tamis_server::{ClientCertificates, Config, Server};
use tamis_testing::{connect, read_to_end};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A folder with certificates that one authority has signed, and certificates from another source.
struct Files(tempfile::TempDir);

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Authority::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        let own = authority();
        std::fs::write(files.path("ca.pem"), own.pem()).unwrap();
        files.sign("server", &own, ExtendedKeyUsagePurpose::ServerAuth, (2020, 2090));
        files.sign("client", &own, ExtendedKeyUsagePurpose::ClientAuth, (2020, 2090));
        files.sign("renewed", &own, ExtendedKeyUsagePurpose::ServerAuth, (2020, 2090));
        files.sign("expired", &own, ExtendedKeyUsagePurpose::ServerAuth, (2020, 2021));
        files.sign("early", &own, ExtendedKeyUsagePurpose::ServerAuth, (2080, 2090));
        files.sign("late client", &own, ExtendedKeyUsagePurpose::ClientAuth, (2020, 2021));
        files.sign("stranger", &authority(), ExtendedKeyUsagePurpose::ClientAuth, (2020, 2090));
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn sign(&self, name: &str, by: &Authority, usage: ExtendedKeyUsagePurpose, years: (i32, i32)) {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![usage];
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, by).unwrap();
        std::fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// Returns the configuration of a server that accepts only TLS.
    fn config(&self, clients: ClientCertificates) -> Config {
        Config {
            listens_plain: false,
            tls_port: Some(0),
            tls_cert_file: Some(self.path("server.pem")),
            tls_key_file: Some(self.path("server.key")),
            tls_ca_cert_file: Some(self.path("ca.pem")),
            tls_auth_clients: clients,
            ..config()
        }
    }

    /// Starts a server that requires certificates.
    fn start(&self) -> (Server, SocketAddr) {
        let server = Server::start(self.config(ClientCertificates::Required)).unwrap();
        let address = server.tls_addresses()[0];
        (server, address)
    }

    /// Replaces a certificate and its key by others.
    fn replace(&self, name: &str, by: &str) {
        for end in ["pem", "key"] {
            let [from, to] = [by, name].map(|name| self.path(&format!("{name}.{end}")));
            std::fs::copy(from, to).unwrap();
        }
    }

    /// Connects a client, and returns the certificate that the server has shown.
    fn certificate(&self, address: SocketAddr) -> (TlsClient, CertificateDer<'static>) {
        let mut client = self.connect(address, Some("client"));
        client.say("PING").unwrap();
        let certificate = client.stream.conn.peer_certificates().unwrap()[0].clone();
        (client, certificate)
    }

    fn connect(&self, address: SocketAddr, certificate: Option<&str>) -> TlsClient {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.path("ca.pem")).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match certificate {
            Some(name) => {
                let chain = CertificateDer::from_pem_file(self.path(&format!("{name}.pem")));
                let key = PrivateKeyDer::from_pem_file(self.path(&format!("{name}.key")));
                builder.with_client_auth_cert(vec![chain.unwrap()], key.unwrap()).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let name = "localhost".try_into().unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = connect(address);
        TlsClient { stream: StreamOwned::new(connection, stream), input: Vec::new() }
    }
}

struct TlsClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
    input: Vec<u8>,
}

impl TlsClient {
    fn say(&mut self, line: &str) -> std::io::Result<Reply> {
        self.stream.write_all(line.as_bytes())?;
        self.stream.write_all(b"\r\n")?;
        self.receive()
    }

    fn receive(&mut self) -> std::io::Result<Reply> {
        loop {
            if let Some((reply, len)) = Reply::decode(&self.input).unwrap() {
                self.input.drain(..len);
                return Ok(reply);
            }
            let mut piece = vec![0; 1 << 16];
            let len = self.stream.read(&mut piece)?;
            if len == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.input.extend(&piece[..len]);
        }
    }
}

#[test]
fn commands_run_over_tls_as_without() {
    let files = Files::new();
    let config = Config { listens_plain: true, ..files.config(ClientCertificates::NotRequested) };
    let (server, mut plain) = start_with(config);
    let mut client = files.connect(server.tls_addresses()[0], None);
    assert_eq!(client.say("BF.ADD seen a").unwrap(), Reply::Integer(1));
    assert_eq!(plain.say(&["BF.EXISTS", "seen", "a"]), Reply::Integer(1));

    // A long command, and replies longer than the buffer of TLS.
    let mut command = format!("*{}\r\n$7\r\nBF.MADD\r\n$4\r\nmany\r\n", 200_002);
    for i in 0..200_000 {
        let item = format!("item:{i}");
        command += &format!("${}\r\n{item}\r\n", item.len());
    }
    client.stream.write_all(command.as_bytes()).unwrap();
    let Reply::Array(added) = client.receive().unwrap() else { panic!() };
    assert_eq!(added.len(), 200_000);
    let value = "x".repeat(3 << 20);
    plain.say(&["SET", "large", &value]);
    assert_eq!(client.say("GET large").unwrap(), Reply::bulk(value));

    // The server closes TLS properly, so that the client cannot mistake the end for a truncation.
    assert_eq!(client.say("QUIT").unwrap(), Reply::ok());
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0);
    let mut client = files.connect(server.tls_addresses()[0], None);
    client.say("PING").unwrap();
    plain.say(&["CLIENT", "KILL", "SKIPME", "yes"]);
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn client_certificates_are_requested_as_configured() {
    let files = Files::new();
    for (clients, without, wrong) in [
        (ClientCertificates::Required, false, false),
        (ClientCertificates::Optional, true, false),
        (ClientCertificates::NotRequested, true, true),
    ] {
        let server = Server::start(files.config(clients)).unwrap();
        assert!(server.addresses().is_empty());
        let address = server.tls_addresses()[0];
        for (certificate, is_in) in [
            (Some("client"), true),
            (None, without),
            (Some("stranger"), wrong),
            (Some("late client"), wrong),
            (Some("server"), wrong),
        ] {
            let reply = files.connect(address, certificate).say("PING");
            assert_eq!(reply.is_ok(), is_in, "{clients:?} {certificate:?}: {reply:?}");
        }
    }
}

#[test]
fn unusable_tls_files_are_reported_in_one_line() {
    let files = Files::new();
    std::fs::write(files.path("garbage"), [0xff; 1000]).unwrap();
    std::fs::write(files.path("empty"), "").unwrap();
    let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(files.path("bad.pem"), bad).unwrap();
    let cut = std::fs::read_to_string(files.path("server.pem")).unwrap();
    std::fs::write(files.path("cut.pem"), &cut[..cut.len() / 2]).unwrap();
    type FileOption = fn(&mut Config) -> &mut Option<PathBuf>;
    let cert: FileOption = |it| &mut it.tls_cert_file;
    let key: FileOption = |it| &mut it.tls_key_file;
    let ca_cert: FileOption = |it| &mut it.tls_ca_cert_file;
    let cases: [(FileOption, Option<&str>, &[&str]); 14] = [
        (cert, None, &["tls-cert-file: missing"]),
        (key, None, &["tls-key-file: missing"]),
        (ca_cert, None, &["tls-ca-cert-file: missing", "tls-auth-clients no"]),
        (cert, Some("none"), &["tls-cert-file", "none: cannot be read"]),
        (cert, Some(""), &["tls-cert-file", "cannot be read"]),
        (cert, Some("garbage"), &["tls-cert-file", "garbage"]),
        (cert, Some("empty"), &["empty: there is no certificate"]),
        (cert, Some("bad.pem"), &["bad.pem: not a certificate"]),
        (cert, Some("cut.pem"), &["cut.pem"]),
        (cert, Some("expired.pem"), &["expired.pem", "renew it"]),
        (cert, Some("early.pem"), &["early.pem", "not valid yet"]),
        (key, Some("client.key"), &["client.key", "not the key of"]),
        (key, Some("server.pem"), &["server.pem: there is no private"]),
        (ca_cert, Some("empty"), &["tls-ca-cert-file", "empty"]),
    ];
    let assert_refused = |config: Config, parts: &[&str]| {
        let refused = Server::start(config).unwrap_err().to_string();
        for part in parts {
            assert!(refused.contains(part), "{part:?} is not in: {refused}");
        }
        assert!(!refused.contains('\n') && !refused.contains("PRIVATE"), "{refused}");
    };
    let config = || files.config(ClientCertificates::Required);
    for (option, name, expected) in cases {
        let mut config = config();
        *option(&mut config) = name.map(|name| files.path(name));
        assert_refused(config, expected);
    }
    assert_refused(Config { tls_port: None, ..config() }, &["nowhere to listen"]);
    let same = Config { listens_plain: true, port: 7777, tls_port: Some(7777), ..config() };
    assert_refused(same, &["the same"]);
    let outside = Config { bind: vec!["0.0.0.0".parse().unwrap()], ..config() };
    assert_refused(outside, &["--requirepass"]);
}

#[test]
fn a_renewed_certificate_is_reloaded_while_the_server_runs() {
    let files = Files::new();
    let (_server, address) = files.start();
    let (mut client, first) = files.certificate(address);
    let set = |client: &mut TlsClient, name: &str| {
        let [cert, key] = ["pem", "key"].map(|end| files.path(&format!("{name}.{end}")));
        let (cert, key) = (cert.display(), key.display());
        client.say(&format!("CONFIG SET tls-cert-file \"{cert}\" tls-key-file \"{key}\"")).unwrap()
    };
    assert!(matches!(set(&mut client, "expired"), Reply::Error(_)));
    assert!(matches!(set(&mut client, "none"), Reply::Error(_)));
    assert_eq!(files.certificate(address).1, first, "as before");
    assert_eq!(set(&mut client, "renewed"), Reply::ok());
    assert_ne!(files.certificate(address).1, first);
    // CONFIG SET reads a replaced file again even if its name is the same.
    files.replace("renewed", "server");
    assert_eq!(set(&mut client, "renewed"), Reply::ok());
    assert_eq!(files.certificate(address).1, first);
    assert_eq!(client.say("CONFIG SET tls-auth-clients no").unwrap(), Reply::ok());
    assert!(files.connect(address, None).say("PING").is_ok());
}

#[test]
fn reloaded_files_apply_to_new_connections_and_invalid_ones_to_none() {
    let files = Files::new();
    let (server, address) = files.start();
    let (mut early, first) = files.certificate(address);
    files.replace("server", "renewed");
    assert_eq!(files.certificate(address).1, first, "the server has not reloaded its certificates");
    assert!(server.handle().reload_tls().unwrap());
    let (_, second) = files.certificate(address);
    assert_ne!(second, first);
    assert_eq!(early.say("PING").unwrap(), Reply::simple("PONG"), "it stays connected");
    for (name, name_in_error) in [
        ("expired.pem", "expired: renew it"),
        ("client.key", "there is no certificate in it"),
        ("client.pem", "not the key of"),
    ] {
        std::fs::copy(files.path(name), files.path("server.pem")).unwrap();
        let error = server.handle().reload_tls().unwrap_err().to_string();
        assert!(error.contains("server.") && error.contains(name_in_error), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert_eq!(files.certificate(address).1, second, "{name}");
    }
    assert!(!serve(1).handle().reload_tls().unwrap());
}

#[test]
fn a_client_without_tls_does_not_harm_others() {
    let files = Files::new();
    let config = Config { max_clients: 40, ..files.config(ClientCertificates::Required) };
    let server = Server::start(config).unwrap();
    let address = server.tls_addresses()[0];
    let mut well = files.connect(address, Some("client"));
    well.say("PING").unwrap();
    for bytes in [
        &b"PING\r\n"[..],
        b"*1\r\n$4\r\nPING\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        &[0x16, 3, 1, 0xff, 0xff],
        &[0xff; 10_000],
        &[0; 10_000],
    ] {
        let mut stream = connect(address);
        _ = stream.write_all(bytes);
        _ = stream.shutdown(std::net::Shutdown::Write);
        // The server may send an alert, then closes the connection; it never sends an answer.
        let answer = read_to_end(&mut stream);
        assert!(!answer.windows(4).any(|it| it == b"PONG"), "{answer:?}");
    }
    // Incomplete handshakes count as connections, and end.
    let started = Instant::now();
    let mut idle: Vec<TcpStream> = (0..60).map(|_| connect(address)).collect();
    idle.iter_mut().for_each(|it| _ = it.write_all(&[0x16, 3, 1, 0, 200, 1]));
    well.say("PING").unwrap();
    assert!(started.elapsed() < Duration::from_secs(8), "no connection waits for them");
    let list = well.say("INFO stats").unwrap();
    let Reply::Bulk(text) = list else { panic!("{list:?}") };
    assert!(String::from_utf8(text).unwrap().contains("rejected_connections:2"));
    for mut stream in idle {
        read_to_end(&mut stream);
    }
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert!(files.connect(address, Some("client")).say("PING").is_ok(), "there is room again");
}
