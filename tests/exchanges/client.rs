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

// Each test program uses some of these.
#[allow(dead_code)]
impl Client {
    /// Sends a command whose words have no spaces.
    pub fn ask(&mut self, line: &str) -> Reply {
        self.say(&line.split(' ').collect::<Vec<_>>())
    }

    /// Sends a command whose reply is a list.
    pub fn list<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Vec<Reply> {
        match self.say(words) {
            Reply::Array(values) => values,
            other => panic!("no list: {other:?}"),
        }
    }

    /// Sends a command whose reply is a bulk string.
    pub fn bytes<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Vec<u8> {
        match self.say(words) {
            Reply::Bulk(bytes) => bytes,
            other => panic!("no bytes: {other:?}"),
        }
    }

    /// Sends a command whose reply is a text.
    pub fn text<W: AsRef<[u8]>>(&mut self, words: &[W]) -> String {
        String::from_utf8(self.bytes(words)).unwrap()
    }

    /// Sends a command whose reply is an error, and returns the text of the error.
    pub fn refused<W: AsRef<[u8]>>(&mut self, words: &[W]) -> String {
        match self.say(words) {
            Reply::Error(text) => text.into_owned(),
            other => panic!("no error: {other:?}"),
        }
    }

    /// Returns a number in the reply of `INFO`.
    pub fn info_number(&mut self, name: &str) -> u64 {
        let info = self.text(&["INFO", "everything"]);
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        let (_, number) = lines.find(|(found, _)| *found == name).expect("a line of INFO");
        number.parse().expect("a number")
    }
}

/// Returns a command: the words of `start`, and an item for each number.
#[allow(dead_code)]
pub fn with_items(start: &str, numbers: std::ops::Range<u32>) -> Vec<String> {
    let items = numbers.map(|number| format!("item:{number}"));
    start.split_whitespace().map(str::to_owned).chain(items).collect()
}
