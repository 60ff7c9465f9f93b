//! A client with low overhead. The client encodes its commands before the clock starts, and only
//! counts the line ends of a reply.
//!
//! Each of fifty connections has one batch of commands in flight. The client reads the replies of
//! one connection, sends its next batch and continues with the next connection. The client runs on
//! core 1, and makes two system calls per batch.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use super::request::encode;
use crate::items::mix;

const CONNECTIONS: usize = 50;

/// The maximum number of encoded commands. With this number, few items of a filter of ten million
/// items are queried twice.
const ENCODED: u64 = 1 << 20;

/// The placeholder in a command for a random number of twelve digits.
const PLACEHOLDER: &str = "__rand_int__";

/// Encoded batches of one command.
pub struct Batches {
    bytes: Vec<u8>,
    /// The end of each batch in `bytes`.
    ends: Vec<usize>,
    commands_each: u64,
    /// The number of lines in the replies to a batch.
    reply_lines: usize,
}

/// The measurements.
pub struct Measured {
    /// Nanoseconds per command, over all connections together.
    pub nanos: f64,
    pub p99_millis: f64,
}

impl Batches {
    /// Encodes up to `commands` commands with these words, in batches of `pipeline` commands.
    /// Random numbers are below `range`. Each reply has `reply_lines` lines.
    pub fn new(
        words: &[&str],
        pipeline: u32,
        range: u64,
        reply_lines: usize,
        commands: u64,
    ) -> Self {
        let commands_each = u64::from(pipeline);
        let items = words.iter().filter(|&&word| word == PLACEHOLDER).count().max(1) as u64;
        let count = (commands.min(ENCODED / items) / commands_each).max(1);
        let (mut bytes, mut ends, mut number) = (Vec::new(), Vec::new(), 0);
        let mut command: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        for _ in 0..count {
            for _ in 0..commands_each {
                for (to, word) in command.iter_mut().zip(words) {
                    if *word == PLACEHOLDER {
                        number += 1;
                        *to = format!("{:012}", mix(number) % range);
                    }
                }
                bytes.extend(encode(&command));
            }
            ends.push(bytes.len());
        }
        let reply_lines = reply_lines * pipeline as usize;
        Self { bytes, ends, commands_each, reply_lines }
    }

    /// Returns the batch `i`. After the last batch, the batches repeat.
    fn batch(&self, i: usize) -> &[u8] {
        let i = i % self.ends.len();
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }

    /// Sends at least `commands` commands to a server on this machine.
    pub fn send(&self, port: u16, commands: u64) -> Result<Measured, String> {
        // The client needs its own thread, because the CPU affinity stays with the thread.
        std::thread::scope(|scope| {
            let sent = scope.spawn(|| self.send_from_core_1(port, commands));
            sent.join().expect("the client does not panic")
        })
    }

    fn send_from_core_1(&self, port: u16, commands: u64) -> Result<Measured, String> {
        let mut core = CpuSet::new();
        core.set(1);
        sched_setaffinity(None, &core).map_err(|error| format!("core 1: {error}"))?;
        let mut connections = (0..CONNECTIONS)
            .map(|_| Connection::open(port))
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|error| format!("port {port}: {error}"))?;
        let batches = commands.div_ceil(self.commands_each) as usize;
        let mut latencies = Vec::with_capacity(batches);
        let mut buffer = vec![0; 64 << 10];
        let begun = Instant::now();
        let mut sent = 0;
        for connection in connections.iter_mut().take(batches) {
            connection.send(self.batch(sent))?;
            sent += 1;
        }
        for received in 0..batches {
            let connection = &mut connections[received % CONNECTIONS];
            latencies.push(connection.receive(self.reply_lines, &mut buffer)?);
            if sent < batches {
                connection.send(self.batch(sent))?;
                sent += 1;
            }
        }
        let took = begun.elapsed();
        latencies.sort_unstable();
        let p99 = latencies[latencies.len() * 99 / 100];
        Ok(Measured {
            nanos: took.as_nanos() as f64 / (batches as u64 * self.commands_each) as f64,
            p99_millis: p99.as_secs_f64() * 1e3,
        })
    }
}

struct Connection {
    stream: TcpStream,
    sent_at: Instant,
}

impl Connection {
    fn open(port: u16) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self { stream, sent_at: Instant::now() })
    }

    fn send(&mut self, batch: &[u8]) -> Result<(), String> {
        self.sent_at = Instant::now();
        self.stream.write_all(batch).map_err(|error| format!("a command: {error}"))
    }

    /// Reads `lines` lines of replies. Returns the time since the commands were sent.
    fn receive(&mut self, lines: usize, buffer: &mut [u8]) -> Result<Duration, String> {
        let mut left = lines;
        while left > 0 {
            let read = self.stream.read(buffer).map_err(|error| format!("a reply: {error}"))?;
            let replies = &buffer[..read];
            let has_failed = replies.starts_with(b"-") || replies.windows(2).any(|it| it == b"\n-");
            if read == 0 || has_failed {
                let text = String::from_utf8_lossy(replies);
                return Err(format!("a reply: {:?}", text.lines().next().unwrap_or("the end")));
            }
            // The compiler vectorizes a sum of bytes. The sum fits in a byte, because a line has at
            // least two bytes.
            let found: usize = replies
                .chunks(128)
                .map(|part| {
                    usize::from(part.iter().map(|&byte| u8::from(byte == b'\n')).sum::<u8>())
                })
                .sum();
            left = left.checked_sub(found).ok_or("a reply has more lines than expected")?;
        }
        Ok(self.sent_at.elapsed())
    }
}
