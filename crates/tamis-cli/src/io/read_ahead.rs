//! Reads and decompresses data on a second thread.

use std::io::{self, Read};

use crate::io::prefetcher::Prefetcher;
use crate::io::read::read_some;
use crate::records::split::BLOCK_BYTES;

/// A reader whose bytes are read by another thread.
///
/// The thread delivers bytes immediately, so the thread adds no delay to a slow source. If the
/// reader is dropped early, the thread ends after its next read.
pub struct ReadAhead {
    pieces: Prefetcher<Piece, io::Error>,
    piece: Piece,
    at: usize,
}

/// The bytes of one read call.
#[derive(Default)]
struct Piece {
    buffer: Vec<u8>,
    len: usize,
}

impl ReadAhead {
    /// Starts the thread that reads from `reader`.
    pub fn new(mut reader: impl Read + Send + 'static) -> Self {
        let mut pieces = Prefetcher::new(move |piece: &mut Piece| {
            piece.buffer.resize(BLOCK_BYTES, 0);
            piece.len = read_some(&mut reader, &mut piece.buffer)?;
            Ok(piece.len > 0)
        });
        pieces.start();
        Self { pieces, piece: Piece::default(), at: 0 }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len {
            self.at = 0;
            let next = self.pieces.next(&mut self.piece);
            if !matches!(next, Ok(true)) {
                self.piece = Piece::default();
            }
            next?;
        }
        let len = buffer.len().min(self.piece.len - self.at);
        buffer[..len].copy_from_slice(&self.piece.buffer[self.at..self.at + len]);
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
        let mut reader = ReadAhead::new(io::Cursor::new(bytes.clone()));
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
        let mut reader = ReadAhead::new(io::Cursor::new(b"abc").chain(Broken));
        let mut found = [0; 3];
        reader.read_exact(&mut found).unwrap();
        assert_eq!(&found, b"abc");
        assert_eq!(reader.read(&mut [0; 9]).unwrap_err().to_string(), "broken");
    }
}
