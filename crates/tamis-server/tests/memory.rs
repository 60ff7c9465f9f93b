//! `maxmemory`: which memory counts, which commands are rejected, and that deletes free memory.

#[path = "../../../tests/exchanges/client.rs"]
mod client;

use std::cell::Cell;
use std::fmt;

use client::Client;
use tamis_resp::Reply;
use tamis_server::{Config, Server};
use tamis_testing::{CommandExt as _, wait_until};

const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";

fn start(max_memory_bytes: u64) -> (Server, Client) {
    start_with(Config { append_only: false, max_memory_bytes, ..Config::default() })
}

/// Starts a server with these options on a port of the system, and connects a client.
fn start_with(config: Config) -> (Server, Client) {
    let server = Server::start(Config { port: 0, threads: 2, ..config }).unwrap();
    let client = Client::connect(server.addresses()[0]);
    (server, client)
}

/// A payload of `DUMP` for a string of `copies` times 264 and one more equal bytes, compressed.
fn compressed(copies: usize) -> Vec<u8> {
    let len = 1 + 264 * copies as u32;
    let mut payload = vec![0, 0xc3, 0x80];
    payload.extend((2 + 3 * copies as u32).to_be_bytes());
    payload.push(0x80);
    payload.extend(len.to_be_bytes());
    // A byte as it is, then copies of 264 bytes from one before.
    payload.extend([0, b'x']);
    payload.extend([0xe0, 0xff, 0].repeat(copies));
    // The version of RDB; a checksum of zero stands for none.
    payload.extend([9, 0]);
    payload.extend([0; 8]);
    payload
}

#[test]
fn a_compressed_payload_decodes_within_the_memory_left() {
    let (_server, mut client) = start(1 << 20);
    let restore = |key: &str, copies: usize| -> Vec<Vec<u8>> {
        vec![b"RESTORE".to_vec(), key.into(), b"0".to_vec(), compressed(copies)]
    };
    assert_eq!(client.say(&restore("small", 10)), Reply::ok());
    assert_eq!(client.say(&["STRLEN", "small"]), Reply::Integer(2641));
    // 26 MB of 300 KB, which are decoded on a separate thread.
    assert_eq!(client.say(&restore("large", 100_000)), Reply::error(OOM));
    assert_eq!(client.say(&restore("large", 10_000)), Reply::error(OOM));
    assert_eq!(client.say(&["EXISTS", "large"]), Reply::Integer(0));
}

