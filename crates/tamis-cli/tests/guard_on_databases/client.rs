//! Requests over a connection that stays open.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use tamis_testing::{DEADLINE, try_connect};

/// A client with a connection.
pub struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The head and the body.
    pub text: String,
    pub body: String,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    /// Sends a request, and waits for its answer. An error closes the connection, and the next request
    /// opens another one.
    ///
    /// # Panics
    ///
    /// If the server does not answer in time. A server that is down resets the connection.
    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.send(path)?;
        self.receive()
    }

    /// Sends a request.
    pub fn send(&mut self, path: &str) -> io::Result<()> {
        let sent = self.try_send(path);
        if sent.is_err() {
            self.stream = None;
        }
        sent
    }

    /// Waits for the answer to a request.
    pub fn receive(&mut self) -> io::Result<Answer> {
        let answer = self.try_receive();
        if let Err(error) = &answer {
            self.stream = None;
            let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            assert!(!is_late, "no answer in {DEADLINE:?}");
        }
        answer
    }

    fn try_send(&mut self, path: &str) -> io::Result<()> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = try_connect(self.address)?;
                stream.set_nodelay(true)?;
                none.insert(BufReader::new(stream))
            }
        };
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
        stream.get_mut().write_all(request.as_bytes())
    }

    fn try_receive(&mut self) -> io::Result<Answer> {
        let stream = self.stream.as_mut().ok_or(ErrorKind::NotConnected)?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).expect(&head).lines().next();
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        stream.read_exact(&mut body)?;
        if head.contains("connection: close") {
            self.stream = None;
        }
        let body = String::from_utf8(body).unwrap();
        let status = head[9..12].parse().unwrap();
        Ok(Answer { status, text: format!("{head}{body}"), body })
    }
}
