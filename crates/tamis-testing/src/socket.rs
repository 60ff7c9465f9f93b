//! TCP connections whose reads and writes end.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::{DEADLINE, wait_for};

/// Connects to a server. A read or write of the stream fails after [`DEADLINE`].
///
/// # Panics
///
/// Panics if the server cannot be reached.
#[track_caller]
pub fn connect(address: SocketAddr) -> TcpStream {
    try_connect(address).unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"))
}

/// Connects to a server. A read or write of the stream fails after [`DEADLINE`].
///
/// # Errors
///
/// The error of the connection.
pub fn try_connect(address: SocketAddr) -> io::Result<TcpStream> {
    limit(TcpStream::connect_timeout(&address, DEADLINE)?)
}

/// Makes each read and write of a stream fail after [`DEADLINE`].
///
/// # Errors
///
/// The error of the system.
pub fn limit(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    Ok(stream)
}

/// Returns a port on which a server of a test can listen. The port 10,000 above it is free too: a
/// cluster of Redis uses both.
///
/// The system gives ports from 32,768 to outgoing connections, at any time. A port below stays free
/// until the server listens.
///
/// # Panics
///
/// Panics if no port is free.
pub fn free_port() -> u16 {
    const FIRST: u16 = 10_000;
    const PORTS: u16 = 10_000;
    static TRIED: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time begin at different ports.
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

/// Reads bytes of a stream of this module. Returns 0 if the peer has closed or reset the connection.
///
/// # Panics
///
/// Panics if nothing arrives before [`DEADLINE`].
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

/// Reads bytes of a stream of this module until the peer closes or resets the connection.
///
/// # Panics
///
/// Panics if nothing arrives before [`DEADLINE`].
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

/// Waits for a connection of `client`. A read or write of the stream fails after [`DEADLINE`].
///
/// # Panics
///
/// Panics with `client` after [`DEADLINE`].
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
