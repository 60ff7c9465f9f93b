//! A server behind a guard.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Starts an upstream that answers each request with its path.
pub fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address
}

fn serve(stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(path) = read_path(&mut reader) {
        if stream.write_all(ok(&path).as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads the head of a request. Returns its path, or `None` at the end of the stream.
pub fn read_path(reader: &mut impl BufRead) -> Option<String> {
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &String| line != "\r\n") {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        lines.push(line);
    }
    Some(lines[0].split(' ').nth(1).unwrap().to_owned())
}

pub fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
