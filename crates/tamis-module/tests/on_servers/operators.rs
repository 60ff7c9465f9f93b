//! What operators see: access rights, parameters, documentation, events, refusals.

use tamis_commands::{COMMANDS, Flag};
use tamis_resp::Reply;

use crate::client::Client;
use crate::server::{Host, TestServer, module, redisbloom};
use crate::status::{array, assert_refused, bulk, info, run};

#[test]
fn every_row_of_a_module_is_a_command_with_its_arity_flags_and_syntax() {
    for (host, _server, mut client) in TestServer::each(&[]) {
        for command in COMMANDS.iter().filter(|command| command.has(Flag::Module)) {
            let infos = array(client.say(&["COMMAND", "INFO", command.name]));
            let [Reply::Array(info)] = &infos[..] else { panic!("{host:?}, {}", command.name) };
            assert_eq!(info[1], Reply::Integer(command.arity.number()), "{}", command.name);
            let (Reply::Array(flags) | Reply::Set(flags)) = &info[2] else { panic!() };
            for flag in command.flags.iter().filter_map(|flag| flag.name()) {
                // The module registers a command that may change its key as a write.
                let flag = if command.may_change() && flag == "readonly" { "write" } else { flag };
                let has = flags.contains(&Reply::simple(flag));
                assert!(has, "{host:?}, {}: {flag} is missing in {flags:?}", command.name);
            }
            assert_eq!(info[3], Reply::Integer(command.keys.first as i64), "{}", command.name);
            let docs = client.list(&["COMMAND", "DOCS", command.name]);
            let summary = field(&docs[1], "summary");
            assert_eq!(summary, Some(&Reply::bulk(command.summary)), "{host:?}, {}", command.name);
            let arguments = field(&docs[1], "arguments");
            let shown = arguments.map(|it| syntax(it, " ")).unwrap_or_default();
            assert_eq!(shown, command.syntax, "{host:?}, {}", command.name);
        }
    }
}

/// Returns a field of an array of names and values.
fn field<'r>(fields: &'r Reply, name: &str) -> Option<&'r Reply> {
    let Reply::Array(fields) = fields else { panic!("{fields:?}") };
    let mut pairs = fields.chunks(2);
    pairs.find(|pair| pair[0] == Reply::bulk(name)).map(|pair| &pair[1])
}

/// Returns the syntax of the arguments in a reply of `COMMAND DOCS`.
fn syntax(arguments: &Reply, separator: &str) -> String {
    let Reply::Array(arguments) = arguments else { panic!("{arguments:?}") };
    let one = |argument: &Reply| {
        let text = |name| {
            field(argument, name)
                .map(|it| String::from_utf8(bulk(it.clone())).unwrap())
                .unwrap_or_default()
        };
        let parts = |separator| syntax(field(argument, "arguments").unwrap(), separator);
        let value = match text("type").as_str() {
            "pure-token" => String::new(),
            "oneof" => parts(" | "),
            "block" => parts(" "),
            kind => {
                let name = text("name");
                let is_key = ["key", "destination", "source", "other"].contains(&name.as_str());
                assert_eq!(kind, if is_key { "key" } else { "string" });
                name
            }
        };
        let flags = format!("{:?}", field(argument, "flags"));
        let more =
            if flags.contains("multiple") { format!(" [{value} ...]") } else { String::new() };
        let all = format!("{} {value}{more}", text("token")).trim().to_owned();
        if flags.contains("optional") { format!("[{all}]") } else { all }
    };
    arguments.iter().map(one).collect::<Vec<_>>().join(separator)
}

#[test]
fn keys_are_found_for_access_rights_and_clusters() {
    for (host, _server, mut client) in TestServer::each(&[]) {
        for (line, keys) in [
            ("BF.ADD k item", "k"),
            ("BF.INSERT k ITEMS a b", "k"),
            ("TM.MERGE to a b c", "to a b c"),
            ("TM.RESERVE k LIKE other", "k other"),
            ("TM.RESERVE k KIND growing", "k"),
        ] {
            let expected = keys.split(' ').map(Reply::bulk).collect();
            let found = run(&mut client, &format!("COMMAND GETKEYS {line}"));
            assert_eq!(found, Reply::Array(expected), "{host:?}, {line}");
        }
    }
}

