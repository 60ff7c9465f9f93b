//! Servers that are killed, and networks that break.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use tamis_sources::{Source, SourceKind, SourceOptions};
use tamis_testing::{accept, in_time};

use super::database::Database;
use super::follow::{Options, continued, start};
use crate::checker::*;
use crate::server::Server;
use crate::tcp_proxy::TcpProxy;

#[test]
fn killed_servers_and_broken_networks_lose_no_id() {
    faults(Server::DURABLE, |options, _| options.clone(), Server::KEEPS_PLACE);
}

#[test]
fn a_source_that_continues_the_log_reads_no_ids_again_after_a_fault() {
    faults(&[Server::DURABLE, Server::CONTINUED].concat(), continued, true);
}

/// Kills the server and breaks the network while rows change. All ids are read once if `keeps_place` is true.
fn faults<K: SourceKind + Clone>(
    settings: &[&str],
    set: impl Fn(&Options, &Path) -> K,
    keeps_place: bool,
) {
    let mut server = Server::start_with(settings);
    let (mut shop, dir) = (server.shop(), Dir::new());
    shop.fill(1, 1000);
    let proxy = TcpProxy::start(server.address());
    let (ids, committed) = (id_set(integers()), Committed::of(1..=1000));
    let source = start(&ids, &set(&shop.at(proxy.address), &dir.path("a")));
    wait_synced(&source);
    let mut next = 2000;
    check(&source, &ids, &committed, || {
        for round in 0..9 {
            for _ in 0..30 {
                shop.run(&format!("INSERT INTO products VALUES ('new', {next})"));
                committed.insert([next]);
                next += 1;
                // Before a kill, the source may not have read the last commits.
                if round % 3 != 2 {
                    std::thread::sleep(Duration::from_millis(3));
                }
            }
            match round % 3 {
                0 => proxy.cut(),
                // The server does not notice it, and its former process may still send the log.
                1 => {
                    proxy.partition();
                    let status = wait_stale(&source);
                    let is_late = |lag| lag >= options().stale_after;
                    assert!(status.lag.is_none_or(is_late), "{status:?}");
                    proxy.heal();
                }
                _ => {
                    server.kill();
                    wait_stale(&source);
                    assert!(has(&ids, 1), "the ids stay");
                    server.run();
                    shop.session = shop.open();
                }
            }
            wait_synced(&source);
        }
    });
    wait_until(&source, "all are known", || (2000..next).all(|id| has(&ids, id)));
    assert!(!has(&ids, next));
    assert!(!keeps_place || source.status().generations == 1, "{:?}", source.status());
    // The source ends although no answer arrives.
    proxy.partition();
    source.stop();
}

/// The source would wait for an answer for minutes, and must not.
#[test]
fn a_source_that_waits_for_an_answer_can_be_stopped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("{}://a@{}/shop", Server::SCHEME, listener.local_addr().unwrap());
    let patient = SourceOptions { stale_after: Duration::from_secs(600), ..options() };
    let options = Options::new(&url, "products", "id");
    let source = Source::start(id_set(integers()), options, patient);
    let _connection = accept("the source", &listener);
    in_time("the source", move || source.stop());
}
