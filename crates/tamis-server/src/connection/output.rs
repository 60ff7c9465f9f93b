//! The replies that a client has not read yet.
//!
//! A client may send many commands before the client reads the first reply. If the server stopped
//! reading, the server and the client would wait for each other forever. To prevent this deadlock,
//! the connection continues to run commands, and keeps the replies in this buffer.
//!
//! ```text
//! session ──▶ replies ──(durable as appendfsync requires)──▶ OutputBuffer ──▶ socket
//! ```
//!
//! The buffer contains only replies whose changes are as durable as `appendfsync` requires.
//! `client-output-buffer-limit` limits the length of the buffer.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::AsyncWrite;

use crate::config::OutputLimit;
use crate::system::held_memory::Hold;

/// The maximum number of bytes that are written to the socket before the thread serves its other
/// connections.
const TURN_BYTES: usize = 256 << 10;

/// The buffer collects short replies in pieces of this length, in bytes.
const PIECE_BYTES: usize = 16 << 10;

/// The unread replies of one connection, oldest first.
#[derive(Debug)]
pub(crate) struct OutputBuffer {
    pieces: VecDeque<Vec<u8>>,
    /// The number of bytes of the first piece that are already written.
    written: usize,
    /// The number of bytes that are not yet written.
    len: usize,
    /// True if a TLS buffer may still contain written bytes.
    must_flush: bool,
    /// The memory of the pieces, which is counted for all clients together and for this client.
    memory: [Hold; 2],
    /// The time since which the buffer exceeds the soft limit, and the soft limit in bytes.
    soft_since: Option<(Instant, u64)>,
    /// The last time at which the socket accepted a part of waiting replies. If replies enter an
    /// empty buffer, and the first write does not empty and flush the buffer, `progress` is the time
    /// of this first write.
    pub progress: Instant,
    /// True from the time when replies enter an empty buffer until the socket accepts or refuses
    /// bytes.
    is_untried: bool,
}

/// The reason for disconnecting a client that does not read its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputOverflow {
    /// The waiting bytes exceed the hard limit.
    Hard,
    /// The waiting bytes exceeded the soft limit for longer than `soft_seconds`.
    Soft,
}

impl OutputBuffer {
    /// Creates an empty buffer for replies. The buffer counts its memory in both holds: for all
    /// clients and for this client.
    pub fn new(memory: [Hold; 2]) -> Self {
        Self {
            pieces: VecDeque::new(),
            written: 0,
            len: 0,
            must_flush: false,
            memory,
            soft_since: None,
            progress: Instant::now(),
            is_untried: false,
        }
    }

    /// Returns the number of waiting bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Tests whether the socket has accepted and flushed all bytes.
    pub fn is_flushed(&self) -> bool {
        self.len == 0 && !self.must_flush
    }

    /// Appends the replies and clears `replies`. Long replies are moved, not copied.
    pub fn push(&mut self, replies: &mut Vec<u8>) {
        if replies.is_empty() {
            return;
        }
        self.is_untried |= self.len == 0;
        self.len += replies.len();
        match self.pieces.back_mut() {
            Some(last) if last.capacity() - last.len() >= replies.len() => last.append(replies),
            Some(_) if replies.len() < PIECE_BYTES => {
                let mut piece = Vec::with_capacity(PIECE_BYTES);
                piece.append(replies);
                self.add_piece(piece);
            }
            _ => {
                let piece = std::mem::take(replies);
                self.add_piece(piece);
            }
        }
    }

    fn add_piece(&mut self, piece: Vec<u8>) {
        self.memory.iter_mut().for_each(|it| it.add(piece.capacity() as u64));
        self.pieces.push_back(piece);
    }

