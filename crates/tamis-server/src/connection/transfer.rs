//! Reads from a client and writes to a client. Neither direction waits for the other direction.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use crate::connection::output::OutputOverflow;
use crate::connection::{Connection, KEEP_BYTES, TURN_BYTES};

/// The maximum time that a closing connection waits for a client that reads none of the last
/// replies.
const LAST_WRITE_TIME: Duration = Duration::from_secs(60);

/// The event that ends a wait of a connection.
enum Event {
    /// The server has received this many bytes from the client. The number 0 means that the stream
    /// has ended.
    Input(usize),
    /// Lines for a client that runs `MONITOR` are ready.
    Lines,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Reads the next input of the client, and writes the waiting replies at the same time. Returns
    /// 0 bytes in three cases:
    ///
    /// * The client has closed the stream.
    /// * The client was idle for the time of `timeout`, and does not monitor other clients.
    /// * The client monitors other clients and has lost the permission to monitor.
    pub(super) async fn read_while_writing(&mut self) -> io::Result<usize> {
        let (limit, mut idle) = self.session.server.read_config(|config| {
            (config.output_limit, Duration::from_secs(config.timeout_seconds))
        });
        if self.session.monitoring.is_some() {
            // As in Redis, `timeout` does not end a client that monitors other clients.
            idle = Duration::ZERO;
        }
        // Without a timeout, do not read the clock: reading the clock takes as long as running a
        // short command.
        let began = if idle.is_zero() { self.waiting.progress } else { Instant::now() };
        loop {
            let feed = self.session.monitoring.as_ref().map(|it| it.feed.clone());
            if let Some(feed) = &feed {
                if !self.session.may_monitor() {
                    return Ok(0);
                }
                let mut lines = feed.take().ok_or_else(|| self.overflow(OutputOverflow::Hard))?;
                self.waiting.push(&mut lines);
                if let Err(overflow) = self.waiting.check(limit, 0, Instant::now()) {
                    return Err(self.overflow(overflow));
                }
            }
            let idle_at = (!idle.is_zero())
                .then(|| began.max(self.waiting.progress).checked_add(idle))
                .flatten();
            let deadline = idle_at.into_iter().chain(self.waiting.soft_deadline(limit)).min();
            let Self { stream, input, output, waiting, .. } = self;
            let mut notified = pin!(async {
                match &feed {
                    Some(feed) => feed.changed.notified().await,
                    None => std::future::pending().await,
                }
            });
            let read = poll_fn(|context| {
                if !waiting.is_flushed()
                    && let Poll::Ready(Err(error)) = waiting.poll_write(context, stream, output)
                {
                    return Poll::Ready(Err(error));
                }
                // Limit the length of one read, because the buffer of a long command may have space
                // for all bytes of the socket.
                let mut turn = (&mut *stream).take(TURN_BYTES as u64);
                let read = pin!(turn.read_buf(&mut *input)).poll(context).map_ok(Event::Input);
                // Check the input before the `MONITOR` lines: lines may be ready all the time, and
                // the commands of the client must still run.
                if read.is_pending() && notified.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Ok(Event::Lines));
                }
                read
            });
            let event = match deadline {
                None => Some(read.await?),
                Some(at) => tokio::time::timeout_at(at.into(), read).await.ok().transpose()?,
            };
            match event {
                Some(Event::Input(bytes)) => return Ok(bytes),
                Some(Event::Lines) => continue,
                None => {}
            }
            if let Err(overflow) = self.waiting.check(limit, 0, Instant::now()) {
                return Err(self.overflow(overflow));
            }
            let last = began.max(self.waiting.progress);
            if !idle.is_zero() && last.elapsed() >= idle {
                return Ok(0);
            }
        }
    }

    /// Writes as much of the replies as the socket accepts now. Keeps the remaining replies in the
    /// buffer.
    ///
    /// # Errors
    /// Returns an error if the connection is broken, or if the waiting replies exceed
    /// `client-output-buffer-limit`.
    pub(super) async fn send(&mut self) -> io::Result<()> {
        let longest = std::mem::take(&mut self.session.longest_reply);
        self.waiting.push(&mut self.output);
        let Self { stream, output, waiting, .. } = self;
        poll_fn(|context| match waiting.poll_write(context, stream, output) {
            Poll::Pending => Poll::Ready(Ok(())),
            ready => ready,
        })
        .await?;
        if self.output.capacity() > KEEP_BYTES {
            self.output.shrink_to(0);
        }
        if self.waiting.is_flushed() {
            return Ok(());
        }
        let limit = self.session.server.read_config(|config| config.output_limit);
        if let Err(overflow) = self.waiting.check(limit, longest, Instant::now()) {
            return Err(self.overflow(overflow));
        }
        if limit.hard_bytes > 0 && self.waiting.len() as u64 > limit.hard_bytes {
            // If a single reply is longer than the limit, the next commands wait until the server
            // has sent the reply.
            self.drain(usize::try_from(limit.hard_bytes).unwrap_or(usize::MAX)).await?;
        }
        Ok(())
    }

    /// Writes replies until at most `most` bytes of replies remain.
    ///
    /// # Errors
    /// Returns an error if the connection is broken, or if the client reads nothing for
    /// [`LAST_WRITE_TIME`].
    pub(super) async fn drain(&mut self, most: usize) -> io::Result<()> {
        loop {
            let deadline = self.waiting.progress + LAST_WRITE_TIME;
            let Self { stream, output, waiting, .. } = self;
            let written = poll_fn(|context| match waiting.poll_write(context, stream, output) {
                Poll::Pending if most > 0 && waiting.len() <= most => Poll::Ready(Ok(())),
                other => other,
            });
            match tokio::time::timeout_at(deadline.into(), written).await {
                Ok(written) => return written,
                Err(_) if self.waiting.progress.elapsed() < LAST_WRITE_TIME => {}
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    fn overflow(&self, overflow: OutputOverflow) -> io::Error {
        let server = &self.session.server;
        server.stats.overflows.fetch_add(1, Ordering::Relaxed);
        let limit = match overflow {
            OutputOverflow::Hard => "hard",
            OutputOverflow::Soft => "soft",
        };
        let peer = self.session.client.peer;
        let bytes = self.waiting.len();
        tracing::warn!(
            %peer,
            bytes,
            limit,
            "a client was disconnected: its unread replies exceed client-output-buffer-limit"
        );
        io::Error::other("replies beyond client-output-buffer-limit")
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::Context;

    use tamis_commands::find;
    use tamis_resp::{Limits, RequestDecoder};
    use tokio::io::ReadBuf;

    use super::*;
    use crate::connection::clients::Client;
    use crate::test_server;

    use crate::connection::output::OutputBuffer;

    use crate::session::Session;
    use crate::shared_state::SharedState;

    /// A socket that simulates a busy server: with every write to this socket, a second client
    /// sends a command.
    struct Busy {
        server: Arc<SharedState>,
        other: Arc<Client>,
        input: &'static [u8],
    }

    impl AsyncRead for Busy {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.input.is_empty() {
                return Poll::Pending;
            }
            buffer.put_slice(std::mem::take(&mut self.input));
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Busy {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.server.monitors.show(&self.other, find(b"PING").unwrap(), &[&[b"PING"]], 0);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn commands_of_a_monitor_run_while_its_feed_is_busy() {
        let server = test_server::start();
        let (shared, address) = (server.shared().clone(), server.addresses()[0]);
        let [client, other] = [0; 2].map(|_| shared.clients.add(address, address, 0));
        let (client, other) = (client.client.clone(), other.client.clone());
        let mut session = Session::new(shared.clone(), client.clone());
        session.monitoring = Some(shared.monitors.begin(&client, &shared.clients.output));
        shared.monitors.show(&other, find(b"PING").unwrap(), &[&[b"PING"]], 0);
        let mut connection = Connection {
            session,
            stream: Busy { server: shared.clone(), other, input: b"PING\r\n" },
            decoder: RequestDecoder::new(Limits::default()),
            input: Vec::with_capacity(100),
            found: Vec::new(),
            held: shared.held.hold(0),
            output: Vec::new(),
            waiting: OutputBuffer::new([shared.clients.output.hold(0), client.output.hold(0)]),
        };
        let read = test_server::block_on(connection.read_while_writing());
        assert_eq!(read.unwrap(), 6);
    }
}
