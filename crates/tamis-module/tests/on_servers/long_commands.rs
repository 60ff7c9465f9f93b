//! Commands with very many items.

use tamis_resp::Reply;

use crate::server::{Host, TestServer};

fn items(len: usize) -> Vec<String> {
    (0..len).map(|i| format!("item:{i}")).collect()
}

fn command<'w>(start: &[&'w str], items: &'w [String]) -> Vec<&'w str> {
    start.iter().copied().chain(items.iter().map(String::as_str)).collect()
}

fn ones(reply: &Reply) -> usize {
    let Reply::Array(values) = reply else { panic!("{reply:?}") };
    values.iter().filter(|value| matches!(value, Reply::Integer(1) | Reply::Bool(true))).count()
}

#[test]
fn a_long_command_answers_each_item() {
    for host in Host::ALL {
        let server = TestServer::start(host, &[]);
        let mut client = server.connect();
        let items = items(20_000);
        client.say(&["TM.RESERVE", "tm", "KIND", "counting", "ITEMS", "20000"]);
        for (start, end) in [
            (&["BF.MADD", "bf"][..], 0),
            (&["BF.INSERT", "options", "CAPACITY", "20000", "ITEMS"], 0),
            (&["TM.MADD", "tm"], 0),
            (&["CF.INSERT", "cf", "CAPACITY", "40000", "ITEMS"], 20_000),
            (&["CF.INSERTNX", "nx", "CAPACITY", "40000", "ITEMS"], 0),
        ] {
            let added = client.say(&command(start, &items));
            let new = ones(&added);
            assert!((18_000..=20_000).contains(&new), "{host:?}, {start:?}: {new}");
            let name = start[0].split('.').next().unwrap();
            let found = client.say(&command(&[&format!("{name}.MEXISTS"), start[1]], &items));
            assert_eq!(ones(&found), 20_000, "{host:?}, {start:?}");
            let again = ones(&client.say(&command(start, &items)));
            assert!(again == end || name == "CF", "{host:?}, {start:?}: {again}");
        }
    }
}

#[test]
fn a_full_filter_ends_the_reply_at_the_refused_item() {
    for host in Host::ALL {
        let server = TestServer::start(host, &[]);
        let mut client = server.connect();
        client.say(&["BF.RESERVE", "k", "0.0001", "10000", "NONSCALING"]);
        let items = items(20_000);
        let Reply::Array(values) = client.say(&command(&["BF.MADD", "k"], &items)) else {
            panic!()
        };
        let refusal = Reply::error("ERR non scaling filter is full");
        assert_eq!(values.last(), Some(&refusal), "{host:?}");
        assert!((10_000..10_100).contains(&values.len()), "{host:?}: {}", values.len());
        client.say(&["SET", "text", "x"]);
        let wrong = client.say(&command(&["BF.MADD", "text"], &items));
        assert!(matches!(wrong, Reply::Error(text) if text.starts_with("WRONGTYPE")), "{host:?}");
    }
}

#[test]
fn a_long_command_runs_at_once_where_its_client_cannot_wait() {
    for host in Host::ALL {
        let server = TestServer::start(host, &[]);
        let mut client = server.connect();
        let items = items(10_000);
        client.say(&["MULTI"]);
        client.say(&command(&["BF.MADD", "k"], &items));
        let Reply::Array(replies) = client.say(&["EXEC"]) else { panic!() };
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
        let items = items(200_000);
        for _ in 0..3 {
            let mut client = server.connect();
            client.send(&command(&["BF.MADD", "k"], &items));
            drop(client);
        }
        // The server continues, and the key may be deleted in the meantime.
        let mut client = server.connect();
        client.send(&command(&["BF.MADD", "k"], &items));
        let mut other = server.connect();
        for _ in 0..50 {
            other.say(&["DEL", "k"]);
        }
        assert!(ones(&client.receive()) > 0, "{host:?}");
        assert_eq!(other.say(&["PING"]), Reply::simple("PONG"), "{host:?}");
    }
}
