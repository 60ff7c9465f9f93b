//! `INFO`: reports the state of the server and its filters, as text.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use tamis_commands::Value;
use tamis_resp::Reply;

use crate::handlers::client::verbatim;
use crate::keyspace::KeyspaceRef;
use crate::session::{Call, Session};
use crate::shared_state::SharedState;
use crate::system::procfs::{cpu_seconds, memory_of_machine, memory_of_process};
use crate::version::{MODULE_VERSION, REDIS_VERSION};

/// The sections of `INFO`. Each row has the section's name, whether `INFO` without arguments
/// includes the section, and the function that writes the lines of the section.
const SECTIONS: [(&str, bool, WriteLines); 14] = [
    ("Server", true, server),
    ("Clients", true, clients),
    ("Memory", true, memory),
    ("Persistence", true, persistence),
    ("Stats", true, stats),
    ("Replication", true, replication),
    ("Cpu", true, cpu),
    ("Modules", true, modules),
    ("Commandstats", false, command_stats),
    ("Errorstats", true, error_stats),
    ("Latencystats", false, latency_stats),
    ("Cluster", true, cluster),
    ("Keyspace", true, keyspace),
    ("Filters", true, filters),
];

type WriteLines = fn(&mut Info<'_>);

pub(super) fn info(session: &Session, call: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    let names: Vec<String> = call.argv[1..]
        .iter()
        .map(|word| String::from_utf8_lossy(word).to_ascii_lowercase())
        .collect();
    let is_all = names.iter().any(|name| matches!(name.as_str(), "all" | "everything"));
    let is_default = names.is_empty() || names.iter().any(|name| name == "default");
    let (server, now_millis) = (&*session.server, call.env.now_millis);
    let mut info = Info { text: String::new(), server, keys, now_millis };
    for (title, is_in_default, write_lines) in SECTIONS {
        let is_named = names.iter().any(|name| name.eq_ignore_ascii_case(title));
        if is_all || is_named || (is_default && is_in_default) {
            if !info.text.is_empty() {
                info.text += "\r\n";
            }
            info.text += &format!("# {title}\r\n");
            write_lines(&mut info);
        }
    }
    verbatim(info.text)
}

/// The text of the reply, and the values that the text shows.
struct Info<'i> {
    text: String,
    server: &'i SharedState,
    keys: &'i KeyspaceRef<'i>,
    now_millis: u64,
}

impl Info<'_> {
    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        write!(self.text, "{name}:{value}\r\n").expect("writing to text");
    }

    /// Writes a number of bytes in two forms: as a plain number, and with a unit.
    fn bytes(&mut self, name: &str, bytes: u64) {
        self.line(name, bytes);
        self.line(&format!("{name}_human"), human(bytes));
    }
}

fn server(info: &mut Info<'_>) {
    let server = info.server;
    let seconds = info.now_millis.saturating_sub(server.started_millis) / 1000;
    info.line("redis_version", REDIS_VERSION);
    info.line("tamis_version", env!("CARGO_PKG_VERSION"));
    info.line("redis_mode", "standalone");
    info.line("os", std::env::consts::OS);
    info.line("arch_bits", usize::BITS);
    info.line("run_id", &server.stats.run_id);
    info.line("process_id", std::process::id());
    info.line("tcp_port", server.port);
    info.line("server_time_usec", info.now_millis * 1000);
    info.line("uptime_in_seconds", seconds);
    info.line("uptime_in_days", seconds / 86_400);
    info.line("io_threads", server.threads);
}

fn clients(info: &mut Info<'_>) {
    info.line("connected_clients", info.server.clients.len());
    info.line("cluster_connections", 0);
    info.line("maxclients", info.server.config().max_clients);
    info.line("blocked_clients", 0);
}

