//! The stream to a client, with or without TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;

use crate::http::proxy::activity::Activity;

/// The time that the proxy grants a client to read an early response while the client still sends a body.
const LINGER: Duration = Duration::from_secs(2);

/// A stream that records its activity.
///
/// If a socket is closed before all received bytes are read, TCP resets the connection and the client loses the
/// response. Therefore, after an early response, the proxy closes its sending direction, and discards received bytes
/// for a limited time before it closes the socket.
#[derive(Debug)]
pub(super) struct ClientStream {
    transport: Transport,
    activity: Arc<Activity>,
    linger: Option<Pin<Box<Sleep>>>,
    is_read_closed: bool,
}

#[derive(Debug)]
pub(super) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ClientStream {
    pub(super) fn new(transport: Transport, activity: Arc<Activity>) -> Self {
        Self { transport, activity, linger: None, is_read_closed: false }
    }

    /// Discards received bytes until the client closes the connection, for at most [`LINGER`].
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [std::mem::MaybeUninit::uninit(); 16 << 10];
        let linger = self.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        // The loop yields after some reads, so that one client does not block the thread.
        for _ in 0..16 {
            if linger.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = ReadBuf::uninit(&mut bytes);
            let read = match &mut self.transport {
                Transport::Plain(stream) => Pin::new(stream).poll_read(context, &mut buffer),
                Transport::Tls(stream) => Pin::new(stream).poll_read(context, &mut buffer),
            };
            if ready!(read).is_err() || buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Transport::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        ready!(read)?;
        if buffer.filled().len() > before {
            self.activity.received();
        } else {
            self.is_read_closed = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        let written = ready!(written)?;
        self.activity.moved();
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Transport::Tls(stream) => Pin::new(stream).poll_write_vectored(context, parts),
        };
        let written = ready!(written)?;
        self.activity.moved();
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(context),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            let closed = match &mut self.transport {
                Transport::Plain(stream) => Pin::new(stream).poll_shutdown(context),
                Transport::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            };
            ready!(closed)?;
        }
        if self.is_read_closed || !self.activity.is_body_unread() {
            return Poll::Ready(Ok(()));
        }
        self.poll_linger(context)
    }
}
