//! Users with every authentication plugin, and two guards with one number.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tamis_guard::source::MysqlOptions;
use tamis_testing::{accept, join};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::checker::{Dir, id_set, integers, wait, wait_error, wait_synced};
use crate::stories::follow::{follow, own_shop, start};

/// Where `cargo xtask test` puts the plugins of Debian's package `mariadb-server`, which is not installed.
const PLUGINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/mariadb-plugins");

#[test]
fn every_authentication_plugin_works_or_is_refused_with_a_line() {
    let folder = format!("{PLUGINS}/usr/lib/mysql/plugin");
    let has_plugins = Path::new(&folder).join("auth_ed25519.so").exists();
    let plugin_dir = format!("--plugin-dir={folder}");
    let settings: &[&str] = if has_plugins { &[&plugin_dir] } else { &[] };
    let (_server, mut shop) = own_shop(settings, 10);
    let mut plugins = vec![
        ("native", "mysql_native_password USING PASSWORD('geheim')", None),
        ("old", "mysql_old_password USING '7a8b9c0d1e2f3a4b'", Some("old format")),
        ("socket", "unix_socket", Some("Access denied")),
    ];
    if has_plugins {
        shop.run("INSTALL SONAME 'auth_ed25519'");
        shop.run("INSTALL SONAME 'auth_pam'");
        plugins.push(("elliptic", "ed25519 USING PASSWORD('geheim')", None));
        plugins.push(("pam", "pam USING 'mysql'", Some("dialog")));
    } else {
        println!("ed25519 and PAM were not tested: {folder} does not exist");
    }
    for (user, plugin, refusal) in plugins {
        shop.run(&format!("CREATE USER {user} IDENTIFIED VIA {plugin}"));
        shop.run(&format!("GRANT SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO {user}"));
        for password in ["geheim", "falsch", ""] {
            let options = shop.as_user(&format!("{user}:{password}"));
            let source = start(&id_set(integers()), &options);
            if refusal.is_none() && password == "geheim" {
                wait_synced(&source);
                continue;
            }
            let status = wait(&source, user, |status| status.failures > 0);
            let error = status.last_error.unwrap();
            let is_line = !error.contains('\n') && !error.contains("panicked");
            assert!(is_line, "{user} {password}: {error}");
            if password == "geheim" {
                assert!(error.contains(refusal.unwrap()), "{user}: {error}");
            }
        }
    }
}

#[test]
fn two_guards_with_one_server_id_are_told_so() {
    let (_server, shop) = own_shop(&[], 10);
    let options = MysqlOptions { server_id: Some(77), ..shop.options.clone() };
    let (_, first) = follow(&options);
    let _second = start(&id_set(integers()), &options);
    wait_error(&first, "another reader of the binary log uses server_id 77");
}

/// A key of 2048 bits.
const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu068Q1dfP2dflf5u8JlC\n\
    IX9bm5OgTnb8uTRVpGguVYtXrkSughZ+9qY/hUwejJKPMuOHpf4HPlUFBxVDUluU\n\
    sJGoYWlwuXRKbu5xGrEVbdhBaqV1YMwfSCle8JuEAzHx3ZG4kBm6alMOflKMPuUY\n\
    HO4d5pBa4W4yTB4WR8T9XynVr1+r+DGNiBLNWT9aGlwyQCK0ZF3C/D0QE1jhtPpO\n\
    0YQLHfPWgIZxJDrSJ4nVuG/IWsJXqTUBMBW6/7gTa8kGYRpFrCzjjcvDWnEWToWv\n\
    u6rpfYylOkrBOs9WKW5SJpOGMudwO4RHf+kGU3MbkwS9s8dMtzv6Le4YIHURS/31\n\
    HQIDAQAB\n\
    -----END PUBLIC KEY-----\n";

/// Sends a message with the number that the protocol wants.
fn send(stream: &mut impl Write, number: u8, message: &[u8]) -> io::Result<()> {
    let length = (message.len() as u32).to_le_bytes();
    stream.write_all(&[&length[..3], &[number], message].concat())
}

/// Returns a message of the client.
fn receive(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let mut message = vec![0; length as usize];
    stream.read_exact(&mut message)?;
    Ok(message)
}

/// How the scripted server gets the proof of the password.
#[derive(Clone)]
enum Login {
    /// It knows the hash.
    Cached,
    /// The client encrypts the password with the key of the server.
    Key,
    /// The client sends the password over TLS.
    Tls(Arc<ServerConfig>),
}

/// Logs a client in as MySQL does with `caching_sha2_password`, and answers its first query with an error.
fn log_in(mut stream: TcpStream, login: &Login) -> io::Result<()> {
    let has_tls = matches!(login, Login::Tls(_));
    let greeting = [
        b"\x0a8.4.0\0\x01\0\0\0abcdefgh\0\xff".as_slice(),
        if has_tls { b"\xff" } else { b"\xf7" },
        b"\x2d\x02\0\xff\x81\x15",
        &[0; 10],
        b"ijklmnopqrst\0caching_sha2_password\0",
    ];
    send(&mut stream, 0, &greeting.concat())?;
    let Login::Tls(config) = login else { return prove(&mut stream, login, 2) };
    assert_eq!(receive(&mut stream)?.len(), 32, "the client asks for TLS");
    let tls = ServerConnection::new(Arc::clone(config)).unwrap();
    prove(&mut StreamOwned::new(tls, stream), login, 3)
}

/// Goes on from the response of the client. `number` is the number of the next message.
fn prove(stream: &mut (impl Read + Write), login: &Login, number: u8) -> io::Result<()> {
    const OK: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
    let response = receive(stream)?;
    assert!(!response.windows(6).any(|bytes| bytes == b"geheim"), "the password is not sent");
    match login {
        Login::Cached => {
            send(stream, number, &[1, 3])?;
            send(stream, number + 1, &OK)?;
        }
        Login::Key => {
            send(stream, number, &[1, 4])?;
            assert_eq!(receive(stream)?, [2], "the client asks for the key");
            send(stream, number + 2, &[b"\x01".as_slice(), PUBLIC_KEY.as_bytes()].concat())?;
            assert_eq!(receive(stream)?.len(), 256, "an encrypted password");
            send(stream, number + 4, &OK)?;
        }
        Login::Tls(_) => {
            send(stream, number, &[1, 4])?;
            assert_eq!(receive(stream)?, b"geheim\0");
            send(stream, number + 2, &OK)?;
        }
    }
    receive(stream)?;
    send(stream, 1, b"\xff\x51\x04#HY000the script ends")
}

#[test]
fn a_user_of_mysql_logs_in_with_caching_sha2_password() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let dir = Dir::new();
    std::fs::write(dir.path("ca.pem"), made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    for (login, ca) in [
        (Login::Cached, None),
        (Login::Key, None),
        (Login::Tls(Arc::new(config)), Some(dir.path("ca.pem"))),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || log_in(accept("the source", &listener), &login));
        let url = format!("mysql://guard:geheim@{address}/shop");
        let mysql = MysqlOptions { ca, ..MysqlOptions::new(&url, "products", "id") };
        let source = start(&id_set(integers()), &mysql);
        wait_error(&source, "the script ends");
        drop(source);
        join("the scripted server", server).unwrap();
    }
}
