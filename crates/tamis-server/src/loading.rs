//! Answers clients while the server reads its data, which may take minutes.
//!
//! The addresses are open before the data is read. A thread accepts the connections meanwhile and answers `LOADING` to every
//! command, as Redis does, but for `QUIT`, and for `INFO` if the default user needs no password. Once the data is there, the
//! connections go on as those of usual clients, with what each has sent of its next command. Connections of TLS wait.

use std::cell::RefCell;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use tamis_commands::text;
use tamis_resp::{Limits, Protocol, Reply, Request, RequestDecoder};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::cross_protocol::is_http;
use crate::server::runtime;

/// The thread that answers while the data is read.
#[derive(Debug)]
pub(crate) struct Loading {
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<Vec<Early>>>,
}

/// A client that connected while the data was read.
#[derive(Debug)]
pub(crate) struct Early {
    pub stream: std::net::TcpStream,
    /// What it has sent of a command.
    pub input: Vec<u8>,
}

/// What is read at a time.
const READ_BYTES: usize = 16 << 10;

/// Of a command that is longer than this no more is read before the data is there.
const MAX_INPUT_BYTES: usize = 1 << 20;

/// How long a client has at the end to take its last replies.
const GRACE: Duration = Duration::from_millis(200);

impl Loading {
    /// Begins to answer clients of these listeners, at most so many at a time.
    ///
    /// # Errors
    ///
    /// If the system gives no thread or no file.
    pub fn begin(
        listeners: &[TcpListener],
        max_clients: usize,
        may_ask_info: bool,
    ) -> io::Result<Self> {
        let listeners: io::Result<Vec<TcpListener>> =
            listeners.iter().map(TcpListener::try_clone).collect();
        let listeners = listeners?;
        let (end, ended) = watch::channel(false);
        let run = move || serve(listeners, max_clients, may_ask_info, &ended);
        let thread = std::thread::Builder::new().name("tamis-loading".to_owned()).spawn(run)?;
        Ok(Self { end, thread: Some(thread) })
    }

    /// Ends, and returns the clients that are connected.
    pub fn end(mut self) -> Vec<Early> {
        self.stop()
    }