/// Runs a test in its own process, so that no other test takes memory.
fn alone(name: &str, test: impl FnOnce()) {
    const VARIABLE: &str = "TAMIS_TEST_ALONE";
    if std::env::var(VARIABLE).is_ok_and(|it| it == name) {
        return test();
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", name, "--nocapture"]).env(VARIABLE, name).run();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the memory that this process has allocated, in bytes.
///
/// The resident memory is larger, and differs between runs: it includes the free memory between
/// allocations. The server allocates an empty filter and then keeps only its parameters. The allocator of
/// glibc 2.36 leaves 10 to 120 free bytes for each such filter, and jemalloc leaves 10.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn allocated() -> u64 {
    // SAFETY: `malloc` is in use, and no thread calls `mallopt`.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

fn used(client: &mut Client) -> u64 {
    client.info_number("used_memory")
}

/// Sends commands in groups of some hundred. No reply may be an error.
fn send_all(client: &mut Client, commands: impl Iterator<Item = Vec<Vec<u8>>>) {
    let mut commands = commands.peekable();
    while commands.peek().is_some() {
        let sent = commands.by_ref().take(300).map(|words| client.send(&words)).count();
        for _ in 0..sent {
            let reply = client.receive();
            assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
        }
    }
}

fn line(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Checks in a process of its own that the memory that the server counts is within a tenth of the
/// memory that it allocates, and at most `most_bytes` for each key.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn counts_what_it_takes(
    test: &str,
    count: usize,
    most_bytes: f64,
    command: impl Fn(usize) -> Vec<Vec<u8>>,
) {
    alone(&format!("counted::{test}"), || {
        let each = counted_bytes(count, command);
        assert!(each <= most_bytes, "{each}");
    });
}

/// Returns the memory that the server counts for each of `count` keys.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn counted_bytes(count: usize, command: impl Fn(usize) -> Vec<Vec<u8>>) -> f64 {
    let (_server, mut client) = start(0);
    // The memory of connections and threads does not count for keys.
    send_all(&mut client, (0..1000).map(|i| line(&format!("SET warm:{i} x"))));
    send_all(&mut client, (0..300).map(|i| command(count + i)));
    let (allocated_before, used_before) = (allocated(), used(&mut client));
    send_all(&mut client, (0..count).map(command));
    let taken = (allocated() - allocated_before) as f64;
    let counted = (used(&mut client) - used_before) as f64;
    println!(
        "{count} keys: {:.1} counted, {:.1} taken each",
        counted / count as f64,
        taken / count as f64
    );
    // Buffers of connections, and free memory that the allocator keeps for each thread.
    let slack = 0.1 * taken + f64::from(1 << 18);
    assert!((counted - taken).abs() <= slack, "counted {counted}, taken {taken}");
    counted / count as f64
}

/// The filter that `TM.RESERVE` creates for 100 items.
const KINDS: [&str; 7] = [
    "KIND split-block ITEMS 100",
    "KIND classic ITEMS 100",
    "KIND cuckoo ITEMS 100",
    "KIND growing ITEMS 100",
    "KIND counting ITEMS 100",
    "KIND window WINDOW 1000 ITEMS 100",
    "KIND window WINDOW 100 ITEMS",
];

#[test]
fn an_empty_filter_takes_300_bytes_before_and_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { dir: dir.path().to_owned(), ..Config::default() };
    let reserve = |client: &mut Client, name: &str| {
        for (i, kind) in KINDS.iter().enumerate() {
            let made = client.say(&line(&format!("TM.RESERVE {name}:{i} {kind}")));
            assert_eq!(made, Reply::ok(), "{kind}");
        }
        client.say(&line(&format!("CF.RESERVE {name}:cuckoo 100")));
        client.say(&line("CONFIG SET bf-layout redisbloom"));
        client.say(&line(&format!("BF.RESERVE {name}:bloom 0.01 100")));
    };
    let usage = |client: &mut Client| {
        let keys = client.list(&["KEYS", "*"]);
        assert_eq!(keys.len(), 2 * (KINDS.len() + 2));
        for key in keys {
            let Reply::Bulk(key) = key else { panic!() };
            let reply = client.say(&[b"MEMORY".to_vec(), b"USAGE".to_vec(), key.clone()]);
            let Reply::Integer(bytes) = reply else { panic!("{reply:?}") };
            // Most keys here are alone in the table of their shard.
            assert!(bytes <= 300 + 40, "{}: {bytes}", String::from_utf8_lossy(&key));
        }
    };
    let (server, mut client) = start_with(config.clone());
    reserve(&mut client, "saved");
    assert_eq!(client.say(&["SAVE"]), Reply::ok());
    reserve(&mut client, "logged");
    usage(&mut client);
    drop((client, server));
    let (_server, mut client) = start_with(config);
    usage(&mut client);
    // A reader and a writer see the filter.
    for i in 0..KINDS.len() {
        let key = format!("saved:{i}");
        assert_eq!(client.say(&["TM.EXISTS", &key, "a"]), Reply::Integer(0));
        assert_eq!(client.say(&["TM.ADD", &key, "a"]), Reply::Integer(1), "{key}");
        assert_eq!(client.say(&["TM.EXISTS", &key, "a"]), Reply::Integer(1), "{key}");
    }
    assert_eq!(client.say(&["CF.DEL", "saved:cuckoo", "a"]), Reply::Integer(0));
    assert_eq!(client.say(&["BF.ADD", "saved:bloom", "a"]), Reply::Integer(1));
    assert_eq!(client.say(&["BF.EXISTS", "saved:bloom", "a"]), Reply::Integer(1));
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod counted {
    use super::*;

    /// For keys whose size is not limited.
    const ANY: f64 = f64::INFINITY;

    #[test]
    fn short_strings() {
        counts_what_it_takes("short_strings", 300_000, ANY, |i| line(&format!("SET key:{i} x")));
    }

    #[test]
    fn strings_of_many_lengths_that_expire() {
        counts_what_it_takes("strings_of_many_lengths_that_expire", 12_000, ANY, |i| {
            let text = "x".repeat(i * 7919 % 3000);
            line(&format!("SET a:longer:key:of:a:session:{i} {text} PX 10000000"))
        });
    }

    #[test]
    fn empty_filters_which_take_300_bytes_at_most() {
        counts_what_it_takes("empty_filters_which_take_300_bytes_at_most", 60_000, 300.0, |i| {
            line(&format!("BF.RESERVE filter:{i} 0.01 100"))
        });
    }

    #[test]
    fn empty_filters_of_every_kind_take_300_bytes_at_most() {
        let name = "empty_filters_of_every_kind_take_300_bytes_at_most";
        counts_what_it_takes(name, 100_000, 300.0, |i| match KINDS.get(i % 30) {
            Some(kind) => line(&format!("TM.RESERVE filter:{i} {kind}")),
            None => line(&format!("CF.RESERVE filter:{i} 100")),
        });
    }

    #[test]
    fn small_filters_with_items() {
        counts_what_it_takes("small_filters_with_items", 40_000, ANY, |i| match i % 4 {
            0 => line(&format!("BF.INSERT filter:{i} CAPACITY 1000 ITEMS a b c")),
            1 => line(&format!("BF.MADD filter:{i} a b c")),
            2 => line(&format!("CF.ADD filter:{i} a")),
            _ => line(&format!("BF.INSERT filter:{i} CAPACITY 100 ITEMS a")),
        });
    }

    #[test]
    fn filters_of_every_kind_and_bitmaps() {
        let kinds = ["split-block", "classic", "counting", "cuckoo", "growing"];
        let name = "filters_of_every_kind_and_bitmaps";
        counts_what_it_takes(name, 2000, ANY, |i| match kinds.get(i % 8) {
            Some(kind) => line(&format!("TM.RESERVE {kind}:{i} KIND {kind} ITEMS {}", 100 + i)),
            None if i % 8 < 7 => line(&format!("SETBIT bits:{i} {} 1", 100_000 + 97 * i)),
            None => line(&format!("TM.RESERVE w:{i} KIND window WINDOW 1000 ITEMS {}", 50 + i)),
        });
    }

    #[test]
    fn a_few_large_filters() {
        counts_what_it_takes("a_few_large_filters", 10, ANY, |i| {
            line(&format!("BF.RESERVE filter:{i} 0.01 {}", 1_000_000 + i))
        });
    }
}

#[test]
fn keys_fill_maxmemory_and_deletes_make_room_again() {
    const MAX: u64 = 3 << 20;
    let (_server, mut client) = start(MAX);
    let mut count = 0;
    let full = loop {
        match client.say(&line(&format!("SET key:{count} x"))) {
            Reply::Error(error) => break error,
            _ => count += 1,
        }
        assert!(count < 100_000, "nothing counts");
    };
    assert_eq!(Reply::Error(full), Reply::error(OOM));
    let bytes = used(&mut client);
    // The table of a shard may have grown with the last key.
    assert!((MAX * 98 / 100..=MAX + 1024).contains(&bytes), "{bytes}");
    for refused in [
        "BF.RESERVE f 0.01 100",
        "SETBIT b 1 1",
        "INCR n",
        "COPY key:1 copy",
        "TM.RESERVE t KIND classic ITEMS 9",
    ] {
        assert!(client.refused(&line(refused)).starts_with("OOM"), "{refused}");
    }
    for i in 0..count {
        assert_eq!(client.say(&line(&format!("DEL key:{i}"))), Reply::Integer(1));
    }
    assert!(used(&mut client) < 1024);
    assert_eq!(client.say(&line("SET key x")), Reply::ok());
}

#[test]
fn a_command_that_would_exceed_maxmemory_is_rejected_without_effect() {
    let (_server, mut client) = start(1 << 20);
    // A header that says that 2 GiB follow.
    let mut header = [0; 38];
    header[8..16].copy_from_slice(&(1_u64 << 30).to_le_bytes());
    header[24] = 1;
    header[32..].copy_from_slice(&[2, 0, 20, 0, 1, 0]);
    let load = [line("CF.LOADCHUNK large 1"), vec![header.to_vec()]].concat();
    for command in [
        line("BF.RESERVE large 0.01 10000000"),
        line(&format!("SET large {}", "x".repeat(2 << 20))),
        line("CF.RESERVE large 10000000"),
        line("TM.RESERVE large KIND classic ITEMS 10000000"),
        line("BF.INSERT large CAPACITY 10000000 ITEMS a"),
        line("SETBIT large 4294967295 1"),
        load,
    ] {
        assert_eq!(client.refused(&command), OOM);
        assert_eq!(client.say(&["EXISTS", "large"]), Reply::Integer(0));
    }
    assert_eq!(client.say(&line("BF.RESERVE half 0.01 300000")), Reply::ok());
    assert_eq!(client.say(&line("COPY half copy")), Reply::Integer(1));
    assert_eq!(client.say(&line("COPY half copy2")), Reply::error(OOM));
}

#[test]
fn the_memory_of_queued_transactions_counts() {
    let (server, mut client) = start(1 << 20);
    assert_eq!(client.say(&line("MULTI")), Reply::ok());
    let text = "x".repeat(1000);
    let queued = (0..2000)
        .take_while(|_| client.say(&line(&format!("GET {text}"))) == Reply::simple("QUEUED"));
    let queued = queued.count();
    assert!((500..1000).contains(&queued), "{queued}");
    let mut other = Client::connect(server.addresses()[0]);
    assert!(used(&mut other) >= 500_000);
    assert_eq!(other.say(&line("SET k v")), Reply::error(OOM));
    assert!(matches!(client.say(&line("EXEC")), Reply::Error(_)));
    // Replies that are not sent yet may count.
    assert!(used(&mut other) < 1024);
    assert_eq!(other.say(&line("SET k v")), Reply::ok());
}

#[test]
fn a_layer_that_would_exceed_maxmemory_is_not_added() {
    let (_server, mut client) = start(1 << 20);
    assert_eq!(client.say(&line("CONFIG SET bf-layout redisbloom")), Reply::ok());
    assert_eq!(client.say(&line("BF.RESERVE layers 0.01 100 EXPANSION 32768")), Reply::ok());
    assert_eq!(client.say(&line("CF.RESERVE cuckoo 64 EXPANSION 32768")), Reply::ok());
    let bytes = used(&mut client);
    for command in ["BF.ADD layers", "CF.ADD cuckoo"] {
        let refused = (0..200).find_map(|i| match client.say(&line(&format!("{command} {i}"))) {
            Reply::Error(error) => Some(error),
            _ => None,
        });
        assert_eq!(refused.map(Reply::Error), Some(Reply::error(OOM)), "{command}");
    }
    // The list of layers may have room for more of them.
    assert!(used(&mut client) < bytes + 4096);
}

#[test]
fn a_dump_that_would_exceed_maxmemory_is_rejected() {
    let (_server, mut client) = start(3 << 20);
    assert_eq!(client.say(&line("BF.RESERVE large 0.01 1000000")), Reply::ok());
    assert!(client.refused(&line("DUMP large")).starts_with("OOM"));
    assert_eq!(client.say(&line("CONFIG SET maxmemory 5mb")), Reply::ok());
    assert!(matches!(client.say(&line("DUMP large")), Reply::Bulk(_)));
}

/// Tests that a command is refused because its reply takes too much memory.
fn refuses_reply(client: &mut Client, command: &str) {
    let Reply::Error(error) = client.say(&line(command)) else { panic!("{command} is answered") };
    assert!(error.starts_with("OOM"), "{command}: {error}");
}

#[test]
fn a_sparse_string_has_its_full_length_in_replies() {
    let (_server, mut client) = start(8 << 20);
    // Some 800 KB of memory, and 95 MB of zeros to send.
    assert_eq!(client.say(&line("SETRANGE s 100000000 x")), Reply::Integer(100_000_001));
    let commands = "GET s|GETEX s|GETRANGE s 1 -1|MGET s|DUMP s|SET s y GET|BITOP NOT d s";
    commands.split('|').for_each(|command| refuses_reply(&mut client, command));
    assert_eq!(client.say(&line("STRLEN s")), Reply::Integer(100_000_001));
    assert_eq!(client.say(&line("GETRANGE s -1 -1")), Reply::Bulk(b"x".to_vec()));
    assert_eq!(client.say(&line("COPY s copy")), Reply::Integer(1));
    assert_eq!(client.say(&line("BITOP OR d s copy")), Reply::Integer(100_000_001));
    assert_eq!(client.say(&line("TM.RESERVE t KIND classic ITEMS 2000000")), Reply::ok());
    refuses_reply(&mut client, "TM.DUMP t");
}

#[test]
fn dumps_are_rejected_while_clients_do_not_read_theirs() {
    const MAX: u64 = 80 << 20;
    // The part of a reply that the socket does not accept counts.
    const REPLY: u64 = 16 << 20;
    for dump in ["DUMP f", "TM.DUMP f", "BF.SCANDUMP f 1", "CF.SCANDUMP c 1"] {
        let (server, mut client) = start(MAX);
        let made = match dump.strip_prefix("CF") {
            Some(_) => "CF.RESERVE c 10000000",
            None => "BF.RESERVE f 0.01 10000000",
        };
        assert_eq!(client.say(&line(made)), Reply::ok());
        client.say(&line("BF.ADD f a"));
        client.say(&line("CF.ADD c a"));
        let mut slow: Vec<Client> =
            (0..20).map(|_| Client::connect(server.addresses()[0])).collect();
        for client in &mut slow {
            client.send(&line(dump));
        }
        // Each client finally gets its reply, although it reads nothing meanwhile.
        let stats = |client: &mut Client| client.text(&["INFO", "commandstats"]);
        let name = dump.split(' ').next().unwrap().to_ascii_lowercase();
        let counted = format!("cmdstat_{name}:calls=20,");
        wait_until(format_args!("all {dump} have run"), || stats(&mut client).contains(&counted));
        let bytes = used(&mut client);
        // Each thread may be making one when the others see that memory is left.
        assert!(bytes <= MAX + 2 * REPLY, "{dump}: {bytes} of {MAX} used");
        let replies = slow.iter_mut().map(Client::receive);
        let refused = replies.filter(|reply| matches!(reply, Reply::Error(_))).count();
        assert!((10..20).contains(&refused), "{dump}: {refused}");
    }
}

#[test]
fn replies_of_a_transaction_fit_in_memory_together() {
    let (_server, mut client) = start(0);
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "normal 3mb 0 0"];
    assert_eq!(client.say(&limit), Reply::ok());
    assert_eq!(client.say(&line("SETRANGE s 999999 x")), Reply::Integer(1_000_000));
    assert_eq!(client.say(&line("MULTI")), Reply::ok());
    for command in ["GET s", "GETRANGE s 0 -1", "MGET s", "GET s", "DUMP s", "INCR n"] {
        assert_eq!(client.say(&line(command)), Reply::simple("QUEUED"));
    }
    let replies = client.list(&line("EXEC"));
    let is_refused: Vec<bool> =
        replies.iter().map(|reply| matches!(reply, Reply::Error(_))).collect();
    assert_eq!(is_refused, [false, false, false, true, true, false]);
}

