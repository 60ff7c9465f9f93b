//! Reads the state of a server, and waits for it.

use tamis_resp::Reply;
use tamis_testing::wait_until;

use crate::client::Client;
use crate::server::TestServer;

/// Runs a command. The reply must not be an error; values in it may be.
pub fn run(client: &mut Client, command: &str) -> Reply {
    let reply = client.ask(command);
    assert!(!matches!(reply, Reply::Error(_)), "{command:.200}: {reply:?}");
    reply
}

/// Tests whether a reply is an error with this code, which is its first word.
pub fn is_error(reply: &Reply, code: &str) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(code))
}

/// Runs a command that is refused with this code, which is the first word of the error.
#[track_caller]
pub fn assert_refused(client: &mut Client, command: &str, code: &str) {
    let reply = client.ask(command);
    assert!(is_error(&reply, code), "{command}: {reply:?}");
}

/// Returns a field of `INFO`; the empty text if the server has no such field.
pub fn info(client: &mut Client, name: &str) -> String {
    let text = bulk(client.say(&["INFO", "everything"]));
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(field, _)| *field == name).map_or(String::new(), |(_, value)| value.to_owned())
}

/// Returns the values of a reply.
pub fn array(reply: Reply) -> Vec<Reply> {
    match reply {
        Reply::Array(values) => values,
        other => panic!("{other:?}"),
    }
}

/// Returns the bytes of a reply.
pub fn bulk(reply: Reply) -> Vec<u8> {
    match reply {
        Reply::Bulk(bytes) => bytes,
        Reply::Verbatim { text, .. } => text,
        other => panic!("{other:?}"),
    }
}

/// Returns the bytes of each value of a reply.
pub fn bulks(reply: Reply) -> Vec<Vec<u8>> {
    array(reply).into_iter().map(bulk).collect()
}

/// Waits until a field of `INFO` has a value.
pub fn wait_for(client: &mut Client, name: &str, value: &str) {
    wait_until(format_args!("INFO has {name}:{value}"), || info(client, name) == value);
}

/// Waits until the replica has run all that the primary has sent.
pub fn wait_for_replica(primary: &TestServer, replica: &TestServer) {
    let (mut from, mut to) = (primary.connect(), replica.connect());
    wait_until("the replica has the offset of the primary", || {
        let sent = info(&mut from, "master_repl_offset");
        info(&mut to, "master_link_status") == "up" && info(&mut to, "slave_repl_offset") == sent
    });
}

/// Asserts that both servers have the same bytes in all keys.
pub fn assert_equal(context: &str, one: &TestServer, other: &TestServer) {
    let mut clients = [one.connect(), other.connect()];
    let [left, right] = clients.each_mut().map(|client| client.say(&["DEBUG", "DIGEST"]));
    if left == right {
        return;
    }
    let [left, right] = clients.each_mut().map(digests);
    let differ: Vec<String> = left
        .iter()
        .chain(&right)
        .filter(|pair| !(left.contains(pair) && right.contains(pair)))
        .map(|(key, digest)| format!("{} {}", key.escape_ascii(), digest.escape_ascii()))
        .collect();
    panic!("{context}: the keys differ: {differ:#?}");
}

/// Returns the keys in order, and the digest of each.
fn digests(client: &mut Client) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut keys = bulks(client.say(&["KEYS", "*"]));
    keys.sort();
    let digest = |key: Vec<u8>| {
        let values = array(client.say(&[b"DEBUG", &b"DIGEST-VALUE"[..], &key]));
        let digest = match &values[0] {
            Reply::Simple(text) => text.as_bytes().to_vec(),
            other => bulk(other.clone()),
        };
        (key, digest)
    };
    keys.into_iter().map(digest).collect()
}
