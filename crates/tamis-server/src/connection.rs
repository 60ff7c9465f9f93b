//! A connection: reads the available bytes of the socket, runs all complete commands, writes the
//! replies at once.

pub(crate) mod acceptor;
pub(crate) mod change_replies;
pub(crate) mod clients;
pub(crate) mod cross_protocol;
pub mod input_limit;
pub(crate) mod output;
pub(crate) mod tls;
mod transfer;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use smallvec::SmallVec;
use tamis_commands::text;
use tamis_resp::{Limits, Reply, Request, RequestDecoder, WordSpan};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::connection::clients::PendingConnection;
use crate::connection::output::OutputBuffer;
use crate::session::Session;
use crate::shared_state::SharedState;
use crate::system::clock::now_millis;
use crate::system::held_memory::Hold;

/// Spare capacity of the input buffer for the next read, in bytes.
const READ_BYTES: usize = 16 << 10;

/// How many bytes of a long command are read, and how many of its arguments are parsed, before
/// other connections get their turn.
const TURN_BYTES: usize = 256 << 10;
const TURN_WORDS: usize = 1 << 14;

/// The buffer for the arguments of a command is freed above this capacity, because its memory is
/// not counted for any client.
const KEEP_WORDS: usize = 256;

/// An incomplete command with at least this many bytes received counts as long.
const LONG_BYTES: usize = 1 << 20;

/// glibc maps an allocation of more than 32 MiB separately. Such an allocation takes no memory
/// where it is unused, grows without a copy, and can be returned to the system in parts.
const APART_BYTES: usize = 33 << 20;

/// How many bytes are returned to the system at a time.
const RELEASE_BYTES: usize = 4 << 20;

/// A buffer that grew for a large command is freed above this capacity, in bytes.
const KEEP_BYTES: usize = 256 << 10;

/// The maximum time of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The maximum time to close TLS. A proper close proves to the client that the data is complete.
const TLS_CLOSE_TIME: Duration = Duration::from_secs(1);

/// Serves a connection until it ends.
pub(crate) async fn run(
    shared: Arc<SharedState>,
    stream: TcpStream,
    pending: PendingConnection,
    input: Vec<u8>,
) {
    let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return };
    handle(shared, stream, peer, local, pending, input).await;
}

/// Serves a connection over TLS until it ends.
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
    let ended = tokio::select! {
        ended = connection.serve() => ended,
        () = client.killed.notified() => Ok(()),
        () = shared.stopping() => Ok(()),
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, id, %error, "the connection broke");
    }
    drop(connected);
    tracing::debug!(%peer, id, "disconnected");
}

struct Connection<S> {
    session: Session,
    stream: S,
    decoder: RequestDecoder,
    input: Vec<u8>,
    /// Buffer for the arguments of one command, reused by later reads.
    found: Vec<WordSpan>,
    /// The counted memory of a long command that is still incomplete.
    held: Hold,
    /// Replies that may not be sent before the log is settled.
    output: Vec<u8>,
    /// Replies that the client has not read yet.
    waiting: OutputBuffer,
}

