//! `tamis serve` as a program: options, signals, and the end by `kill -9`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::client::Client;
use crate::program::{Ended, tamis};
use crate::server::Program;
use tamis_resp::Reply;
use tamis_testing::{CommandExt as _, Process, wait_until};

/// Returns the error line of `tamis serve` with these words.
fn refused(words: &str) -> String {
    refused_with(&format!("serve {words}"), &[])
}

/// Returns the error line of a command line with these environment variables.
fn refused_with(line: &str, environment: &[(&str, &str)]) -> String {
    let ended = Ended::of(line, tamis(line).envs(environment.iter().copied()).run());
    ended.has_status(2);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    ended.stderr
}

#[test]
fn wrong_options_are_refused_in_one_line() {
    for (arguments, expected) in [
        ("--port x", "--port x"),
        ("--bind local/host", "IP addresses, or host names"),
        ("--bind 0.0.0.0", "--requirepass"),
        ("--maxmemory 1x", "memory value"),
        ("--appendfsync sometimes", "everysec"),
        ("--colour red", "--colour"),
        ("--bf-error-rate 2", "range (0.000000, 1.000000)"),
        ("--maxmemory-policy allkeys-lru", "noeviction"),
        ("--config /nonexistent.toml", "/nonexistent.toml"),
        ("--dir /dev/null/x", "/dev/null/x"),
        ("--aclfile /nonexistent.acl", "/nonexistent.acl: cannot be read"),
        ("--aclfile /dev/null/x", "/dev/null/x: cannot be read"),
        ("--tls-port 0", "tls-cert-file: missing"),
        ("--tls-port 0 --tls-cert-file /x.pem --tls-key-file /x.key", "/x.pem: cannot be read"),
        ("--port no", "--tls-port"),
    ] {
        let text = refused(arguments);
        assert!(text.starts_with("tamis: ") && text.contains(expected), "{arguments:?}: {text}");
        assert!(!text.contains("os error"), "{arguments:?}: {text}");
    }
}

