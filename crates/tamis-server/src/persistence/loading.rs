//! Serves clients while the server loads its data, which may take minutes.
//!
//! The listeners are open before the data is loaded. During the load, a thread accepts connections
//! and replies `LOADING` to every command except `QUIT` and `INFO`, as Redis does. During the load,
//! `INFO` works if the default user needs no password and may run `INFO`.
//!
//! After the load, the connections continue as usual client connections and keep the received part
//! of their next command. TLS connections are closed after the load, because the state of a TLS
//! connection belongs to the loading thread. During the load, the HTTP port responds with status
//! 503.

mod connection;
mod http;

use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::system::runtime::runtime;
pub(crate) use connection::EarlyClient;
use connection::{GRACE, LoadingState, connection, connection_of_tls};

/// The thread that serves clients while the data is loaded.
#[derive(Debug)]
pub(crate) struct Loading {
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<Vec<EarlyClient>>>,
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
    /// Starts the thread. The thread serves at most `max_clients` clients at a time.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot start a thread or open a file.
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
            serve(accepting, http, &Rc::new(LoadingState::new(may_ask_info, max_clients, ended)))
        };
        let thread = std::thread::Builder::new().name("tamis-loading".to_owned()).spawn(run)?;
        Ok(Self { end, thread: Some(thread) })
    }

    /// Ends the thread. Returns the connected clients.
    pub fn end(mut self) -> Vec<EarlyClient> {
        self.stop()
    }

    fn stop(&mut self) -> Vec<EarlyClient> {
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
    shared: &Rc<LoadingState>,
) -> Vec<EarlyClient> {
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
        let all_ended = async {
            for open in [&shared.connected, &shared.requests] {
                _ = open.subscribe().wait_for(|count| *count == 0).await;
            }
        };
        _ = tokio::time::timeout(GRACE, all_ended).await;
    });
    shared.early.take()
}

/// Accepts connections until the data is loaded.
async fn accept(
    shared: Rc<LoadingState>,
    listener: tokio::net::TcpListener,
    tls: Option<TlsAcceptor>,
) {
    let mut ended = shared.ended.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ended.wait_for(|it| *it) => return,
        };
        match accepted {
            Ok((stream, _)) if *shared.connected.borrow() >= shared.max_clients => {
                // A TLS client cannot read an error that is not encrypted.
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
            // The usual cause of this error is the limit of open files.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write as _};
    use std::net::TcpStream;

    use tamis_commands::text;

    use super::*;
    use crate::persistence::loading::connection::info;

    fn listener() -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    }

    fn connect(listener: &TcpListener) -> TcpStream {
        tamis_testing::connect(listener.local_addr().unwrap())
    }

    fn begin(listener: &TcpListener, may_ask_info: bool) -> Loading {
        let plain = std::slice::from_ref(listener);
        Loading::begin(&Listeners { plain, ..Listeners::default() }, 2, may_ask_info).unwrap()
    }

    fn begin_http(listener: &TcpListener) -> Loading {
        let listeners = Listeners { http: Some(listener), ..Listeners::default() };
        Loading::begin(&listeners, 2, false).unwrap()
    }

    fn refusal() -> String {
        format!("-{}\r\n", text::server::LOADING)
    }

    fn assert_reads(stream: &mut impl Read, expected: &str) {
        let mut bytes = vec![0; expected.len()];
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    fn assert_closed(stream: &mut impl Read) {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed");
    }

    /// Sends an HTTP request and returns the response.
    fn request(http: &TcpListener, line: &str) -> String {
        let mut client = connect(http);
        let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        std::io::read_to_string(client).unwrap()
    }

    #[test]
    fn clients_learn_that_data_is_loaded_and_continue_where_they_were() {
        let listener = listener();
        let loading = begin(&listener, true);
        let mut client = connect(&listener);
        client.write_all(b"PING\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\nget \"a\"\r\n").unwrap();
        assert_reads(&mut client, &refusal().repeat(3));
        client.write_all(b"INFO\r\n*2\r\n$3\r\nGE").unwrap();
        let info = info();
        assert_reads(&mut client, &format!("${}\r\n{info}\r\n", info.len()));
        assert!(info.contains("\r\nloading:1\r\n"));

        let mut page = connect(&listener);
        page.write_all(b"POST / HTTP/1.1\r\n").unwrap();
        assert_closed(&mut page);
        let mut other = connect(&listener);
        other.write_all(b"PING\r\n").unwrap();
        assert_reads(&mut other, &refusal());
        let refusal = std::io::read_to_string(connect(&listener)).unwrap();
        assert_eq!(refusal, "-ERR max number of clients reached\r\n");
        other.write_all(b"QUIT\r\n").unwrap();
        assert_reads(&mut other, "+OK\r\n");
        assert_closed(&mut other);

        let early = loading.end();
        let [early] = &early[..] else { panic!("{early:?}") };
        assert_eq!(early.stream.peer_addr().unwrap(), client.local_addr().unwrap());
        assert_eq!(early.input, b"*2\r\n$3\r\nGE");
    }

    #[test]
    fn a_password_keeps_info_secret_while_data_is_loaded() {
        let listener = listener();
        let loading = begin(&listener, false);
        let mut client = connect(&listener);
        client.write_all(b"INFO\r\n").unwrap();
        assert_reads(&mut client, &refusal());
        // If the server cannot start, the thread ends and the connection is closed.
        drop(loading);
        assert_closed(&mut client);
    }

    #[test]
    fn http_says_that_data_is_loaded() {
        let http = listener();
        let loading = begin_http(&http);
        for path in ["/healthz", "/", "/api/overview.json"] {
            let answer = request(&http, &format!("GET {path}"));
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
            assert!(answer.ends_with("\r\n\r\nloading: the server reads its data\n"), "{answer}");
        }
        let answer = request(&http, "GET /metrics");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\ntamis_loading 1\n"));
        assert!(request(&http, "POST /healthz").starts_with("HTTP/1.1 405 "));
        // After the load, the port is free for the console.
        drop(loading);
        connect(&http).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        tamis_testing::accept("the client", &http);
    }

    #[test]
    fn half_sent_requests_do_not_keep_health_from_answering() {
        let http = listener();
        let _loading = begin_http(&http);
        let send_half = |_| {
            let mut client = connect(&http);
            client.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
            client
        };
        let half_sent: Vec<_> = (0..100).map(send_half).collect();
        let answer = request(&http, "GET /healthz");
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
        let mut client = StreamOwned::new(connection, connect(&listener));
        client.write_all(b"PING\r\n").unwrap();
        assert_reads(&mut client, &refusal());
        drop(loading);
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "the end of TLS, not of the socket alone");
    }
}
