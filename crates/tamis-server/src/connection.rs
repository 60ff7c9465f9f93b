//! A connection reads the available bytes of the socket, runs all complete commands, and writes the
//! replies to all these commands together.

pub(crate) mod acceptor;
pub(crate) mod change_replies;
pub(crate) mod clients;
pub(crate) mod cross_protocol;
pub(crate) mod end_request;
pub mod input_limit;
pub(crate) mod output;
mod parsed_input;
pub(crate) mod tls;
mod transfer;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tamis_commands::text;
use tamis_resp::{Limits, Reply, RequestDecoder, WordSpan};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::connection::clients::PendingConnection;
use crate::connection::output::OutputBuffer;
use crate::connection::parsed_input::{ParsedInput, release, release_capacity, reserve_apart};
use crate::session::Session;
use crate::shared_state::SharedState;
use crate::system::clock::now_millis;
use crate::system::held_memory::Hold;

/// The spare capacity of the input buffer for the next read, in bytes.
const READ_BYTES: usize = 16 << 10;

/// The connection reads at most this many bytes of a long command before the thread serves other
/// connections.
const TURN_BYTES: usize = 256 << 10;

/// An incomplete command is long if the server has received at least this many bytes of the
/// command.
const LONG_BYTES: usize = 1 << 20;

/// Replies of at most this many bytes wait until the other ready connections have run.
const SHORT_BYTES: usize = 16 << 10;

/// A buffer that grew for a large command is freed if its capacity is above this number of bytes.
const KEEP_BYTES: usize = 256 << 10;

/// The maximum time of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The maximum time to close TLS. A complete TLS close proves to the client that all data has
/// arrived.
const TLS_CLOSE_TIME: Duration = Duration::from_secs(1);

/// The maximum time in which a connection writes the replies to its last commands when the server
/// stops.
const LAST_REPLIES: Duration = Duration::from_secs(1);

/// Serves a connection until the connection ends.
pub(crate) async fn run(
    shared: Arc<SharedState>,
    stream: TcpStream,
    pending: PendingConnection,
    input: Vec<u8>,
) {
    let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return };
    handle(shared, stream, peer, local, pending, input).await;
}

/// Serves a connection over TLS until the connection ends.
pub(crate) async fn run_tls(
    shared: Arc<SharedState>,
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    pending: PendingConnection,
) {
    let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return };
    let handshake = TlsAcceptor::from(tls).accept(stream);
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(HANDSHAKE, handshake) => accepted,
        () = shared.stopping() => return,
    };
    match accepted {
        Ok(Ok(mut stream)) => {
            handle(shared, &mut stream, peer, local, pending, Vec::new()).await;
            _ = tokio::time::timeout(TLS_CLOSE_TIME, stream.shutdown()).await;
        }
        Ok(Err(error)) => tracing::info!(%peer, %error, "TLS handshake failed"),
        Err(_) => tracing::info!(%peer, "TLS handshake timed out"),
    }
}

async fn handle<S: AsyncRead + AsyncWrite + Unpin>(
    shared: Arc<SharedState>,
    stream: S,
    peer: SocketAddr,
    local: SocketAddr,
    pending: PendingConnection,
    input: Vec<u8>,
) {
    let connected = shared.clients.add(peer, local, now_millis());
    drop(pending);
    let client = &connected.client;
    tracing::debug!(%peer, id = client.id, "connected");
    let id = client.id;
    let mut connection = Connection {
        session: Session::new(shared.clone(), client.clone()),
        stream,
        decoder: RequestDecoder::new(Limits::default()),
        input,
        found: Vec::new(),
        held: shared.held.hold(0),
        output: Vec::new(),
        waiting: OutputBuffer::new([shared.clients.output.hold(0), client.output.hold(0)]),
    };
    if shared.is_stopping() {
        // `stop` may have run before this client was added to the list of clients.
        client.end_request.send();
    }
    match client.end_request.run_until_sent(connection.serve()).await {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%peer, id, %error, "the connection broke"),
        // Commands may have run whose replies still wait for the log or for other connections.
        None if shared.is_stopping() => {
            _ = tokio::time::timeout(LAST_REPLIES, connection.write()).await;
        }
        None => {}
    }
    drop(connected);
    tracing::debug!(%peer, id, "disconnected");
}

struct Connection<S> {
    session: Session,
    stream: S,
    decoder: RequestDecoder,
    input: Vec<u8>,
    /// The buffer for the arguments of one command. The connection reuses the buffer for every
    /// read.
    found: Vec<WordSpan>,
    /// Counts the memory of a long command that is still incomplete.
    held: Hold,
    /// Replies that the connection may not send before the log has written the changes.
    output: Vec<u8>,
    /// Replies that the client has not read yet.
    waiting: OutputBuffer,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn serve(&mut self) -> io::Result<()> {
        while !self.session.is_closing {
            if self.read().await? == 0 {
                break;
            }
            while self.run().await? && !self.session.is_closing {}
            if !self.waiting.is_flushed() {
                // The client does not read its replies. Yield, because further commands of a client
                // that does not read must not block other connections.
                tokio::task::yield_now().await;
            }
        }
        self.drain(0).await
    }

