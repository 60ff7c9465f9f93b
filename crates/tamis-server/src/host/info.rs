//! `INFO`: the server and its filters, as text.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use tamis_commands::{Env, Value, Words};
use tamis_resp::Reply;

use crate::session::{Keys, Session, with_keys};

/// The Redis whose commands are answered: clients look at it to see what they may ask.
pub(super) const REDIS_VERSION: &str = "7.4.0";

const SECTIONS: [&str; 8] =
    ["server", "clients", "memory", "persistence", "stats", "replication", "modules", "keyspace"];

pub(super) fn info(
    session: &Session,
    words: Words<'_>,
    env: &Env<'_>,
    keys: Keys<'_, '_>,
) -> Reply {
    let asked: Vec<String> =
        words[1..].iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    let is_all = asked.is_empty()
        || asked.iter().any(|name| matches!(name.as_str(), "all" | "everything" | "default"));
    let mut text = String::new();
    for section in SECTIONS.into_iter().chain(["filters"]) {
        if is_all || asked.iter().any(|name| name == section) {
            if !text.is_empty() {
                text += "\r\n";
            }
            write_section(&mut text, section, session, env, keys).expect("writing to text");
        }
    }
    Reply::Verbatim { format: *b"txt", text: text.into_bytes() }
}

fn write_section(
    text: &mut String,
    section: &str,
    session: &Session,
    env: &Env<'_>,
    keys: Keys<'_, '_>,
) -> std::fmt::Result {
    let server = &session.server;
    let stats = &server.stats;
    let count = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
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
            line("process_id", &std::process::id())?;
            line("tcp_port", &server.port())?;
            line("server_time_usec", &(env.now_millis * 1000))?;
            line("uptime_in_seconds", &seconds)?;
            line("uptime_in_days", &(seconds / 86_400))?;
            line("io_threads", &server.threads())
        }
        "clients" => {
            line("connected_clients", &server.clients.len())?;
            line("maxclients", &server.config().max_clients)?;
            line("blocked_clients", &0)
        }
        "memory" => {
            let bytes = server.keyspace.memory_bytes();
            line("used_memory", &bytes)?;
            line("used_memory_human", &human(bytes))?;
            line("maxmemory", &server.config().max_memory_bytes)?;
            line("maxmemory_human", &human(server.config().max_memory_bytes))?;
            line("maxmemory_policy", &"noeviction")
        }
        "persistence" => {
            line("loading", &0)?;
            line("aof_enabled", &u8::from(server.durable.is_some()))?;
            let Some(durable) = &server.durable else { return Ok(()) };
            let failed = durable.log.failed();
            line("rdb_bgsave_in_progress", &u8::from(durable.is_saving()))?;
            line("rdb_last_save_time", &(count(&durable.last_save_millis) / 1000))?;
            line("aof_last_write_status", &if failed.is_none() { "ok" } else { "err" })?;
            line("aof_current_size", &durable.log_bytes())
        }
        "stats" => {
            line("total_connections_received", &server.clients.ever())?;
            line("total_commands_processed", &count(&stats.commands))?;
            line("total_net_input_bytes", &count(&stats.bytes_in))?;
            line("total_net_output_bytes", &count(&stats.bytes_out))?;
            line("rejected_connections", &count(&stats.rejected))?;
            line("expired_keys", &count(&stats.expired_keys))?;
            line("evicted_keys", &0)?;
            line("total_error_replies", &count(&stats.errors))
        }
        "replication" => {
            line("role", &"master")?;
            line("connected_slaves", &0)
        }
        "modules" => line(
            "module",
            &format_args!(
                "name=bf,ver={},api=1,filters=0,usedby=[],using=[],options=[]",
                super::admin::MODULE_VERSION
            ),
        ),
        "keyspace" => {
            let len = with_keys!(keys, keys => keys.len());
            if len > 0 {
                line("db0", &format_args!("keys={len},expires=0,avg_ttl=0"))?;
            }
            Ok(())
        }
        _ => {
            let (mut filters, mut items, mut bytes) = (0_u64, 0_u64, 0_u64);
            with_keys!(keys, keys => {
                for part in 0..keys.parts() {
                    keys.each_key(part, env.now_millis, |_, value| {
                        if let Some(held) = items_of(value) {
                            (filters, items, bytes) =
                                (filters + 1, items + held, bytes + value.memory_bytes());
                        }
                    });
                }
            });
            line("filters", &filters)?;
            line("items", &items)?;
            line("filters_memory", &bytes)
        }
    }
}

/// How many items a filter counts; `None` if it is none.
fn items_of(value: &Value) -> Option<u64> {
    match value {
        Value::Bloom(filter) => Some(filter.items()),
        Value::RedisBloom(filter) => Some(filter.items()),
        Value::RedisCuckoo(filter) => Some(filter.items()),
        _ => None,
    }
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
