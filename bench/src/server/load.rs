//! Defines the commands that measure a server or fill a server.

use super::client::{Batches, Measured};
use super::request::{Connection, encode};

/// A command that the client sends repeatedly.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    pub words: &'a [&'a str],
    /// The number of commands in flight on each connection.
    pub pipeline: u32,
    /// The number of different values of `__rand_int__`.
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

    /// Returns the number of commands that take about one second.
    pub fn commands(&self, is_quick: bool) -> u64 {
        let a_second = match (self.pipeline, self.items) {
            (1, _) | (_, 100..) => 100_000,
            (2..=16, _) => 1_000_000,
            _ => 3_000_000,
        };
        if is_quick { a_second / 10 } else { a_second }
    }

    /// Encodes the command `commands` times.
    pub fn encoded(&self, commands: u64) -> Batches {
        Batches::new(self.words, self.pipeline, self.range, self.reply_lines, commands)
    }

    /// Sends the command `commands` times.
    pub fn send(&self, port: u16, commands: u64) -> Result<Measured, String> {
        self.encoded(commands).send(port, commands)
    }
}

/// Sends one command and returns its encoded reply, up to the first line end.
pub fn ask(port: u16, words: &[&str]) -> Result<String, String> {
    let mut connection = Connection::open(port)?;
    connection.send(&encode(words))?;
    connection.line().map(str::to_owned).map_err(|why| format!("{}: {why}", words[0]))
}

/// Creates a filter with a rate of 1 %. Adds `items` numbers from 0, each as twelve digits.
pub fn reserve(port: u16, key: &str, capacity: u64, items: u64) -> Result<(), String> {
    ask(port, &["BF.RESERVE", key, "0.01", &capacity.to_string()])?;
    numbers(port, key, 0..items)
}

/// Sets a million keys to three bytes.
pub fn set_texts(port: u16) -> Result<(), String> {
    commands(port, 1_000_000, |i| vec!["SET".to_owned(), format!("{i:012}"), "xxx".to_owned()])
}

/// Adds the numbers of `range`.
pub fn numbers(port: u16, key: &str, range: std::ops::Range<u64>) -> Result<(), String> {
    let mut connection = Connection::open(port)?;
    for first in range.clone().step_by(10_000) {
        let items = first..range.end.min(first + 10_000);
        let count = (items.end - first) as usize;
        let mut words = vec!["BF.MADD".to_owned(), key.to_owned()];
        words.extend(items.map(|item| format!("{item:012}")));
        connection.send(&encode(&words))?;
        // The reply has "*n\r\n", and then ":0\r\n" for each item.
        connection.skip(count * 4 + format!("*{count}\r\n").len())?;
    }
    Ok(())
}

/// Sends `count` commands in batches of a thousand. The reply of each command has one line.
pub fn commands(port: u16, count: u64, command: impl Fn(u64) -> Vec<String>) -> Result<(), String> {
    let mut connection = Connection::open(port)?;
    for first in (0..count).step_by(1000) {
        let batch = first..count.min(first + 1000);
        connection.send(&batch.clone().flat_map(|i| encode(&command(i))).collect::<Vec<u8>>())?;
        for _ in batch {
            connection.line().map_err(|why| format!("{}: {why}", command(first)[0]))?;
        }
    }
    Ok(())
}

/// Returns the field `used_memory` of `INFO memory`, in bytes.
pub fn used_memory(port: u16) -> Result<u64, String> {
    let mut connection = Connection::open(port)?;
    connection.send(b"INFO memory\r\n")?;
    loop {
        let line = connection.line()?;
        if let Some(bytes) = line.strip_prefix("used_memory:") {
            return bytes.parse().map_err(|_| line.to_owned());
        }
    }
}
