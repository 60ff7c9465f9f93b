//! A payload of `RESTORE` that no server wrote is refused, or becomes a filter that does no harm.

use tamis::{AnyFilter, Hasher, Plan, Span, Window};
use tamis_commands::Value;
use tamis_formats::{RedisValue, TamisFile};
use tamis_resp::{Protocol, Reply};
use tamis_testing::Random;

use crate::client::Client;
use crate::server::{Host, TestServer};
use crate::status::{assert_refused, bulk, run, wait_for_replica};

/// Commands that create the filters whose payloads are changed. The key is `k`.
const FILTERS: [&[&str]; 16] = [
    &["BF.ADD k a"],
    &["BF.RESERVE k 0.01 10", "BF.MADD k a b c d e f g h i j k l m n o p q r s t u v w x y z"],
    &["BF.RESERVE k 0.01 1000 NONSCALING"],
    &["CONFIG SET tamis.bf-layout redisbloom", "BF.RESERVE k 0.01 10", "BF.ADD k a"],
    &["CONFIG SET tamis.bf-layout redisbloom", "BF.RESERVE k 0.1 2", "BF.MADD k a b c d e f g"],
    &["CF.RESERVE k 16", "CF.INSERT k ITEMS a b c"],
    &["CF.RESERVE k 4 BUCKETSIZE 1 EXPANSION 2", "CF.INSERT k ITEMS a b c d e f g h i j k"],
    &["TM.RESERVE k KIND split-block ITEMS 100", "TM.MADD k a b c"],
    &["TM.RESERVE k KIND classic ITEMS 100", "TM.MADD k a b c"],
    &["TM.RESERVE k KIND classic ITEMS 100"],
    &["TM.RESERVE k KIND growing ITEMS 10", "TM.MADD k a b c d e f g h i j k l m n o p"],
    &["TM.RESERVE k KIND cuckoo ITEMS 100", "TM.MADD k a b c"],
    &["TM.RESERVE k KIND counting ITEMS 100", "TM.MADD k a b c"],
    &["TM.RESERVE k KIND window WINDOW 60000 ITEMS 100", "TM.MADD k a b c"],
    &["TM.RESERVE k KIND window WINDOW 100 ITEMS REFRESH", "TM.MADD k a b c"],
    &["TM.RESERVE k KIND window WINDOW 60000 ITEMS 100"],
];

/// The bytes before the values of a module: the kind of payload, and the name and version of the
/// type as a number of eight bytes.
const START: usize = 10;

/// The bytes after the values: the version of the payload and its checksum.
const END: usize = 10;

/// What the filter of a payload that is accepted is used for.
const USES: &str = "BF.EXISTS k a, CF.EXISTS k a, TM.MEXISTS k a b c, CF.COUNT k a, TM.INFO k, \
    BF.INFO k, CF.INFO k, BF.CARD k, MEMORY USAGE k, DEBUG DIGEST-VALUE k, BF.SCANDUMP k 0, \
    CF.SCANDUMP k 0, CF.DEL k a, TM.MADD k a new, CF.ADD k new, CF.COMPACT k, COPY k l, \
    TM.MERGE l k, TM.DUMP k, DUMP k, TM.CLEAR k, DEL k l";

/// Numbers that a length or a size may not have.
const HUGE: [u64; 8] =
    [0, u64::MAX, u64::MAX >> 1, 1 << 63, 1 << 48, 1 << 36, u32::MAX as u64, 1 << 31];

/// The changed payloads of each filter.
const ROUNDS: u32 = 2000;

/// The memory that the server may use at most, in KiB.
const MAX_KIB: u64 = 500 << 10;

/// Computes the checksum of a payload: CRC-64 with the Jones polynomial, reflected.
fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    static TABLE: std::sync::LazyLock<[u64; 256]> = std::sync::LazyLock::new(|| {
        std::array::from_fn(|byte| {
            (0..8).fold(byte as u64, |crc, _| crc >> 1 ^ (POLYNOMIAL * (crc & 1)))
        })
    });
    bytes.iter().fold(0, |crc, byte| TABLE[(crc as u8 ^ byte) as usize] ^ crc >> 8)
}

