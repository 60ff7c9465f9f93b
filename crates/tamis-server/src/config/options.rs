//! The options of the server without the network options, one row each.

use tamis_commands::parse_integer;

use crate::config::DebugCommand;
use crate::config::config_option::OptionGroup::{Access, Durability, Limits, Monitoring};
use crate::config::config_option::{ConfigOption, option};
use crate::config::hash_key::HashKey;
use crate::config::values::{
    name_of, named, parse_bytes, parse_path, parse_up_to, parse_yes, put, shown_path, yes,
};
use crate::persistence::FsyncPolicy;

/// The name of the option whose value is never shown to clients.
pub(super) const HASH_KEY: &str = "hash-key";

const SYNC: [(FsyncPolicy, &str); 3] = [
    (FsyncPolicy::Always, "always"),
    (FsyncPolicy::EverySecond, "everysec"),
    (FsyncPolicy::Never, "no"),
];

const DEBUG_COMMAND: [(DebugCommand, &str); 3] =
    [(DebugCommand::No, "no"), (DebugCommand::Local, "local"), (DebugCommand::Yes, "yes")];

pub(super) static OPTIONS: [ConfigOption; 21] = [
    option("aclfile", Access, "FILE", "a file, or empty for none")
        .help(
            "Read users and their permissions from this file, with one line \"user name rule \
            ...\" per user",
        )
        .get(|config| shown_path(config.users_file.as_ref()))
        .set(|config, text| put(&mut config.users_file, Some(parse_path(text)))),
    option("acllog-max-len", Access, "N", "0 to 1000000")
        .help("Keep this many refusals for ACL LOG [default: 128]")
        .get(|config| config.max_refusals.to_string())
        .set(|config, text| put(&mut config.max_refusals, parse_up_to(1_000_000, text)))
        .live(),
    option("appendfsync", Durability, "WHEN", "'always', 'everysec' or 'no'")
        .help(
            "Sync the log to the disk: always (before each reply), everysec or no [default: \
            everysec]",
        )
        .get(|config| name_of(config.sync, &SYNC))
        .set(|config, text| put(&mut config.sync, named(text, &SYNC)))
        .live(),
    option("appendonly", Durability, "YES|NO", "'yes' or 'no'")
        .help(
            "Write changes to a log; with no, all data is lost when the server stops [default: \
            yes]",
        )
        .get(|config| yes(config.append_only))
        .set(|config, text| put(&mut config.append_only, parse_yes(text))),
    option("auto-aof-rewrite-min-size", Durability, "SIZE", "a memory value")
        .help(
            "Write a new snapshot and start a new log when the log reaches this size and is \
            twice as long as the last snapshot; 0 is never [default: 64mb]",
        )
        .get(|config| config.rewrite_bytes.to_string())
        .set(|config, text| put(&mut config.rewrite_bytes, parse_bytes(text)))
        .live(),
    option(
        "client-output-buffer-limit",
        Limits,
        "LIMIT",
        "'normal <hard> <soft> <seconds>', with memory values",
    )
    .help(
        "Disconnect a client when its unread replies exceed HARD bytes, or exceed SOFT bytes \
            for SECONDS: \"normal HARD SOFT SECONDS\", where 0 is no limit [default: normal 256mb \
            0 0]",
    )
    .get(|config| config.output_limit.to_string())
    .set(|config, text| put(&mut config.output_limit, text.parse().ok()))
    .live(),
    option("client-query-buffer-limit", Limits, "SIZE", "a memory value of at least 1mb")
        .help("Disconnect a client whose unfinished command takes more memory [default: 1gb]")
        .get(|config| config.max_query_bytes.to_string())
        .set(|config, text| {
            put(&mut config.max_query_bytes, parse_bytes(text).filter(|&bytes| bytes >= 1 << 20))
        })
        .live(),
    option("dir", Durability, "DIR", "a folder")
        .help(
            "Keep the log and its snapshots in this folder, which is created if it is missing \
            [default: tamis-data]",
        )
        .get(|config| config.dir.display().to_string())
        .set(|config, text| put(&mut config.dir, parse_path(text))),
    option(HASH_KEY, Access, "KEY", "'random', 'none' or 32 hexadecimal digits")
        .help(
            "Hash items of new filters with a secret key: random (drawn once, kept in --dir), \
            none, or 32 hexadecimal digits; other users of the machine can read a flag but not the \
            environment [default: random]",
        )
        .get(|config| config.hash_key.text())
        .set(|config, text| put(&mut config.hash_key, HashKey::parse(text)))
        .secret(),
    option("enable-debug-command", Monitoring, "WHO", "'no', 'local' or 'yes'")
        .help("Allow the command DEBUG: no, local (from loopback) or yes [default: no]")
        .get(|config| name_of(config.debug_command, &DEBUG_COMMAND))
        .set(|config, text| put(&mut config.debug_command, named(text, &DEBUG_COMMAND))),
    option("io-threads", Limits, "N", "0 to 1024")
        .help("Run this many threads for connections; 0 is one for each core [default: 0]")
        .get(|config| config.threads.to_string())
        .set(|config, text| put(&mut config.threads, parse_up_to(1024, text))),
    option("maxclients", Limits, "N", "1 to 4294967295")
        .help("Accept at most this many connections [default: 10000]")
        .get(|config| config.max_clients.to_string())
        .set(|config, text| {
            let clients = text.parse::<u32>().ok().filter(|&n| n > 0);
            put(&mut config.max_clients, clients.map(|n| n as usize))
        })
        .live(),
    option("maxmemory", Limits, "SIZE", "a memory value")
        .help(
            "Refuse a command that adds data (error OOM) if the memory of the server would \
            exceed this size, such as 2gb. Nothing is evicted; reads and deletes still work. \
            Units: kb, mb, gb (powers of 1024), k, m, g (powers of 1000). 0 is no limit [default: \
            0]",
        )
        .get(|config| config.max_memory_bytes.to_string())
        .set(|config, text| put(&mut config.max_memory_bytes, parse_bytes(text)))
        .live(),
    option(
        "maxmemory-policy",
        Limits,
        "POLICY",
        "noeviction: a filter without some of its items would lie",
    )
    .help(
        "Accept only noeviction, so that a configuration of Redis works. Tamis never evicts: \
            a filter without some of its items would give wrong answers [default: noeviction]",
    )
    .get(|_| "noeviction".to_owned())
    .set(|_, text| (text == "noeviction").then_some(())),
    option("metrics-max-filters", Monitoring, "N", "0 to 100000")
        .help("Publish metrics of this many filters, those nearest to their limits [default: 100]")
        .get(|config| config.metrics_max_filters.to_string())
        .set(|config, text| put(&mut config.metrics_max_filters, parse_up_to(100_000, text)))
        .live(),
    option("protected-mode", Access, "YES|NO", "'yes' or 'no'")
        .help("Refuse to listen off loopback without a password [default: yes]")
        .get(|config| yes(config.protected_mode))
        .set(|config, text| put(&mut config.protected_mode, parse_yes(text))),
    option("requirepass", Access, "PASSWORD", "text")
        .help(
            "Ask clients for this password; other users of the machine can read a flag but not \
            the environment",
        )
        .get(|config| config.password.clone())
        .set(|config, text| put(&mut config.password, Some(text.to_owned())))
        .live()
        .secret(),
    option("save", Durability, "TEXT", "empty: the log says when a snapshot is due")
        .help(
            "Accept only an empty value, so that a configuration of Redis works. Snapshots start \
            by the size of the log: see --auto-aof-rewrite-min-size",
        )
        .get(|_| String::new())
        .set(|_, text| text.is_empty().then_some(())),
    option("slowlog-log-slower-than", Monitoring, "MICROSECONDS", "a number of microseconds")
        .help(
            "List commands that take longer in SLOWLOG; 0 lists all, a negative number none \
            [default: 10000]",
        )
        .get(|config| config.slow_micros.to_string())
        .set(|config, text| put(&mut config.slow_micros, parse_integer(text.as_bytes())))
        .live(),
    option("slowlog-max-len", Monitoring, "N", "0 to 1000000")
        .help("Keep this many commands for SLOWLOG [default: 128]")
        .get(|config| config.slow_entries.to_string())
        .set(|config, text| put(&mut config.slow_entries, parse_up_to(1_000_000, text)))
        .live(),
    option("timeout", Limits, "SECONDS", "a number of seconds")
        .help("Close connections that are idle for this long; 0 keeps them [default: 0]")
        .get(|config| config.timeout_seconds.to_string())
        .set(|config, text| {
            let seconds = parse_integer(text.as_bytes());
            put(&mut config.timeout_seconds, seconds.and_then(|n| n.try_into().ok()))
        })
        .live(),
];
