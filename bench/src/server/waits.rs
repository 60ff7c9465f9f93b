//! Measures how long other clients wait during a command with a million items, and during a
//! snapshot of a large filter. Also measures how long all clients wait after a crash.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::ADD;
use super::load::{Load, ask, numbers, reserve};
use super::program::Program;
use super::request::{Connection, encode};
use crate::run::{Bench, Row};

pub const LONG: &str = "server, one core, longest PING beside a million items";
pub const SAVED: &str = "server, one core, 1 GiB filter saved, p99";
pub const RECOVERY: &str = "server, one core, start with a log of 20 M items";

pub fn long_commands(bench: &mut Bench) -> Result<(), String> {
    println!("\n{LONG}");
    let tamis = Program::tamis(&["--appendonly", "no"])?;
    ask(tamis.port, &["BF.RESERVE", "seen", "0.01", "100000000"])?;
    ask(tamis.port, &["CF.RESERVE", "cuckoo", "100000000"])?;
    let mut rows = vec![Row::new(LONG, "alone")];
    let names = ["BF.MADD seen", "BF.MEXISTS seen", "CF.INSERT cuckoo ITEMS", "BF.MADD grown"];
    rows.extend(names.map(|name| Row::new(LONG, &format!("beside {name}"))));
    for round in 0..bench.rounds {
        rows[0].rounds.push(longest_ping(tamis.port, || {
            std::thread::sleep(Duration::from_millis(300));
            Ok(())
        })?);
        for (name, row) in names.iter().zip(&mut rows[1..]) {
            let mut words: Vec<String> = name.split(' ').map(str::to_owned).collect();
            words.extend((0..1_000_000).map(|i| format!("{}", i + round * 1_000_000)));
            let bytes = encode(&words);
            row.rounds.push(longest_ping_beside(tamis.port, &bytes, 1_000_000)?);
        }
    }
    rows.push(beside_exec(&tamis, bench.rounds)?);
    bench.keep(rows);
    Ok(())
}

/// Measures the longest PING while a server runs an encoded command. The reply has `replies`
/// integers of one digit, or is an error if `replies` is 0.
pub fn longest_ping_beside(port: u16, command: &[u8], replies: usize) -> Result<f64, String> {
    longest_ping(port, || {
        let mut connection = Connection::open(port)?;
        connection.send(command)?;
        if replies == 0 {
            return match connection.line() {
                Ok(reply) => Err(format!("the server replied {reply} instead of an error")),
                Err(error) if error.is_empty() => Err("the server closed the connection".into()),
                Err(_) => Ok(()),
            };
        }
        // Each integer takes four bytes: ":1\r\n".
        connection.skip(replies * 4)
    })
}

/// Measures the longest PING during a transaction of a million commands.
fn beside_exec(tamis: &Program, rounds: usize) -> Result<Row, String> {
    let mut row = Row::new(LONG, "beside EXEC of a million BF.ADD");
    for round in 0..rounds {
        let mut connection = Connection::open(tamis.port)?;
        connection.send(b"MULTI\r\n")?;
        connection.line()?;
        for first in (0..1_000_000).step_by(1000) {
            let items = first..first + 1000;
            let queue = items.flat_map(|i| {
                encode(&["BF.ADD", "seen", &format!("{}", i + 50_000_000 + round * 1_000_000)])
            });
            connection.send(&queue.collect::<Vec<u8>>())?;
            (0..1000).try_for_each(|_| connection.line().map(drop))?;
        }
        row.rounds.push(longest_ping(tamis.port, || {
            connection.send(b"EXEC\r\n")?;
            // The reply has one line for the array, and one line for each command.
            (0..=1_000_000).try_for_each(|_| connection.line().map(drop))
        })?);
    }
    Ok(row)
}

/// Sends PING to a server while `work` runs. Returns the longest time until a reply, in
/// nanoseconds.
fn longest_ping(port: u16, work: impl FnOnce() -> Result<(), String>) -> Result<f64, String> {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let pings = threads.spawn(|| -> std::io::Result<Duration> {
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.set_nodelay(true)?;
            let (mut longest, mut reply) = (Duration::ZERO, [0; 7]);
            while !is_done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                stream.write_all(b"*1\r\n$4\r\nPING\r\n")?;
                stream.read_exact(&mut reply)?;
                longest = longest.max(begun.elapsed());
                std::thread::sleep(Duration::from_micros(100));
            }
            Ok(longest)
        });
        let worked = work();
        is_done.store(true, Ordering::Relaxed);
        let longest = pings.join().expect("it does not panic").map_err(|error| error.to_string());
        worked.and(longest.map(|longest| longest.as_nanos() as f64))
    })
}

pub fn snapshot(bench: &mut Bench) -> Result<(), String> {
    println!("\n{SAVED}");
    // The snapshot has its own thread, so the server gets both cores, as in production.
    let tamis = Program::tamis_on("0,1", &["--io-threads", "1"])?;
    let items = (8_u64 << 30) * 10 / 101;
    reserve(tamis.port, "seen", items, items / 20)?;
    let load = Load { pipeline: 1, range: items, ..Load::of(ADD) };
    let mut rows = [Row::new(SAVED, "BF.ADD"), Row::new(SAVED, "BF.ADD while it is saved")];
    let mut added_mib = 0.0_f64;
    for _ in 0..bench.rounds.min(3) {
        rows[0].rounds.push(load.send(tamis.port, 60_000)?.p99_millis * 1e6);
        let before = tamis.resident_bytes()?;
        ask(tamis.port, &["BGSAVE"])?;
        rows[1].rounds.push(load.send(tamis.port, 60_000)?.p99_millis * 1e6);
        let added = tamis.resident_bytes()?.saturating_sub(before);
        added_mib = added_mib.max(added as f64 / (1 << 20) as f64);
        let begun = Instant::now();
        while ask(tamis.port, &["SAVE"]).is_err() {
            if begun.elapsed() > Duration::from_secs(120) {
                return Err("a snapshot took over two minutes".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    rows[1].peak_mib = Some(added_mib);
    bench.keep(rows);
    Ok(())
}

pub fn recovery(bench: &mut Bench) -> Result<(), String> {
    println!("\n{RECOVERY}");
    // An automatic rewrite would leave no log to replay.
    let options = ["--appendfsync", "no", "--auto-aof-rewrite-min-size", "0"];
    let mut tamis = Program::tamis(&options)?;
    let items = 20_000_000;
    ask(tamis.port, &["BF.RESERVE", "seen", "0.01", "20000000"])?;
    let empty = tamis.restart(&options)?;
    numbers(tamis.port, "seen", 0..items)?;
    let mut rows = vec![Row::new(RECOVERY, "tamis")];
    for _ in 0..bench.rounds.min(3) {
        let took = tamis.restart(&options)?.saturating_sub(empty);
        rows[0].rounds.push(took.as_nanos() as f64 / items as f64);
        let held = ask(tamis.port, &["BF.CARD", "seen"])?;
        let held: u64 = held.trim_start_matches(':').parse().unwrap_or(0);
        // Some items were false positives when they were added. The server does not count these
        // items.
        if held < items * 98 / 100 {
            bench.wrong.push(format!("{RECOVERY}: {held} items came back"));
        }
    }
    bench.keep(rows);
    Ok(())
}
