//! The open files of the server, within the limit of the system. Every connection uses one.

use crate::config::{Config, HttpPort};

/// Files of the server itself: those of `dir`, its listeners, and those that it reads occasionally.
const OWN: u64 = 32;

/// Files of a thread: its event queue and its wake-up descriptor.
const OF_THREAD: u64 = 4;

/// The maximum number of simultaneous connections to the HTTP port. A browser opens six.
pub(crate) const MAX_HTTP_CONNECTIONS: usize = 64;

/// The number of additional connections that serve only `/healthz`. They are used when all other
/// HTTP connections wait for responses.
pub(crate) const HEALTH_CONNECTIONS: usize = 8;

/// Returns how many open files the server reserves in addition to one socket for each client.
pub(crate) fn reserved(config: &Config, threads: usize) -> u64 {
    let http = match config.http_port {
        HttpPort::Off => 0,
        HttpPort::Auto | HttpPort::At(_) => {
            // The thread of the connections and that of the sampler.
            (MAX_HTTP_CONNECTIONS + HEALTH_CONNECTIONS) as u64 + 2 * OF_THREAD
        }
    };
    OWN + OF_THREAD * (threads as u64 + 1) + http
}

/// Raises the soft limit of open files as far as needed and permitted. Returns how many of
/// `clients` clients then fit.
pub(crate) fn fit(clients: usize, reserved: u64) -> usize {
    let wanted = reserved.saturating_add(clients as u64);
    let fits = raise(wanted).saturating_sub(reserved);
    clients.min(usize::try_from(fits).unwrap_or(usize::MAX))
}

/// Raises the soft limit of open files to `wanted`, or as near to it as the system permits. Returns
/// the limit.
#[cfg(unix)]
fn raise(wanted: u64) -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    // `None` means no limit.
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
