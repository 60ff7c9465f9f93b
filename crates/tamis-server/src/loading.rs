//! Answers clients while the server loads its data, which may take minutes.
//!
//! The listeners are open before the data is loaded. Meanwhile a thread accepts connections and
//! answers `LOADING` to every command, as Redis does. Exceptions are `QUIT`, and `INFO` if the
//! default user needs no password and may run it. Once the data is loaded, these connections
//! continue as usual client connections and keep the received part of their next command. TLS
//! connections are closed then, because their state belongs to this thread. The HTTP port answers
//! 503.

mod connection;
mod http;

use std::cell::RefCell;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::cross_protocol::Warnings;
use crate::runtime::runtime;
pub(crate) use connection::Early;
use connection::{GRACE, PATIENCE, Shared, connection, connection_of_tls};

/// The thread that answers clients while the data is loaded.
#[derive(Debug)]
pub(crate) struct Loading {
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<Vec<Early>>>,
}

/// The listeners that are open while the data is loaded.
#[derive(Default)]
pub(crate) struct Listeners<'l> {
    pub plain: &'l [TcpListener],
    pub tls: &'l [TcpListener],
    pub tls_config: Option<Arc<ServerConfig>>,
    pub http: Option<&'l TcpListener>,
}

impl Loading {
    /// Starts to answer clients, at most `max_clients` at a time.
    ///
    /// # Errors
    ///
    /// If the system does not start a thread or opens no file.
    pub fn begin(
        listeners: &Listeners<'_>,
        max_clients: usize,
        may_ask_info: bool,
    ) -> io::Result<Self> {
        let tls = listeners.tls_config.as_ref().map(|config| TlsAcceptor::from(config.clone()));
        let mut accepting = Vec::new();
        for (all, tls) in [(listeners.plain, None), (listeners.tls, tls)] {
            for listener in all {
                accepting.push((listener.try_clone()?, tls.clone()));
            }
        }
        let http = listeners.http.map(TcpListener::try_clone).transpose()?;
        let (end, ended) = watch::channel(false);
        let run = move || {
            let shared = Shared {
                may_ask_info,
                max_clients,
                patience: PATIENCE,
                ended,
                connected: watch::Sender::new(0),
                requests: watch::Sender::new(0),
                early: RefCell::default(),
                warnings: Warnings::default(),
            };
            serve(accepting, http, &Rc::new(shared))
        };
        let thread = std::thread::Builder::new().name("tamis-loading".to_owned()).spawn(run)?;
        Ok(Self { end, thread: Some(thread) })
    }

    /// Ends the thread and returns the connected clients.
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

fn serve(
    listeners: Vec<(TcpListener, Option<TlsAcceptor>)>,
    http: Option<TcpListener>,
    shared: &Rc<Shared>,
) -> Vec<Early> {
    let runtime = runtime();
    runtime.block_on(async {
        for (listener, tls) in listeners {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
            tokio::task::spawn_local(accept(shared.clone(), listener, tls));
        }
        let mut ended = shared.ended.clone();
        if let Some(Ok(listener)) = http.map(tokio::net::TcpListener::from_std) {
            let (mut ended, shared) = (ended.clone(), shared.clone());
            tokio::task::spawn_local(async move {
                tokio::select! {
                    () = http::serve(listener, &shared.requests) => {}
                    _ = ended.wait_for(|it| *it) => {}
                }
            });
        }
        _ = ended.wait_for(|it| *it).await;
    });
    runtime.block_on(async {
        let (mut connected, mut requests) =
            (shared.connected.subscribe(), shared.requests.subscribe());
        let all_ended = async {
            _ = connected.wait_for(|count| *count == 0).await;
            _ = requests.wait_for(|count| *count == 0).await;
        };
        _ = tokio::time::timeout(GRACE, all_ended).await;
    });
    shared.early.take()
}

/// Accepts connections until the data is loaded.
async fn accept(shared: Rc<Shared>, listener: tokio::net::TcpListener, tls: Option<TlsAcceptor>) {
    let mut ended = shared.ended.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ended.wait_for(|it| *it) => return,
        };
        match accepted {
            Ok((stream, _)) if *shared.connected.borrow() >= shared.max_clients => {
                // A TLS client would not understand a plain error.
                if tls.is_none() {
                    _ = stream.try_write(b"-ERR max number of clients reached\r\n");
                }
            }
            Ok((stream, peer)) => {
                shared.connected.send_modify(|count| *count += 1);
                let (shared, tls) = (shared.clone(), tls.clone());
                tokio::task::spawn_local(async move {
                    let ended = match tls {
                        None => connection(&shared, stream, peer).await,
                        Some(tls) => connection_of_tls(&shared, stream, peer, &tls).await,
                    };
                    if let Err(error) = ended {
                        tracing::debug!(%peer, %error, "a connection broke while the data is read");
                    }
                    shared.connected.send_modify(|count| *count -= 1);
                });
            }
            // The usual cause is the limit of open files.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use tamis_commands::text;

    use super::*;
    use crate::loading::connection::info;

    fn listener() -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    }