    /// Writes as much as the socket accepts. Returns `Ready` after all bytes are written and
    /// flushed. `spare` gets the memory of a written piece if `spare` has no capacity and the piece
    /// is small.
    pub fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
        spare: &mut Vec<u8>,
    ) -> Poll<io::Result<()>> {
        let mut turn = TURN_BYTES;
        let mut has_written = false;
        while let Some(piece) = self.pieces.front() {
            if turn == 0 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let rest = &piece[self.written..];
            let rest = &rest[..rest.len().min(turn)];
            let Poll::Ready(written) = Pin::new(&mut *stream).poll_write(context, rest)? else {
                if std::mem::take(&mut self.is_untried) {
                    self.progress = Instant::now();
                }
                return Poll::Pending;
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.must_flush = true;
            has_written = true;
            self.written += written;
            self.len -= written;
            // A first write that empties the buffer leaves no reply that waits, and reading the clock
            // takes about 50 ns.
            if !std::mem::take(&mut self.is_untried) || self.len > 0 {
                self.progress = Instant::now();
            }
            turn -= written;
            if self.soft_since.is_some_and(|(_, most)| self.len as u64 <= most) {
                self.soft_since = None;
            }
            if self.written == self.pieces[0].len() {
                self.written = 0;
                let mut piece = self.pieces.pop_front().expect("just seen");
                self.memory.iter_mut().for_each(|it| it.sub(piece.capacity() as u64));
                if spare.capacity() == 0 && piece.capacity() <= TURN_BYTES {
                    piece.clear();
                    *spare = piece;
                }
            }
        }
        if self.must_flush {
            let flushed = Pin::new(stream).poll_flush(context);
            if flushed.is_pending() && has_written {
                self.progress = Instant::now();
            }
            ready!(flushed)?;
            self.must_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Checks the waiting bytes against the limits. A single reply may exceed the hard limit, so
    /// the check of the hard limit does not count the `longest` bytes of the longest reply.
    pub fn check(
        &mut self,
        limit: OutputLimit,
        longest: usize,
        now: Instant,
    ) -> Result<(), OutputOverflow> {
        let is_over = |most: u64| most > 0 && self.len as u64 > most;
        if is_over(limit.hard_bytes) && (self.len - longest.min(self.len)) as u64 > limit.hard_bytes
        {
            return Err(OutputOverflow::Hard);
        }
        if !is_over(limit.soft_bytes) {
            self.soft_since = None;
            return Ok(());
        }
        let (since, _) = *self.soft_since.get_or_insert((now, limit.soft_bytes));
        if now.duration_since(since) > Duration::from_secs(limit.soft_seconds) {
            return Err(OutputOverflow::Soft);
        }
        Ok(())
    }

    /// Returns the time at which the soft limit ends the connection. Returns `None` if the buffer
    /// is below the soft limit.
    pub fn soft_deadline(&self, limit: OutputLimit) -> Option<Instant> {
        self.soft_since?.0.checked_add(Duration::from_secs(limit.soft_seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::held_memory::HeldMemory;

    /// Returns an empty buffer and the counter of the buffer's memory.
    fn buffer() -> (OutputBuffer, HeldMemory) {
        let all = HeldMemory::default();
        (OutputBuffer::new([all.hold(0), HeldMemory::default().hold(0)]), all)
    }

    /// A socket that accepts `room` bytes, and then accepts no bytes until `room` increases.
    #[derive(Default)]
    struct Socket {
        room: usize,
        taken: Vec<u8>,
        flushed: usize,
        /// True if a flush does not end, as in a TLS buffer whose socket accepts no bytes.
        is_stuck: bool,
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.room == 0 {
                return Poll::Pending;
            }
            let len = bytes.len().min(self.room);
            self.room -= len;
            self.taken.extend_from_slice(&bytes[..len]);
            Poll::Ready(Ok(len))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            if self.is_stuck {
                return Poll::Pending;
            }
            self.flushed = self.taken.len();
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn write(output: &mut OutputBuffer, socket: &mut Socket) -> Poll<io::Result<()>> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        output.poll_write(&mut context, socket, &mut Vec::new())
    }

    #[test]
    fn replies_keep_their_order_when_the_socket_accepts_few_bytes() {
        let (mut output, all) = buffer();
        let mut socket = Socket::default();
        let mut expected = Vec::new();
        for i in 0..2000_u32 {
            let len = if i % 100 == 0 { 40_000 } else { i as usize % 50 };
            let mut reply = vec![i as u8; len];
            expected.extend_from_slice(&reply);
            output.push(&mut reply);
            assert!(reply.is_empty());
            socket.room = i as usize % 700;
            _ = write(&mut output, &mut socket);
            assert_eq!(output.len(), expected.len() - socket.taken.len());
            assert!(all.bytes() >= output.len() as u64);
            assert!(all.bytes() <= 2 * output.len() as u64 + 100_000, "short replies share pieces");
        }
        while !output.is_flushed() {
            socket.room = 1 << 20;
            _ = write(&mut output, &mut socket);
        }
        assert!(socket.taken == expected && socket.flushed == expected.len());
        assert_eq!(all.bytes(), 0);
    }

    #[test]
    fn a_client_yields_after_a_limited_number_of_written_bytes() {
        let (mut output, _) = buffer();
        output.push(&mut vec![1; 3 * TURN_BYTES]);
        let mut socket = Socket { room: usize::MAX, ..Socket::default() };
        assert!(write(&mut output, &mut socket).is_pending());
        assert_eq!(socket.taken.len(), TURN_BYTES);
    }

    #[test]
    fn the_time_of_the_last_progress_is_set_if_replies_wait_after_the_first_write() {
        for (room, is_stuck, waits) in [(10, false, false), (4, false, true), (10, true, true)] {
            let (mut output, _) = buffer();
            let mut socket = Socket { room, is_stuck, ..Socket::default() };
            let created = output.progress;
            output.push(&mut vec![1; 10]);
            _ = write(&mut output, &mut socket);
            assert_eq!(output.progress > created, waits, "{room} {is_stuck}");
        }
    }

    #[test]
    fn the_memory_of_a_dropped_buffer_is_no_longer_counted() {
        let (mut output, all) = buffer();
        output.push(&mut vec![1; 100_000]);
        assert_eq!(all.bytes(), 100_000);
        drop(output);
        assert_eq!(all.bytes(), 0);
    }

    #[test]
    fn the_hard_limit_applies_at_once_and_the_soft_limit_after_its_time() {
        let limit = OutputLimit { hard_bytes: 1000, soft_bytes: 100, soft_seconds: 10 };
        let (mut output, _) = buffer();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        output.push(&mut vec![1; 100]);
        assert_eq!(output.check(limit, 100, start), Ok(()));
        assert_eq!(output.soft_deadline(limit), None);
        output.push(&mut vec![1; 100]);
        assert_eq!(output.check(limit, 100, start), Ok(()));
        assert_eq!(output.soft_deadline(limit), Some(at(10)));
        assert_eq!(output.check(limit, 100, at(10)), Ok(()));
        assert_eq!(output.check(limit, 100, at(11)), Err(OutputOverflow::Soft));
        let hard = OutputLimit { soft_bytes: 0, ..limit };
        assert_eq!(output.check(hard, 100, at(11)), Ok(()), "no soft limit");
        output.push(&mut vec![1; 5000]);
        assert_eq!(output.check(hard, 5000, at(11)), Ok(()), "one reply may be long");
        output.push(&mut vec![1; 801]);
        assert_eq!(output.check(hard, 5000, at(11)), Err(OutputOverflow::Hard));
        assert_eq!(output.check(OutputLimit { hard_bytes: 0, ..hard }, 0, at(11)), Ok(()));
    }
}
