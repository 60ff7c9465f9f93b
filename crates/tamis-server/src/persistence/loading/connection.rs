//! A client connection while the server loads its data.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tamis_commands::text;
use tamis_resp::{Limits, Protocol, Reply, Request, RequestDecoder};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::connection::cross_protocol::{Warnings, is_http};
use crate::system::clock::now_millis;
use crate::version::REDIS_VERSION;

/// A client that connected while the data was loaded.
#[derive(Debug)]
pub(crate) struct EarlyClient {
    pub stream: std::net::TcpStream,
    /// The received part of an incomplete command.
    pub input: Vec<u8>,
}

/// The size of one read, in bytes.
const READ_BYTES: usize = 16 << 10;

/// The maximum received bytes of a command, while the data is loaded. If a command is longer than
/// this limit, the server reads the bytes above the limit after the load.
const MAX_INPUT_BYTES: usize = 64 << 10;

/// The server writes the collected replies when the replies have at least this many bytes.
const WRITE_BYTES: usize = 16 << 10;

/// The maximum time for a client to read a few replies, and the maximum time of a TLS handshake.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum time for clients to read their last replies after the load.
pub(super) const GRACE: Duration = Duration::from_millis(200);

/// The state that all connections share while the data is loaded.
pub(super) struct LoadingState {
    pub may_ask_info: bool,
    pub max_clients: usize,
    pub patience: Duration,
    pub ended: watch::Receiver<bool>,
    pub connected: watch::Sender<usize>,
    /// The number of open connections to the HTTP port.
    pub requests: watch::Sender<usize>,
    pub early: RefCell<Vec<EarlyClient>>,
    pub warnings: Warnings,
}

impl LoadingState {
    pub fn new(may_ask_info: bool, max_clients: usize, ended: watch::Receiver<bool>) -> Self {
        Self {
            may_ask_info,
            max_clients,
            patience: PATIENCE,
            ended,
            connected: watch::Sender::new(0),
            requests: watch::Sender::new(0),
            early: RefCell::default(),
            warnings: Warnings::default(),
        }
    }
}

pub(super) async fn connection(
    shared: &LoadingState,
    mut stream: TcpStream,
    peer: SocketAddr,
) -> io::Result<()> {
    let mut input = Vec::with_capacity(READ_BYTES);
    if answer_each(shared, &mut stream, peer, &mut input).await? == End::Loaded {
        shared.early.borrow_mut().push(EarlyClient { stream: stream.into_std()?, input });
    }
    Ok(())
}

pub(super) async fn connection_of_tls(
    shared: &LoadingState,
    stream: TcpStream,
    peer: SocketAddr,
    tls: &TlsAcceptor,
) -> io::Result<()> {
    let mut stream = tokio::time::timeout(shared.patience, tls.accept(stream)).await??;
    let mut input = Vec::with_capacity(READ_BYTES);
    answer_each(shared, &mut stream, peer, &mut input).await?;
    // A complete TLS close proves to the client that all data has arrived.
    _ = tokio::time::timeout(GRACE / 2, stream.shutdown()).await;
    Ok(())
}

/// The reason why the thread stops serving a client.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The client has disconnected, or the server closes the connection.
    Closed,
    /// The server has loaded its data.
    Loaded,
}

/// Serves a client until the data is loaded or the client disconnects. Leaves the first bytes of
/// the client's next command in `input`.
///
/// # Errors
///
/// Returns an error if the connection is broken, or if the client does not read its replies.
async fn answer_each<S: AsyncRead + AsyncWrite + Unpin>(
    shared: &LoadingState,
    stream: &mut S,
    peer: SocketAddr,
    input: &mut Vec<u8>,
) -> io::Result<End> {
    let mut ended = shared.ended.clone();
    let limits = Limits { authenticated: shared.may_ask_info, ..Limits::default() };
    let mut decoder = RequestDecoder::new(limits);
    let (mut found, mut output) = (Vec::new(), Vec::new());
    loop {
        let has_room = input.len() < MAX_INPUT_BYTES;
        tokio::select! {
            biased;
            _ = ended.wait_for(|it| *it) => return Ok(End::Loaded),
            read = stream.read_buf(input), if has_room => {
                if read? == 0 {
                    return Ok(End::Closed);
                }
            }
        }
        let mut is_closing = false;
        let mut consumed = 0;
        while !is_closing {
            if output.len() >= WRITE_BYTES {
                write(shared, stream, &mut output).await?;
            }
            let rest = &input[consumed..];
            let (bytes, name) = match decoder.next(rest, &mut found) {
                Ok(Some(Request::Words { consumed })) => (consumed, found[0].of(rest).to_vec()),
                Ok(Some(Request::Quoted { consumed, mut argv })) => (consumed, argv.swap_remove(0)),
                Ok(Some(Request::Nothing { consumed: bytes })) => {
                    consumed += bytes;
                    continue;
                }
                Ok(None) => break,
                Err(error) => {
                    Reply::from(error).encode(Protocol::Resp2, &mut output);
                    is_closing = true;
                    break;
                }
            };
            consumed += bytes;
            if is_http(&[&name]) {
                if shared.warnings.is_due(now_millis()) {
                    tracing::warn!(%peer, "possible attack: a client sent HTTP to the Redis port");
                }
                return Ok(End::Closed);
            }
            let reply = match name.to_ascii_uppercase().as_slice() {
                b"QUIT" => {
                    is_closing = true;
                    Reply::ok()
                }
                b"INFO" if shared.may_ask_info => Reply::bulk(info()),
                _ => Reply::error(text::server::LOADING),
            };
            reply.encode(Protocol::Resp2, &mut output);
        }
        input.drain(..consumed);
        write(shared, stream, &mut output).await?;
        if is_closing {
            return Ok(End::Closed);
        }
    }
}

/// Writes replies. The client must read the replies within the time `patience`.
async fn write<S: AsyncWrite + Unpin>(
    shared: &LoadingState,
    stream: &mut S,
    output: &mut Vec<u8>,
) -> io::Result<()> {
    let written = async {
        stream.write_all(output).await?;
        stream.flush().await
    };
    tokio::time::timeout(shared.patience, written).await??;
    output.clear();
    Ok(())
}

/// Returns the reply to `INFO` while the server loads its data.
pub(super) fn info() -> String {
    format!(
        "# Server\r\nredis_version:{}\r\ntamis_version:{}\r\nredis_mode:standalone\r\n\
         process_id:{}\r\n\r\n\
         # Persistence\r\nloading:1\r\nasync_loading:0\r\n",
        REDIS_VERSION,
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::runtime::runtime;

    #[test]
    fn a_client_that_does_not_read_its_replies_is_disconnected() {
        let (_end, ended) = watch::channel(false);
        let patience = Duration::from_millis(100);
        let shared = LoadingState { patience, ..LoadingState::new(true, 2, ended) };
        let (client, mut server) = tokio::io::duplex(100);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut input = Vec::new();
        let error = runtime().block_on(async {
            let (_reading, mut writing) = tokio::io::split(client);
            let sending = async {
                _ = writing.write_all(&b"PING\r\n".repeat(10_000)).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                ended = answer_each(&shared, &mut server, peer, &mut input) => ended.unwrap_err(),
                () = sending => unreachable!("it never ends"),
                () = tokio::time::sleep(Duration::from_secs(30)) => panic!("it waits for ever"),
            }
        });
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
