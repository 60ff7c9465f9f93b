//! Reading, and above all unpacking, on a thread of its own.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use crate::records::BLOCK_BYTES;

/// Blocks that are read and not yet asked for.
const AHEAD: usize = 3;

/// A reader whose bytes are fetched by another thread.
///
/// Bytes are handed on as they come, so that a slow source is not held up. A reader that is dropped
/// early lets the thread end with its next block.
pub struct ReadAhead {
    blocks: Receiver<io::Result<Vec<u8>>>,
    empties: Sender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

impl ReadAhead {
    /// Starts to read.
    ///
    /// # Errors
    ///
    /// If the system has no thread for it.
    pub fn new(reader: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, blocks) = sync_channel(AHEAD);
        let (empties, receiver) = channel();
        std::thread::Builder::new()
            .name("read-ahead".into())
            .spawn(move || fetch(reader, &sender, &receiver))?;
        Ok(Self { blocks, empties, block: Vec::new(), at: 0 })
    }
}

/// Reads until the end, an error, or until nobody wants more.
fn fetch(
    mut reader: impl Read,
    blocks: &SyncSender<io::Result<Vec<u8>>>,
    empties: &Receiver<Vec<u8>>,
) {
    loop {
        let mut block = empties.try_recv().unwrap_or_default();
        block.resize(BLOCK_BYTES, 0);
        let read = match reader.read(&mut block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
            Ok(len) => {
                block.truncate(len);
                Ok(block)
            }
        };
        // An empty block is the end; so is an error.
        let is_last = !matches!(&read, Ok(block) if !block.is_empty());
        if blocks.send(read).is_err() || is_last {
            return;
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            let empty = std::mem::take(&mut self.block);
            self.at = 0;
            // At the end nobody takes it.
            self.empties.send(empty).ok();
            match self.blocks.recv() {
                Ok(block) => self.block = block?,
                // The end, or the error before, was handed out.
                Err(_) => return Ok(0),
            }
        }
        let len = buffer.len().min(self.block.len() - self.at);
        buffer[..len].copy_from_slice(&self.block[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_order_and_then_the_end() {
        let bytes: Vec<u8> = (0..5 * BLOCK_BYTES + 77).map(|i| ((i * i) >> 7) as u8).collect();
        let mut reader = ReadAhead::new(io::Cursor::new(bytes.clone())).unwrap();
        let mut found = Vec::new();
        reader.read_to_end(&mut found).unwrap();
        assert!(found == bytes);
        assert_eq!(reader.read(&mut [0; 9]).unwrap(), 0);
    }

    #[test]
    fn errors_come_after_the_bytes_before_them() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let mut reader = ReadAhead::new(io::Cursor::new(b"abc").chain(Broken)).unwrap();
        let mut found = [0; 3];
        reader.read_exact(&mut found).unwrap();
        assert_eq!(&found, b"abc");
        assert_eq!(reader.read(&mut [0; 9]).unwrap_err().to_string(), "broken");
    }
}
