//! Runs the exchange lists on a server over TCP.

use std::io::{Read, Write};
use std::time::Duration;

use crate::client::{Client, with_items};
use crate::scenes::{scenes, shown};
use crate::support::{chunks, config, connect, load_chunk, restore, serve, start, start_with};
use tamis_commands::COMMANDS;
use tamis_resp::{Protocol, Reply};
use tamis_server::{Config, Server};
use tamis_testing::{in_time, join, read_to_end, wait_until};

const LISTS: [(&str, &str); 11] = [
    ("bf.txt", include_str!("../../../../tests/exchanges/bf.txt")),
    ("bf_tamis.txt", include_str!("../../../../tests/exchanges/bf_tamis.txt")),
    ("bitmaps.txt", include_str!("../../../../tests/exchanges/bitmaps.txt")),
    ("bitop.txt", include_str!("../../../../tests/exchanges/bitop.txt")),
    ("cf.txt", include_str!("../../../../tests/exchanges/cf.txt")),
    ("connection.txt", include_str!("../../../../tests/exchanges/connection.txt")),
    ("keys.txt", include_str!("../../../../tests/exchanges/keys.txt")),
    ("strings.txt", include_str!("../../../../tests/exchanges/strings.txt")),
    ("tm.txt", include_str!("../../../../tests/exchanges/tm.txt")),
    ("users.txt", include_str!("../../../../tests/exchanges/users.txt")),
    ("watching.txt", include_str!("../../../../tests/exchanges/watching.txt")),
];

/// Asserts that a lookup finds all items with these numbers.
fn assert_finds(client: &mut Client, lookup: &str, numbers: std::ops::Range<u32>) {
    let found = client.list(&with_items(lookup, numbers));
    assert!(found.iter().all(|one| *one == Reply::Integer(1)), "{lookup}");
}

/// Runs a list. The client waits for each reply, or sends each scene at once.
fn run(name: &str, list: &str, protocol: Protocol, is_pipelined: bool) {
    let server = serve(2);
    for scene in scenes(list) {
        let mut client = connect(&server);
        client.say(&["FLUSHALL"]);
        for (name, value) in &scene.settings {
            assert_eq!(client.say(&["CONFIG", "SET", name, value]), Reply::ok());
        }
        if protocol == Protocol::Resp3 {
            client.say(&["HELLO", "3"]);
        }
        if is_pipelined {
            scene.exchanges.iter().for_each(|exchange| client.send(&exchange.words));
        }
        for exchange in &scene.exchanges {
            if !is_pipelined {
                client.send(&exchange.words);
            }
            assert_eq!(
                shown(&client.receive()),
                exchange.expected(protocol),
                "{name}, line {}, {protocol:?}, pipelined: {is_pipelined}",
                exchange.line
            );
        }
    }
}

#[test]
fn the_exchange_lists_pass_over_tcp() {
    for (name, list) in LISTS {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            for is_pipelined in [false, true] {
                run(name, list, protocol, is_pipelined);
            }
        }
    }
}

