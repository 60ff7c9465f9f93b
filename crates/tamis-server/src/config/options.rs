//! The options of the server itself, one row each.

use tamis_commands::parse_integer;

use crate::config::DebugCommand;
use crate::config::config_option::{ConfigOption, DEFAULT_ROW, OptionGroup};
use crate::config::hash_key::HashKey;
use crate::config::values::{
    name_of, named, parse_bytes, parse_path, parse_up_to, parse_yes, put, shown_path, yes,
};
use crate::persistence::FsyncPolicy;

/// The option whose value clients never see.
pub(super) const HASH_KEY: &str = "hash-key";

const SYNC: [(FsyncPolicy, &str); 3] = [
    (FsyncPolicy::Always, "always"),
    (FsyncPolicy::EverySecond, "everysec"),
    (FsyncPolicy::Never, "no"),
];

const DEBUG_COMMAND: [(DebugCommand, &str); 3] =
    [(DebugCommand::No, "no"), (DebugCommand::Local, "local"), (DebugCommand::Yes, "yes")];

pub(super) static OPTIONS: [ConfigOption; 21] = [
    ConfigOption {
        name: "aclfile",
        group: OptionGroup::Access,
        value: "FILE",
        help: "Read users and their permissions from this file, with one line \"user name rule \
            ...\" per user",
        expected: "a file, or empty for none",
        get: |config| shown_path(config.users_file.as_ref()),
        set: |config, text| put(&mut config.users_file, Some(parse_path(text))),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "acllog-max-len",
        group: OptionGroup::Access,
        value: "N",
        help: "Keep this many refusals for ACL LOG [default: 128]",
        is_live: true,
        expected: "0 to 1000000",
        get: |config| config.max_refusals.to_string(),
        set: |config, text| put(&mut config.max_refusals, parse_up_to(1_000_000, text)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "appendfsync",
        group: OptionGroup::Durability,
        value: "WHEN",
        help: "Sync the log to the disk: always (before each reply), everysec or no [default: \
            everysec]",
        is_live: true,
        expected: "'always', 'everysec' or 'no'",
        get: |config| name_of(config.sync, &SYNC),
        set: |config, text| put(&mut config.sync, named(text, &SYNC)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "appendonly",
        group: OptionGroup::Durability,
        value: "YES|NO",
        help: "Write changes to a log; with no, all data is lost when the server stops [default: \
            yes]",
        expected: "'yes' or 'no'",
        get: |config| yes(config.append_only),
        set: |config, text| put(&mut config.append_only, parse_yes(text)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "auto-aof-rewrite-min-size",
        group: OptionGroup::Durability,
        value: "SIZE",
        help: "Write a new snapshot and start a new log when the log reaches this size and is \
            twice as long as the last snapshot; 0 is never [default: 64mb]",
        is_live: true,
        expected: "a memory value",
        get: |config| config.rewrite_bytes.to_string(),
        set: |config, text| put(&mut config.rewrite_bytes, parse_bytes(text)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "client-output-buffer-limit",
        group: OptionGroup::Limits,
        value: "LIMIT",
        help: "Disconnect a client when its unread replies exceed HARD bytes, or exceed SOFT bytes \
            for SECONDS: \"normal HARD SOFT SECONDS\", where 0 is no limit [default: normal 256mb \
            0 0]",
        is_live: true,
        expected: "'normal <hard> <soft> <seconds>', with memory values",
        get: |config| config.output_limit.to_string(),
        set: |config, text| put(&mut config.output_limit, text.parse().ok()),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "client-query-buffer-limit",
        group: OptionGroup::Limits,
        value: "SIZE",
        help: "Disconnect a client whose unfinished command takes more memory [default: 1gb]",
        is_live: true,
        expected: "a memory value of at least 1mb",
        get: |config| config.max_query_bytes.to_string(),
        set: |config, text| {
            put(&mut config.max_query_bytes, parse_bytes(text).filter(|&bytes| bytes >= 1 << 20))
        },
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "dir",
        group: OptionGroup::Durability,
        value: "DIR",
        help: "Keep the log and its snapshots in this folder, which is created if it is missing \
            [default: tamis-data]",
        expected: "a folder",
        get: |config| config.dir.display().to_string(),
        set: |config, text| put(&mut config.dir, parse_path(text)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: HASH_KEY,
        group: OptionGroup::Access,
        value: "KEY",
        help: "Hash items of new filters with a secret key: random (drawn once, kept in --dir), \
            none, or 32 hexadecimal digits; other users of the machine can read a flag but not the \
            environment [default: random]",
        is_secret: true,
        expected: "'random', 'none' or 32 hexadecimal digits",
        get: |config| config.hash_key.text(),
        set: |config, text| put(&mut config.hash_key, HashKey::parse(text)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "enable-debug-command",
        group: OptionGroup::Monitoring,
        value: "WHO",
        help: "Allow the command DEBUG: no, local (from loopback) or yes [default: no]",
        expected: "'no', 'local' or 'yes'",
        get: |config| name_of(config.debug_command, &DEBUG_COMMAND),
        set: |config, text| put(&mut config.debug_command, named(text, &DEBUG_COMMAND)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "io-threads",
        group: OptionGroup::Limits,
        value: "N",
        help: "Run this many threads for connections; 0 is one for each core [default: 0]",
        expected: "0 to 1024",
        get: |config| config.threads.to_string(),
        set: |config, text| put(&mut config.threads, parse_up_to(1024, text)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "maxclients",
        group: OptionGroup::Limits,
        value: "N",
        help: "Accept at most this many connections [default: 10000]",
        is_live: true,
        expected: "1 to 4294967295",
        get: |config| config.max_clients.to_string(),
        set: |config, text| {
            let clients = text.parse::<u32>().ok().filter(|&n| n > 0);
            put(&mut config.max_clients, clients.map(|n| n as usize))
        },
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "maxmemory",
        group: OptionGroup::Limits,
        value: "SIZE",
        help: "Refuse a command that adds data (error OOM) if the memory of the server would \
            exceed this size, such as 2gb. Nothing is evicted; reads and deletes still work. \
            Units: kb, mb, gb (powers of 1024), k, m, g (powers of 1000). 0 is no limit [default: \
            0]",
        is_live: true,
        expected: "a memory value",
        get: |config| config.max_memory_bytes.to_string(),
        set: |config, text| put(&mut config.max_memory_bytes, parse_bytes(text)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "maxmemory-policy",
        group: OptionGroup::Limits,
        value: "POLICY",
        help: "Accept only noeviction, so that a configuration of Redis works. Tamis never evicts: \
            a filter without some of its items would give wrong answers [default: noeviction]",
        expected: "noeviction: a filter without some of its items would lie",
        get: |_| "noeviction".to_owned(),
        set: |_, text| (text == "noeviction").then_some(()),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "metrics-max-filters",
        group: OptionGroup::Monitoring,
        value: "N",
        help: "Publish metrics of this many filters, those nearest to their limits [default: 100]",
        is_live: true,
        expected: "0 to 100000",
        get: |config| config.metrics_max_filters.to_string(),
        set: |config, text| put(&mut config.metrics_max_filters, parse_up_to(100_000, text)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "protected-mode",
        group: OptionGroup::Access,
        value: "YES|NO",
        help: "Refuse to listen off loopback without a password [default: yes]",
        expected: "'yes' or 'no'",
        get: |config| yes(config.protected_mode),
        set: |config, text| put(&mut config.protected_mode, parse_yes(text)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "requirepass",
        group: OptionGroup::Access,
        value: "PASSWORD",
        help: "Ask clients for this password; other users of the machine can read a flag but not \
            the environment",
        is_live: true,
        is_secret: true,
        expected: "text",
        get: |config| config.password.clone(),
        set: |config, text| put(&mut config.password, Some(text.to_owned())),
    },
    ConfigOption {
        name: "save",
        group: OptionGroup::Durability,
        value: "TEXT",
        help: "Accept only an empty value, so that a configuration of Redis works. Snapshots start \
            by the size of the log: see --auto-aof-rewrite-min-size",
        expected: "empty: the log says when a snapshot is due",
        get: |_| String::new(),
        set: |_, text| text.is_empty().then_some(()),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "slowlog-log-slower-than",
        group: OptionGroup::Monitoring,
        value: "MICROSECONDS",
        help: "List commands that take longer in SLOWLOG; 0 lists all, a negative number none \
            [default: 10000]",
        is_live: true,
        expected: "a number of microseconds",
        get: |config| config.slow_micros.to_string(),
        set: |config, text| put(&mut config.slow_micros, parse_integer(text.as_bytes())),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "slowlog-max-len",
        group: OptionGroup::Monitoring,
        value: "N",
        help: "Keep this many commands for SLOWLOG [default: 128]",
        is_live: true,
        expected: "0 to 1000000",
        get: |config| config.slow_entries.to_string(),
        set: |config, text| put(&mut config.slow_entries, parse_up_to(1_000_000, text)),
        ..DEFAULT_ROW
    },
    ConfigOption {
        name: "timeout",
        group: OptionGroup::Limits,
        value: "SECONDS",
        help: "Close connections that are idle for this long; 0 keeps them [default: 0]",
        is_live: true,
        expected: "a number of seconds",
        get: |config| config.timeout_seconds.to_string(),
        set: |config, text| {
            let seconds = parse_integer(text.as_bytes());
            put(&mut config.timeout_seconds, seconds.and_then(|n| n.try_into().ok()))
        },
        ..DEFAULT_ROW
    },
];
