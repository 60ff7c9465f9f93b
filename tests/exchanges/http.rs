//! Requests over HTTP, byte by byte. Included by the tests that start servers.

use std::io::Write as _;
use std::net::SocketAddr;

use tamis_testing::{connect, read_to_end};

/// An answer: status, the head's lines in small letters, and the body.
pub struct Answer {
    pub status: u16,
    #[allow(dead_code, reason = "not every test that includes this reads it")]
    pub head: String,
    pub body: String,
}

/// Sends bytes and reads until the server closes the connection.
pub fn send(address: SocketAddr, request: &[u8]) -> Option<Answer> {
    let mut stream = connect(address);
    // The server may have refused before all is sent.
    _ = stream.write_all(request);
    let text = String::from_utf8_lossy(&read_to_end(&mut stream)).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() })
}

/// Asks for a path, with more lines of the head, each ended by `\r\n`.
pub fn get_with(address: SocketAddr, path: &str, lines: &str) -> Answer {
    let host =
        if lines.to_ascii_lowercase().contains("host:") { "" } else { "Host: localhost\r\n" };
    let request = format!("GET {path} HTTP/1.1\r\n{host}{lines}Connection: close\r\n\r\n");
    send(address, request.as_bytes()).unwrap_or_else(|| panic!("no answer to {path}"))
}

/// Asks for a path.
pub fn get(address: SocketAddr, path: &str) -> Answer {
    get_with(address, path, "")
}