#[test]
fn a_server_with_a_password_requires_authentication() {
    let password = "secret".to_owned();
    let (server, mut client) = start_with(Config { password, ..config() });
    for words in [&["PING"][..], &["BF.ADD", "k", "a"], &["CONFIG", "GET", "*"], &["FLUSHALL"]] {
        assert_eq!(client.say(words), Reply::error("NOAUTH Authentication required."));
    }
    let wrong = Reply::error("WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!(client.say(&["AUTH", "secre"]), wrong);
    assert_eq!(client.say(&["AUTH", "someone", "secret"]), wrong);
    assert_eq!(client.say(&["AUTH", "secret"]), Reply::ok());
    assert_eq!(client.say(&["PING"]), Reply::simple("PONG"));

    // A pipeline that starts with an authentication is read to its end.
    let mut client = connect(&server);
    client.send(&["HELLO", "2", "AUTH", "default", "secret"]);
    client.send(&[&b"BF.ADD"[..], b"k", &[b'x'; 20_000]]);
    assert!(matches!(client.receive(), Reply::Array(_)));
    assert_eq!(client.receive(), Reply::Integer(1));

    // A client that has not authenticated may send only a little.
    let mut client = connect(&server);
    client.send(&[&b"BF.ADD"[..], b"k", &[b'x'; 20_000]]);
    assert_eq!(client.receive(), Reply::error("ERR Protocol error: unauthenticated bulk length"));
}

#[test]
fn a_million_items_in_one_command_are_answered() {
    let (_server, mut client) = start(1);
    for (key, reserve) in [("grown", false), ("reserved", true)] {
        if reserve {
            client.say(&["BF.RESERVE", key, "0.001", "1000000"]);
        }
        let added = client.list(&with_items(&format!("BF.MADD {key}"), 0..1_000_000));
        assert_eq!(added.len(), 1_000_000);
        assert_finds(&mut client, &format!("BF.MEXISTS {key}"), 0..1_000_000);
        let Reply::Integer(items) = client.say(&["BF.CARD", key]) else { panic!() };
        assert!((995_000..=1_000_000).contains(&items), "{key}: {items}");
    }
}

#[test]
fn replies_to_long_commands_in_a_pipeline_keep_their_order() {
    let (_server, mut client) = start(1);
    let items: Vec<String> = (0..150_000).map(|i| format!("item:{i}")).collect();
    let mut sent = String::new();
    for name in ["BF.MADD", "BF.MEXISTS", "DEL", "BF.MEXISTS"] {
        sent += &format!("PING\r\n*{}\r\n", items.len() + 2);
        for word in [name, "k"].into_iter().chain(items.iter().map(String::as_str)) {
            sent += &format!("${}\r\n{word}\r\n", word.len());
        }
    }
    let mut stream = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || stream.write_all(sent.as_bytes()).unwrap());
    let mut reply = || {
        assert_eq!(client.receive(), Reply::simple("PONG"));
        client.receive()
    };
    let count = |reply: Reply, value: i64| {
        let Reply::Array(replies) = reply else { panic!() };
        assert_eq!(replies.len(), items.len());
        replies.iter().filter(|it| **it == Reply::Integer(value)).count()
    };
    assert!(count(reply(), 1) > 145_000);
    assert_eq!(count(reply(), 1), items.len());
    assert_eq!(reply(), Reply::Integer(1));
    assert_eq!(count(reply(), 0), items.len());
    join("the thread that sends", sending);
}

#[test]
fn a_full_filter_ends_the_answers_to_a_long_command() {
    let (_server, mut client) = start(1);
    client.say(&["TM.RESERVE", "k", "KIND", "cuckoo", "ITEMS", "9000"]);
    let added = client.list(&with_items("TM.MADD k", 0..100_000));
    let (last, added) = added.split_last().unwrap();
    assert_eq!(*last, Reply::error(tamis_commands::text::tm::FULL));
    assert!((9000..20_000).contains(&added.len()), "{}", added.len());
    assert_finds(&mut client, "TM.MEXISTS k", 0..added.len() as u32);
}

#[test]
fn threads_share_a_filter_and_lose_nothing() {
    let (server, mut setup) = start(2);
    setup.say(&["BF.RESERVE", "reserved", "0.01", "200000"]);
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let server = &server;
            threads.spawn(move || {
                let mut client = connect(server);
                for first in (20_000 * thread..20_000 * (thread + 1)).step_by(100) {
                    for key in ["reserved", "grown"] {
                        let add = format!("BF.MADD {key}");
                        client.list(&with_items(&add, first..first + 100));
                        assert_finds(&mut client, &format!("BF.MEXISTS {key}"), first..first + 100);
                    }
                }
            });
        }
    });
    for key in ["reserved", "grown"] {
        assert_finds(&mut setup, &format!("BF.MEXISTS {key}"), 0..80_000);
    }
}

#[test]
fn an_invalid_request_ends_the_connection_with_an_error() {
    let server = serve(1);
    for (bytes, text) in [
        (&b"*x\r\n"[..], "ERR Protocol error: invalid multibulk length"),
        (b"*1\r\n+PING\r\n", "ERR Protocol error: expected '$', got '+'"),
        (b"*1\r\n$-1\r\n", "ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$2147483648\r\n", "ERR Protocol error: invalid bulk length"),
        (b"*2147483647\r\n", "ERR Protocol error: invalid multibulk length"),
        (b"GET \"a\r\n", "ERR Protocol error: unbalanced quotes in request"),
    ] {
        let mut client = connect(&server);
        client.stream.write_all(bytes).unwrap();
        assert_eq!(client.receive(), Reply::error(text));
        assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0, "closed");
    }
    let mut client = connect(&server);
    client.stream.write_all(&b"*0\r\n".repeat(1_000_000)).unwrap();
    assert_eq!(client.say(&["PING"]), Reply::simple("PONG"));
}

