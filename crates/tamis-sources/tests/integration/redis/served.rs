//! Filters of a server in this process.

use std::sync::Arc;
use std::time::Duration;

use tamis_server::{ClientCertificates, Config, Server};
use tamis_sources::{IdSet, RedisOptions, Source};

use super::client::Client;
use crate::certificate;
use crate::checker::*;
use crate::tcp_proxy::TcpProxy;

/// Creates a filter that grows.
const GROWING: [&str; 2] = ["BF.RESERVE seen 0.000001 100 EXPANSION 2", "BF.ADD seen 1"];

fn serve() -> (Server, Client) {
    let server = serve_with(Config::default());
    let client = client(&server);
    (server, client)
}

fn serve_with(config: Config) -> Server {
    Server::start(Config { port: 0, threads: 1, append_only: false, ..config }).unwrap()
}

fn client(server: &Server) -> Client {
    Client::connect(server.addresses()[0])
}

fn follow(ids: &Arc<IdSet>, url: &str) -> Source {
    Source::start(Arc::clone(ids), RedisOptions::new(url), options())
}

/// Starts a source, and waits until it has copied the filter.
fn copied(url: &str) -> (Arc<IdSet>, Source) {
    synced(integers(), |ids| follow(ids, url))
}

/// Starts a server, runs commands, and starts a source that has copied the filter.
fn followed(commands: &[&str]) -> (Server, Client, Arc<IdSet>, Source) {
    let (server, mut client) = serve();
    commands.iter().for_each(|command| _ = client.run(command));
    let (ids, source) = copied(&url(&server));
    (server, client, ids, source)
}

fn url(server: &Server) -> String {
    format!("redis://{}/seen", server.addresses()[0])
}

/// Returns the last error of a source after it has failed.
fn failure(source: &Source) -> String {
    wait(source, "a failure", |status| status.last_error.is_some()).last_error.unwrap()
}

#[test]
fn every_kind_of_filter_of_the_server_is_copied() {
    let (server, mut client) = serve();
    for create in [
        "BF.RESERVE seen 0.000001 1000",
        "BF.RESERVE seen 0.000001 100 EXPANSION 2",
        "CF.RESERVE seen 1000",
        "TM.RESERVE seen KIND classic ITEMS 1000 RATE 0.000001",
    ] {
        client.run("DEL seen");
        client.run(create);
        let add = &create[..2];
        for id in 1..=900 {
            client.run(&format!("{add}.ADD seen {id}"));
        }
        let (ids, _source) = copied(&url(&server));
        assert!((1..=900).all(|id| knows(&ids, id)), "{create}");
        let wrong = (1001..2001).filter(|id| knows(&ids, id)).count();
        assert!(wrong < 200, "{create}: {wrong}");
        let items = ids.generations().items();
        assert!(items.abs_diff(900) < 100, "{create}: {items}");
    }
}

/// The default serializer of Spring writes such keys.
#[test]
fn a_key_need_not_be_text() {
    let (server, mut client) = serve();
    let key = b"\xac\xed\0\x05t\0\x04seen";
    client.call(&[b"BF.ADD", key, b"7"]);
    let url = format!("redis://{}/%AC%ED%00%05t%00%04seen", server.addresses()[0]);
    let (ids, _source) = copied(&url);
    assert!(knows(&ids, 7) && !has(&ids, 8));
}

#[test]
fn an_unchanged_filter_is_not_read_again() {
    let (_server, mut client, _ids, source) = followed(&["BF.MADD seen 1 2 3"]);
    let before = wait(&source, "a moment", |status| status.last_success.is_some());
    let later = before.last_success.unwrap() + 10 * INTERVAL;
    wait(&source, "ten questions", |status| status.last_success.is_some_and(|it| it > later));
    // Another key is none of its business, and an item that exists already changes nothing.
    client.run("BF.ADD other 1");
    client.run("BF.ADD seen 2");
    let later = std::time::Instant::now() + 5 * INTERVAL;
    wait(&source, "more questions", |status| status.last_success.is_some_and(|it| it > later));
    assert_eq!(source.status().generations, 1);
    source.rebuild();
    wait(&source, "the read that was asked for", |status| status.generations == 2);
}

#[test]
fn another_filter_with_as_many_items_is_noticed() {
    let (_server, mut client, ids, source) = followed(&["BF.MADD seen 1 2 3"]);
    client.run("BF.MADD new 11 12 13");
    client.run("RENAME new seen");
    wait_until(&source, "the new filter", || (11..14).all(|id| knows(&ids, id)));
    assert!((1..4).all(|id| !has(&ids, id)));
}

