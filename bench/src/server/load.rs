//! The commands that are sent to a server, to measure it and to fill it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use super::client::{Batches, Measured};
use super::request::encode;

/// A command that the client sends repeatedly.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    pub words: &'a [&'a str],
    /// The number of commands in flight on each connection.
    pub pipeline: u32,
    /// The number of values of `__rand_int__`.
    pub range: u64,
    /// The number of items in a command.
    pub items: u64,
    /// The number of lines in a reply.
    pub reply_lines: usize,
}

impl<'a> Load<'a> {
    /// Returns a load of single commands, each with a reply of one line.
    pub fn of(words: &'a [&'a str]) -> Self {
        Self { words, pipeline: 1, range: 1, items: 1, reply_lines: 1 }
    }

    /// Returns a load of commands with a hundred items, each with an array as reply.
    pub fn hundred(words: &'a [&'a str]) -> Self {
        Self { items: 100, reply_lines: 101, ..Self::of(words) }
    }

    /// Returns how many commands take about a second.
    pub fn commands(&self, is_quick: bool) -> u64 {
        let a_second = match (self.pipeline, self.items) {
            (1, _) | (_, 100..) => 100_000,
            (2..=16, _) => 1_000_000,
            _ => 3_000_000,
        };
        if is_quick { a_second / 10 } else { a_second }
    }

    /// Encodes `commands` of these commands.
    pub fn encoded(&self, commands: u64) -> Batches {
        Batches::new(self.words, self.pipeline, self.range, self.reply_lines, commands)
    }

    /// Sends `commands` of these commands.
    pub fn send(&self, port: u16, commands: u64) -> Result<Measured, String> {
        self.encoded(commands).send(port, commands)
    }
}

/// Sends one command and returns its encoded reply, up to the first line end.
pub fn ask(port: u16, words: &[&str]) -> Result<String, String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    stream.write_all(&encode(words)).map_err(|error| error.to_string())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(|error| error.to_string())?;
    match line.starts_with('-') || line.is_empty() {
        true => Err(format!("{}: {}", words[0], line.trim_end())),
        false => Ok(line.trim_end().to_owned()),
    }
}

/// Adds the numbers from 0 on, each as twelve digits.
pub fn fill(port: u16, key: &str, items: u64) -> Result<(), String> {
    numbers(port, key, 0..items)
}

/// Adds these numbers.
pub fn numbers(port: u16, key: &str, range: std::ops::Range<u64>) -> Result<(), String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    let mut at = range.start;
    let mut reply = vec![0; 1 << 20];
    while at < range.end {
        let end = range.end.min(at + 10_000);
        let mut words = vec!["BF.MADD".to_owned(), key.to_owned()];
        words.extend((at..end).map(|item| format!("{item:012}")));
        stream.write_all(&encode(&words)).map_err(|error| error.to_string())?;
        // ":0\r\n" per item, after "*n\r\n".
        let mut left = (end - at) as usize * 4 + format!("*{}\r\n", end - at).len();
        while left > 0 {
            let read = stream.read(&mut reply).map_err(|error| error.to_string())?;
            if read == 0 || reply[0] == b'-' {
                return Err("the server did not take the items".to_owned());
            }
            left = left.saturating_sub(read);
        }
        at = end;
    }
    Ok(())
}

/// Sends `count` commands, each with a reply of one line, a thousand at a time.
pub fn commands(port: u16, count: u64, command: impl Fn(u64) -> Vec<String>) -> Result<(), String> {
    let fail = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(fail)?;
    let mut replies = BufReader::new(stream.try_clone().map_err(fail)?);
    let mut line = String::new();
    for first in (0..count).step_by(1000) {
        let batch = first..count.min(first + 1000);
        let bytes: Vec<u8> = batch.clone().flat_map(|i| encode(&command(i))).collect();
        stream.write_all(&bytes).map_err(fail)?;
        for _ in batch {
            line.clear();
            replies.read_line(&mut line).map_err(fail)?;
            if line.starts_with('-') || line.is_empty() {
                return Err(format!("{}: {}", command(first)[0], line.trim_end()));
            }
        }
    }
    Ok(())
}

/// Returns `used_memory` of `INFO memory`, in bytes.
pub fn used_memory(port: u16) -> Result<u64, String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    stream.write_all(b"INFO memory\r\n").map_err(|error| error.to_string())?;
    for line in BufReader::new(stream).lines().take(50) {
        let line = line.map_err(|error| error.to_string())?;
        if let Some(bytes) = line.strip_prefix("used_memory:") {
            return bytes.parse().map_err(|_| line.clone());
        }
    }
    Err("INFO memory has no used_memory".to_owned())
}
