//! Compares the module of Tamis with the module of RedisBloom, each in Debian's Redis.

use super::load::{Load, reserve, set_texts};
use super::program::Program;
use super::request::encode;
use super::waits::longest_ping_beside;
use super::{ADD, EXISTS, GET, ITEMS, race, race_hundred, redisbloom};
use crate::process::root;
use crate::run::{Bench, Row};

pub const PIPELINE_1: &str = "module in Redis, pipeline 1";
pub const PIPELINE_16: &str = "module in Redis, pipeline 16";
pub const PIPELINE_64: &str = "module in Redis, pipeline 64";
pub const HUNDRED: &str = "module in Redis, 100 items a command at pipeline 16";

pub const LONG: &str = "module in Redis, longest PING beside a million items";

/// The row of the no-op command of `bench/noop`.
pub const NOOP: &str = "floor: no-op module command";

pub const CASES: [&str; 5] = [PIPELINE_1, PIPELINE_16, PIPELINE_64, HUNDRED, LONG];

/// Runs the selected cases of the module.
pub fn run(bench: &mut Bench) -> Result<(), String> {
    if !CASES.iter().any(|case| bench.wants(case)) {
        return Ok(());
    }
    let [module, noop] =
        ["libtamis.so", "libnoop.so"].map(|file| root().join("target/release").join(file));
    if !module.exists() || !noop.exists() {
        println!("  the module is not built: its cases are left out");
        return Ok(());
    }
    let tamis = Program::redis_with(&module)?;
    let noop = Program::redis_with(&noop)?;
    let redisbloom = redisbloom::module().and_then(|module| Program::redis_with(&module));
    let redisbloom = match &redisbloom {
        Ok(program) => Some(program),
        Err(why) => {
            println!("  RedisBloom: left out: {why}");
            None
        }
    };
    for program in [Some(&tamis), redisbloom].into_iter().flatten() {
        reserve(program.port, "seen", ITEMS, ITEMS)?;
    }
    set_texts(tamis.port)?;
    for (pipeline, case) in [(1, PIPELINE_1), (16, PIPELINE_16), (64, PIPELINE_64)] {
        if !bench.wants(case) {
            continue;
        }
        let of = |words| Load { pipeline, range: ITEMS, ..Load::of(words) };
        // The reply to GET has an additional line for the length.
        let get = Load { range: 1_000_000, reply_lines: 2, ..of(GET) };
        let floor = of(&["NOOP", "seen", "__rand_int__"]);
        // Without the key, the command hashes and tests nothing.
        let absent = of(&["BF.EXISTS", "absent", "__rand_int__"]);
        let mut contenders = vec![
            ("redis GET", &tamis, get),
            (NOOP, &noop, floor),
            ("tamis BF.EXISTS, absent key", &tamis, absent),
            ("tamis BF.ADD", &tamis, of(ADD)),
            ("tamis BF.EXISTS", &tamis, of(EXISTS)),
        ];
        if let Some(redisbloom) = redisbloom {
            contenders.push(("redisbloom BF.EXISTS, absent key", redisbloom, absent));
            contenders.push(("redisbloom BF.ADD", redisbloom, of(ADD)));
            contenders.push(("redisbloom BF.EXISTS", redisbloom, of(EXISTS)));
        }
        race(bench, case, &contenders)?;
    }
    if bench.wants(HUNDRED) {
        race_hundred(bench, HUNDRED, &tamis, redisbloom)?;
    }
    if bench.wants(LONG) {
        bench.keep(waits(&tamis, bench.rounds)?);
    }
    Ok(())
}

/// Measures the longest PING beside commands with a million arguments. The floor is a PING command
/// with a million arguments: the server rejects this command and only frees its arguments.
fn waits(tamis: &Program, rounds: usize) -> Result<Vec<Row>, String> {
    println!("\n{LONG}");
    let names = [("PING", 0), ("BF.MADD seen", MILLION), ("BF.MEXISTS seen", MILLION)];
    let mut rows = Vec::new();
    for (name, replies) in names {
        let mut row = Row::new(LONG, &format!("beside {name}"));
        for round in 0..rounds {
            let items = (0..MILLION).map(|i| (i + round * MILLION).to_string());
            let words: Vec<String> = name.split(' ').map(str::to_owned).chain(items).collect();
            row.rounds.push(longest_ping_beside(tamis.port, &encode(&words), replies)?);
        }
        rows.push(row);
    }
    Ok(rows)
}

const MILLION: usize = 1_000_000;
