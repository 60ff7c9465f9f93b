//! Counts the open files of the server and raises the limit of the system. Every connection uses
//! one open file.

use crate::config::{Config, HttpPort};

/// The open files of the server itself: the files of `dir`, the listeners, and files that the
/// server reads occasionally.
const OWN: u64 = 32;

/// The open files of one thread: its event queue and its wake-up descriptor.
const OF_THREAD: u64 = 4;

/// The maximum number of simultaneous connections to the HTTP port. A browser opens six
/// connections.
pub(crate) const MAX_HTTP_CONNECTIONS: usize = 64;

/// The number of additional connections that serve only `/healthz`. The server uses the additional
/// connections when all other HTTP connections wait for responses.
pub(crate) const HEALTH_CONNECTIONS: usize = 8;

/// Returns how many open files the server reserves in addition to one socket for each client.
pub(crate) fn reserved(config: &Config, threads: usize) -> u64 {
    let http = match config.http_port {
        HttpPort::Off => 0,
        HttpPort::Auto | HttpPort::At(_) => {
            // The files of two threads: the thread of the HTTP connections and the thread of the
            // sampler.
            (MAX_HTTP_CONNECTIONS + HEALTH_CONNECTIONS) as u64 + 2 * OF_THREAD
        }
    };
    OWN + OF_THREAD * (threads as u64 + 1) + http
}

/// Raises the soft limit of open files as far as the clients need and the system permits. Returns
/// how many of `clients` clients fit under the new limit.
pub(crate) fn fit(clients: usize, reserved: u64) -> usize {
    let wanted = reserved.saturating_add(clients as u64);
    let fits = raise(wanted).saturating_sub(reserved);
    clients.min(usize::try_from(fits).unwrap_or(usize::MAX))
}

/// Raises the soft limit of open files to `wanted`, or to the highest limit that the system
/// permits. Returns the new limit of open files.
#[cfg(unix)]
fn raise(wanted: u64) -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    // The system returns `None` if the number of open files is not limited.
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current.unwrap_or(u64::MAX);
    if soft >= wanted {
        return soft;
    }
    let raised = wanted.min(limit.maximum.unwrap_or(u64::MAX));
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }) {
        Ok(()) => raised,
        Err(_) => soft,
    }
}

#[cfg(not(unix))]
fn raise(_: u64) -> u64 {
    u64::MAX
}
