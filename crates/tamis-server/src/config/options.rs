//! The options of the server itself, a row each.

use std::path::PathBuf;

use tamis_commands::parse_integer;

use super::{BindAddress, Config, DebugCommand, HttpPort};
use crate::durability::Sync;
use crate::hash_key::HashKey;
use crate::tls::ClientCertificates;

/// An option of the server itself.
pub(super) struct Entry {
    pub name: &'static str,
    /// Whether `CONFIG SET` may change it.
    pub is_live: bool,
    pub expected: &'static str,
    pub get: fn(&Config) -> String,
    pub set: fn(&mut Config, &str) -> Option<()>,
}

/// The option whose value is secret.
pub(super) const HASH_KEY: &str = "hash-key";

pub(super) const ENTRIES: [Entry; 30] = [
    Entry {
        name: "aclfile",
        is_live: false,
        expected: "a file, or empty for none",
        get: |config| shown_path(config.users_file.as_ref()),
        set: |config, text| {
            config.users_file = parse_path(text);
            Some(())
        },
    },
    Entry {
        name: "acllog-max-len",
        is_live: true,
        expected: "0 to 1000000",
        get: |config| config.max_refusals.to_string(),
        set: |config, text| {
            config.max_refusals = text.parse().ok().filter(|&n| n <= 1_000_000)?;
            Some(())
        },
    },
    Entry {
        name: "appendfsync",
        is_live: true,
        expected: "'always', 'everysec' or 'no'",
        get: |config| {
            match config.sync {
                Sync::Always => "always",
                Sync::EverySecond => "everysec",
                Sync::Never => "no",
            }
            .to_owned()
        },
        set: |config, text| {
            config.sync = match text.to_ascii_lowercase().as_str() {
                "always" => Sync::Always,
                "everysec" => Sync::EverySecond,
                "no" => Sync::Never,
                _ => return None,
            };
            Some(())
        },
    },
    Entry {
        name: "appendonly",
        is_live: false,
        expected: "'yes' or 'no'",
        get: |config| yes(config.append_only),
        set: |config, text| {
            config.append_only = parse_yes(text)?;
            Some(())
        },
    },
    Entry {
        name: "auto-aof-rewrite-min-size",
        is_live: true,
        expected: "a memory value",
        get: |config| config.rewrite_bytes.to_string(),
        set: |config, text| {
            config.rewrite_bytes = parse_bytes(text)?;
            Some(())
        },
    },
    Entry {
        name: "bind",
        is_live: false,
        expected: "IP addresses, or names that lead to some",
        get: |config| config.bind.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        set: |config, text| {
            let parsed: Result<Vec<BindAddress>, _> =
                BindAddress::words(text).map(str::parse).collect();
            config.bind = parsed.ok().filter(|all| !all.is_empty())?;
            Some(())
        },
    },
    Entry {
        name: "client-output-buffer-limit",
        is_live: true,
        expected: "'normal <hard> <soft> <seconds>', with memory values",
        get: |config| config.output_limit.to_string(),
        set: |config, text| {
            config.output_limit = text.parse().ok()?;
            Some(())
        },
    },
    Entry {
        name: "client-query-buffer-limit",
        is_live: true,
        expected: "a memory value of at least 1mb",
        get: |config| config.max_query_bytes.to_string(),
        set: |config, text| {
            config.max_query_bytes = parse_bytes(text).filter(|&bytes| bytes >= 1 << 20)?;
            Some(())
        },
    },
    Entry {
        name: "dir",
        is_live: false,
        expected: "a folder",
        get: |config| config.dir.display().to_string(),
        set: |config, text| {
            config.dir = PathBuf::from(Some(text).filter(|text| !text.is_empty())?);
            Some(())
        },
    },
    Entry {
        name: HASH_KEY,
        is_live: false,
        expected: "'random', 'none' or 32 hexadecimal digits",
        get: |config| config.hash_key.text(),
        set: |config, text| {
            config.hash_key = HashKey::parse(text)?;
            Some(())
        },
    },
    Entry {
        name: "enable-debug-command",
        is_live: false,
        expected: "'no', 'local' or 'yes'",
        get: |config| {
            match config.debug_command {
                DebugCommand::No => "no",
                DebugCommand::Local => "local",
                DebugCommand::Yes => "yes",
            }
            .to_owned()
        },
        set: |config, text| {
            config.debug_command = match text.to_ascii_lowercase().as_str() {
                "no" => DebugCommand::No,
                "local" => DebugCommand::Local,
                "yes" => DebugCommand::Yes,
                _ => return None,
            };
            Some(())
        },
    },
    Entry {
        name: "http-bind",
        is_live: false,
        expected: "an IP address",
        get: |config| config.http_bind.to_string(),
        set: |config, text| {
            config.http_bind = text.parse().ok()?;
            Some(())
        },
    },
    Entry {
        name: "http-port",
        is_live: false,
        expected: "'no', 'auto' or 0 to 65535",
        get: |config| match config.http_port {
            HttpPort::Off => "no".to_owned(),
            HttpPort::Auto => "auto".to_owned(),
            HttpPort::At(port) => port.to_string(),
        },
        set: |config, text| {
            config.http_port = match text.to_ascii_lowercase().as_str() {
                "no" => HttpPort::Off,
                "auto" => HttpPort::Auto,
                port => HttpPort::At(port.parse().ok()?),
            };
            Some(())
        },
    },
    Entry {
        name: "io-threads",
        is_live: false,
        expected: "0 to 1024",
        get: |config| config.threads.to_string(),
        set: |config, text| {
            config.threads = text.parse().ok().filter(|&n| n <= 1024)?;
            Some(())
        },
    },
    Entry {
        name: "maxclients",
        is_live: true,
        expected: "1 to 4294967295",
        get: |config| config.max_clients.to_string(),
        set: |config, text| {
            config.max_clients = text.parse::<u32>().ok().filter(|&n| n > 0)? as usize;
            Some(())
        },
    },
    Entry {
        name: "maxmemory",
        is_live: true,
        expected: "a memory value",
        get: |config| config.max_memory_bytes.to_string(),
        set: |config, text| {
            config.max_memory_bytes = parse_bytes(text)?;
            Some(())
        },
    },
    Entry {
        name: "maxmemory-policy",
        is_live: false,
        expected: "noeviction: a filter without some of its items would lie",
        get: |_| "noeviction".to_owned(),
        set: |_, text| (text == "noeviction").then_some(()),
    },
    Entry {
        name: "metrics-max-filters",
        is_live: true,
        expected: "0 to 100000",
        get: |config| config.metrics_max_filters.to_string(),
        set: |config, text| {
            config.metrics_max_filters = text.parse().ok().filter(|&n| n <= 100_000)?;
            Some(())
        },
    },
    Entry {
        name: "port",
        is_live: false,
        expected: "0 to 65535, or no",
        get: |config| shown_port(config.listens_plain.then_some(config.port)),
        set: |config, text| {
            let port = parse_port(text)?;
            config.listens_plain = port.is_some();
            config.port = port.unwrap_or(config.port);
            Some(())
        },
    },
    Entry {
        name: "protected-mode",
        is_live: false,
        expected: "'yes' or 'no'",
        get: |config| yes(config.protected_mode),
        set: |config, text| {
            config.protected_mode = parse_yes(text)?;
            Some(())
        },
    },
    Entry {
        name: "requirepass",
        is_live: true,
        expected: "text",
        get: |config| config.password.clone(),
        set: |config, text| {
            config.password = text.to_owned();
            Some(())
        },
    },
    Entry {
        name: "save",
        is_live: false,
        expected: "empty: the log says when a snapshot is due",
        get: |_| String::new(),
        set: |_, text| text.is_empty().then_some(()),
    },
    Entry {
        name: "slowlog-log-slower-than",
        is_live: true,
        expected: "a number of microseconds",
        get: |config| config.slow_micros.to_string(),
        set: |config, text| {
            config.slow_micros = parse_integer(text.as_bytes())?;
            Some(())
        },
    },
    Entry {
        name: "slowlog-max-len",
        is_live: true,
        expected: "0 to 1000000",
        get: |config| config.slow_entries.to_string(),
        set: |config, text| {
            config.slow_entries = text.parse().ok().filter(|&n| n <= 1_000_000)?;
            Some(())
        },
    },
    Entry {
        name: "timeout",
        is_live: true,
        expected: "a number of seconds",
        get: |config| config.timeout_seconds.to_string(),
        set: |config, text| {
            config.timeout_seconds =
                parse_integer(text.as_bytes()).and_then(|n| n.try_into().ok())?;
            Some(())
        },
    },
    Entry {
        name: "tls-auth-clients",
        is_live: true,
        expected: "'yes', 'no' or 'optional'",
        get: |config| {
            match config.tls_auth_clients {
                ClientCertificates::Required => "yes",
                ClientCertificates::Optional => "optional",
                ClientCertificates::Unasked => "no",
            }
            .to_owned()
        },
        set: |config, text| {
            config.tls_auth_clients = match text.to_ascii_lowercase().as_str() {
                "yes" => ClientCertificates::Required,
                "optional" => ClientCertificates::Optional,
                "no" => ClientCertificates::Unasked,
                _ => return None,
            };
            Some(())
        },
    },
    Entry {
        name: "tls-ca-cert-file",
        is_live: true,
        expected: "a file, or empty for none",
        get: |config| shown_path(config.tls_ca_cert_file.as_ref()),
        set: |config, text| {
            config.tls_ca_cert_file = parse_path(text);
            Some(())
        },
    },
    Entry {
        name: "tls-cert-file",
        is_live: true,
        expected: "a file, or empty for none",
        get: |config| shown_path(config.tls_cert_file.as_ref()),
        set: |config, text| {
            config.tls_cert_file = parse_path(text);
            Some(())
        },
    },
    Entry {
        name: "tls-key-file",
        is_live: true,
        expected: "a file, or empty for none",
        get: |config| shown_path(config.tls_key_file.as_ref()),
        set: |config, text| {
            config.tls_key_file = parse_path(text);
            Some(())
        },
    },
    Entry {
        name: "tls-port",
        is_live: false,
        expected: "0 to 65535, or no",
        get: |config| shown_port(config.tls_port),
        set: |config, text| {
            config.tls_port = parse_port(text)?;
            Some(())
        },
    },
];

/// Reads a number of bytes, with a unit of 1000 (`k`, `m`, `g`) or 1024 (`kb`, `mb`, `gb`) as Redis has them.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn parse_yes(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Reads a port; `Some(None)` is for no port.
fn parse_port(text: &str) -> Option<Option<u16>> {
    if text.eq_ignore_ascii_case("no") { Some(None) } else { text.parse().ok().map(Some) }
}

fn shown_port(port: Option<u16>) -> String {
    port.map_or_else(|| "no".to_owned(), |port| port.to_string())
}

fn parse_path(text: &str) -> Option<PathBuf> {
    Some(text).filter(|text| !text.is_empty()).map(PathBuf::from)
}

fn shown_path(path: Option<&PathBuf>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

fn yes(is_yes: bool) -> String {
    if is_yes { "yes" } else { "no" }.to_owned()
}