/// Returns a payload with these values, and with the start and the version of another payload.
fn payload(start: &[u8], values: &[u8], other: &[u8]) -> Vec<u8> {
    let version = &other[other.len() - END..other.len() - 8];
    let mut payload = [start, values, version].concat();
    payload.extend(crc64(&payload).to_le_bytes());
    payload
}

/// Changes the values of a payload.
fn change(values: &mut Vec<u8>, random: &mut Random) {
    let len = values.len();
    match random.below(8) {
        0 => values.truncate(random.below(len)),
        1 => {
            // A number of eight bytes in the image: a length, a size, a count or a time.
            let at = random.below(len.saturating_sub(8));
            let huge = HUGE[random.below(HUGE.len())].to_le_bytes();
            values[at..].iter_mut().zip(huge).for_each(|(byte, new)| *byte = new);
        }
        2 => {
            // A length, as the server encodes it before a string and in a number.
            let at = random.below(len);
            let huge = HUGE[random.below(HUGE.len())].to_be_bytes();
            let encoded: Vec<u8> = [0x81].into_iter().chain(huge).collect();
            values.splice(at..(at + 1).min(len), encoded);
        }
        3 => {
            let (from, to) = (random.below(len), random.below(len));
            let part = values[from..(from + 1 + random.below(64)).min(len)].to_vec();
            values.splice(to..to, part);
        }
        4 => {
            let at = random.below(len);
            values.drain(at..(at + 1 + random.below(16)).min(len));
        }
        _ => {
            for _ in 0..=random.below(4) {
                // The parameters are near the start.
                let end = if random.below(2) == 0 { len.min(120) } else { len };
                let at = random.below(end);
                values[at] = [0, 0xff, random.next() as u8, values[at] ^ 1 << random.below(8)]
                    [random.below(4)];
            }
        }
    }
}

/// Returns the payloads of [`FILTERS`].
fn dumps(client: &mut Client) -> Vec<Vec<u8>> {
    let dump = |commands: &&[&str]| {
        commands.iter().for_each(|command| _ = run(client, command));
        let dump = bulk(run(client, "DUMP k"));
        run(client, "DEL k");
        run(client, "CONFIG SET tamis.bf-layout tamis");
        dump
    };
    FILTERS.iter().map(dump).collect()
}

/// Restores a payload. Returns whether the server accepts it. The filter is then used.
fn restore(client: &mut Client, context: &str, payload: &[u8]) -> bool {
    let mut say = |words: &[&[u8]]| {
        client.send(words);
        let reply = client.try_receive();
        reply.unwrap_or_else(|| {
            let command = words[0].escape_ascii();
            panic!("{context}: {command} ended the server: {}", payload.escape_ascii())
        })
    };
    match say(&[b"RESTORE", b"k", b"0", payload]) {
        Reply::Error(_) => return false,
        reply => assert_eq!(reply, Reply::ok(), "{context}"),
    }
    for command in USES.split(", ") {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        say(&words);
    }
    true
}

/// Asserts that the server has never used too much memory.
fn assert_bounded(context: &str, client: &mut Client) {
    let id = client.info_number("process_id");
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < MAX_KIB, "{context}: the server has used {kib} KiB");
}

