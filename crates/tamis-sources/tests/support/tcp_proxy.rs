//! A TCP proxy that a test cuts or stops, as a broken network would.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub struct TcpProxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// True if new connections are refused and bytes of open ones are held back.
    is_partitioned: AtomicBool,
    /// The number of connections until now.
    connections: AtomicUsize,
    /// The bytes of this many first connections are held back for ever.
    frozen: AtomicUsize,
    streams: Mutex<Vec<TcpStream>>,
}

impl TcpProxy {
    pub fn start(server: SocketAddr) -> Self {
        Self::in_turn(vec![server])
    }

    /// Connects each connection to the next server.
    pub fn in_turn(servers: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for (client, server) in listener.incoming().zip(servers.into_iter().cycle()) {
                let Ok(client) = client else { return };
                let Ok(server) = TcpStream::connect(server) else { continue };
                let number = accepting.connections.fetch_add(1, Ordering::Relaxed);
                let mut streams = accepting.streams.lock().unwrap();
                for (from, to) in [(&client, &server), (&server, &client)] {
                    streams.push(from.try_clone().unwrap());
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let shared = Arc::clone(&accepting);
                    thread::spawn(move || forward(from, to, number, &shared));
                }
            }
        });
        Self { address, shared }
    }

    /// Breaks all connections.
    pub fn cut(&self) {
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Holds back all bytes until `heal`.
    pub fn partition(&self) {
        self.shared.is_partitioned.store(true, Ordering::Relaxed);
    }

    /// Returns the number of connections until now.
    #[allow(dead_code, reason = "not every test that includes this uses it")]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Holds back all bytes of the open connections for ever. New connections work.
    #[allow(dead_code, reason = "not every test that includes this uses it")]
    pub fn freeze(&self) {
        self.shared.frozen.store(self.connections(), Ordering::Relaxed);
    }

    pub fn heal(&self) {
        self.shared.is_partitioned.store(false, Ordering::Relaxed);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, number: usize, shared: &Shared) {
    use io::{Read as _, Write as _};

    let mut bytes = [0; 1 << 16];
    loop {
        let read = from.read(&mut bytes).unwrap_or(0);
        while shared.is_partitioned.load(Ordering::Relaxed)
            || number < shared.frozen.load(Ordering::Relaxed)
        {
            thread::sleep(Duration::from_millis(5));
        }
        if read == 0 || to.write_all(&bytes[..read]).is_err() {
            _ = to.shutdown(Shutdown::Both);
            _ = from.shutdown(Shutdown::Both);
            return;
        }
    }
}