#[test]
fn users_may_get_a_category() {
    // Redis has categories of modules since 7.4; Valkey 9 has them.
    let server = TestServer::start(Host::Valkey, &[]);
    let mut client = server.connect();
    for command in ["ACL SETUSER reader on nopass ~* +@bloom -@write", "AUTH reader x"] {
        assert_eq!(run(&mut client, command), Reply::ok());
    }
    assert_eq!(client.say(&["BF.EXISTS", "k", "a"]), Reply::Integer(0));
    for command in ["BF.ADD k a", "CF.EXISTS k a", "TM.EXISTS k a"] {
        assert_refused(&mut client, command, "NOPERM");
    }
}

fn assert_setting(client: &mut Client, name: &str, value: &str) {
    let name = format!("tamis.{name}");
    let found = run(client, &format!("CONFIG GET {name}"));
    assert_eq!(found, Reply::Array([&*name, value].map(Reply::bulk).to_vec()));
}

#[test]
fn parameters_are_set_by_arguments_files_and_commands() {
    let module = module().display().to_string();
    for host in Host::ALL {
        let arguments = ["--loadmodule", &module, "bf-layout", "redisbloom", "ERROR_RATE", "0.02"];
        let server = TestServer::start_with(host, &arguments, &[]);
        let mut client = server.connect();
        assert_setting(&mut client, "bf-layout", "redisbloom");
        assert_setting(&mut client, "bf-error-rate", "0.02");
        assert_setting(&mut client, "cf-bucket-size", "2");
        assert_eq!(run(&mut client, "CONFIG SET tamis.bf-error-rate 0.5"), Reply::ok());
        assert_setting(&mut client, "bf-error-rate", "0.25");
        let reason = "Value for `bf-initial-size` must be in the range [1, 1073741824]";
        let refused = client.ask("CONFIG SET tamis.bf-initial-size 0");
        assert!(matches!(&refused, Reply::Error(text) if text.contains(reason)), "{refused:?}");
        assert_eq!(client.say(&["BF.ADD", "k", "a"]), Reply::Integer(1));
        assert_eq!(client.say(&["TYPE", "k"]), Reply::simple("MBbloom--"));
        assert_eq!(info(&mut client, "tamis_redisbloom_bloom_filters"), "1");
    }
}

#[test]
fn a_rewritten_configuration_file_takes_precedence_over_arguments() {
    let module = module().display().to_string();
    for host in Host::ALL {
        let arguments = ["bf-error-rate", "0.02", "cf-initial-size", "10", "cf-bucket-size", "5"];
        let arguments: Vec<&str> = ["--loadmodule", &module].into_iter().chain(arguments).collect();
        let mut server = TestServer::start_with(host, &arguments, &[]);
        let mut client = server.connect();
        // The default, and values that need each other.
        let expected = [
            ("bf-error-rate", "0.01"),
            ("cf-bucket-size", "1"),
            ("cf-initial-size", "2"),
            ("bf-layout", "redisbloom"),
        ];
        for (name, value) in expected {
            run(&mut client, &format!("CONFIG SET tamis.{name} {value}"));
        }
        run(&mut client, "CONFIG REWRITE");
        server.restart_from_file();
        let mut client = server.connect();
        for (name, value) in expected {
            assert_setting(&mut client, name, value);
        }
        // An argument without a line in the file stays.
        run(&mut client, "CONFIG SET tamis.bf-error-rate 0.02");
        run(&mut client, "CONFIG REWRITE");
        server.restart_from_file();
        assert_setting(&mut server.connect(), "bf-error-rate", "0.02");
    }
}