    fn begin(listener: &TcpListener, may_ask_info: bool) -> Loading {
        let plain = std::slice::from_ref(listener);
        Loading::begin(&Listeners { plain, ..Listeners::default() }, 2, may_ask_info).unwrap()
    }

    fn read(stream: &mut std::net::TcpStream, len: usize) -> String {
        let mut bytes = vec![0; len];
        stream.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn clients_learn_that_data_is_loaded_and_continue_where_they_were() {
        let listener = listener();
        let loading = begin(&listener, true);
        let connect = || std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let refusal = format!("-{}\r\n", text::server::LOADING);
        let mut client = connect();
        client.write_all(b"PING\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\nget \"a\"\r\n").unwrap();
        assert_eq!(read(&mut client, 3 * refusal.len()), refusal.repeat(3));
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
        assert_eq!(read(&mut other, refusal.len()), refusal);
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
        let loading = begin(&listener, false);
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"INFO\r\n").unwrap();
        let refusal = format!("-{}\r\n", text::server::LOADING);
        assert_eq!(read(&mut client, refusal.len()), refusal);
        // A server that does not start ends the thread, and this closes the connection.
        drop(loading);
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "closed");
    }

    #[test]
    fn http_says_that_data_is_loaded() {
        let http = listener();
        let listeners = Listeners { http: Some(&http), ..Listeners::default() };
        let loading = Loading::begin(&listeners, 2, false).unwrap();
        let ask = |line: &str| {
            let mut client = std::net::TcpStream::connect(http.local_addr().unwrap()).unwrap();
            client
                .write_all(format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
                .unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            answer
        };
        for path in ["/healthz", "/", "/api/overview.json"] {
            let answer = ask(&format!("GET {path}"));
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
            assert!(answer.ends_with("\r\n\r\nloading: the server reads its data\n"), "{answer}");
        }
        let answer = ask("GET /metrics");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\ntamis_loading 1\n"));
        assert!(ask("POST /healthz").starts_with("HTTP/1.1 405 "));
        // The port is free for the console.
        drop(loading);
        let mut client = std::net::TcpStream::connect(http.local_addr().unwrap()).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(http.accept().is_ok());
    }

    #[test]
    fn half_sent_requests_do_not_keep_health_from_answering() {
        let http = listener();
        let listeners = Listeners { http: Some(&http), ..Listeners::default() };
        let _loading = Loading::begin(&listeners, 2, false).unwrap();
        let connect = || std::net::TcpStream::connect(http.local_addr().unwrap()).unwrap();
        let half_sent: Vec<_> = (0..100)
            .map(|_| {
                let mut client = connect();
                client.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
                client
            })
            .collect();
        let mut client = connect();
        client.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        drop(half_sent);
    }

    #[test]
    fn clients_of_tls_learn_that_data_is_loaded() {
        use tokio_rustls::rustls::pki_types::PrivateKeyDer;
        use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = pair.cert.der().clone();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.clone()],
                PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = listener();
        let listeners = Listeners {
            tls: std::slice::from_ref(&listener),
            tls_config: Some(Arc::new(config)),
            ..Listeners::default()
        };
        let loading = Loading::begin(&listeners, 2, false).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut client = StreamOwned::new(connection, socket);
        client.write_all(b"PING\r\n").unwrap();
        let refusal = format!("-{}\r\n", text::server::LOADING);
        let mut reply = vec![0; refusal.len()];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(reply, refusal.as_bytes());
        drop(loading);
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "the end of TLS, not of the socket alone");
    }
}