/// Returns `count` `ECHO` commands of 1,024 bytes.
fn echoes(count: usize) -> Vec<u8> {
    let echo = b"*2\r\n$4\r\nECHO\r\n$1024\r\n".to_vec();
    [echo, vec![b'x'; 1024], b"\r\n".to_vec()].concat().repeat(count)
}

#[test]
fn a_client_may_send_a_long_pipeline_before_it_reads() {
    let (_server, mut client) = start(1);
    // Much more than the buffers of the operating system take.
    let pipeline = echoes(1000);
    for _ in 0..40 {
        client.stream.write_all(&pipeline).expect("the server goes on to read");
    }
    client.send(&["CLIENT", "LIST"]);
    let echoed = Reply::bulk("x".repeat(1024));
    for _ in 0..40_000 {
        assert_eq!(client.receive(), echoed);
    }
    let Reply::Bulk(list) = client.receive() else { panic!() };
    let list = String::from_utf8(list).unwrap();
    let waiting = list.split_once(" omem=").unwrap().1.split_once(' ').unwrap().0;
    assert!(waiting.parse::<u64>().unwrap() > 10 << 20, "{list}");
    assert!(client.text(&["CLIENT", "LIST"]).contains(" omem=0 "), "all is sent");
}

#[test]
fn a_client_that_does_not_read_is_disconnected_and_does_not_delay_others() {
    let (server, mut other) = start(1);
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0"];
    assert_eq!(other.say(&limit), Reply::ok());
    let mut slow = connect(&server);
    let pipeline = echoes(1000);
    // The buffers of the operating system take a part of it.
    let mut sent = 0;
    while slow.stream.write_all(&pipeline).is_ok() {
        sent += 1;
        assert!(sent < 1000, "the client is still connected");
        assert_eq!(other.say(&["PING"]), Reply::simple("PONG"));
    }
    assert_eq!(other.info_number("client_output_buffer_limit_disconnections"), 1);
}

