//! Connections with TLS and over a socket, and reads that wait for the server.

use std::time::{Duration, Instant};

use tamis_guard::SyncState;
use tamis_guard::source::{MysqlOptions, PollOptions};

use crate::checker::{Dir, has, id_set, integers, knows, wait, wait_synced, wait_until};
use crate::server::{Server, Session, start};
use crate::tcp_proxy::TcpProxy;

#[test]
fn rows_and_log_are_read_over_tls() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let dir = Dir::new();
    std::fs::write(dir.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let file = |name: &str| dir.path(name).display().to_string();
    let settings =
        [format!("--ssl-cert={}", file("cert.pem")), format!("--ssl-key={}", file("key.pem"))];
    let server = Server::start_with(&settings.each_ref().map(String::as_str));
    let mut shop = server.shop();
    shop.fill(1, 1000);
    shop.session.run("CREATE USER guard@'%' IDENTIFIED BY 'a secret' REQUIRE SSL");
    shop.session.run("GRANT SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO guard@'%'");
    let url = |parameters: &str| {
        format!("mysql://guard:a%20secret@{}/{}{parameters}", server.address(), shop.name)
    };

    let ids = id_set(integers());
    let unverified = url("?require_ssl=true&verify_ca=false&verify_identity=false");
    let source = start(&ids, &MysqlOptions { url: unverified, ..shop.options.clone() });
    wait_synced(&source);
    assert!((1..=1000).all(|id| knows(&ids, id)) && !has(&ids, 1001));
    shop.session.run("INSERT INTO products VALUES ('new', 2000)");
    wait_until(&source, "the log", || has(&ids, 2000));

    // A private CA, which also turns TLS on.
    let with_ca = |name: &str| MysqlOptions {
        url: url(""),
        ca: Some(dir.path(name)),
        ..shop.options.clone()
    };
    wait_synced(&start(&id_set(integers()), &with_ca("cert.pem")));
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(dir.path("other.pem"), other.cert.pem()).unwrap();
    for (name, message) in [
        ("other.pem", "invalid peer certificate"),
        ("key.pem", "key.pem: has no certificate in PEM"),
        ("missing.pem", "missing.pem: "),
    ] {
        let source = start(&id_set(integers()), &with_ca(name));
        wait(&source, message, |status| {
            status.last_error.as_ref().is_some_and(|error| error.contains(message))
        });
    }

    for (parameters, message) in
        [("", "Access denied"), ("?require_ssl=true", "invalid peer certificate")]
    {
        let ids = id_set(integers());
        let source = start(&ids, &MysqlOptions { url: url(parameters), ..shop.options.clone() });
        wait(&source, message, |status| {
            status.last_error.as_ref().is_some_and(|error| error.contains(message))
        });
        assert_eq!(source.status().state, SyncState::Warming);
    }
}

#[test]
fn rows_and_log_are_read_over_a_socket() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 1000);
    // The server takes a connection over TCP for one from 127.0.0.1.
    shop.session.run("CREATE USER guard@localhost IDENTIFIED BY 'a secret'");
    shop.session
        .run("GRANT SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO guard@localhost");
    let (address, socket) = (server.address(), server.socket());
    let url = format!("mysql://guard:a%20secret@{address}/{}?socket={socket}", shop.name);
    let ids = id_set(integers());
    let source = start(&ids, &MysqlOptions { url, ..shop.options.clone() });
    wait_synced(&source);
    assert!((1..=1000).all(|id| knows(&ids, id)) && !has(&ids, 1001));
}

#[test]
fn a_source_ends_at_once_while_its_read_waits_for_the_server() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 10);
    shop.session.run("CREATE VIEW slow AS SELECT id FROM products WHERE SLEEP(100) = 0");
    let poll = Some(PollOptions::default());
    let mysql = MysqlOptions { table: "slow".to_owned(), poll, ..shop.options.clone() };
    let source = start(&id_set(integers()), &mysql);
    let mut other = Session::open(&shop.options.url);
    let sleeps = "SELECT INFO FROM information_schema.PROCESSLIST \
        WHERE STATE = 'User sleep' AND INFO LIKE '%WHERE TRUE'";
    wait_until(&source, "the read begins", || !other.texts(sleeps).is_empty());
    let begun = Instant::now();
    drop(source);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn a_read_whose_connections_hang_does_not_keep_new_ids_away() {
    let server = Server::start();
    let mut shop = server.shop();
    shop.fill(1, 300_000);
    let proxy = TcpProxy::start(server.address());
    let url = shop.options.url.replace(&server.address().to_string(), &proxy.address.to_string());
    let ids = id_set(integers());
    let source = start(&ids, &MysqlOptions { url, ..shop.options.clone() });
    wait_synced(&source);
    let before = proxy.connections();
    source.rebuild();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(2, 4);
    wait_until(&source, "the read begins", || proxy.connections() >= before + threads);
    proxy.freeze();
    wait(&source, "stale", |status| status.state == SyncState::Stale);
    wait_synced(&source);
    shop.session.run("INSERT INTO products VALUES ('new', 400000)");
    wait_until(&source, "the new id", || has(&ids, 400_000));
    // Two connections follow the log, and the threads of the read have ended.
    let (mut opened, mut since) = (proxy.connections(), Instant::now());
    tamis_testing::wait_until("the source opens no connection for a second", || {
        if proxy.connections() != opened {
            (opened, since) = (proxy.connections(), Instant::now());
        }
        since.elapsed() > Duration::from_secs(1)
    });
    assert!((1..=300_000).step_by(1000).all(|id| knows(&ids, id)));
}