#[test]
fn a_deleted_or_replaced_key_keeps_the_ids_and_makes_them_stale() {
    let (_server, mut client, ids, source) = followed(&["BF.MADD seen 1 2 3"]);

    client.run("DEL seen");
    assert!(failure(&source).ends_with("/seen: there is no such key"), "{:?}", source.status());
    wait_stale(&source);
    assert!((1..4).all(|id| has(&ids, id)));
    client.run("BF.MADD seen 1 2 3 4");
    wait_synced(&source);
    assert!(knows(&ids, 4));

    client.run("SET seen something");
    let message = failure(&source);
    assert!(message.contains("set `format`"), "{message}");
    wait_stale(&source);
    assert!(has(&ids, 4));
}

#[test]
fn a_filter_that_was_emptied_is_not_used() {
    let (_server, mut client, ids, source) = followed(&["BF.MADD seen 1 2 3 4 5 6 7 8 9 10"]);
    // A program lost its data, and its next item creates a new filter.
    client.run("FLUSHALL");
    client.run("BF.ADD seen 11");
    let status = wait_error(&source, "at least 5");
    assert!(status.last_error.unwrap().contains("min_share"));
    assert!(has(&ids, 1));
}

#[test]
fn a_window_is_refused() {
    let (server, mut client) = serve();
    client.run("TM.RESERVE seen KIND window WINDOW 60000 ITEMS 1000");
    client.run("TM.ADD seen 1");
    let source = follow(&id_set(integers()), &url(&server));
    let message = failure(&source);
    assert!(message.ends_with("which forgets items; use a filter without a window"), "{message}");
}

#[test]
fn a_wrong_password_is_one_line_without_the_password() {
    let server = serve_with(Config { password: "right".to_owned(), ..Config::default() });
    let address = server.addresses()[0];
    for (url, why) in [
        (format!("redis://:wr0ng@{address}/seen"), "WRONGPASS"),
        (format!("redis://{address}/seen"), "the server requires a password"),
    ] {
        let source = follow(&id_set(integers()), &url);
        let message = failure(&source);
        assert!(message.starts_with(&format!("redis://{address}/seen: ")), "{message}");
        assert!(message.contains(why) && !message.contains("wr0ng"), "{message}");
        assert_eq!(message.lines().count(), 1);
    }
    let mut client = client(&server);
    client.run("AUTH right");
    client.run("BF.ADD seen 1");
    let (ids, _source) = copied(&format!("redis://:right@{address}/seen"));
    assert!(knows(&ids, 1));
}

#[test]
fn broken_connections_and_a_silent_network_never_break_the_promise() {
    let (server, mut client) = serve();
    GROWING.iter().for_each(|command| _ = client.run(command));
    let proxy = TcpProxy::start(server.addresses()[0]);
    let (ids, source) = copied(&format!("redis://{}/seen", proxy.address));
    let committed = Committed::of([1]);
    check(&source, &ids, &committed, || {
        let mut random = Random(11);
        for step in 0..300 {
            let id = 2 + random.below(1 << 40);
            client.run(&format!("BF.ADD seen {id}"));
            committed.insert([id]);
            match random.below(20) {
                0 => proxy.cut(),
                1 => proxy.partition(),
                2..5 => proxy.heal(),
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(random.below(10)));
            if step == 299 {
                proxy.heal();
            }
        }
    });
    wait_synced(&source);
    for id in committed.ids() {
        wait_until(&source, "every id is known", || knows(&ids, id));
    }
}

#[test]
fn a_stopped_server_keeps_the_ids_and_makes_them_stale() {
    let (server, _client, ids, source) = followed(&["BF.ADD seen 1"]);
    drop(server);
    wait_broken(&source, "/seen: the connection failed: ");
    assert!(has(&ids, 1));
}

#[test]
fn a_source_trusts_the_certificates_in_its_ca_and_no_others() {
    let dir = Dir::new();
    certificate::write(&dir, "server.pem", "server.key");
    certificate::write(&dir, "other.pem", "other.key");
    let server = serve_with(Config {
        tls_port: Some(0),
        tls_cert_file: Some(dir.path("server.pem")),
        tls_key_file: Some(dir.path("server.key")),
        tls_auth_clients: ClientCertificates::NotRequested,
        ..Config::default()
    });
    client(&server).run("BF.ADD seen 1");
    let url = format!("rediss://{}/seen", server.tls_addresses()[0]);
    let with_ca = |ca| RedisOptions { ca, ..RedisOptions::new(&url) };
    for (ca, expected) in [
        (None, "certificate"),
        (Some(dir.path("other.pem")), "certificate"),
        (Some(dir.path("none.pem")), "none.pem: cannot be read: No such file"),
        (Some(dir.path("server.key")), "server.key: has no certificate in PEM"),
    ] {
        let source = Source::start(id_set(integers()), with_ca(ca), options());
        let error = failure(&source);
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
    let trusted = with_ca(Some(dir.path("server.pem")));
    let (ids, _source) =
        synced(integers(), |ids| Source::start(Arc::clone(ids), trusted, options()));
    assert!(has(&ids, 1) && !has(&ids, 2));
}
