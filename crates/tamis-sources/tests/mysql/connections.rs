//! Connections with TLS and over a socket, and reads that wait for the server.

use std::time::{Duration, Instant};

use tamis_sources::MysqlOptions;

use crate::checker::{Dir, has, id_set, integers, knows, wait_stale, wait_synced, wait_until};
use crate::stories::certificate;
use crate::stories::follow::{follow, own_shop, refused, reread, start};
use crate::tcp_proxy::TcpProxy;

#[test]
fn rows_and_log_are_read_over_tls() {
    let dir = Dir::new();
    certificate::write(&dir, "cert.pem", "key.pem");
    let file = |name: &str| dir.path(name).display().to_string();
    let settings =
        [format!("--ssl-cert={}", file("cert.pem")), format!("--ssl-key={}", file("key.pem"))];
    let (_server, mut shop) = own_shop(&settings.each_ref().map(String::as_str), 1000);
    shop.run("CREATE USER guard@'%' IDENTIFIED BY 'a secret' REQUIRE SSL");
    shop.run("GRANT SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO guard@'%'");
    let guard = shop.as_user("guard:a%20secret");
    let with = |parameters: &str| MysqlOptions {
        url: format!("{}{parameters}", guard.url),
        ..guard.clone()
    };
    let unverified = with("?require_ssl=true&verify_ca=false&verify_identity=false");
    let (ids, source) = follow(&unverified);
    assert!((1..=1000).all(|id| knows(&ids, id)) && !has(&ids, 1001));
    shop.after(&ids, &source, "INSERT INTO products VALUES ('new', 2000)", &[2000], &[]);

    // A private CA, which also turns TLS on.
    let with_ca = |name: &str| MysqlOptions { ca: Some(dir.path(name)), ..guard.clone() };
    follow(&with_ca("cert.pem"));
    certificate::write(&dir, "other.pem", "other-key.pem");
    for (name, message) in [
        ("other.pem", "invalid peer certificate"),
        ("key.pem", "key.pem: has no certificate in PEM"),
        ("missing.pem", "missing.pem: "),
    ] {
        refused(&with_ca(name), message);
    }
    refused(&guard, "Access denied");
    refused(&with("?require_ssl=true"), "invalid peer certificate");
}

#[test]
fn rows_and_log_are_read_over_a_socket() {
    let (server, mut shop) = own_shop(&[], 1000);
    // The server takes a connection over TCP for one from 127.0.0.1.
    shop.run("CREATE USER guard@localhost IDENTIFIED BY 'a secret'");
    shop.run("GRANT SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO guard@localhost");
    let mut options = shop.as_user("guard:a%20secret");
    options.url += &format!("?socket={}", server.socket());
    let (ids, _source) = follow(&options);
    assert!((1..=1000).all(|id| knows(&ids, id)) && !has(&ids, 1001));
}

#[test]
fn a_source_ends_at_once_while_its_read_waits_for_the_server() {
    let (_server, mut shop) = own_shop(&[], 10);
    shop.run("CREATE VIEW slow AS SELECT id FROM products WHERE SLEEP(100) = 0");
    let source = start(&id_set(integers()), &reread(&shop.table("slow")));
    let mut other = shop.open();
    let sleeps = "SELECT INFO FROM information_schema.PROCESSLIST \
        WHERE STATE = 'User sleep' AND INFO LIKE '%WHERE TRUE AND (TRUE)'";
    wait_until(&source, "the read begins", || !other.texts(sleeps).is_empty());
    let begun = Instant::now();
    drop(source);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn a_read_whose_connections_hang_does_not_keep_new_ids_away() {
    let (server, mut shop) = own_shop(&[], 300_000);
    let proxy = TcpProxy::start(server.address());
    let (ids, source) = follow(&shop.at(proxy.address));
    let before = proxy.connections();
    source.rebuild();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(2, 4);
    wait_until(&source, "the read begins", || proxy.connections() >= before + threads);
    proxy.freeze();
    wait_stale(&source);
    wait_synced(&source);
    shop.after(&ids, &source, "INSERT INTO products VALUES ('new', 400000)", &[400_000], &[]);
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