fn memory(info: &mut Info<'_>) {
    let server = info.server;
    let bytes = server.used_memory();
    info.bytes("used_memory", bytes);
    let resident = memory_of_process();
    if let Some(resident) = resident {
        info.bytes("used_memory_rss", resident);
    }
    let peak = server.stats.note_memory(bytes);
    info.bytes("used_memory_peak", peak);
    let share = 100.0 * bytes as f64 / peak.max(1) as f64;
    info.line("used_memory_peak_perc", format_args!("{share:.2}%"));
    if let Some(total) = memory_of_machine() {
        info.bytes("total_system_memory", total);
    }
    if let Some(resident) = resident {
        let ratio = resident as f64 / bytes.max(1) as f64;
        info.line("mem_fragmentation_ratio", format_args!("{ratio:.2}"));
        info.line("mem_fragmentation_bytes", resident as i64 - bytes as i64);
    }
    info.line("mem_clients_normal", server.clients.output.bytes());
    info.bytes("maxmemory", server.config().max_memory_bytes);
    info.line("maxmemory_policy", "noeviction");
}

fn persistence(info: &mut Info<'_>) {
    let (server, stats) = (info.server, &info.server.stats);
    info.line("loading", 0);
    info.line("async_loading", 0);
    info.line("aof_enabled", u8::from(server.durable.is_some()));
    let Some(durable) = &server.durable else { return };
    let saves = stats.saves.info(info.now_millis);
    // A snapshot and a new log are written together, so the fields `rdb_*` and `aof_*` report the
    // same state.
    let in_progress = u8::from(durable.is_saving());
    let status_of = |has_failed| if has_failed { "err" } else { "ok" };
    let status = status_of(saves.has_failed);
    let unsaved = stats.saves.changes_since(server.keyspace.changes());
    info.line("rdb_changes_since_last_save", unsaved);
    info.line("rdb_bgsave_in_progress", in_progress);
    info.line("rdb_last_save_time", count(&durable.last_save_millis) / 1000);
    info.line("rdb_last_bgsave_status", status);
    info.line("rdb_last_bgsave_time_sec", saves.last_seconds);
    info.line("rdb_current_bgsave_time_sec", saves.current_seconds);
    info.line("rdb_saves", saves.count);
    info.line("aof_rewrite_in_progress", in_progress);
    info.line("aof_rewrite_scheduled", 0);
    info.line("aof_last_rewrite_time_sec", saves.last_seconds);
    info.line("aof_current_rewrite_time_sec", saves.current_seconds);
    info.line("aof_last_bgrewrite_status", status);
    info.line("aof_rewrites", saves.count);
    info.line("aof_last_write_status", status_of(server.log_failure().is_some()));
    info.line("aof_current_size", durable.log_bytes());
    info.line("aof_base_size", durable.snapshot_bytes());
}

fn stats(info: &mut Info<'_>) {
    let stats = &info.server.stats;
    info.line("total_connections_received", info.server.clients.ever());
    info.line("total_commands_processed", count(&stats.commands));
    let [commands, bytes_in, bytes_out] = stats.rates.per_second();
    info.line("instantaneous_ops_per_sec", commands.round() as u64);
    info.line("total_net_input_bytes", count(&stats.bytes_in));
    info.line("total_net_output_bytes", count(&stats.bytes_out));
    info.line("instantaneous_input_kbps", format_args!("{:.2}", bytes_in / 1024.0));
    info.line("instantaneous_output_kbps", format_args!("{:.2}", bytes_out / 1024.0));
    info.line("rejected_connections", count(&stats.rejected));
    info.line("client_output_buffer_limit_disconnections", count(&stats.overflows));
    info.line("expired_keys", count(&stats.expired_keys));
    info.line("evicted_keys", 0);
    info.line("evicted_clients", count(&stats.evicted_clients));
    info.line("keyspace_hits", count(&stats.hits));
    info.line("keyspace_misses", count(&stats.misses));
    info.line("pubsub_channels", 0);
    info.line("pubsub_patterns", 0);
    info.line("latest_fork_usec", 0);
    info.line("total_error_replies", count(&stats.errors));
}