#[test]
fn a_single_reply_may_exceed_the_output_limit() {
    let (_server, mut client) = start(1);
    client.say(&["SETRANGE", "long", "40000000", "x"]);
    client.say(&["CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0"]);
    for words in [&["GET", "long"][..], &["PING"], &["GET", "long"]] {
        client.send(words);
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    for len in [40_000_001, 4, 40_000_001] {
        match client.receive() {
            Reply::Bulk(bytes) => assert_eq!(bytes.len(), len),
            Reply::Simple(text) => assert_eq!(text.len(), len),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_client_that_reads_slowly_is_disconnected_after_the_time_of_the_soft_limit() {
    let (server, mut other) = start(1);
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "normal 0 1mb 0"];
    assert_eq!(other.say(&limit), Reply::ok());
    let mut slow = connect(&server);
    // The client sends nothing afterwards and reads nothing.
    _ = slow.stream.write_all(&echoes(30_000));
    wait_until("the slow client is disconnected", || {
        other.text(&["CLIENT", "LIST"]).lines().count() == 1
    });
}

#[test]
fn a_client_that_closes_its_sending_side_gets_all_replies() {
    let (_server, mut client) = start(1);
    client.stream.write_all(&echoes(20_000)).unwrap();
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    let replies = read_to_end(&mut client.stream);
    assert_eq!(replies.len(), 20_000 * (1024 + 9));
}

#[test]
fn maxclients_limits_connections_and_client_kill_ends_them() {
    let (server, mut one) = start_with(Config { max_clients: 2, threads: 2, ..config() });
    let mut two = connect(&server);
    let Reply::Integer(id) = one.say(&["CLIENT", "ID"]) else { panic!() };
    two.say(&["PING"]);
    let mut three = connect(&server);
    assert_eq!(three.receive(), Reply::error("ERR max number of clients reached"));
    assert_eq!(two.say(&["CLIENT", "KILL", "ID", &id.to_string()]), Reply::Integer(1));
    assert_eq!(one.stream.read(&mut [0; 1]).unwrap(), 0, "closed");
    two.send(&["SHUTDOWN"]);
    assert_eq!(two.try_receive(), None, "closed without an answer");
    in_time("the server", move || server.wait()).unwrap();
}

#[test]
fn replies_before_a_command_that_ends_the_connection_are_sent() {
    for append_only in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().to_owned();
        let (server, mut client) = start_with(Config { append_only, dir, ..config() });
        let Reply::Integer(id) = client.say(&["CLIENT", "ID"]) else { panic!() };
        let kill = format!("PING\r\nCLIENT KILL ID {id} SKIPME no\r\nPING\r\n");
        client.stream.write_all(kill.as_bytes()).unwrap();
        assert_eq!(read_to_end(&mut client.stream), b"+PONG\r\n:1\r\n");
        let mut client = connect(&server);
        client.stream.write_all(b"SET a 1\r\nPING\r\nSHUTDOWN\r\n").unwrap();
        assert_eq!(read_to_end(&mut client.stream), b"+OK\r\n+PONG\r\n", "{append_only}");
        in_time("the server", move || server.wait()).unwrap();
    }
}

#[test]
fn replies_to_commands_that_ran_are_sent_when_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { append_only: true, dir: folder.path().to_owned(), ..config() };
    let (server, mut first) = start_with(config.clone());
    let mut others: Vec<Client> = (0..20).map(|_| connect(&server)).collect();
    let mut last = connect(&server);
    for client in others.iter_mut().chain([&mut last]) {
        client.say(&["PING"]);
    }
    assert_eq!(first.say(&["SETRANGE", "s", "30000000", "x"]), Reply::Integer(30_000_001));
    // The next commands arrive while the only thread copies a long string.
    first.send(&["DUMP", "s"]);
    for client in &mut others {
        client.send(&["INCR", "n"]);
    }
    last.send(&["SHUTDOWN"]);
    // The server resets a connection whose command did not run.
    let is_answered =
        |client: &mut Client| client.stream.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0);
    let replies = others.iter_mut().map(is_answered).filter(|answered| *answered).count();
    in_time("the server", move || server.wait()).unwrap();
    let (_server, mut client) = start_with(config);
    let ran = match client.say(&["GET", "n"]) {
        Reply::Null => 0,
        Reply::Bulk(digits) => String::from_utf8(digits).unwrap().parse().unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(replies, ran, "replies, commands that ran");
}

#[test]
fn a_timeout_ends_idle_clients_but_no_monitor() {
    let (server, mut idle) = start_with(Config { timeout_seconds: 1, ..config() });
    let mut monitor = connect(&server);
    assert_eq!(monitor.say(&["MONITOR"]), Reply::ok());
    assert_eq!(read_to_end(&mut idle.stream), b"", "the idle client is disconnected");
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(connect(&server).say(&["PING"]), Reply::simple("PONG"));
        assert!(matches!(monitor.receive(), Reply::Simple(line) if line.contains("PING")));
    }
}

#[test]
fn a_server_is_not_opened_to_the_network_without_a_password() {
    let bind = vec!["0.0.0.0".parse().unwrap()];
    let open = Config { bind, ..config() };
    let refused = Server::start(open.clone()).unwrap_err().to_string();
    assert!(refused.contains("--requirepass"), "{refused}");
    drop(Server::start(Config { protected_mode: false, ..open }).unwrap());

    let taken = serve(1);
    let port = taken.addresses()[0].port();
    let refused = Server::start(Config { port, ..config() }).unwrap_err().to_string();
    assert!(refused.contains("another server") && refused.contains("--port"), "{refused}");
}

#[test]
fn a_server_listens_by_name_and_a_name_is_judged_by_its_addresses() {
    let named = |name: &str| {
        let bind = name.split(' ').map(|it| it.parse().unwrap()).collect();
        Server::start(Config { bind, ..config() })
    };
    let server = named("localhost 127.0.0.1").unwrap();
    let addresses = server.addresses();
    assert!(!addresses.is_empty() && addresses.iter().all(|it| it.ip().is_loopback()));
    for (i, &address) in addresses.iter().enumerate() {
        assert!(!addresses[..i].contains(&address), "each once");
        let mut client = Client::connect(address);
        let bind = Reply::Array(vec![Reply::bulk("bind"), Reply::bulk("localhost 127.0.0.1")]);
        assert_eq!(client.say(&["CONFIG", "GET", "bind"]), bind);
    }
    // The operating system resolves this name to all addresses.
    let refused = named("0").unwrap_err().to_string();
    assert!(refused.contains("0.0.0.0") && refused.contains("--requirepass"), "{refused}");
}