#[test]
fn changed_payloads_do_no_harm() {
    for (host, _server, mut client) in TestServer::each(&["--rdbcompression", "no"]) {
        // Only then are the values in the payload as the module wrote them.
        let dumps = dumps(&mut client);
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for (dump, commands) in dumps.iter().zip(FILTERS) {
            assert_eq!(payload(&dump[..START], &dump[START..dump.len() - END], dump), *dump);
            assert!(restore(&mut client, "unchanged", dump), "{host:?}, {commands:?}");
            let mut accepted = 0;
            for round in 0..ROUNDS {
                let mut values = dump[START..dump.len() - END].to_vec();
                for _ in 0..=random.below(2) {
                    if !values.is_empty() {
                        change(&mut values, &mut random);
                    }
                }
                let context = format!("{host:?}, {commands:?}, round {round}");
                let payload = payload(&dump[..START], &values, dump);
                accepted += u32::from(restore(&mut client, &context, &payload));
            }
            // A change of a bit array leaves a filter.
            assert!(accepted < ROUNDS, "{host:?}, {commands:?}");
            assert_bounded(&format!("{host:?}, {commands:?}"), &mut client);
        }
        assert_eq!(run(&mut client, "DBSIZE"), Reply::Integer(0), "{host:?}");
    }
}

#[test]
fn short_payloads_and_other_versions_are_refused() {
    for (host, _server, mut client) in TestServer::each(&["--rdbcompression", "no"]) {
        // Only then are the values in the payload as the module wrote them.
        for (dump, commands) in dumps(&mut client).iter().zip(FILTERS) {
            let context = format!("{host:?}, {commands:?}");
            let values = &dump[START..dump.len() - END];
            // The server reads on in its version, whose second byte is also the mark of the end. So
            // a payload without its last two bytes may be accepted.
            let is_tested = |len: &usize| {
                let missing = values.len() - len;
                missing != 2 && (*len < 200 || len.is_multiple_of(37) || missing < 20)
            };
            for len in (0..values.len()).filter(is_tested) {
                let short = payload(&dump[..START], &values[..len], dump);
                assert!(!restore(&mut client, &context, &short), "{context}, {len} bytes");
            }
            for version in 0..=10_u8 {
                // The version is the last ten bits of the number that names the type.
                let mut start = dump[..START].to_vec();
                let own = std::mem::replace(&mut start[START - 1], version);
                assert!(own <= 10 && start[START - 2] & 3 == 0, "{context}: version {own}");
                let other = payload(&start, values, dump);
                let is_accepted = restore(&mut client, &context, &other);
                assert_eq!(is_accepted, version == own, "{context}: version {version}");
            }
        }
        assert_bounded(&format!("{host:?}"), &mut client);
    }
}

#[test]
fn an_image_without_bits_is_refused() {
    // A classic filter of 1.6 * 10^11 bits in 72 bytes: tag, plan and hash function.
    let mut image = Vec::new();
    for number in [8, 1, 10_000_000_000, 0.01_f64.to_bits(), 160_000_000_000, 7, 0, 0, 0_u64] {
        image.extend(number.to_le_bytes());
    }
    let payload = RedisValue::Tamis(image).to_payload();
    for (_, _server, mut client) in TestServer::each(&[]) {
        let reply = client.say(&[&b"RESTORE"[..], b"k", b"0", &payload]);
        assert!(matches!(&reply, Reply::Error(text) if text.contains("Bad data")), "{reply:?}");
    }
}

/// Returns the payload of a window whose clock is ahead of the clock of this machine.
fn window_ahead(seconds: u64) -> Vec<u8> {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    let plan = Plan::window(100, 0.01, 4).unwrap();
    let mut window = Window::from_plan(&plan, Hasher::default(), Span::Millis(4000)).unwrap();
    window.advance(now + seconds * 1000);
    window.insert("a");
    let window = Value::Filter(Box::new(TamisFile::new(AnyFilter::Window(window))));
    RedisValue::Tamis(window.to_image()).to_payload()
}