#[test]
fn a_wrong_value_of_the_environment_is_refused_by_its_variable() {
    for option in tamis_server::Config::options() {
        // Options that accept any text, for example file names, reject no value.
        let value = "no/such\u{1}value";
        if tamis_server::Config::default().set(option.name, value).is_ok() {
            continue;
        }
        let variable = format!("TAMIS_{}", option.name.replace('-', "_").to_uppercase());
        let text = refused_with("serve", &[(&variable, value)]);
        // A message escapes control characters.
        let value = value.replace('\u{1}', "\\u{1}");
        let shown = if option.is_secret { variable } else { format!("{variable}={value}") };
        assert!(text.starts_with(&format!("tamis: {shown}: ")), "{text}");
        assert!(!text.contains("--"), "{text}");
    }
    for (variable, value, expected) in [
        ("TAMIS_MAXMEMORY", "zz", "TAMIS_MAXMEMORY=zz: argument must be a memory value"),
        ("TAMIS_HASH_KEY", "secret", "TAMIS_HASH_KEY: argument must be"),
        ("TAMIS_LOGLEVEL", "zz", "invalid value 'zz' for 'TAMIS_LOGLEVEL'"),
        ("TAMIS_LOG_FORMAT", "zz", "invalid value 'zz' for 'TAMIS_LOG_FORMAT'"),
        ("TAMIS_DIR", "/dev/null/x", "TAMIS_DIR: /dev/null/x"),
    ] {
        let text = refused_with("serve --port 0 --http-port no", &[(variable, value)]);
        assert!(text.starts_with(&format!("tamis: {expected}")), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
    // A global flag may precede the command.
    for flag in ["--quiet", "--no-progress"] {
        let text = refused_with(&format!("{flag} serve"), &[("TAMIS_LOGLEVEL", "zz")]);
        assert!(text.starts_with("tamis: invalid value 'zz' for 'TAMIS_LOGLEVEL'"), "{text}");
    }
    // A flag overrides its variable.
    for (arguments, variable, expected) in [
        ("--maxmemory zz", "TAMIS_MAXMEMORY", "--maxmemory zz: "),
        ("--loglevel zz", "TAMIS_LOGLEVEL", "invalid value 'zz' for '--loglevel <LEVEL>'"),
        ("--log-format=zz --quiet", "TAMIS_LOG_FORMAT", "invalid value 'zz' for '--log-format"),
    ] {
        let text = refused_with(&format!("serve {arguments}"), &[(variable, "yy")]);
        assert!(text.starts_with(&format!("tamis: {expected}")), "{text}");
    }
}

#[test]
fn a_bad_data_folder_is_shown_with_the_option_that_the_user_gave() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tamis.toml");
    std::fs::write(&file, "dir = \"/dev/null/x\"\nport = 0\nhttp-port = false\n").unwrap();
    let file = file.to_str().unwrap();
    assert!(refused(&format!("--config {file}")).starts_with("tamis: /dev/null/x"));
    let text = refused(&format!("--config {file} --dir /dev/null/y"));
    assert!(text.starts_with("tamis: --dir: /dev/null/y"), "{text}");
    // The default folder is in the current folder.
    std::fs::write(dir.path().join("tamis-data"), "").unwrap();
    let line = "serve --port 0 --http-port no";
    let ended = Ended::of(line, tamis(line).current_dir(dir.path()).run());
    ended.warns(2, "tamis: --dir is not set: tamis-data: ");
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_text_is_named() {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = std::ffi::OsStr::from_bytes(b"\xff");
    for line in ["serve", "--quiet serve"] {
        // A path need not be text.
        let output = tamis(line).env("TAMIS_PORT", bytes).env("TAMIS_CONFIG", bytes).run();
        Ended::of(line, output).says(2, "tamis: TAMIS_PORT: its value is not valid UTF-8\n");
    }
    for (line, option) in [
        ("serve --config", "--dir"),
        ("dedup --output", "-d"),
        ("--quiet build --output", "--items"),
    ] {
        let output = tamis(line).arg(bytes).arg(option).arg(bytes).run();
        let expected = format!("tamis: {option}: its value is not valid UTF-8\n");
        Ended::of(line, output).says(2, &expected);
    }
}

/// Checks the value of an option.
#[track_caller]
fn assert_set(client: &mut Client, name: &str, value: &str) {
    let pair = Reply::Array(vec![Reply::bulk(name), Reply::bulk(value)]);
    assert_eq!(client.say(&["CONFIG", "GET", name]), pair);
}

#[test]
fn every_option_is_a_flag() {
    let help = Ended::of("serve --help", tamis("serve --help").run()).stdout;
    for option in tamis_server::Config::options() {
        assert!(help.contains(&format!("      --{} <", option.name)), "{}", option.name);
    }
    let dir = tempfile::tempdir().unwrap();
    let options = [
        ("slowlog-log-slower-than", "-1"),
        ("client-output-buffer-limit", "normal 0 0 0"),
        ("save", ""),
        ("cf-max-expansions", "7"),
    ];
    let flags: Vec<String> =
        options.iter().flat_map(|(name, value)| [format!("--{name}"), (*value).into()]).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = Program::start(dir.path(), &flags);
    let mut client = program.client();
    for (name, value) in options {
        assert_set(&mut client, name, value);
    }
}

#[test]
fn options_come_from_a_file_the_environment_and_flags() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tamis.toml");
    std::fs::write(&file, "maxclients = 7\nbf-error-rate = 0.02\nappendonly = false\n").unwrap();
    let program =
        Program::start(dir.path(), &["--config", file.to_str().unwrap(), "--maxclients", "9"]);
    let mut client = program.client();
    for (name, value) in [("maxclients", "9"), ("bf-error-rate", "0.02"), ("appendonly", "no")] {
        assert_set(&mut client, name, value);
    }
    assert_eq!(client.say(&["CONFIG", "SET", "bf-error-rate", "0.03"]), Reply::ok());
    assert_eq!(client.say(&["CONFIG", "REWRITE"]), Reply::ok());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("maxclients = 9\nbf-error-rate = 0.03\nappendonly = false\n"),
        "{text}"
    );
    for (line, place) in [("port = {}", "line 2: port"), ("port 6", "line 2")] {
        std::fs::write(&file, format!("maxclients = 7\n{line}\n")).unwrap();
        let text = refused(&format!("--config {}", file.display()));
        assert!(text.contains(&format!("tamis.toml: {place}")), "{text}");
    }
}

