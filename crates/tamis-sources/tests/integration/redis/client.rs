//! A client of a server.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use tamis_resp::{Protocol, Reply};

pub struct Client {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        Self { stream: tamis_testing::connect(address), input: Vec::new() }
    }

    /// Runs a command, whose words have spaces between them.
    pub fn run(&mut self, command: &str) -> Reply {
        self.call(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    pub fn call(&mut self, argv: &[&[u8]]) -> Reply {
        let words = argv.iter().map(|word| Reply::Bulk(word.to_vec())).collect();
        let mut bytes = Vec::new();
        Reply::Array(words).encode(Protocol::Resp2, &mut bytes);
        self.stream.write_all(&bytes).unwrap();
        loop {
            if let Some((reply, len)) = Reply::decode(&self.input).unwrap() {
                self.input.drain(..len);
                assert!(
                    !matches!(reply, Reply::Error(_)),
                    "{reply:?} to {:?}",
                    argv[0].escape_ascii()
                );
                return reply;
            }
            let mut chunk = [0; 1 << 16];
            let read = self.stream.read(&mut chunk).unwrap();
            assert!(read > 0, "the server closed the connection");
            self.input.extend_from_slice(&chunk[..read]);
        }
    }
}
