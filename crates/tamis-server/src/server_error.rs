//! The errors that prevent a server from starting, or that end a server.

use std::net::{IpAddr, SocketAddr};
use std::{fmt, io};

use crate::config::hash_key::HashKeyError;
use crate::connection::tls::TlsError;
use crate::persistence::DurabilityError;
use crate::system::system_error::without_code;
use crate::users::UsersError;

/// An error that prevents a server from starting, or that ends a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    /// The server cannot listen on an address.
    Listen {
        /// The address to listen on.
        address: SocketAddr,
        /// The cause of the failure.
        error: io::Error,
    },
    /// The server cannot listen for the console.
    ListenHttp {
        /// The address to listen on.
        address: SocketAddr,
        /// The cause of the failure.
        error: io::Error,
    },
    /// The configuration makes the server listen on a network address without a password.
    Unprotected {
        /// The address to listen on.
        address: IpAddr,
    },
    /// No port is set, or two listeners have the same port.
    Ports {
        /// The problem, and what to do.
        why: &'static str,
    },
    /// The TLS files cannot be used.
    Tls(TlsError),
    /// The ACL file cannot be used.
    Users(UsersError),
    /// The limit of open files is too low for even one client.
    Files {
        /// The number of files that the server itself needs.
        reserved: u64,
    },
    /// The operating system cannot start a thread.
    Thread(io::Error),
    /// The server could not write the last changes to the log before the server stopped.
    NotKept {
        /// The cause of the failure.
        error: String,
    },
    /// The hash key for new filters cannot be read or created.
    HashKey(HashKeyError),
    /// The data files of an earlier run cannot be used.
    Durability(DurabilityError),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Listen { address, error } if error.kind() == io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "cannot listen on {address}: another server does; stop it or choose another \
                     --port"
                )
            }
            ServerError::Listen { address, error } => {
                write!(f, "cannot listen on {address}: {}", without_code(error))
            }
            ServerError::ListenHttp { address, error } => {
                write!(
                    f,
                    "cannot listen on {address} for the console: {}; choose another --http-port",
                    without_code(error)
                )
            }
            ServerError::Unprotected { address } => write!(
                f,
                "listening on {address} without a password would let the whole network in: set \
                 --requirepass, turn the default user off in --aclfile, or say --protected-mode no"
            ),
            ServerError::Ports { why } => f.write_str(why),
            ServerError::Tls(error) => error.fmt(f),
            ServerError::HashKey(error) => error.fmt(f),
            ServerError::Users(error) => write!(f, "aclfile: {error}"),
            ServerError::Files { reserved } => write!(
                f,
                "the limit of open files is too low: the server needs {reserved} and one for each \
                 client; raise it with ulimit -n"
            ),
            ServerError::Thread(error) => {
                write!(f, "cannot start a thread: {}", without_code(error))
            }
            ServerError::NotKept { error } => {
                write!(f, "the last changes are lost, the log could not be written: {error}")
            }
            ServerError::Durability(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServerError {}