#[test]
fn a_signal_ends_it_and_everything_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    for signal in ["TERM", "INT"] {
        let mut program = Program::start(dir.path(), &["--appendfsync", "no"]);
        program.client().say(&["BF.ADD", "seen", signal]);
        program.process.signal(signal);
        assert!(program.process.wait().success());
        program.stderr.line_with("has stopped");
    }
    let program = Program::start(dir.path(), &[]);
    let found = program.client().say(&["BF.MEXISTS", "seen", "TERM", "INT", "HUP"]);
    assert_eq!(found, Reply::Array(vec![Reply::Integer(1), Reply::Integer(1), Reply::Integer(0)]));
}

#[test]
fn a_hangup_reloads_certificates_and_ends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::start(dir.path(), &[]);
    program.client().say(&["PING"]);
    program.process.signal("HUP");
    let line = program.stderr.line_with("reloaded");
    assert!(line.contains("TLS is off"), "{line}");
    assert_eq!(program.client().say(&["PING"]), Reply::simple("PONG"));
}

#[test]
fn events_are_lines_of_json_if_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = tamis("serve --port 0 --log-format json --loglevel debug --dir");
    let mut process = command.arg(dir.path()).stderr(Stdio::piped()).start();
    let mut events: Vec<serde_json::Value> = Vec::new();
    for line in process.stderr_lines() {
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        if event["message"].as_str().unwrap().contains("ready") {
            let address = event["address"].as_str().unwrap().parse().unwrap();
            Client::connect(address).send(&["SHUTDOWN"]);
        }
        events.push(event);
    }
    assert!(process.wait().success());
    for event in &events {
        // Values that differ between events are fields, so the text of an event is constant.
        let message = event["message"].as_str().unwrap();
        assert!(!message.bytes().any(|c| c.is_ascii_digit()), "{event}");
        assert!(event["level"].is_string() && event["timestamp"].is_string(), "{event}");
    }
    let about = |text: &str| events.iter().find(|event| event["message"] == text).unwrap();
    assert!(about("connected")["peer"].is_string() && about("connected")["id"].is_u64());
    assert_eq!(about("the server has stopped")["level"], "INFO");
    assert!(refused("--log-format xml").contains("--log-format"));
}

/// Kills servers under load. Every acknowledged insert must survive.
fn kill_rounds(rounds: u32, sync: &str) {
    let dir = tempfile::tempdir().unwrap();
    // For each writer: the number of acknowledged items, and the times.
    let mut safe = [0_u64; 2];
    let mut next = [0_u64; 2];
    for round in 0..rounds {
        let mut program = Program::start(dir.path(), &["--appendfsync", sync]);
        let mut client = program.client();
        for (writer, &safe) in safe.iter().enumerate() {
            for key in ["grown", "reserved", "cuckoo"] {
                let command = if key == "cuckoo" { "CF.MEXISTS" } else { "BF.MEXISTS" };
                for first in (0..safe).step_by(5000) {
                    let mut words = vec![command.to_owned(), key.to_owned()];
                    words.extend((first..safe.min(first + 5000)).map(|i| format!("{writer}:{i}")));
                    let Reply::Array(found) = client.say(&words) else { panic!() };
                    let lost = found.iter().position(|one| *one != Reply::Integer(1));
                    assert_eq!(lost, None, "{key}, round {round}, {sync}, from {first} of {safe}");
                }
            }
        }
        client.say(&["BF.RESERVE", "reserved", "0.001", "1000000"]);
        let address = program.address;
        let answered: [AtomicU64; 2] = std::array::from_fn(|i| AtomicU64::new(next[i]));
        let lasting = Duration::from_millis(30 + u64::from(round) * 37 % 170);
        std::thread::scope(|threads| {
            for (writer, answered) in answered.iter().enumerate() {
                let first = next[writer];
                // Connected before the time until the kill starts.
                let mut client = Client::connect(address);
                threads.spawn(move || {
                    for i in first.. {
                        let item = format!("{writer}:{i}");
                        let commands =
                            [["BF.ADD", "grown"], ["BF.ADD", "reserved"], ["CF.ADDNX", "cuckoo"]];
                        for [command, key] in commands {
                            if client.try_send(&[command, key, &item]).is_err()
                                || client.try_receive().is_none()
                            {
                                return;
                            }
                        }
                        answered.store(i + 1, Ordering::Release);
                    }
                });
            }
            if round % 3 == 0 {
                client.say(&["BGSAVE"]);
            }
            std::thread::sleep(lasting);
            program.process.kill();
        });
        for (writer, answered) in answered.iter().enumerate() {
            safe[writer] = answered.load(Ordering::Acquire);
            // Items without an acknowledged insert may be lost, so they are inserted again.
            next[writer] = safe[writer];
        }
    }
    assert!(safe.iter().sum::<u64>() > 0, "nothing was answered");
}