#[test]
fn a_client_cannot_restore_a_window_whose_clock_is_ahead() {
    for (host, mut server, mut client) in TestServer::each(&["--appendonly", "yes"]) {
        // The clocks of two machines differ a little.
        let restored = client.say(&[&b"RESTORE"[..], b"near", b"0", &window_ahead(30)]);
        assert_eq!(restored, Reply::ok(), "{host:?}");
        let restore = [&b"RESTORE"[..], b"far", b"0", &window_ahead(3600)];
        let refused = client.say(&restore);
        assert!(matches!(&refused, Reply::Error(text) if text.contains("Bad data")), "{refused:?}");
        assert!(server.log().contains("the window's clock is ahead"), "{host:?}");

        // A file and a primary contain what a server accepted, perhaps with another clock.
        server.kill();
        let log = server.dir.join("appendonlydir/appendonly.aof.1.incr.aof");
        let mut commands = std::fs::read(&log).unwrap();
        let words = restore.iter().map(|word| Reply::Bulk(word.to_vec())).collect();
        Reply::Array(words).encode(Protocol::Resp2, &mut commands);
        std::fs::write(log, commands).unwrap();
        server.restart();
        let mut client = server.connect();
        assert_eq!(run(&mut client, "DBSIZE"), Reply::Integer(2), "{host:?}: {}", server.log());
        run(&mut client, "DEBUG RELOAD");
        assert_eq!(run(&mut client, "DBSIZE"), Reply::Integer(2), "{host:?}: {}", server.log());
        run(&mut client, "CONFIG SET replica-read-only no");
        run(&mut client, "REPLICAOF 127.0.0.1 1");
        run(&mut client, "DEL far");
        assert_eq!(client.say(&restore), Reply::ok(), "{host:?}, from a primary");
    }
}

#[test]
fn a_full_cuckoo_filter_cannot_grow_beyond_maxmemory() {
    // A full filter of 64 KiB that grows to 256 MiB.
    let mut filter = vec![0; 38];
    for (at, number) in [(0, 1_u64 << 16), (8, 1 << 16), (24, 1)] {
        filter[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    for (at, number) in [(32, 1_u16), (34, 20), (36, 1 << 12)] {
        filter[at..at + 2].copy_from_slice(&number.to_le_bytes());
    }
    let slots = vec![1; 1 << 16];
    let position = (slots.len() + 1).to_string();
    let load = |client: &mut Client, key: &str, header: &[u8]| {
        assert_eq!(client.say(&[b"CF.LOADCHUNK", key.as_bytes(), b"1", header]), Reply::ok());
        let chunk = [&b"CF.LOADCHUNK"[..], key.as_bytes(), position.as_bytes(), &slots];
        assert_eq!(client.say(&chunk), Reply::ok());
    };
    let mut doubling = filter.clone();
    doubling[36..].copy_from_slice(&2_u16.to_le_bytes());
    for host in Host::ALL {
        let arguments = ["--maxmemory", "100mb", "--repl-diskless-sync-delay", "0"];
        let [server, replica] = [(); 2].map(|()| TestServer::start(host, &arguments));
        let mut client = server.connect();
        run(&mut replica.connect(), &format!("REPLICAOF 127.0.0.1 {}", server.port));
        load(&mut client, "k", &filter);
        for policy in ["noeviction", "allkeys-lru"] {
            run(&mut client, &format!("CONFIG SET maxmemory-policy {policy}"));
            for command in ["CF.ADD k new", "CF.ADDNX k new", "TM.ADD k new"] {
                assert_refused(&mut client, command, "OOM");
            }
            load(&mut client, "l", &doubling);
            assert_eq!(run(&mut client, "CF.ADD l new"), Reply::Integer(1), "{host:?}, {policy}");
            run(&mut client, "DEL l");
        }
        // The limit is the present one, and a replica follows its primary.
        run(&mut client, "CONFIG SET maxmemory 0");
        assert_eq!(run(&mut client, "CF.ADD k new"), Reply::Integer(1), "{host:?}");
        wait_for_replica(&server, &replica);
        assert_eq!(run(&mut replica.connect(), "CF.EXISTS k new"), Reply::Integer(1), "{host:?}");
    }
}
