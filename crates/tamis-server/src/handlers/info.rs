//! `INFO`: reports on the server and its filters, as text.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use tamis_commands::{Env, Value};
use tamis_resp::Reply;

use crate::handlers::client::verbatim;
use crate::keyspace::KeyspaceRef;
use crate::session::Session;
use crate::session::call::Call;
use crate::system::procfs::{cpu_seconds, memory_of_process};
use crate::version::{MODULE_VERSION, REDIS_VERSION};

/// The sections, and whether `INFO` without arguments includes each of them.
const SECTIONS: [(&str, bool); 14] = [
    ("server", true),
    ("clients", true),
    ("memory", true),
    ("persistence", true),
    ("stats", true),
    ("replication", true),
    ("cpu", true),
    ("modules", true),
    ("commandstats", false),
    ("errorstats", true),
    ("latencystats", false),
    ("cluster", true),
    ("keyspace", true),
    ("filters", true),
];

pub(super) fn info(session: &Session, call: Call<'_>, keys: &KeyspaceRef<'_>) -> Reply {
    let names: Vec<String> = call.argv[1..]
        .iter()
        .map(|word| String::from_utf8_lossy(word).to_ascii_lowercase())
        .collect();
    let is_all = names.iter().any(|name| matches!(name.as_str(), "all" | "everything"));
    let is_default = names.is_empty() || names.iter().any(|name| name == "default");
    let mut text = String::new();
    for (section, is_in_default) in SECTIONS {
        let is_named = names.iter().any(|name| name == section);
        if is_all || is_named || (is_default && is_in_default) {
            if !text.is_empty() {
                text += "\r\n";
            }
            write_section(&mut text, section, session, &call.env, keys).expect("writing to text");
        }
    }
    verbatim(text)
}