#[test]
fn what_was_answered_survives_a_kill() {
    // A change is written before its reply is sent. The system keeps written data when the program
    // is killed.
    for sync in ["always", "everysec", "no"] {
        kill_rounds(4, sync);
    }
}

#[test]
#[ignore = "minutes: cargo xtask soak"]
fn what_was_answered_survives_hundreds_of_kills() {
    for sync in ["always", "everysec", "no"] {
        kill_rounds(150, sync);
    }
}

/// Starts a server and returns it with the address of its console.
pub fn with_console(dir: &Path, mut command: Command) -> (Process, SocketAddr) {
    command.args(["--port", "0", "--http-port", "0", "--dir"]).arg(dir);
    let mut process = command.stderr(Stdio::piped()).start();
    let line = process.stderr_lines().line_with("url=http://");
    let address = line.trim_end().rsplit_once("http://").unwrap().1.trim_end_matches('/');
    (process, address.parse().unwrap())
}

#[test]
fn the_console_is_where_the_program_says() {
    let dir = tempfile::tempdir().unwrap();
    let (_process, address) = with_console(dir.path(), tamis("serve"));
    assert!(crate::http::get(address, "/").body.contains("<title>Tamis</title>"));
    let text = refused(&format!("--port 0 --appendonly no --http-port {}", address.port()));
    assert!(text.contains("for the console"), "{text}");
}

/// Starts a server, and writes until its log fails. Returns the server with the address of its
/// console.
#[cfg(unix)]
pub fn with_failed_log(dir: &Path) -> (Process, SocketAddr) {
    // Files may have at most 64 KiB. The process ignores the signal for a longer file.
    let mut command = Command::new("bash");
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    command.args(["-c", script, "bash", env!("CARGO_BIN_EXE_tamis"), "serve"]);
    let (process, address) = with_console(dir, command);
    assert_eq!(crate::http::get(address, "/healthz").body, "ok\n");
    let overview = crate::http::get(address, "/api/overview.json").body;
    let port = overview.split("\"port\":").nth(1).unwrap().split(',').next().unwrap();
    let mut client = Client::connect(SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap())));
    let value = "x".repeat(100_000);
    for key in ["a", "b", "c"] {
        // The server closes the connection if it is unknown whether the change is durable.
        _ = client.try_send(&["SET", key, &value]);
        _ = client.try_receive();
    }
    wait_until("/healthz answers 503", || crate::http::get(address, "/healthz").status == 503);
    (process, address)
}

#[cfg(unix)]
#[test]
fn a_server_that_cannot_keep_changes_is_not_healthy() {
    let dir = tempfile::tempdir().unwrap();
    let (_process, address) = with_failed_log(dir.path());
    let expected = crate::http::get(address, "/healthz").body;
    assert!(expected.starts_with("the log cannot be written: "), "{expected}");
}