fn replication(info: &mut Info<'_>) {
    info.line("role", "master");
    info.line("connected_slaves", 0);
    info.line("master_failover_state", "no-failover");
    info.line("master_replid", &info.server.stats.run_id);
    info.line("master_repl_offset", 0);
    info.line("repl_backlog_active", 0);
}

fn cpu(info: &mut Info<'_>) {
    let Some([user, system]) = cpu_seconds() else { return };
    info.line("used_cpu_sys", format_args!("{system:.6}"));
    info.line("used_cpu_user", format_args!("{user:.6}"));
    info.line("used_cpu_sys_children", "0.000000");
    info.line("used_cpu_user_children", "0.000000");
}

fn modules(info: &mut Info<'_>) {
    let rest = "api=1,filters=0,usedby=[],using=[],options=[]";
    info.line("module", format_args!("name=bf,ver={MODULE_VERSION},{rest}"));
}

fn command_stats(info: &mut Info<'_>) {
    for (name, called) in info.server.stats.calls.each_called() {
        let (calls, micros) = (called.calls(), called.nanos / 1000);
        let each = if calls == 0 { 0.0 } else { called.nanos as f64 / 1000.0 / calls as f64 };
        let (rejected, failed) = (called.rejected, called.failed);
        info.line(
            &format!("cmdstat_{name}"),
            format_args!(
                "calls={calls},usec={micros},usec_per_call={each:.2},rejected_calls={rejected},\
                 failed_calls={failed}"
            ),
        );
    }
}

fn error_stats(info: &mut Info<'_>) {
    for (code, count) in info.server.stats.errors_by_code() {
        info.line(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn latency_stats(info: &mut Info<'_>) {
    for (name, called) in info.server.stats.calls.each_called() {
        if called.calls() > 0 {
            let [middle, most, nearly_all] =
                [0.5, 0.99, 0.999].map(|share| called.percentile_micros(share));
            info.line(
                &format!("latency_percentiles_usec_{name}"),
                format_args!("p50={middle:.3},p99={most:.3},p99.9={nearly_all:.3}"),
            );
        }
    }
}

fn cluster(info: &mut Info<'_>) {
    info.line("cluster_enabled", 0);
}

fn keyspace(info: &mut Info<'_>) {
    let (len, expiring) = (info.keys.len(), info.server.keyspace.expiring());
    if len > 0 {
        info.line("db0", format_args!("keys={len},expires={expiring},avg_ttl=0"));
    }
}

fn filters(info: &mut Info<'_>) {
    let (mut filters, mut items, mut bytes) = (0_u64, 0_u64, 0_u64);
    for part in 0..info.keys.shard_count() {
        info.keys.each_measured(part, info.now_millis, |value, measured| {
            if let Some(held) = items_of(value, measured, info.now_millis) {
                filters += 1;
                items += held;
                bytes += value.memory_bytes();
            }
        });
    }
    info.line("filters", filters);
    info.line("items", items);
    info.line("filters_memory", bytes);
}

fn count(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

/// Returns the number of items in a filter. The number is an exact count or the result of the last
/// measurement. Returns `None` if the value is not a filter.
fn items_of(value: &Value, measured: Option<u64>, now_millis: u64) -> Option<u64> {
    let estimated = || value.utilization(now_millis).map(|utilization| utilization.items as u64);
    value.counted_items().or(measured).or_else(estimated)
}

fn human(bytes: u64) -> String {
    let (mut number, mut unit) = (bytes as f64, "B");
    for next in ["K", "M", "G", "T"] {
        if number < 1024.0 {
            break;
        }
        (number, unit) = (number / 1024.0, next);
    }
    if unit == "B" { format!("{bytes}B") } else { format!("{number:.2}{unit}") }
}
