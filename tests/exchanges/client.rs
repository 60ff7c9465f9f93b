//! A client that waits for its replies. Included by the tests that start servers.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};

use tamis_resp::Reply;
use tamis_testing::{connect, read};

pub struct Client {
    pub stream: TcpStream,
    input: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        Self::of(connect(address))
    }

    pub fn of(stream: TcpStream) -> Self {
        Self { stream, input: Vec::new() }
    }

    pub fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.try_send(words).unwrap();
    }

    pub fn try_send<W: AsRef<[u8]>>(&mut self, words: &[W]) -> std::io::Result<()> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            let word = word.as_ref();
            bytes.extend(format!("${}\r\n", word.len()).into_bytes());
            bytes.extend(word);
            bytes.extend(b"\r\n");
        }
        self.stream.write_all(&bytes)
    }

    /// Waits for a reply; `None` if the server closed the connection.
    pub fn try_receive(&mut self) -> Option<Reply> {
        loop {
            if let Some((reply, len)) = Reply::decode(&self.input).unwrap() {
                self.input.drain(..len);
                return Some(reply);
            }
            let mut piece = vec![0; 1 << 20];
            let len = read(&mut self.stream, &mut piece);
            if len == 0 {
                return None;
            }
            self.input.extend(&piece[..len]);
        }
    }

    pub fn receive(&mut self) -> Reply {
        self.try_receive().expect("the server closed the connection")
    }

    pub fn say<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Reply {
        self.send(words);
        self.receive()
    }
}
