//! The statistics of a server: counts, times and slow commands.

use std::collections::HashMap;

use crate::client::{Client, with_items};
use crate::data_folder;
use crate::support::{connect, serve, start, start_with};
use tamis_resp::Reply;
use tamis_testing::wait_until;

/// Returns the lines of `INFO`, by name.
fn info(client: &mut Client, sections: &[&str]) -> HashMap<String, String> {
    let words: Vec<&str> = ["INFO"].into_iter().chain(sections.iter().copied()).collect();
    let text = client.text(&words);
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Returns a field of a line such as `calls=1,usec=2`.
fn field(line: &str, name: &str) -> f64 {
    let found = line.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {line}")).parse().unwrap()
}

fn array(reply: Reply) -> Vec<Reply> {
    let Reply::Array(replies) = reply else { panic!("no array: {reply:?}") };
    replies
}

fn text(reply: &Reply) -> String {
    let Reply::Bulk(bytes) = reply else { panic!("no text: {reply:?}") };
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn calls_failures_and_refusals_are_counted_by_command() {
    let (_server, mut client) = start(2);
    client.say(&["BF.RESERVE", "k", "0.01", "1000"]);
    client.say(&["CONFIG", "RESETSTAT"]);
    // Consecutive commands that run as a batch, and commands that do not.
    for i in 0..300 {
        client.send(&["BF.ADD", "k", &i.to_string()]);
    }
    (0..300).for_each(|_| _ = client.receive());
    client.say(&with_items("BF.MEXISTS k", 0..10_000));
    client.say(&["BF.RESERVE", "k", "0.01", "1000"]);
    client.say(&["BF.RESERVE", "k"]);
    client.say(&["SET", "text", "a"]);
    client.say(&["TM.ADD", "text", "a"]);
    client.say(&["FOO"]);
    for words in [&["MULTI"][..], &["BF.ADD", "k", "a"], &["TM.ADD", "text", "a"], &["EXEC"]] {
        client.say(words);
    }
    let all = info(&mut client, &["all"]);
    for (command, calls, failed, rejected) in [
        ("bf.add", 301.0, 0.0, 0.0),
        ("bf.mexists", 1.0, 0.0, 0.0),
        ("bf.reserve", 1.0, 1.0, 1.0),
        ("tm.add", 2.0, 2.0, 0.0),
        ("exec", 1.0, 0.0, 0.0),
    ] {
        let line = &all[&format!("cmdstat_{command}")];
        assert_eq!(field(line, "calls"), calls, "{command}: {line}");
        assert_eq!(field(line, "failed_calls"), failed, "{command}: {line}");
        assert_eq!(field(line, "rejected_calls"), rejected, "{command}: {line}");
        let times = &all[&format!("latency_percentiles_usec_{command}")];
        let (middle, most) = (field(times, "p50"), field(times, "p99.9"));
        assert!(0.0 < middle && middle <= most && most < 10e6, "{command}: {times}");
    }
    assert!(!all.contains_key("cmdstat_bf.info"), "it was never called");
    assert_eq!(field(&all["errorstat_ERR"], "count"), 3.0);
    assert_eq!(field(&all["errorstat_WRONGTYPE"], "count"), 2.0);
    assert_eq!(all["total_error_replies"], "5");

    let usual = info(&mut client, &[]);
    assert!(usual.contains_key("errorstat_ERR") && usual.contains_key("used_memory"));
    assert!(!usual.keys().any(|name| name.starts_with("cmdstat") || name.starts_with("latency")));
    let commands = info(&mut client, &["CommandStats"]);
    assert!(commands.keys().all(|name| name.starts_with("cmdstat")) && commands.len() > 5);

    client.say(&["CONFIG", "RESETSTAT"]);
    let all = info(&mut client, &["everything"]);
    let counted: Vec<_> = all.keys().filter(|name| name.starts_with("cmdstat")).collect();
    assert_eq!(counted, ["cmdstat_config"], "by itself");
    assert!(!all.contains_key("errorstat_ERR"));
    assert_eq!(all["total_error_replies"], "0");
}

#[test]
fn connections_on_all_threads_count_together() {
    let server = serve(4);
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                let mut client = connect(&server);
                (0..500).for_each(|_| client.send(&["PING"]));
                (0..500).for_each(|_| _ = client.receive());
            });
        }
    });
    let all = info(&mut connect(&server), &["commandstats"]);
    assert_eq!(field(&all["cmdstat_ping"], "calls"), 4000.0);
}

