//! Creates TCP connections with a deadline for each read and write.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::{DEADLINE, wait_for};

/// Connects to a server. Each read or write of the stream fails after [`DEADLINE`].
///
/// # Panics
///
/// Panics if the connection fails.
#[track_caller]
pub fn connect(address: SocketAddr) -> TcpStream {
    try_connect(address).unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"))
}

/// Connects to a server. Each read or write of the stream fails after [`DEADLINE`].
///
/// # Errors
///
/// Returns the I/O error if the connection fails.
pub fn try_connect(address: SocketAddr) -> io::Result<TcpStream> {
    limit(TcpStream::connect_timeout(&address, DEADLINE)?)
}

/// Sets the timeouts of a stream, so that each read or write fails after [`DEADLINE`].
///
/// # Errors
///
/// Returns the I/O error if the operating system rejects a timeout.
pub fn limit(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    Ok(stream)
}

/// Returns a free port for a server of a test. The port number plus 10,000 is also free, because a
/// node of a Redis cluster uses two ports.
///
/// The operating system may assign ports from 32,768 to outgoing connections at any time. This
/// function returns a port below 32,768, which stays free until the server listens.
///
/// # Panics
///
/// Panics if no port is free.
pub fn free_port() -> u16 {
    const FIRST: u16 = 10_000;
    const PORTS: u16 = 10_000;
    static TRIED: AtomicU16 = AtomicU16::new(0);
    // Each test program starts the search at a different port, because several test programs may
    // run at the same time.
    let begin = (std::process::id().wrapping_mul(97) % u32::from(PORTS)) as u16;
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    for _ in 0..PORTS {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed) % PORTS;
        let port = FIRST + (begin + tried) % PORTS;
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
    panic!("no port from {FIRST} to {} is free", FIRST + PORTS);
}

/// Reads bytes from a stream of this module. Returns the number of bytes, or 0 if the peer has
/// closed or reset the connection.
///
/// # Panics
///
/// Panics if no byte arrives before [`DEADLINE`].
#[track_caller]
pub fn read(stream: &mut TcpStream, bytes: &mut [u8]) -> usize {
    match stream.read(bytes) {
        Ok(read) => read,
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
            panic!("waited in vain for bytes from {:?}", stream.peer_addr())
        }
        Err(_) => 0,
    }
}

/// Reads bytes from a stream of this module until the peer closes or resets the connection. Returns
/// the bytes.
///
/// # Panics
///
/// Panics if no byte arrives before [`DEADLINE`].
#[track_caller]
pub fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match read(stream, &mut piece) {
            0 => return all,
            len => all.extend(&piece[..len]),
        }
    }
}

/// Accepts a connection. Each read or write of the stream fails after [`DEADLINE`]. `client` names
/// the client in the panic message.
///
/// # Panics
///
/// Panics if no client connects before [`DEADLINE`].
#[track_caller]
pub fn accept(client: impl Display, listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let (stream, _) = wait_for(format_args!("{client} connects"), || match listener.accept() {
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        accepted => Some(accepted.unwrap()),
    });
    stream.set_nonblocking(false).unwrap();
    limit(stream).unwrap()
}