#[test]
fn commands_run_in_chunks_have_the_same_effect() {
    let (_server, mut client) = start(1);
    for start in [
        "BF.INSERT bloom CAPACITY 2000 ERROR 0.0001 ITEMS",
        "CF.INSERT cuckoo items",
        "CF.INSERTNX nx CAPACITY 4000 ITEMS",
    ] {
        let replies = client.list(&with_items(start, 0..1000));
        assert_eq!(replies.len(), 1000);
        assert!(replies.iter().filter(|it| **it == Reply::Integer(1)).count() > 950, "{start}");
    }
    let full = "BF.INSERT full CAPACITY 100 NONSCALING ITEMS";
    let replies = client.list(&with_items(full, 0..1000));
    assert!((101..120).contains(&replies.len()), "{}", replies.len());
    assert_eq!(replies.last(), Some(&Reply::error("ERR non scaling filter is full")));
    client.say(&["TM.RESERVE", "counts", "KIND", "counting", "ITEMS", "2000"]);
    client.list(&with_items("TM.MADD counts", 0..1000));
    let replies = client.list(&with_items("TM.DEL counts", 0..1000));
    assert!(replies.len() == 1000 && replies.iter().all(|it| *it == Reply::Integer(1)));
}

#[test]
fn a_transaction_is_refused_when_memory_is_at_its_limit() {
    let (server, mut one) = start(1);
    let mut other = connect(&server);
    one.say(&["MULTI"]);
    one.say(&["SET", "late", "1"]);
    other.say(&["SET", "large", &"x".repeat(100_000)]);
    other.say(&["CONFIG", "SET", "maxmemory", "1000"]);
    let refusal = one.refused(&["EXEC"]);
    assert!(refusal.starts_with("EXECABORT") && refusal.contains("OOM"), "{refusal}");
    assert_eq!(one.say(&["EXISTS", "late"]), Reply::Integer(0));
}