#[test]
fn histograms_add_up_to_the_calls() {
    let (_server, mut client) = start(1);
    for i in 0..200 {
        client.say(&["BF.ADD", "k", &i.to_string()]);
    }
    client.say(&["SET", "a", "b"]);
    let reply = client.list(&["LATENCY", "HISTOGRAM", "BF.ADD", "bf.add", "none", "get"]);
    assert_eq!((reply.len(), text(&reply[0])), (2, "bf.add".to_owned()));
    let fields = array(reply[1].clone());
    assert_eq!((text(&fields[0]), &fields[1]), ("calls".to_owned(), &Reply::Integer(200)));
    let counts: Vec<i64> = array(fields[3].clone())
        .into_iter()
        .map(|number| if let Reply::Integer(number) = number { number } else { panic!() })
        .collect();
    let (micros, sums): (Vec<i64>, Vec<i64>) =
        counts.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    assert!(micros.iter().all(|micros| micros.count_ones() == 1), "{micros:?}");
    assert!(micros.is_sorted_by(|a, b| a < b) && sums.is_sorted_by(|a, b| a < b));
    assert_eq!(sums.last(), Some(&200));
    let all = array(client.say(&["LATENCY", "HISTOGRAM"]));
    assert!(all.contains(&Reply::bulk("set")) && all.contains(&Reply::bulk("latency")));
}

