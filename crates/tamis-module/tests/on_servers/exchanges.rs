//! Runs the exchange lists in servers with the module.

use tamis_resp::{Protocol, Reply};

use crate::scenes::{Exchange, scenes, shown};
use crate::server::{Host, TestServer};

const LISTS: [(&str, &str); 4] = [
    ("bf.txt", include_str!("../../../../tests/exchanges/bf.txt")),
    ("bf_tamis.txt", include_str!("../../../../tests/exchanges/bf_tamis.txt")),
    ("cf.txt", include_str!("../../../../tests/exchanges/cf.txt")),
    ("tm.txt", include_str!("../../../../tests/exchanges/tm.txt")),
];

#[test]
fn the_exchange_lists_pass_in_redis_and_valkey() {
    for host in Host::ALL {
        let server = TestServer::start(host, &[]);
        for (name, list) in LISTS {
            for protocol in [Protocol::Resp2, Protocol::Resp3] {
                run(&server, &format!("{host:?}, {name}"), list, protocol);
            }
        }
    }
}

fn run(server: &TestServer, name: &str, list: &str, protocol: Protocol) {
    let mut settings = server.connect();
    let defaults = settings.say(&["CONFIG", "GET", "tamis.*"]);
    for scene in scenes(list) {
        let mut client = server.connect();
        client.say(&["FLUSHALL"]);
        for (name, value) in &scene.settings {
            let name = format!("tamis.{name}");
            assert_eq!(client.say(&["CONFIG", "SET", &name, value]), Reply::ok());
        }
        if protocol == Protocol::Resp3 {
            client.say(&["HELLO", "3"]);
        }
        for exchange in scene.exchanges.iter().filter(|exchange| !is_of_the_server(exchange)) {
            let reply = client.say(&exchange.words);
            let expected = exchange.expected(protocol);
            assert_eq!(shown(&reply), expected, "{name}, line {}, {protocol:?}", exchange.line);
        }
    }
    let Reply::Array(pairs) = defaults else { panic!("{defaults:?}") };
    for pair in pairs.chunks(2) {
        let [Reply::Bulk(name), Reply::Bulk(value)] = pair else { panic!("{pair:?}") };
        let set = settings.say(&[&b"CONFIG"[..], b"SET", name, value]);
        assert_eq!(set, Reply::ok(), "{}", name.escape_ascii());
    }
}

/// Tests whether the reply differs between a stand-alone server and a module: a filter with a layout
/// of Tamis has a type of its own here, because RedisBloom could not read it.
fn is_of_the_server(exchange: &Exchange) -> bool {
    exchange.words[0].eq_ignore_ascii_case(b"TYPE")
}