#[test]
fn a_transaction_whose_replies_exceed_the_limit_runs_and_ends_the_connection() {
    let (server, mut client) = start(0);
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "normal 3mb 0 0"];
    assert_eq!(client.say(&limit), Reply::ok());
    assert_eq!(client.say(&line("MULTI")), Reply::ok());
    // No single command rejects a reply of this length.
    let word = "x".repeat(100_000);
    let mut commands = vec![vec!["ECHO".to_owned(), word]; 40];
    commands.extend(["INCR n", "STRLEN n"].map(|it| it.split(' ').map(str::to_owned).collect()));
    for command in commands {
        assert_eq!(client.say(&command), Reply::simple("QUEUED"));
    }
    client.send(&line("EXEC"));
    assert_eq!(client.try_receive(), None);
    let mut other = Client::connect(server.addresses()[0]);
    assert_eq!(other.say(&line("GET n")), Reply::Bulk(b"1".to_vec()));
    // A read command after the limit does not run, because no client receives its reply.
    assert!(!other.text(&["INFO", "commandstats"]).contains("cmdstat_strlen"));
    wait_used(&mut other, 0..1024);
}

/// Waits until the memory that is used is in a range.
fn wait_used(client: &mut Client, range: std::ops::Range<u64>) {
    let last = Cell::new(0);
    let what = fmt::from_fn(|f| write!(f, "{} is in {range:?}", last.get()));
    wait_until(what, || {
        last.set(used(client));
        range.contains(&last.get())
    });
}