    async fn read(&mut self) -> io::Result<usize> {
        // Reserve as many bytes as the incomplete command has at this time. The reservation doubles
        // the buffer. A connection that has not authenticated gets at most `READ_BYTES`.
        let is_long = self.input.len() >= READ_BYTES && self.session.is_authenticated;
        let room = if is_long { self.input.len() } else { READ_BYTES };
        if is_long {
            // A read of available bytes never waits. Yield between the reads, so that the thread
            // serves other connections.
            tokio::task::yield_now().await;
        }
        if self.input.len() >= LONG_BYTES {
            reserve_apart(&mut self.input);
        }
        self.input.reserve(room.min(TURN_BYTES));
        let read = self.read_while_writing().await?;
        if self.count_input() > 0 {
            self.session.server.limit_inputs();
        }
        self.session.server.stats.bytes_in.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    /// Counts the memory of the received part of a long command. Returns the counted memory in
    /// bytes.
    fn count_input(&mut self) -> u64 {
        let bytes = match self.input.len() {
            // Every connection has a buffer of this size, even an idle connection.
            ..=READ_BYTES => 0,
            len => (len + self.decoder.unfinished_bytes()) as u64,
        };
        self.held.set(bytes);
        self.session.client.input.store(bytes, Ordering::Relaxed);
        bytes
    }

    /// Runs the complete commands of the input and writes their replies. Returns true if the input
    /// may contain complete commands that have not run.
    async fn run(&mut self) -> io::Result<bool> {
        let input = std::mem::take(&mut self.input);
        // A client that has not authenticated may send only short commands. The server parses one
        // command at a time, because each command may authenticate the client and change the
        // limits.
        let authenticated = self.session.is_authenticated;
        self.decoder.set_limits(Limits { authenticated, ..Limits::default() });
        let mut parsed =
            ParsedInput::parse(&input, &mut self.decoder, !authenticated, &mut self.found);
        self.run_parsed(&input, &parsed).await?;
        let (consumed, error) = (parsed.consumed, parsed.error.take());
        if parsed.has_long() {
            parsed.release().await;
        } else {
            drop(parsed);
        }
        if let Some(error) = error {
            self.close_with(&error.into());
        }
        self.keep_rest(input, consumed).await;
        // Long replies are written at once, because the server counts their memory only in `write`. If
        // the session is closing, the replies are also written at once: the end of the server may
        // cancel this task during the wait, and the replies would be lost.
        if (1..=SHORT_BYTES).contains(&self.output.len()) && !self.session.is_closing {
            yield_to_ready_tasks().await;
        }
        self.write().await?;
        Ok(consumed > 0 && !self.input.is_empty())
    }

    /// Runs the commands of the input. Writes the replies only if the replies are long.
    async fn run_parsed(&mut self, input: &[u8], parsed: &ParsedInput) -> io::Result<()> {
        let short = parsed.short_words(input);
        let others = parsed.other_words(input).await;
        let commands = parsed.commands(&short, &others);
        if commands.is_empty() {
            self.session.client.last_millis.store(now_millis(), Ordering::Relaxed);
        }
        let mut rest = &commands[..];
        while !rest.is_empty() && !self.session.is_closing {
            let ran = self.session.run(rest, &mut self.output).await;
            rest = &rest[ran..];
            if !rest.is_empty() {
                self.write().await?;
                tokio::task::yield_now().await;
            }
        }
        drop(commands);
        for argv in others {
            release(argv).await;
        }
        Ok(())
    }

    /// Keeps the input after the first `consumed` bytes, which is the start of the next command.
    /// Ends the connection if the kept input takes too much memory.
    async fn keep_rest(&mut self, input: Vec<u8>, consumed: usize) {
        self.input = input;
        self.input.drain(..consumed);
        if self.input.capacity() > KEEP_BYTES && self.input.len() < READ_BYTES {
            release_capacity(&mut self.input).await;
            self.input.shrink_to(READ_BYTES);
        }
        let bytes = self.count_input();
        if bytes > 0 && bytes > self.session.server.read_config(|config| config.max_query_bytes) {
            let peer = self.session.client.peer;
            tracing::warn!(
                %peer,
                "a client was disconnected: its command exceeds client-query-buffer-limit"
            );
            self.close_with(&Reply::error(text::server::LARGE_COMMAND));
        }
    }

    /// Appends an error reply. The connection ends after all replies are sent.
    fn close_with(&mut self, error: &Reply) {
        error.encode(self.session.protocol, &mut self.output);
        self.session.is_closing = true;
    }

    /// Writes the replies to the client. Before the write, waits until the log has written or
    /// synced the changes, as `appendfsync` requires.
    async fn write(&mut self) -> io::Result<()> {
        // While the connection waits for the disk, the replies count as held memory. After the
        // wait, the replies count as output of the client.
        let held = (self.output.len() > KEEP_BYTES)
            .then(|| self.session.server.held.hold(self.output.capacity() as u64));
        if let Some(durable) = &self.session.server.durable {
            let changes = &mut self.session.change_replies;
            match durable.log.wait_to_answer(!changes.is_empty()).await {
                Ok(()) => changes.clear(),
                Err(why) => {
                    changes.replace_by_error(&why, self.session.protocol, &mut self.output);
                }
            }
        }
        drop(held);
        let bytes = self.output.len() as u64;
        self.session.server.stats.bytes_out.fetch_add(bytes, Ordering::Relaxed);
        self.send().await
    }
}

/// Yields once to the tasks that are ready on this thread. The connections among these tasks run
/// their commands first, and their replies are then written one after another, as in Redis.
///
/// A client with many connections then finds several replies at one wakeup. If each reply was written
/// at once, each reply could wake the client: a client with 50 connections woke up to 18,000 times a
/// second instead of up to 6,800 times. The call costs about 400 instructions (callgrind).
async fn yield_to_ready_tasks() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        // The thread puts the woken task at the end of its queue. `yield_now` would also poll for
        // I/O events, which takes a system call.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