fn write_section(
    text: &mut String,
    section: &str,
    session: &Session,
    env: &Env<'_>,
    keys: &KeyspaceRef<'_>,
) -> std::fmt::Result {
    let server = &session.server;
    let stats = &server.stats;
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let mut title: Vec<char> = section.chars().collect();
    title[0] = title[0].to_ascii_uppercase();
    write!(text, "# {}\r\n", title.into_iter().collect::<String>())?;
    let mut line = |name: &str, value: &dyn std::fmt::Display| write!(text, "{name}:{value}\r\n");
    match section {
        "server" => {
            let seconds = env.now_millis.saturating_sub(server.started_millis) / 1000;
            line("redis_version", &REDIS_VERSION)?;
            line("tamis_version", &env!("CARGO_PKG_VERSION"))?;
            line("redis_mode", &"standalone")?;
            line("os", &std::env::consts::OS)?;
            line("arch_bits", &usize::BITS)?;
            line("run_id", &stats.run_id)?;
            line("process_id", &std::process::id())?;
            line("tcp_port", &server.port)?;
            line("server_time_usec", &(env.now_millis * 1000))?;
            line("uptime_in_seconds", &seconds)?;
            line("uptime_in_days", &(seconds / 86_400))?;
            line("io_threads", &server.threads)
        }
        "clients" => {
            line("connected_clients", &server.clients.len())?;
            line("cluster_connections", &0)?;
            line("maxclients", &server.config().max_clients)?;
            line("blocked_clients", &0)
        }
        "memory" => {
            let bytes = server.used_memory();
            line("used_memory", &bytes)?;
            line("used_memory_human", &human(bytes))?;
            let resident = memory_of_process();
            if let Some(resident) = resident {
                line("used_memory_rss", &resident)?;
                line("used_memory_rss_human", &human(resident))?;
            }
            let peak = stats.note_memory(bytes);
            line("used_memory_peak", &peak)?;
            line("used_memory_peak_human", &human(peak))?;
            let share = 100.0 * bytes as f64 / peak.max(1) as f64;
            line("used_memory_peak_perc", &format_args!("{share:.2}%"))?;
            if let Some(total) = crate::system::procfs::memory_of_machine() {
                line("total_system_memory", &total)?;
                line("total_system_memory_human", &human(total))?;
            }
            if let Some(resident) = resident {
                let ratio = resident as f64 / bytes.max(1) as f64;
                line("mem_fragmentation_ratio", &format_args!("{ratio:.2}"))?;
                line("mem_fragmentation_bytes", &(resident as i64 - bytes as i64))?;
            }
            line("mem_clients_normal", &server.clients.output.bytes())?;
            line("maxmemory", &server.config().max_memory_bytes)?;
            line("maxmemory_human", &human(server.config().max_memory_bytes))?;
            line("maxmemory_policy", &"noeviction")
        }
        "persistence" => {
            line("loading", &0)?;
            line("async_loading", &0)?;
            line("aof_enabled", &u8::from(server.durable.is_some()))?;
            let Some(durable) = &server.durable else { return Ok(()) };
            let saves = stats.saves.info(env.now_millis);
            // A snapshot and a new log are written together, so both sections report on it.
            let in_progress = u8::from(durable.is_saving());
            let status_of = |has_failed| if has_failed { "err" } else { "ok" };
            let status = status_of(saves.has_failed);
            let log_status = status_of(server.log_failure().is_some());
            let unsaved = stats.saves.changes_since(server.keyspace.changes());
            line("rdb_changes_since_last_save", &unsaved)?;
            line("rdb_bgsave_in_progress", &in_progress)?;
            line("rdb_last_save_time", &(count(&durable.last_save_millis) / 1000))?;
            line("rdb_last_bgsave_status", &status)?;
            line("rdb_last_bgsave_time_sec", &saves.last_seconds)?;
            line("rdb_current_bgsave_time_sec", &saves.current_seconds)?;
            line("rdb_saves", &saves.count)?;
            line("aof_rewrite_in_progress", &in_progress)?;
            line("aof_rewrite_scheduled", &0)?;
            line("aof_last_rewrite_time_sec", &saves.last_seconds)?;
            line("aof_current_rewrite_time_sec", &saves.current_seconds)?;
            line("aof_last_bgrewrite_status", &status)?;
            line("aof_rewrites", &saves.count)?;
            line("aof_last_write_status", &log_status)?;
            line("aof_current_size", &durable.log_bytes())?;
            line("aof_base_size", &durable.snapshot_bytes())
        }
        "stats" => {
            line("total_connections_received", &server.clients.ever())?;
            line("total_commands_processed", &count(&stats.commands))?;
            let [commands, bytes_in, bytes_out] = stats.rates.per_second();
            line("instantaneous_ops_per_sec", &(commands.round() as u64))?;
            line("total_net_input_bytes", &count(&stats.bytes_in))?;
            line("total_net_output_bytes", &count(&stats.bytes_out))?;
            line("instantaneous_input_kbps", &format_args!("{:.2}", bytes_in / 1024.0))?;
            line("instantaneous_output_kbps", &format_args!("{:.2}", bytes_out / 1024.0))?;
            line("rejected_connections", &count(&stats.rejected))?;
            line("client_output_buffer_limit_disconnections", &count(&stats.overflows))?;
            line("expired_keys", &count(&stats.expired_keys))?;
            line("evicted_keys", &0)?;
            line("evicted_clients", &count(&stats.evicted_clients))?;
            line("keyspace_hits", &count(&stats.hits))?;
            line("keyspace_misses", &count(&stats.misses))?;
            line("pubsub_channels", &0)?;
            line("pubsub_patterns", &0)?;
            line("latest_fork_usec", &0)?;
            line("total_error_replies", &count(&stats.errors))
        }
        "replication" => {
            line("role", &"master")?;
            line("connected_slaves", &0)?;
            line("master_failover_state", &"no-failover")?;
            line("master_replid", &stats.run_id)?;
            line("master_repl_offset", &0)?;
            line("repl_backlog_active", &0)
        }
        "cpu" => {
            let Some([user, system]) = cpu_seconds() else { return Ok(()) };
            line("used_cpu_sys", &format_args!("{system:.6}"))?;
            line("used_cpu_user", &format_args!("{user:.6}"))?;
            line("used_cpu_sys_children", &"0.000000")?;
            line("used_cpu_user_children", &"0.000000")
        }
        "cluster" => line("cluster_enabled", &0),
        "modules" => {
            let rest = "api=1,filters=0,usedby=[],using=[],options=[]";
            line("module", &format_args!("name=bf,ver={MODULE_VERSION},{rest}"))
        }
        "commandstats" => stats.calls.each_called().try_for_each(|(name, called)| {
            let (calls, micros) = (called.calls(), called.nanos / 1000);
            let each = if calls == 0 { 0.0 } else { called.nanos as f64 / 1000.0 / calls as f64 };
            let (rejected, failed) = (called.rejected, called.failed);
            line(
                &format!("cmdstat_{name}"),
                &format_args!(
                    "calls={calls},usec={micros},usec_per_call={each:.2},rejected_calls={rejected},\
                     failed_calls={failed}"
                ),
            )
        }),
        "errorstats" => stats.errors_by_code().iter().try_for_each(|(code, count)| {
            line(&format!("errorstat_{code}"), &format_args!("count={count}"))
        }),
        "latencystats" => stats.calls.each_called().try_for_each(|(name, called)| {
            if called.calls() == 0 {
                return Ok(());
            }
            let [middle, most, nearly_all] =
                [0.5, 0.99, 0.999].map(|share| called.percentile_micros(share));
            line(
                &format!("latency_percentiles_usec_{name}"),
                &format_args!("p50={middle:.3},p99={most:.3},p99.9={nearly_all:.3}"),
            )
        }),
        "keyspace" => {
            let len = keys.len();
            if len > 0 {
                let expiring = server.keyspace.expiring();
                line("db0", &format_args!("keys={len},expires={expiring},avg_ttl=0"))?;
            }
            Ok(())
        }
        _ => {
            let (mut filters, mut items, mut bytes) = (0_u64, 0_u64, 0_u64);
            for part in 0..keys.shard_count() {
                keys.each_measured(part, env.now_millis, |value, measured| {
                    if let Some(held) = items_of(value, measured, env.now_millis) {
                        (filters, items, bytes) =
                            (filters + 1, items + held, bytes + value.memory_bytes());
                    }
                });
            }
            line("filters", &filters)?;
            line("items", &items)?;
            line("filters_memory", &bytes)
        }
    }
}

/// Returns the number of items in a filter: counted, or from the last measurement; `None` if the
/// value is no filter.
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