#[test]
fn slow_commands_are_listed_without_passwords() {
    let (_server, mut client) = start(1);
    client.say(&["CLIENT", "SETNAME", "tests"]);
    client.say(&["CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "5"]);
    client.say(&["SLOWLOG", "RESET"]);
    // The option holds for the command that sets it, as in Redis.
    client.say(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]);
    assert_eq!(client.say(&["SLOWLOG", "LEN"]), Reply::Integer(1));
    client.say(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    assert_eq!(client.say(&["SLOWLOG", "LEN"]), Reply::Integer(2));
    client.say(&["SLOWLOG", "RESET"]);
    client.say(&with_items("BF.MADD k", 0..50));
    client.say(&["AUTH", "secret"]);
    client.say(&["HELLO", "2", "AUTH", "default", "secret"]);
    let list = array(client.say(&["SLOWLOG", "GET", "2"]));
    let entries: Vec<Vec<Reply>> = list.into_iter().map(array).collect();
    assert_eq!(entries.len(), 2, "no more than requested");
    let words =
        |entry: &[Reply]| -> Vec<String> { array(entry[3].clone()).iter().map(text).collect() };
    assert_eq!(words(&entries[0]), ["HELLO", "2", "AUTH", "(redacted)", "(redacted)"]);
    assert_eq!(words(&entries[1]), ["AUTH", "(redacted)"]);
    assert_eq!(entries[0].len(), 6);
    let Reply::Integer(seconds) = entries[0][1] else { panic!() };
    assert!(seconds > 1_600_000_000);
    assert_eq!(text(&entries[0][4]), client.stream.local_addr().unwrap().to_string());
    assert_eq!(text(&entries[0][5]), "tests");
    let all = array(client.say(&["SLOWLOG", "GET"]));
    let madd = all.into_iter().map(array).find(|entry| words(entry)[0] == "BF.MADD").unwrap();
    assert_eq!((words(&madd).len(), &*words(&madd)[31]), (32, "... (21 more arguments)"));

    // Consecutive commands and commands of a transaction are listed one by one.
    for i in 0..20 {
        client.send(&["BF.ADD", "k", &i.to_string()]);
    }
    (0..20).for_each(|_| _ = client.receive());
    assert_eq!(client.say(&["SLOWLOG", "LEN"]), Reply::Integer(5));
    client.say(&["CONFIG", "SET", "slowlog-max-len", "100"]);
    client.say(&["SLOWLOG", "RESET"]);
    for words in [&["MULTI"][..], &["BF.ADD", "k", "a"], &["PING"], &["EXEC"]] {
        client.say(words);
    }
    let list = array(client.say(&["SLOWLOG", "GET", "-1"]));
    let names: Vec<String> =
        list.into_iter().map(|entry| words(&array(entry))[0].clone()).collect();
    assert_eq!(names, ["PING", "BF.ADD", "MULTI", "SLOWLOG"]);
    client.say(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]);
    client.say(&["SLOWLOG", "RESET"]);
    client.say(&["PING"]);
    assert_eq!(client.say(&["SLOWLOG", "LEN"]), Reply::Integer(0));
}

#[test]
fn info_reports_expiring_keys_and_commands_per_second() {
    let (_server, mut client) = start(1);
    for key in ["a", "b", "c"] {
        client.say(&["SET", key, "1"]);
    }
    client.say(&["EXPIRE", "a", "1000"]);
    client.say(&["EXPIRE", "b", "1000"]);
    client.say(&["PERSIST", "b"]);
    let reply = info(&mut client, &["keyspace"]);
    assert_eq!(reply["db0"], "keys=3,expires=1,avg_ttl=0");
    wait_until("rates are reported", || {
        client.say(&["PING"]);
        let stats = info(&mut client, &["stats"]);
        let commands: u64 = stats["instantaneous_ops_per_sec"].parse().unwrap();
        let bytes: f64 = stats["instantaneous_input_kbps"].parse().unwrap();
        commands > 0 && bytes > 0.0
    });
}

#[test]
fn info_reports_filters_of_every_kind() {
    let (_server, mut client) = start(1);
    for line in [
        "BF.RESERVE bloom 0.01 1000",
        "CF.RESERVE cuckoo 1000",
        "TM.RESERVE growing KIND growing",
        "TM.RESERVE own KIND cuckoo ITEMS 1000",
        "SET text word",
    ] {
        assert_eq!(client.ask(line), Reply::ok());
    }
    for key in ["bloom", "growing", "own"] {
        client.say(&["TM.MADD", key, "a", "b"]);
    }
    // A new filter that does not count its items.
    client.say(&["MULTI"]);
    client.say(&["TM.RESERVE", "split", "KIND", "split-block", "ITEMS", "1000"]);
    client.say(&["TM.MADD", "split", "a", "b", "c"]);
    client.say(&["EXEC"]);
    let reply = info(&mut client, &["filters"]);
    assert_eq!((reply["filters"].as_str(), reply["items"].as_str()), ("5", "9"));
    let bytes: u64 = reply["filters_memory"].parse().unwrap();
    assert!(bytes > 2000, "{bytes}");
}

#[test]
fn info_has_the_fields_that_redis_monitors_read() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, mut client) = data_folder::start(dir.path());
    client.say(&["SET", "large", &"x".repeat(1_000_000)]);
    let before = info(&mut client, &[]);
    for (name, value) in [
        ("cluster_enabled", "0"),
        ("loading", "0"),
        ("role", "master"),
        ("connected_slaves", "0"),
        ("keyspace_hits", "0"),
        ("keyspace_misses", "0"),
        ("rdb_changes_since_last_save", "1"),
        ("rdb_bgsave_in_progress", "0"),
        ("rdb_last_bgsave_status", "ok"),
        ("rdb_last_bgsave_time_sec", "-1"),
        ("aof_enabled", "1"),
        ("aof_rewrite_in_progress", "0"),
        ("aof_last_bgrewrite_status", "ok"),
        ("aof_last_write_status", "ok"),
    ] {
        assert_eq!(before.get(name).map(String::as_str), Some(value), "{name}");
    }
    let number = |lines: &HashMap<String, String>, name: &str| -> f64 {
        lines.get(name).unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
    };
    assert_eq!(before["run_id"].len(), 40);
    assert_eq!(before["run_id"], before["master_replid"]);
    assert!(number(&before, "used_memory_peak") >= 1e6);
    if cfg!(target_os = "linux") {
        assert!(number(&before, "mem_fragmentation_ratio") > 0.0);
        for name in ["used_cpu_sys", "used_cpu_user", "total_system_memory"] {
            assert!(number(&before, name) >= 0.0);
        }
    }

    client.say(&["DEL", "large"]);
    client.say(&["BF.ADD", "filter", "a"]);
    assert_eq!(client.say(&["SAVE"]), Reply::ok());
    client.say(&["SET", "text", "1"]);
    // Each of several consecutive commands counts once, and so does a long command; writers count
    // nothing.
    for key in ["filter", "none"] {
        for _ in 0..3 {
            client.send(&["BF.EXISTS", key, "a"]);
        }
        client.send(&with_items(&format!("BF.MEXISTS {key}"), 0..10_000));
        (0..4).for_each(|_| _ = client.receive());
    }
    client.say(&["GET", "text"]);
    client.say(&["GET", "none"]);
    client.say(&["MGET", "text", "none", "text"]);
    client.say(&["EXISTS", "text", "none"]);
    client.say(&["SET", "text", "2"]);
    let after = info(&mut client, &["everything"]);
    assert_eq!((after["keyspace_hits"].as_str(), after["keyspace_misses"].as_str()), ("8", "7"));
    assert_eq!(after["rdb_saves"], "1");
    assert_eq!(after["rdb_last_bgsave_time_sec"], "0");
    assert_eq!(after["rdb_changes_since_last_save"], "2");
    assert!(number(&after, "used_memory") < 1e6 && number(&after, "used_memory_peak") >= 1e6);
    client.say(&["CONFIG", "RESETSTAT"]);
    let reset = info(&mut client, &["stats"]);
    assert_eq!((reset["keyspace_hits"].as_str(), reset["keyspace_misses"].as_str()), ("0", "0"));
}

