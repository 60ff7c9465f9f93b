//! `MONITOR`: sends the commands of all other clients to monitoring clients.
//!
//! Each command appends a line to the feed of each monitor (a client that runs `MONITOR`). The
//! connection of the monitor takes the lines from the feed, and sends the lines as fast as the
//! client reads. If there is no monitor, a command only reads one counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tamis_commands::{Argv, Category, Command, Permission};
use tokio::sync::Notify;

use crate::connection::clients::Client;
use crate::stats::shown;
use crate::system::clock::since_1970;
use crate::system::held_memory::{HeldMemory, Hold};

/// All monitoring clients of a server.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    feeds: Mutex<Vec<Arc<Feed>>>,
}

/// The lines that are not yet sent to a monitoring client.
#[derive(Debug)]
pub(crate) struct Feed {
    /// The ID of the monitoring client. The client does not receive its own commands.
    client: u64,
    lines: Mutex<MonitorLines>,
    /// The memory of unread replies of this client, including the lines.
    unread: HeldMemory,
    /// Wakes the connection when lines are added, or when users change.
    pub changed: Notify,
}

#[derive(Debug)]
struct MonitorLines {
    bytes: Vec<u8>,
    /// The memory of the lines, which is counted for all clients together and for this client.
    memory: [Hold; 2],
    /// True if the unsent lines exceeded the limit, so that the feed dropped lines.
    is_over: bool,
}

/// The maximum bytes of lines that wait for a monitoring client, if the replies of clients have no
/// limit.
const MAX_FEED_BYTES: u64 = 256 << 20;

impl Feed {
    /// Removes and returns the lines. Returns `None` if lines were dropped because the client reads
    /// too slowly.
    pub fn take(&self) -> Option<Vec<u8>> {
        let mut lines = self.lines.lock();
        if lines.is_over {
            return None;
        }
        lines.memory.iter_mut().for_each(|it| it.set(0));
        Some(std::mem::take(&mut lines.bytes))
    }

    /// Appends a line. If the unread bytes of the client, including its replies, would exceed
    /// `most`, drops all lines and does not append the line.
    fn push(&self, line: &[u8], most: u64) {
        let mut lines = self.lines.lock();
        let others = self.unread.bytes() - lines.memory[1].bytes();
        if others + (lines.bytes.len() + line.len()) as u64 > most {
            (lines.bytes, lines.is_over) = (Vec::new(), true);
        }
        if !lines.is_over {
            lines.bytes.extend_from_slice(line);
        }
        let bytes = lines.bytes.capacity() as u64;
        lines.memory.iter_mut().for_each(|it| it.set(bytes));
        drop(lines);
        self.changed.notify_one();
    }
}

/// A monitoring connection. Dropping a `Monitoring` ends the monitoring.
#[derive(Debug)]
pub(crate) struct Monitoring {
    monitors: Arc<Monitors>,
    pub feed: Arc<Feed>,
}

impl Drop for Monitoring {
    fn drop(&mut self) {
        let mut feeds = self.monitors.feeds.lock();
        feeds.retain(|feed| !Arc::ptr_eq(feed, &self.feed));
        self.monitors.count.store(feeds.len(), Ordering::Relaxed);
    }
}

impl Monitors {
    /// Registers a client as a monitor. `all` is the memory of unread replies of all clients.
    pub fn begin(self: &Arc<Self>, client: &Client, all: &HeldMemory) -> Monitoring {
        let feed = Arc::new(Feed {
            client: client.id,
            lines: Mutex::new(MonitorLines {
                bytes: Vec::new(),
                memory: [all.hold(0), client.output.hold(0)],
                is_over: false,
            }),
            unread: client.output.clone(),
            changed: Notify::new(),
        });
        let mut feeds = self.feeds.lock();
        feeds.push(feed.clone());
        self.count.store(feeds.len(), Ordering::Relaxed);
        drop(feeds);
        Monitoring { monitors: self.clone(), feed }
    }

    /// Tests whether any client runs `MONITOR`.
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Wakes the monitoring connections after a change of users. After the change, some users may
    /// have lost the permission to monitor.
    pub fn users_changed(&self) {
        self.feeds.lock().iter().for_each(|feed| feed.changed.notify_one());
    }

    /// Sends consecutive calls of one command to all monitors, except calls of admin commands, as
    /// Redis does. At most `hard_bytes` bytes of lines wait for each monitor. If `hard_bytes` is 0,
    /// the default limit applies.
    pub fn show(
        &self,
        client: &Client,
        command: &'static Command,
        commands: &[Argv<'_>],
        hard_bytes: u64,
    ) {
        let most = if hard_bytes == 0 { MAX_FEED_BYTES } else { hard_bytes };
        for argv in commands {
            if Permission::of(command, argv).is_in(Category::Admin) {
                continue;
            }
            let line = line(since_1970(), &client.peer.to_string(), &shown(argv));
            let feeds = self.feeds.lock();
            feeds.iter().filter(|it| it.client != client.id).for_each(|it| it.push(&line, most));
        }
    }
}

/// Formats the line of a command in the same way as Redis.
fn line(time: Duration, peer: &str, argv: &[Vec<u8>]) -> Vec<u8> {
    let (seconds, micros) = (time.as_secs(), time.subsec_micros());
    let mut line = format!("+{seconds}.{micros:06} [0 {peer}]").into_bytes();
    for word in argv {
        line.extend_from_slice(b" \"");
        for &byte in word {
            match byte {
                b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                b'\t' => line.extend_from_slice(b"\\t"),
                0x07 => line.extend_from_slice(b"\\a"),
                0x08 => line.extend_from_slice(b"\\b"),
                b' '..=b'~' => line.push(byte),
                _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            }
        }
        line.push(b'"');
    }
    line.extend_from_slice(b"\r\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_format_of_redis() {
        let argv = [b"SET".to_vec(), b"a \"b\\\n\r\t\x07\x08".to_vec(), b"\x00\xff~".to_vec()];
        let line = line(Duration::from_micros(1_500_000_042), "127.0.0.1:9", &argv);
        let expected = r#"+1500.000042 [0 127.0.0.1:9] "SET" "a \"b\\\n\r\t\a\b" "\x00\xff~""#
            .to_owned()
            + "\r\n";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

    #[test]
    fn an_unread_feed_is_bounded_and_counted() {
        let monitors = Arc::new(Monitors::default());
        assert!(!monitors.any());
        let clients = crate::connection::clients::Clients::default();
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let clients_of = [0; 2].map(|_| clients.add(address, address, 0));
        let [one, other] = [0, 1].map(|i| monitors.begin(&clients_of[i].client, &clients.output));
        let own = &clients_of[0].client.output;
        assert!(monitors.any());
        one.feed.push(b"+a\r\n", 10);
        assert!(own.bytes() >= 4 && clients.output.bytes() == own.bytes());
        assert_eq!(one.feed.take(), Some(b"+a\r\n".to_vec()));
        assert_eq!((own.bytes(), clients.output.bytes()), (0, 0));
        // Unread replies of the client count towards the limit.
        let unread = own.hold(3);
        one.feed.push(b"+a\r\n", 10);
        one.feed.push(b"+a\r\n", 10);
        assert_eq!((one.feed.take(), other.feed.take()), (None, Some(Vec::new())));
        assert_eq!(own.bytes(), unread.bytes());
        other.feed.push(&[b'x'; 100], 1000);
        drop((one, other, unread));
        assert!(!monitors.any());
        assert_eq!(clients.output.bytes(), 0);
    }
}