#[test]
fn the_memory_of_an_incomplete_command_counts_and_is_limited() {
    use std::io::Write as _;
    let (server, mut client) = start(0);
    assert_eq!(client.say(&line("CONFIG SET client-query-buffer-limit 2mb")), Reply::ok());
    let mut slow = Client::connect(server.addresses()[0]);
    slow.stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1500000\r\n").unwrap();
    slow.stream.write_all(&vec![b'x'; 1_499_000]).unwrap();
    wait_used(&mut client, 1_499_000..1_600_000);
    slow.stream.write_all(&[vec![b'x'; 1000], b"\r\n".to_vec()].concat()).unwrap();
    assert_eq!(slow.receive(), Reply::ok());
    assert_eq!(client.say(&line("DEL k")), Reply::Integer(1));
    wait_used(&mut client, 0..1024);
    // If the words are very short, the list of their positions takes the most memory.
    slow.stream.write_all(b"*1000000\r\n$3\r\nDEL\r\n").unwrap();
    _ = slow.stream.write_all(&b"$0\r\n\r\n".repeat(100_000));
    assert_eq!(slow.receive(), Reply::error("ERR Protocol error: command too large"));
    assert_eq!(slow.try_receive(), None);
    wait_used(&mut client, 0..1024);
}

#[test]
fn the_memory_of_watched_keys_counts_until_unwatch() {
    let (_server, mut client) = start(1 << 20);
    let key = |i: usize| vec![b"WATCH".to_vec(), format!("{i:0>1000}").into_bytes()];
    let watched = (0..2000).take_while(|i| client.say(&key(*i)) == Reply::ok()).count();
    assert!((800..1100).contains(&watched), "{watched}");
    assert!(matches!(client.say(&key(0)), Reply::Error(error) if error.starts_with("OOM")));
    for forgets in ["UNWATCH", "RESET"] {
        client.say(&line(forgets));
        assert!(used(&mut client) < 1024, "{forgets}");
        assert_eq!(client.say(&key(0)), Reply::ok());
    }
    assert_eq!(client.say(&line("MULTI")), Reply::ok());
    assert!(matches!(client.say(&line("EXEC")), Reply::Array(_)));
    assert!(used(&mut client) < 1024);
}