#[test]
fn every_command_with_subcommands_has_help_and_describes_them() {
    let (_server, mut client) = start(1);
    let names: Vec<String> = array(client.say(&["COMMAND", "LIST"])).iter().map(text).collect();
    for command in tamis_commands::COMMANDS {
        let name = command.name.to_ascii_lowercase();
        assert!(names.contains(&name), "{name}");
        if command.subcommands.is_empty() {
            continue;
        }
        let lines = array(client.say(&[command.name, "help"]));
        let Reply::Simple(first) = &lines[0] else { panic!("{lines:?}") };
        let start =
            format!("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", command.name);
        assert_eq!(*first, start);
        // One line for the syntax and one for the description.
        assert_eq!(lines.len(), 1 + 2 * command.subcommands.len());

        let row = array(array(client.say(&["COMMAND", "INFO", &name])).remove(0));
        assert_eq!(array(row[9].clone()).len(), command.subcommands.len());
        for subcommand in command.subcommands {
            let full = format!("{name}|{}", subcommand.name.to_ascii_lowercase());
            assert!(names.contains(&full), "{full}");
            let row = array(array(client.say(&["COMMAND", "INFO", &full])).remove(0));
            assert_eq!(text(&row[0]), full);
            assert_eq!(row[1], Reply::Integer(subcommand.arity.number()));
            let docs = array(client.say(&["COMMAND", "DOCS", &full]));
            assert_eq!(text(&docs[0]), full);
            assert!(array(docs[1].clone()).contains(&Reply::bulk(subcommand.summary)));
            if !subcommand.arity.takes(100) {
                let words = [command.name, subcommand.name].into_iter().chain(["x"; 98]);
                let wrong = format!("ERR wrong number of arguments for '{full}' command");
                assert_eq!(client.say(&words.collect::<Vec<_>>()), Reply::error(wrong));
            }
        }
        let unknown = format!("ERR unknown subcommand 'x'. Try {} HELP.", command.name);
        assert_eq!(client.say(&[command.name, "x"]), Reply::error(unknown));
    }
    let count = array(client.say(&["COMMAND"])).len();
    assert_eq!(client.say(&["COMMAND", "COUNT"]), Reply::Integer(count as i64));
    assert_eq!(client.list(&["COMMAND", "INFO", "config|none"]), [Reply::NullArray]);
}

#[test]
fn command_list_filters_by_module_category_and_pattern() {
    let (_server, mut client) = start(1);
    let mut list = |words: &str| -> Vec<String> {
        let names = array(client.ask(&format!("COMMAND LIST {words}")));
        let mut names: Vec<String> = names.iter().map(text).collect();
        names.sort();
        names
    };
    assert_eq!(list("FILTERBY PATTERN SETB*"), ["setbit"]);
    let config = ["config|get", "config|help", "config|resetstat", "config|rewrite", "config|set"];
    assert_eq!(list("filterby pattern config|*"), config);
    let transactions = ["discard", "exec", "multi", "unwatch", "watch"];
    assert_eq!(list("FILTERBY ACLCAT Transaction"), transactions);
    let module = list("FILTERBY MODULE bf");
    assert!(module.contains(&"bf.add".to_owned()) && !module.contains(&"get".to_owned()));
    for none in ["FILTERBY ACLCAT @transaction", "FILTERBY ACLCAT none", "FILTERBY MODULE none"] {
        assert!(list(none).is_empty(), "{none}");
    }
    for wrong in ["FILTERBY MODULE", "FILTERBY NAME get", "get", "FILTERBY PATTERN get more"] {
        let reply = client.ask(&format!("COMMAND LIST {wrong}"));
        assert_eq!(reply, Reply::error("ERR syntax error"), "{wrong}");
    }
}

fn simple(reply: &Reply) -> String {
    let Reply::Simple(text) = reply else { panic!("no line: {reply:?}") };
    text.to_string()
}