    fn stop(&mut self) -> Vec<Early> {
        _ = self.end.send(true);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the connections share.
struct Shared {
    may_ask_info: bool,
    ended: watch::Receiver<bool>,
    connected: RefCell<usize>,
    early: RefCell<Vec<Early>>,
}

fn serve(
    listeners: Vec<TcpListener>,
    max_clients: usize,
    may_ask_info: bool,
    ended: &watch::Receiver<bool>,
) -> Vec<Early> {
    let shared = Rc::new(Shared {
        may_ask_info,
        ended: ended.clone(),
        connected: RefCell::new(0),
        early: RefCell::default(),
    });
    let (local, runtime) = (LocalSet::new(), runtime());
    local.block_on(&runtime, async {
        for listener in listeners {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
            let shared = shared.clone();
            tokio::task::spawn_local(async move {
                let mut ended = shared.ended.clone();
                loop {
                    let accepted = tokio::select! {
                        accepted = listener.accept() => accepted,
                        _ = ended.wait_for(|it| *it) => return,
                    };
                    match accepted {
                        Ok((stream, _)) if *shared.connected.borrow() >= max_clients => {
                            _ = stream.try_write(b"-ERR max number of clients reached\r\n");
                        }
                        Ok((stream, _)) => {
                            *shared.connected.borrow_mut() += 1;
                            let shared = shared.clone();
                            tokio::task::spawn_local(async move {
                                let early = connection(&shared, stream).await.ok().flatten();
                                shared.early.borrow_mut().extend(early);
                                *shared.connected.borrow_mut() -= 1;
                            });
                        }
                        // Out of files, mostly.
                        Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                    }
                }
            });
        }
        _ = ended.clone().wait_for(|it| *it).await;
    });
    runtime.block_on(async {
        _ = tokio::time::timeout(GRACE, local).await;
    });
    shared.early.take()
}

/// Answers a client until the data is there, or it ends the connection.
async fn connection(shared: &Shared, mut stream: TcpStream) -> io::Result<Option<Early>> {
    let mut ended = shared.ended.clone();
    let mut input = Vec::with_capacity(READ_BYTES);
    let limits = Limits { authenticated: shared.may_ask_info, ..Limits::default() };
    let mut decoder = RequestDecoder::new(limits);
    let (mut found, mut output) = (Vec::new(), Vec::new());
    let peer = stream.peer_addr()?;
    loop {
        let has_room = input.len() < MAX_INPUT_BYTES;
        tokio::select! {
            biased;
            _ = ended.wait_for(|it| *it) => {
                return Ok(Some(Early { stream: stream.into_std()?, input }));
            }
            read = stream.read_buf(&mut input), if has_room => {
                if read? == 0 {
                    return Ok(None);
                }
            }
        }
        let mut is_closing = false;
        let mut consumed = 0;
        while !is_closing {
            let quoted;
            let (bytes, words): (usize, Vec<&[u8]>) =
                match decoder.next(&input[consumed..], &mut found) {
                    Ok(Some(Request::Words { consumed: bytes })) => {
                        let rest = &input[consumed..];
                        (bytes, found.iter().map(|span| span.of(rest)).collect())
                    }
                    Ok(Some(Request::Quoted { consumed: bytes, words })) => {
                        quoted = words;
                        (bytes, quoted.iter().map(Vec::as_slice).collect())
                    }
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
            if is_http(&words) {
                tracing::warn!(%peer, "possible attack: a client sent HTTP to the port of commands");
                return Ok(None);
            }
            is_closing = words[0].eq_ignore_ascii_case(b"QUIT");
            let reply = match words[0].to_ascii_uppercase().as_slice() {
                b"QUIT" => Reply::ok(),
                b"INFO" if shared.may_ask_info => Reply::bulk(info()),
                _ => Reply::error(text::host::LOADING),
            };
            reply.encode(Protocol::Resp2, &mut output);
        }
        input.drain(..consumed);
        stream.write_all(&output).await?;
        output.clear();
        if is_closing {
            return Ok(None);
        }
    }
}

/// Returns what `INFO` tells of a server that reads its data.
fn info() -> String {
    format!(
        "# Server\r\nredis_version:{}\r\ntamis_version:{}\r\nredis_mode:standalone\r\nprocess_id:{}\r\n\r\n\
         # Persistence\r\nloading:1\r\nasync_loading:0\r\n",
        crate::host::REDIS_VERSION,
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    fn listener() -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    }

    fn read(stream: &mut std::net::TcpStream, len: usize) -> String {
        let mut bytes = vec![0; len];
        stream.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn clients_are_told_that_data_is_loaded_and_go_on_where_they_were() {
        let listener = listener();
        let loading = Loading::begin(&[listener.try_clone().unwrap()], 2, true).unwrap();
        let connect = || std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let told = format!("-{}\r\n", text::host::LOADING);
        let mut client = connect();
        client.write_all(b"PING\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\nget \"a\"\r\n").unwrap();
        assert_eq!(read(&mut client, 3 * told.len()), told.repeat(3));
        client.write_all(b"INFO\r\n*2\r\n$3\r\nGE").unwrap();
        let info = info();
        let expected = format!("${}\r\n{info}\r\n", info.len());
        assert_eq!(read(&mut client, expected.len()), expected);
        assert!(info.contains("\r\nloading:1\r\n"));

        let mut page = connect();
        page.write_all(b"POST / HTTP/1.1\r\n").unwrap();
        assert_eq!(page.read(&mut [0]).unwrap(), 0, "closed");
        let mut other = connect();
        other.write_all(b"PING\r\n").unwrap();
        assert_eq!(read(&mut other, told.len()), told);
        let mut third = connect();
        let mut refusal = String::new();
        third.read_to_string(&mut refusal).unwrap();
        assert_eq!(refusal, "-ERR max number of clients reached\r\n");
        other.write_all(b"QUIT\r\n").unwrap();
        assert_eq!(read(&mut other, 5), "+OK\r\n");
        assert_eq!(other.read(&mut [0]).unwrap(), 0, "closed");

        let early = loading.end();
        let [early] = &early[..] else { panic!("{early:?}") };
        assert_eq!(early.stream.peer_addr().unwrap(), client.local_addr().unwrap());
        assert_eq!(early.input, b"*2\r\n$3\r\nGE");
    }

    #[test]
    fn a_password_keeps_info_secret_while_data_is_loaded() {
        let listener = listener();
        let loading = Loading::begin(&[listener.try_clone().unwrap()], 2, false).unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"INFO\r\n").unwrap();
        let told = format!("-{}\r\n", text::host::LOADING);
        assert_eq!(read(&mut client, told.len()), told);
        // A server that does not start ends the thread, and with it the connection.
        drop(loading);
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "closed");
    }
}