#[test]
fn arriving_commands_take_no_more_than_maxmemory() {
    const LIMIT: u64 = 30 << 20;
    const COMMAND: usize = 20 << 20;
    let (server, mut client) = start(LIMIT);
    assert_eq!(client.say(&["SET", "kept", "1"]), Reply::ok());
    let address = server.addresses()[0];
    // Each client sends most of a long command and waits.
    let senders: Vec<_> = (0..8)
        .map(|i| {
            std::thread::spawn(move || {
                use std::io::Write as _;
                let mut stream = std::net::TcpStream::connect(address).unwrap();
                stream.set_write_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
                let head = format!("*3\r\n$3\r\nSET\r\n$2\r\nk{i}\r\n${COMMAND}\r\n");
                let sent = stream.write_all(head.as_bytes());
                let piece = vec![b'x'; 1 << 20];
                // The server may close the connection.
                _ = sent.and_then(|()| (0..19).try_for_each(|_| stream.write_all(&piece)));
                stream
            })
        })
        .collect();
    let mut peak = 0;
    let begun = std::time::Instant::now();
    while !senders.iter().all(std::thread::JoinHandle::is_finished) {
        peak = peak.max(used(&mut client));
        assert!(begun.elapsed().as_secs() < 60, "the clients still send");
    }
    let _streams: Vec<_> = senders.into_iter().map(|it| it.join().unwrap()).collect();
    wait_used(&mut client, 0..LIMIT + 1);
    // A client that is disconnected holds its memory until its thread has ended the connection.
    assert!(peak < 2 * LIMIT, "{peak}");
    assert_eq!(client.say(&["GET", "kept"]), Reply::bulk("1"));
    let evicted = client.info_number("evicted_clients");
    assert!((6..=8).contains(&evicted), "{evicted}");
}