#[test]
fn a_monitor_sees_the_commands_of_all_clients() {
    let (server, mut client) = start(2);
    let mut monitor = connect(&server);
    assert_eq!(monitor.say(&["MONITOR"]), Reply::ok());
    let commands = [
        "SET a \"b",
        "BF.ADD f 1",
        "BF.ADD f 2",
        "BF.MEXISTS f 1 2",
        "MULTI",
        "INCR n",
        "GET none",
        "EXEC",
        "EXEC",
        "MULTI",
        "DISCARD",
        "ECHO end",
    ];
    for command in commands {
        client.send(&command.split(' ').collect::<Vec<_>>());
    }
    (0..commands.len()).for_each(|_| _ = client.receive());
    // The monitor shows neither commands of an operator nor refused commands.
    client.say(&["CONFIG", "GET", "port"]);
    client.say(&["GET"]);
    client.say(&["AUTH", "default", "secret"]);
    let peer = client.stream.local_addr().unwrap();
    let mut seen = Vec::new();
    for _ in 0..=commands.len() {
        let line = simple(&monitor.receive());
        let (_, shown) =
            line.split_once(&format!(" [0 {peer}] ")).unwrap_or_else(|| panic!("{line}"));
        seen.push(shown.to_owned());
    }
    let expected = [
        r#""SET" "a" "\"b""#,
        r#""BF.ADD" "f" "1""#,
        r#""BF.ADD" "f" "2""#,
        r#""BF.MEXISTS" "f" "1" "2""#,
        r#""MULTI""#,
        r#""INCR" "n""#,
        r#""GET" "none""#,
        // MONITOR shows EXEC after the commands that it runs, even if EXEC fails.
        r#""EXEC""#,
        r#""EXEC""#,
        r#""MULTI""#,
        r#""DISCARD""#,
        r#""ECHO" "end""#,
        r#""AUTH" "(redacted)" "(redacted)""#,
    ];
    assert_eq!(seen, expected);
    // The monitor may still run commands, and RESET ends the monitoring.
    assert_eq!(monitor.say(&["GET", "none"]), Reply::Null);
    assert_eq!(monitor.say(&["RESET"]), Reply::simple("RESET"));
    client.say(&["PING"]);
    assert_eq!(monitor.say(&["PING"]), Reply::simple("PONG"));
}

#[test]
fn a_monitor_that_loses_its_permission_is_disconnected() {
    let (server, mut admin) = start(2);
    let set = |admin: &mut Client, rules: &str| {
        assert_eq!(admin.ask(&format!("ACL SETUSER m {rules}")), Reply::ok());
    };
    for end in ["-monitor", "-@all", "off", "DELUSER"] {
        set(&mut admin, "reset on nopass ~* +@all");
        let mut monitor = connect(&server);
        assert_eq!(monitor.say(&["AUTH", "m", "x"]), Reply::ok());
        assert_eq!(monitor.say(&["MONITOR"]), Reply::ok());
        // A change that keeps the permission does not affect the monitor.
        set(&mut admin, "-get");
        admin.say(&["SET", "a", "b"]);
        assert!(simple(&monitor.receive()).ends_with(r#""SET" "a" "b""#));
        match end {
            "DELUSER" => assert_eq!(admin.say(&["ACL", "DELUSER", "m"]), Reply::Integer(1)),
            rule => set(&mut admin, rule),
        }
        // The connection ends at once, not with the next command of another client.
        assert_eq!(monitor.try_receive(), None, "{end}");
    }
}

#[test]
fn debug_reload_keeps_every_value_and_is_off_by_default() {
    let (server, mut client) = start(1);
    let refusal = client.refused(&["DEBUG", "RELOAD"]);
    assert!(refusal.contains("enable-debug-command"), "{refusal}");
    drop(server);

    let dir = tempfile::tempdir().unwrap();
    let mut config = data_folder::config(dir.path());
    config.set("enable-debug-command", "local").unwrap();
    let (_server, mut client) = start_with(config);
    for words in [
        "SET text hello",
        "SETEX timed 10000 x",
        "BF.MADD grown a b c",
        "BF.RESERVE reserved 0.01 1000",
        "BF.MADD reserved a b c",
        "CF.INSERT cuckoo ITEMS a b c",
        "TM.RESERVE counts KIND counting ITEMS 100",
        "TM.MADD counts a b c",
    ] {
        client.ask(words);
    }
    let keys = ["text", "timed", "grown", "reserved", "cuckoo", "counts"];
    let dumps = |client: &mut Client| keys.map(|key| client.say(&["DUMP", key]));
    let times = |client: &mut Client| keys.map(|key| client.say(&["PEXPIRETIME", key]));
    let before = (dumps(&mut client), times(&mut client));
    assert_eq!(client.say(&["DEBUG", "RELOAD"]), Reply::ok());
    assert_eq!(client.say(&["DEBUG", "RELOAD", "NOSAVE"]), Reply::ok());
    assert_eq!((dumps(&mut client), times(&mut client)), before);
    assert_eq!(info(&mut client, &["persistence"])["rdb_saves"], "1");
}
