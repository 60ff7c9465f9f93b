//! Encodes commands and reads replies, as a client does.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

/// Encodes the words of a command as RESP.
pub fn encode(words: &[impl AsRef<str>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    bytes
}

/// A connection that sends commands, and reads their replies line by line.
pub struct Connection {
    stream: BufReader<TcpStream>,
    line: String,
}

impl Connection {
    pub fn open(port: u16) -> Result<Self, String> {
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), line: String::new() })
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.get_mut().write_all(bytes).map_err(|error| error.to_string())
    }

    /// Reads a line of a reply. Returns an error if the server replied with an error.
    pub fn line(&mut self) -> Result<&str, String> {
        self.line.clear();
        self.stream.read_line(&mut self.line).map_err(|error| error.to_string())?;
        let line = self.line.trim_end();
        if line.is_empty() || line.starts_with('-') { Err(line.to_owned()) } else { Ok(line) }
    }

    /// Skips replies with a total length of `bytes` bytes.
    pub fn skip(&mut self, bytes: usize) -> Result<(), String> {
        let mut left = bytes;
        while left > 0 {
            let read = self.stream.fill_buf().map_err(|error| error.to_string())?;
            if read.is_empty() || read[0] == b'-' {
                return Err("the server did not take the items".to_owned());
            }
            let len = read.len().min(left);
            self.stream.consume(len);
            left -= len;
        }
        Ok(())
    }
}