#[test]
fn a_short_command_is_refused_and_not_disconnected_when_memory_is_full() {
    let (_server, mut client) = start(16 << 20);
    let value = vec![b'x'; 512 << 10];
    let mut refused = false;
    for i in 0..40 {
        match client.say(&[b"SET", format!("k{i}").as_bytes(), &value]) {
            Reply::Error(error) => refused = error == OOM,
            reply => assert_eq!(reply, Reply::ok()),
        }
    }
    assert!(refused);
}

#[test]
fn the_images_of_a_transaction_count_before_anything_is_applied() {
    let dir = tempfile::tempdir().unwrap();
    let dir_path = dir.path().to_owned();
    let config = Config { dir: dir_path, max_memory_bytes: 24 << 20, ..Config::default() };
    let (_server, mut client) = start_with(config);
    // Each value takes 3 MB in memory and again in the log, and 35 KB in the payload.
    let mut restore = |count: usize| {
        assert_eq!(client.say(&["MULTI"]), Reply::ok());
        for i in 0..count {
            let words = [b"RESTORE".to_vec(), format!("k{i}").into(), b"0".to_vec()];
            let words = [&words[..], &[compressed(12_000)]].concat();
            assert_eq!(client.say(&words), Reply::simple("QUEUED"));
        }
        let reply = client.say(&["EXEC"]);
        let Reply::Integer(keys) = client.say(&["DBSIZE"]) else { panic!() };
        client.say(&["FLUSHALL", "SYNC"]);
        (reply, keys)
    };
    let (reply, keys) = restore(3);
    assert_eq!((reply, keys), (Reply::Array(vec![Reply::ok(); 3]), 3));
    // All values fit, and all images do not.
    let (reply, keys) = restore(6);
    let Reply::Error(why) = reply else { panic!("{reply:?}") };
    assert!(why.starts_with("EXECABORT") && why.contains("OOM"), "{why}");
    assert_eq!(keys, 0);
}

#[test]
fn users_count_towards_maxmemory() {
    let (_server, mut client) = start(2 << 20);
    let before = used(&mut client);
    let mut users = 0;
    let refused = loop {
        match client.say(&["ACL", "SETUSER", &format!("user:{users}"), "on", "~k:*"]) {
            Reply::Error(error) => break error,
            _ => users += 1,
        }
        assert!(users < 100_000, "no limit");
    };
    assert_eq!(refused, OOM);
    assert!(used(&mut client) > before + (1 << 20));
    assert_eq!(client.say(&["ACL", "SETUSER", "user:0", "off"]), Reply::ok());
    for i in 0..users {
        client.say(&["ACL", "DELUSER", &format!("user:{i}")]);
    }
    assert!(used(&mut client) < before + (64 << 10));
}