#[test]
fn concurrent_copies_stay_within_the_memory_limit() {
    let (server, mut client) = start(4);
    client.say(&["BF.RESERVE", "seen", "0.01", "10000000"]);
    // The memory limit leaves room for one more copy.
    client.say(&["CONFIG", "SET", "maxmemory", "30mb"]);
    let replies: Vec<Reply> = std::thread::scope(|threads| {
        let copies: Vec<_> = (0..6)
            .map(|i| {
                let mut client = connect(&server);
                threads.spawn(move || client.say(&["COPY", "seen", &format!("copy:{i}")]))
            })
            .collect();
        copies.into_iter().map(|copy| copy.join().unwrap()).collect()
    });
    let done = replies.iter().filter(|reply| **reply == Reply::Integer(1)).count();
    let is_refusal =
        |reply: &&Reply| matches!(reply, Reply::Error(text) if text.starts_with("OOM"));
    let refused = replies.iter().filter(is_refusal).count();
    assert_eq!((done, refused), (1, 5), "{replies:?}");
    let dumped = client.say(&["DUMP", "seen"]);
    assert!(is_refusal(&&dumped), "a dump takes memory too");
    client.say(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(matches!(client.say(&["DUMP", "seen"]), Reply::Bulk(_)));
}

#[test]
fn recorded_payloads_are_restored_and_dumped() {
    let (_server, mut client) = start(1);
    client.say(&["CONFIG", "SET", "bf-layout", "redisbloom"]);
    client.say(&["BF.MADD", "bloom", "a", "b", "c"]);
    client.say(&["CF.ADD", "cuckoo", "a"]);
    client.say(&["SETBIT", "bits", "70000", "1"]);
    for (key, question) in [
        ("bloom", ["BF.SCANDUMP", "1"]),
        ("cuckoo", ["CF.SCANDUMP", "1"]),
        ("bits", ["GETBIT", "70000"]),
    ] {
        let payload = client.bytes(&["DUMP", key]);
        let with = |option: &str| [&restore("copy", &payload)[..], &[option.into()]].concat();
        assert_eq!(client.say(&with("REPLACE")), Reply::ok());
        let ask = |key| [question[0], key, question[1]];
        assert_eq!(client.say(&ask("copy")), client.say(&ask(key)));
        let busy = Reply::error("BUSYKEY Target key name already exists.");
        assert_eq!(client.say(&restore("copy", &payload)), busy);
        assert_eq!(client.say(&with("FOO")), Reply::error("ERR syntax error"));
        let mut damaged = restore("damaged", &payload);
        damaged[3][5] ^= 1;
        let refused = Reply::error("ERR DUMP payload version or checksum are wrong");
        assert_eq!(client.say(&damaged), refused);
    }
    let payload = client.bytes(&["DUMP", "bits"]);
    assert_eq!(client.say(&[b"RESTORE", &b"timed"[..], b"100000", &payload]), Reply::ok());
    let Reply::Integer(left) = client.say(&["PTTL", "timed"]) else { panic!() };
    assert!((90_000..=100_000).contains(&left));
    assert_eq!(client.say(&["DUMP", "none"]), Reply::Null);
}

#[test]
fn filters_of_tamis_are_dumped_in_chunks_and_as_payloads() {
    let (_server, mut client) = start(1);
    // A filter of 40 MB, so of three chunks; one that has grown; one that grew from the start; one
    // created with TM.
    client.say(&["BF.RESERVE", "large", "0.001", "20000000"]);
    client.say(&["BF.RESERVE", "grown", "0.01", "1000"]);
    client.say(&["TM.RESERVE", "window", "KIND", "window", "WINDOW", "5000", "ITEMS"]);
    for key in ["large", "grown", "unasked", "window"] {
        client.say(&with_items(&format!("BF.MADD {key}"), 0..3000));
        let ask = |key| with_items(&format!("BF.MEXISTS {key} a b c"), 0..3000);
        let expected = client.say(&ask(key));

        let chunks = chunks(&mut client, key);
        assert_eq!(chunks.len(), if key == "large" { 4 } else { 2 });
        for (i, (iterator, data)) in chunks.iter().enumerate() {
            if i > 0 {
                // A partial load may contain any item, and the server reports the partial load.
                assert_eq!(client.say(&["BF.EXISTS", "copy", "none"]), Reply::Integer(1));
                let text = client.refused(&["BF.ADD", "copy", "x"]);
                assert!(text.contains("is not complete"), "{text}");
                let text = client.refused(&load_chunk("copy", iterator + 1, data));
                assert!(text.contains("in order"), "{text}");
            }
            let loaded = client.say(&load_chunk("copy", *iterator, data));
            assert_eq!(loaded, Reply::ok(), "{key} {iterator}");
        }
        assert_eq!(client.say(&ask("copy")), expected);
        assert_eq!(client.say(&["BF.CARD", "copy"]), client.say(&["BF.CARD", key]));

        let payload = client.bytes(&["DUMP", key]);
        assert_eq!(client.say(&restore("restored", &payload)), Reply::ok());
        assert_eq!(client.say(&ask("restored")), expected);
        assert_eq!(client.say(&["DEL", "copy", "restored"]), Reply::Integer(2));
    }
}

#[test]
fn invalid_chunks_leave_no_filter() {
    let (_server, mut client) = start(1);
    let header = |len: u64| [b"TAMISDMP".to_vec(), len.to_le_bytes().to_vec()].concat();
    let load = |iterator: i64, data: &[u8]| load_chunk("k", iterator, data);
    for len in [0, u64::MAX, 1 << 60] {
        let reply = client.say(&load(1, &header(len)));
        assert_eq!(reply, Reply::error("ERR received bad data"), "{len}");
    }
    assert_eq!(client.say(&load(1, &header(8))), Reply::ok());
    assert!(matches!(client.say(&load(10, b"nine byte")), Reply::Error(_)));
    assert!(matches!(client.say(&load(1, b"")), Reply::Error(_)));
    assert!(matches!(client.say(&["BF.SCANDUMP", "k", "0"]), Reply::Error(_)));
    let text = client.refused(&load(9, b"no value"));
    assert!(text.contains("do not form a filter"), "{text}");
    assert_eq!(client.say(&["EXISTS", "k"]), Reply::Integer(0));
}

#[test]
fn every_command_of_the_table_is_answered() {
    let server = serve(1);
    for command in COMMANDS {
        // These two commands end the connection: SHUTDOWN without an answer, QUIT with one.
        if ["SHUTDOWN", "QUIT"].contains(&command.name) {
            continue;
        }
        let least = command.arity.number().unsigned_abs() as usize;
        for extra in 0..3 {
            let mut words = vec![command.name];
            words.resize(least + extra, "1");
            let mut client = connect(&server);
            client.send(&words);
            assert!(client.try_receive().is_some(), "{words:?}: the connection broke");
            assert_eq!(client.say(&["RESET"]), Reply::simple("RESET"), "{words:?}");
        }
    }
}
