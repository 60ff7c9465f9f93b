//! Servers that send what no server sends. Each reply is refused with one line, in bounded memory.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use tamis_sources::{RedisOptions, Source};
use tamis_testing::accept;

use crate::checker::{id_set, integers, options, wait};

/// Starts a server that sends `reply` to each command with this name, and the right reply to each
/// other.
fn serve(name: &'static str, reply: Arc<[u8]>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(client) = client else { return };
            let reply = Arc::clone(&reply);
            std::thread::spawn(move || answer(client, name, &reply));
        }
    });
    address
}

fn answer(mut client: TcpStream, name: &str, reply: &[u8]) -> Option<()> {
    let mut chunk = [0; 4096];
    loop {
        // The source sends a command at a time, or MULTI and EXEC.
        let read = client.read(&mut chunk).ok().filter(|&read| read > 0)?;
        let text = String::from_utf8_lossy(&chunk[..read]).into_owned();
        for command in text.split('*').skip(1) {
            let word = command.split("\r\n").nth(2).unwrap_or_default();
            let right: &[u8] = match word {
                _ if word == name => reply,
                "TYPE" => b"+MBbloom--\r\n",
                "TM.DUMP" => b"-ERR unknown command\r\n",
                "EXEC" => b"*0\r\n",
                "INFO" => b"$11\r\nrole:master\r\n",
                _ => b"+OK\r\n",
            };
            client.write_all(right).ok()?;
            if word == name {
                // The rest never arrives.
                return None;
            }
        }
    }
}

#[test]
fn hostile_replies_are_refused_with_one_line() {
    let long = [b"+".as_slice(), &[b'a'; 100_000]].concat();
    let deep = b"*1\r\n".repeat(100);
    let many = [b"*1000000000\r\n".as_slice(), &b":1\r\n".repeat(50_000)].concat();
    let cases: [(&str, &[u8], &str); 22] = [
        ("INFO", b":1\r\n", "instead of a reply to INFO"),
        ("INFO", b"$4\r\nabcd\r\n", "instead of a role in the reply to INFO"),
        ("INFO", b"$10\r\nrole:slave\r\n", "the server is a replica"),
        ("INFO", b"-NOPERM User guard has no permissions\r\n", "run: ACL SETUSER the-user +info"),
        ("INFO", b"-ERR unknown command\r\n", "returned an error: ERR unknown command"),
        ("WATCH", b"garbage\r\n", "an invalid reply"),
        ("WATCH", &long, "instead of a short reply"),
        ("WATCH", &deep, "an invalid reply"),
        ("WATCH", &many, "instead of a short reply"),
        ("WATCH", b"", "the connection failed"),
        ("TYPE", b":1\r\n", "instead of a type"),
        ("TYPE", b"+list\r\n", "holds a list, not a filter"),
        ("TYPE", b"-MOVED 7 10.0.0.9:6379\r\n", "on the node 10.0.0.9:6379 of a cluster"),
        ("TYPE", b"-ERR \x1b[31mred\r\n", "returned an error: ERR [31mred"),
        ("DUMP", b"$99999999999999\r\n", "larger than 1000000 bytes; raise `max_size`"),
        ("DUMP", b"$99999999999999999999999999\r\n", "instead of a length"),
        ("DUMP", b"$12345678901234567890123456789012345678901234567890", "instead of a length"),
        ("DUMP", b"$1000\r\nhalf", "the connection failed"),
        ("DUMP", b"$4\r\nabcdef", "instead of a line end after the value"),
        ("DUMP", b"$4\r\nabcd\r\n", "cannot decode the value as a filter"),
        ("DUMP", b"$-1\r\n", "there is no such key"),
        ("DUMP", b"*1\r\n:1\r\n", "instead of a value"),
    ];
    for (name, reply, why) in cases {
        let address = serve(name, reply.into());
        let url = format!("redis://{address}/seen");
        let redis = RedisOptions { max_bytes: 1_000_000, ..RedisOptions::new(&url) };
        let ids = id_set(integers());
        let source = Source::start(Arc::clone(&ids), redis, options());
        let status = wait(&source, why, |status| status.last_error.is_some());
        let message = status.last_error.unwrap();
        assert!(
            message.contains(why),
            "{}: {message}",
            reply[..reply.len().min(30)].escape_ascii()
        );
        assert!(message.starts_with(&url) && message.lines().count() == 1, "{message}");
        assert_eq!(status.generations, 0);
    }
}

#[test]
fn a_source_whose_server_is_silent_stops_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}/seen", silent.local_addr().unwrap());
    let source = Source::start(id_set(integers()), RedisOptions::new(&url), options());
    let _connection = accept("the source", &silent);
    let start = std::time::Instant::now();
    source.stop();
    assert!(start.elapsed() < std::time::Duration::from_secs(10));
}