/// A command of the input. Its arguments are spans of the input or separate strings.
enum ParsedCommand {
    Spans(std::ops::Range<usize>),
    /// A command with very many arguments. The spans count from byte `start` of the input.
    Long {
        start: usize,
        spans: Vec<WordSpan>,
    },
    Quoted(Vec<Vec<u8>>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn serve(&mut self) -> io::Result<()> {
        while !self.session.is_closing {
            if self.read().await? == 0 {
                break;
            }
            while self.run().await? && !self.session.is_closing {}
            if !self.waiting.is_flushed() {
                // The client does not read its replies: its further commands must not block other
                // connections.
                tokio::task::yield_now().await;
            }
        }
        self.drain(0).await
    }

    async fn read(&mut self) -> io::Result<usize> {
        // Room for as many bytes as an incomplete command has so far, which doubles the buffer. A
        // connection that has not authenticated gets no more than `READ_BYTES`.
        let is_long = self.input.len() >= READ_BYTES && self.session.is_authenticated;
        let room = if is_long { self.input.len() } else { READ_BYTES };
        if is_long {
            // Reads of available bytes never wait, so other connections get their turn between
            // them.
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

    /// Counts the memory of the received part of a long command and returns it in bytes.
    fn count_input(&mut self) -> u64 {
        let bytes = match self.input.len() {
            // Every connection, even an idle one, has a buffer of this size.
            ..=READ_BYTES => 0,
            len => (len + self.decoder.unfinished_bytes()) as u64,
        };
        self.held.set(bytes);
        self.session.client.input.store(bytes, Ordering::Relaxed);
        bytes
    }

    /// Runs the complete commands of the input and writes their replies. Returns true if the input
    /// may contain more of them.
    async fn run(&mut self) -> io::Result<bool> {
        let input = std::mem::take(&mut self.input);
        // A client that waits for each reply sends one short command: no memory is allocated for
        // it.
        let mut spans = SmallVec::<[WordSpan; 8]>::new();
        let mut commands = SmallVec::<[ParsedCommand; 2]>::new();
        let mut found = std::mem::take(&mut self.found);
        let (mut consumed, mut failed) = (0, None);
        // A client that has not authenticated may send only a little. Its commands are read one at
        // a time, because each of them may authenticate it and change the limits.
        self.decoder.set_limits(Limits {
            authenticated: self.session.is_authenticated,
            ..Limits::default()
        });
        loop {
            match self.decoder.next(&input[consumed..], &mut found) {
                Ok(Some(Request::Words { consumed: bytes })) => {
                    if found.len() > TURN_WORDS {
                        // The spans are moved, not copied: a copy would take longer than other
                        // connections should wait.
                        commands.push(ParsedCommand::Long {
                            start: consumed,
                            spans: std::mem::take(&mut found),
                        });
                        consumed += bytes;
                        continue;
                    }
                    let first = spans.len();
                    spans.extend(found.iter().map(|span| WordSpan {
                        start: span.start + consumed,
                        end: span.end + consumed,
                    }));
                    commands.push(ParsedCommand::Spans(first..spans.len()));
                    consumed += bytes;
                }
                Ok(Some(Request::Quoted { consumed: bytes, argv })) => {
                    commands.push(ParsedCommand::Quoted(argv));
                    consumed += bytes;
                }
                Ok(Some(Request::Nothing { consumed: bytes })) => consumed += bytes,
                Ok(None) => break,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            if !self.session.is_authenticated {
                // The next command may have other limits.
                break;
            }
        }
        if found.capacity() <= KEEP_WORDS {
            self.found = found;
        }
        let argv: SmallVec<[&[u8]; 8]> = spans.iter().map(|span| span.of(&input)).collect();
        // The arguments of the quoted and of the long commands.
        let mut apart: Vec<Vec<&[u8]>> = Vec::new();
        for command in &commands {
            match command {
                ParsedCommand::Spans(_) => {}
                ParsedCommand::Quoted(argv) => apart.push(argv.iter().map(Vec::as_slice).collect()),
                ParsedCommand::Long { start, spans } => {
                    apart.push(long_words(&input[*start..], spans).await);
                }
            }
        }
        let mut next_apart = apart.iter();
        let ready: SmallVec<[&[&[u8]]; 2]> = commands
            .iter()
            .map(|command| match command {
                ParsedCommand::Spans(range) => &argv[range.clone()],
                ParsedCommand::Quoted(_) | ParsedCommand::Long { .. } => {
                    next_apart.next().expect("one entry for each quoted or long command").as_slice()
                }
            })
            .collect();
        if ready.is_empty() {
            self.session.client.last_millis.store(now_millis(), Ordering::Relaxed);
        }
        let mut rest = &ready[..];
        while !rest.is_empty() && !self.session.is_closing {
            let ran = self.session.run(rest, &mut self.output).await;
            rest = &rest[ran..];
            if !rest.is_empty() {
                self.write().await?;
                tokio::task::yield_now().await;
            }
        }
        drop(ready);
        for mut argv in apart {
            argv.clear();
            release_capacity(&mut argv).await;
        }
        for command in commands {
            if let ParsedCommand::Long { mut spans, .. } = command {
                spans.clear();
                release_capacity(&mut spans).await;
            }
        }
        if let Some(error) = failed {
            Reply::error(format!("ERR {error}")).encode(self.session.protocol, &mut self.output);
            self.session.is_closing = true;
        }
        drop(argv);
        self.input = input;
        self.input.drain(..consumed);
        if self.input.capacity() > KEEP_BYTES && self.input.len() < READ_BYTES {
            release_capacity(&mut self.input).await;
            self.input.shrink_to(READ_BYTES);
        }
        let input_bytes = self.count_input();
        if input_bytes > 0
            && input_bytes > self.session.server.read_config(|config| config.max_query_bytes)
        {
            let peer = self.session.client.peer;
            tracing::warn!(
                %peer,
                "a client was disconnected: its command exceeds client-query-buffer-limit"
            );
            Reply::error(text::server::LARGE_COMMAND)
                .encode(self.session.protocol, &mut self.output);
            self.session.is_closing = true;
        }
        self.write().await?;
        Ok(consumed > 0 && !self.input.is_empty())
    }

    /// Writes the replies after the log has written or synced their changes, as `appendfsync`
    /// requires.
    async fn write(&mut self) -> io::Result<()> {
        // Counted as held memory while the connection waits for the disk, later as output of the
        // client.
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

/// Collects the arguments of a long command from the input, and yields to other connections in
/// between.
async fn long_words<'i>(input: &'i [u8], spans: &[WordSpan]) -> Vec<&'i [u8]> {
    let mut argv = Vec::new();
    reserve_apart(&mut argv);
    argv.reserve_exact(spans.len());
    for spans in spans.chunks(TURN_WORDS) {
        tokio::task::yield_now().await;
        argv.extend(spans.iter().map(|span| span.of(input)));
    }
    argv
}

/// Reserves [`APART_BYTES`] for a vector that will be long.
fn reserve_apart<T>(memory: &mut Vec<T>) {
    let room = APART_BYTES / size_of::<T>();
    memory.reserve_exact(room.saturating_sub(memory.len()));
}

/// Returns the unused capacity of a vector to the system, except for a small rest. Yields to other
/// connections in between, because returning some ten MiB takes a millisecond.
async fn release_capacity<T>(memory: &mut Vec<T>) {
    let turn = RELEASE_BYTES / size_of::<T>();
    while memory.capacity() - memory.len() > turn {
        memory.shrink_to(memory.capacity() - turn);
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_memory_is_given_back_but_for_a_little() {
        let mut memory: Vec<u64> = (0..1000).collect();
        reserve_apart(&mut memory);
        assert!(memory.capacity() * 8 >= APART_BYTES);
        release_capacity(&mut memory).await;
        assert!(memory.capacity() * 8 <= RELEASE_BYTES + 8000);
        assert!(memory.into_iter().eq(0..1000));
    }
}
