//! Commands with very many items.

use tamis_resp::Reply;

use crate::client::with_items;
use crate::server::{Host, TestServer};
use crate::status::is_error;

fn ones(reply: &Reply) -> usize {
    let Reply::Array(values) = reply else { panic!("{reply:?}") };
    values.iter().filter(|value| matches!(value, Reply::Integer(1) | Reply::Bool(true))).count()
}

#[test]
fn a_long_command_answers_each_item() {
    for (host, _server, mut client) in TestServer::each(&[]) {
        client.say(&["TM.RESERVE", "tm", "KIND", "counting", "ITEMS", "20000"]);
        let mut count = |start: &str| ones(&client.say(&with_items(start, 0..20_000)));
        for (start, lookup, end) in [
            ("BF.MADD bf", "BF.MEXISTS bf", 0),
            ("BF.INSERT options CAPACITY 20000 ITEMS", "BF.MEXISTS options", 0),
            ("TM.MADD tm", "TM.MEXISTS tm", 0),
            ("CF.INSERT cf CAPACITY 40000 ITEMS", "CF.MEXISTS cf", 20_000),
            ("CF.INSERTNX nx CAPACITY 40000 ITEMS", "CF.MEXISTS nx", 0),
        ] {
            let new = count(start);
            assert!((18_000..=20_000).contains(&new), "{host:?}, {start}: {new}");
            assert_eq!(count(lookup), 20_000, "{host:?}, {start}");
            let again = count(start);
            assert!(again == end || start.starts_with("CF"), "{host:?}, {start}: {again}");
        }
    }
}

#[test]
fn a_full_filter_ends_the_reply_at_the_refused_item() {
    for (host, _server, mut client) in TestServer::each(&[]) {
        client.say(&["BF.RESERVE", "k", "0.0001", "10000", "NONSCALING"]);
        let values = client.list(&with_items("BF.MADD k", 0..20_000));
        let refusal = Reply::error("ERR non scaling filter is full");
        assert_eq!(values.last(), Some(&refusal), "{host:?}");
        assert!((10_000..10_100).contains(&values.len()), "{host:?}: {}", values.len());
        client.say(&["SET", "text", "x"]);
        let wrong = client.say(&with_items("BF.MADD text", 0..20_000));
        assert!(is_error(&wrong, "WRONGTYPE"), "{host:?}");
    }
}

#[test]
fn a_long_command_runs_at_once_where_its_client_cannot_wait() {
    for (host, _server, mut client) in TestServer::each(&[]) {
        client.say(&["MULTI"]);
        client.say(&with_items("BF.MADD k", 0..10_000));
        let replies = client.list(&["EXEC"]);
        assert!(ones(&replies[0]) > 9_000, "{host:?}");
        let script = "local n = {} for i = 1, 5000 do n[i] = i end \
            return redis.call('BF.MADD', KEYS[1], unpack(n))";
        assert!(ones(&client.say(&["EVAL", script, "1", "s"])) > 4_500, "{host:?}");
    }
}

#[test]
fn a_client_may_leave_during_a_long_command() {
    for host in Host::ALL {
        let server = TestServer::start(host, &[]);
        let add = with_items("BF.MADD k", 0..200_000);
        for _ in 0..3 {
            server.connect().send(&add);
        }
        // The server continues, and the key may be deleted in the meantime.
        let mut client = server.connect();
        client.send(&add);
        let mut other = server.connect();
        for _ in 0..50 {
            other.say(&["DEL", "k"]);
        }
        assert!(ones(&client.receive()) > 0, "{host:?}");
        assert_eq!(other.say(&["PING"]), Reply::simple("PONG"), "{host:?}");
    }
}