#[test]
fn a_new_filter_is_within_maxmemory() {
    for (host, _server, mut client) in TestServer::each(&["--maxmemory", "30mb"]) {
        run(&mut client, "TM.RESERVE source KIND split-block MEMORY 20000000");
        run(&mut client, "SET kept text");
        for policy in ["noeviction", "allkeys-lru"] {
            run(&mut client, &format!("CONFIG SET maxmemory-policy {policy}"));
            run(&mut client, "CONFIG SET tamis.bf-initial-size 200000000");
            for layout in ["tamis", "redisbloom"] {
                run(&mut client, &format!("CONFIG SET tamis.bf-layout {layout}"));
                for command in [
                    "BF.RESERVE k 0.01 200000000",
                    "BF.INSERT k CAPACITY 200000000 ITEMS a",
                    "CF.RESERVE k 200000000",
                    "CF.INSERT k CAPACITY 200000000 ITEMS a",
                    "TM.RESERVE k KIND split-block MEMORY 200000000",
                    "TM.RESERVE k KIND cuckoo ITEMS 200000000",
                    "TM.RESERVE k KIND window WINDOW 1000 ITEMS 200000000",
                ] {
                    assert_refused(&mut client, command, "OOM");
                }
            }
            assert_refused(&mut client, "BF.ADD k a", "");
            // A header without bits.
            let mut header = [0; 38];
            for (at, number) in [(8, 1_u64 << 27), (24, 1)] {
                header[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            header[32..].copy_from_slice(&[1, 0, 20, 0, 1, 0]);
            client.refused(&[&b"CF.LOADCHUNK"[..], b"k", b"1", &header]);
            if policy == "noeviction" {
                assert_refused(&mut client, "TM.RESERVE like LIKE source", "");
                assert_refused(&mut client, "TM.MERGE merged source", "");
            }
            let found = run(&mut client, "EXISTS source kept");
            assert_eq!(found, Reply::Integer(2), "{host:?}, {policy}: nothing was evicted");
            assert_eq!(run(&mut client, "DBSIZE"), Reply::Integer(2), "{host:?}, {policy}");
        }
        // With eviction, a filter may take the memory of other keys.
        assert_eq!(run(&mut client, "BF.RESERVE k 0.01 15000000"), Reply::ok(), "{host:?}");
    }
}

#[test]
fn wrong_arguments_and_redisbloom_keep_the_module_from_loading() {
    let module = module().display().to_string();
    let server = TestServer::start_with(Host::Redis, &[], &["--enable-module-command", "yes"]);
    let mut client = server.connect();
    for (arguments, reason) in [
        (&["hash-key"][..], "the argument hash-key of loadmodule has no value"),
        (&["hash-key", "0123"], "use random, none or 32 hex digits"),
        (&["colour", "red"], "argument colour of loadmodule: there is no such setting"),
        (&["bf-error-rate", "2"], "must be in the range (0.000000, 1.000000)"),
    ] {
        let words = ["MODULE", "LOAD", &module].into_iter().chain(arguments.iter().copied());
        client.refused(&words.collect::<Vec<_>>());
        assert!(server.log().contains(reason), "{arguments:?}: {}", server.log());
    }
    let redisbloom = redisbloom().display().to_string();
    assert_eq!(client.say(&["MODULE", "LOAD", &redisbloom]), Reply::ok());
    client.refused(&["MODULE", "LOAD", &module]);
    let steps = "start the server without redisbloom.so and with libtamis.so";
    assert!(server.log().contains(steps), "{}", server.log());
    assert_eq!(client.say(&["PING"]), Reply::simple("PONG"));
}

#[test]
fn changes_are_events_and_break_a_watch() {
    for host in Host::ALL {
        let server = TestServer::start(host, &["--notify-keyspace-events", "Kd"]);
        let (mut client, mut listener) = (server.connect(), server.connect());
        listener.say(&["PSUBSCRIBE", "*"]);
        client.say(&["BF.ADD", "k", "a"]);
        // A repeated item changes nothing.
        client.say(&["BF.ADD", "k", "a"]);
        client.say(&["CF.ADD", "c", "a"]);
        for (key, event) in [("k", "bf.add"), ("c", "cf.add")] {
            let Reply::Array(message) = listener.receive() else { panic!() };
            let expected = (Reply::bulk(format!("__keyspace@0__:{key}")), Reply::bulk(event));
            assert_eq!((message[2].clone(), message[3].clone()), expected, "{host:?}");
        }
        let mut other = server.connect();
        for (item, is_kept) in [("a", true), ("b", false)] {
            client.say(&["WATCH", "k"]);
            other.say(&["BF.ADD", "k", item]);
            client.say(&["MULTI"]);
            client.say(&["BF.EXISTS", "k", "a"]);
            let ran = matches!(client.say(&["EXEC"]), Reply::Array(_));
            assert_eq!(ran, is_kept, "{host:?}, {item}");
        }
    }
}

#[test]
fn commands_run_in_scripts_and_transactions() {
    for (host, _server, mut client) in TestServer::each(&[]) {
        let script = "return redis.call('BF.MADD', KEYS[1], 'a', 'b', 'a')";
        let expected = Reply::Array([1, 1, 0].map(Reply::Integer).to_vec());
        assert_eq!(client.say(&["EVAL", script, "1", "k"]), expected, "{host:?}");
        client.say(&["MULTI"]);
        client.say(&["BF.ADD", "k", "c"]);
        client.say(&["BF.CARD", "k"]);
        let expected = Reply::Array([1, 3].map(Reply::Integer).to_vec());
        assert_eq!(client.say(&["EXEC"]), expected, "{host:?}");
    }
}
