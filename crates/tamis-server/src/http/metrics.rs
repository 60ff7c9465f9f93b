//! `/metrics`: the server's numbers in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::server::Shared;

/// Returns all numbers as text.
pub(super) fn text(shared: &Shared) -> String {
    let count = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
    let stats = &shared.stats;
    let is_failed = u64::from(shared.log_failure().is_some());
    let mut text = String::new();
    for (name, kind, help, value) in [
        ("tamis_commands_total", "counter", "Commands run.", count(&stats.commands)),
        ("tamis_errors_total", "counter", "Commands refused.", count(&stats.errors)),
        ("tamis_connections_total", "counter", "Connections taken.", shared.clients.ever()),
        ("tamis_connected_clients", "gauge", "Connections now.", shared.clients.len() as u64),
        ("tamis_memory_bytes", "gauge", "Memory of all values.", shared.keyspace.memory_bytes()),
        ("tamis_log_failed", "gauge", "1 if the log cannot be written.", is_failed),
    ] {
        _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    text
}
