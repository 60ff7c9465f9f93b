//! Bytes to and from the client, each without waiting for the other.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use super::{Connection, KEEP_BYTES, TURN_BYTES};
use crate::output::Overflow;

/// How long a connection that ends waits for a client that takes nothing of its last replies.
const LINGER: Duration = Duration::from_secs(60);

/// What a connection was waiting for.
enum Came {
    /// So many bytes of the client; 0 at the end of the stream.
    Input(usize),
    /// Lines for a client that monitors.
    Lines,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Reads what the client sends next, and meanwhile writes what waits for it. Returns 0 at the end of the stream, and when
    /// the client has been idle for the time of `timeout`.
    pub(super) async fn read_beside_writing(&mut self) -> io::Result<usize> {
        let config = self.session.server.config();
        let limit = config.output_limit;
        let began = Instant::now();
        loop {
            let idle = Duration::from_secs(config.timeout_seconds);
            let idle_at = (!idle.is_zero())
                .then(|| began.max(self.waiting.progress).checked_add(idle))
                .flatten();
            let deadline = idle_at.into_iter().chain(self.waiting.soft_deadline(limit)).min();
            let Self { session, stream, input, output, waiting, .. } = self;
            let feed = session.monitoring.as_ref().map(|it| it.feed.clone());
            let mut told = pin!(async {
                match &feed {
                    Some(feed) => feed.told.notified().await,
                    None => std::future::pending().await,
                }
            });
            let read = poll_fn(|context| {
                if told.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Ok(Came::Lines));
                }
                if !waiting.is_flushed()
                    && let Poll::Ready(Err(error)) = waiting.poll_write(context, stream, output)
                {
                    return Poll::Ready(Err(error));
                }
                // A long command's buffer may have room for all that the socket holds.
                let mut turn = (&mut *stream).take(TURN_BYTES as u64);
                pin!(turn.read_buf(&mut *input)).poll(context).map_ok(Came::Input)
            });
            let came = match deadline {
                None => Some(read.await?),
                Some(at) => tokio::time::timeout_at(at.into(), read).await.ok().transpose()?,
            };
            match came {
                Some(Came::Input(bytes)) => return Ok(bytes),
                Some(Came::Lines) => {
                    let lines = feed.as_ref().and_then(|feed| feed.take());
                    let mut lines = lines.ok_or_else(|| self.overflow(Overflow::Hard))?;
                    self.waiting.push(&mut lines);
                    if let Err(overflow) = self.waiting.check(limit, 0, Instant::now()) {
                        return Err(self.overflow(overflow));
                    }
                    continue;
                }
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

    /// Writes as much of the replies as the client takes now, and keeps the rest for later.
    ///
    /// # Errors
    ///
    /// If the connection is broken, or more waits than `client-output-buffer-limit` allows.
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
        let limit = self.session.server.config().output_limit;
        if let Err(overflow) = self.waiting.check(limit, longest, Instant::now()) {
            return Err(self.overflow(overflow));
        }
        if limit.hard_bytes > 0 && self.waiting.len() as u64 > limit.hard_bytes {
            // One reply that is longer than the limit: commands behind it wait until it is sent.
            self.drain(usize::try_from(limit.hard_bytes).unwrap_or(usize::MAX)).await?;
        }
        Ok(())
    }

    /// Writes until no more than so many bytes wait.
    ///
    /// # Errors
    ///
    /// If the connection is broken, or the client takes nothing for a while.
    pub(super) async fn drain(&mut self, most: usize) -> io::Result<()> {
        loop {
            let deadline = self.waiting.progress + LINGER;
            let Self { stream, output, waiting, .. } = self;
            let written = poll_fn(|context| match waiting.poll_write(context, stream, output) {
                Poll::Pending if most > 0 && waiting.len() <= most => Poll::Ready(Ok(())),
                other => other,
            });
            match tokio::time::timeout_at(deadline.into(), written).await {
                Ok(written) => return written,
                Err(_) if self.waiting.progress.elapsed() < LINGER => {}
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    fn overflow(&self, overflow: Overflow) -> io::Error {
        let server = &self.session.server;
        server.stats.overflows.fetch_add(1, Ordering::Relaxed);
        let limit = match overflow {
            Overflow::Hard => "hard",
            Overflow::Soft => "soft",
        };
        let peer = self.session.client.peer;
        let bytes = self.waiting.len();
        tracing::warn!(
            %peer,
            bytes,
            limit,
            "a client was disconnected because it does not read its replies: see client-output-buffer-limit"
        );
        io::Error::other("replies beyond client-output-buffer-limit")
    }
}
