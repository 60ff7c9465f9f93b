//! Compares `tamis serve` with Debian's Redis and RedisBloom. Each server runs alone on core 0. The
//! client of this bench runs on core 1, with fifty connections.
//!
//! A PyPI package contains RedisBloom. Without this package, the rows of RedisBloom are skipped.
//! Times are nanoseconds per command or per item.

pub mod bitmaps;
mod client;
mod hot;
mod load;
pub mod module;
pub mod program;
mod redisbloom;
mod request;
mod waits;

pub use hot::CASE as HOT;
use load::{Load, ask, commands, numbers, reserve, set_texts, used_memory};
use program::Program;
pub use redisbloom::{ONE, THOUSAND};
pub use waits::{LONG, RECOVERY, SAVED};

use crate::process::is_here;
use crate::run::{Bench, Row};

/// The planned number of items of the filters.
const ITEMS: u64 = 10_000_000;

/// Runs the server cases.
pub fn run(bench: &mut Bench) {
    hot::run(bench);
    let mut cases = RACES.iter().chain(&module::CASES).chain(&bitmaps::CASES);
    let alone = ALONE.iter().filter(|(case, _)| bench.wants(case));
    let alone: Vec<Measure> = alone.map(|(_, measure)| *measure).collect();
    if alone.is_empty() && !cases.any(|case| bench.wants(case)) {
        return;
    }
    for name in ["redis-server", "taskset"] {
        if !is_here(name) {
            println!("  {name} is not installed: the cases of the server are left out");
            return;
        }
    }
    let outcome = throughput(bench)
        .and_then(|()| redisbloom::run(bench))
        .and_then(|()| module::run(bench))
        .and_then(|()| bitmaps::run(bench))
        .and_then(|()| alone.iter().try_for_each(|measure| measure(bench)));
    if let Err(why) = outcome {
        bench.wrong.push(format!("server: {why}"));
    }
}

pub const PIPELINE_1: &str = "server, one core, pipeline 1";
pub const PIPELINE_16: &str = "server, one core, pipeline 16";
pub const PIPELINE_64: &str = "server, one core, pipeline 64";
pub const HUNDRED: &str = "server, one core, 100 items a command at pipeline 16";
pub const LOG: &str = "server, one core, BF.ADD at pipeline 64 with a log";
pub const LOG_16: &str = "server, one core, BF.ADD at pipeline 16 with a log";
pub const HASH_KEY: &str = "server, one core, hash key, 100 items a command at pipeline 16";
pub const LARGE: &str = "server, one core, 1 GiB filter at pipeline 64";
pub const MEMORY: &str = "server, memory at 10 M items, 1 %";
pub const KEYS: &str = "server, memory of small keys";

/// The cases that share servers.
const RACES: [&str; 6] = [PIPELINE_1, PIPELINE_16, PIPELINE_64, HUNDRED, ONE, THOUSAND];

/// Measures a case.
type Measure = fn(&mut Bench) -> Result<(), String>;

/// The cases that start their own servers.
const ALONE: [(&str, Measure); 9] = [
    (LOG, |bench| logged(bench, LOG, 64)),
    (LOG_16, |bench| logged(bench, LOG_16, 16)),
    (HASH_KEY, hash_key),
    (LARGE, large),
    (MEMORY, memory),
    (KEYS, small_keys),
    (LONG, waits::long_commands),
    (SAVED, waits::snapshot),
    (RECOVERY, waits::recovery),
];

/// One contender of a case: a name, the server, and the load.
type Contender<'a> = (&'a str, &'a Program, Load<'a>);

/// Measures the contenders in turn, for several rounds.
fn race(bench: &mut Bench, case: &str, contenders: &[Contender<'_>]) -> Result<(), String> {
    println!("\n{case}");
    let mut rows: Vec<Row> = contenders.iter().map(|(name, ..)| Row::new(case, name)).collect();
    let commands = |load: &Load<'_>| load.commands(bench.quick);
    let encoded: Vec<_> =
        contenders.iter().map(|(.., load)| load.encoded(commands(load))).collect();
    for _ in 0..bench.rounds {
        for (((_, program, load), batches), row) in contenders.iter().zip(&encoded).zip(&mut rows) {
            let measured = batches.send(program.port, commands(load))?;
            row.rounds.push(measured.nanos / load.items as f64);
        }
    }
    bench.keep(rows);
    Ok(())
}

const ADD: &[&str] = &["BF.ADD", "seen", "__rand_int__"];
const EXISTS: &[&str] = &["BF.EXISTS", "seen", "__rand_int__"];
const GET: &[&str] = &["GET", "__rand_int__"];

/// Returns a command with a hundred items.
fn of_hundred(name: &str) -> Vec<&str> {
    [name, "seen"].into_iter().chain(std::iter::repeat_n("__rand_int__", 100)).collect()
}

/// Measures single commands in pipelines, and commands with a hundred items.
fn throughput(bench: &mut Bench) -> Result<(), String> {
    let mut wanted = vec![(1, PIPELINE_1), (16, PIPELINE_16), (64, PIPELINE_64)];
    wanted.retain(|(_, case)| bench.wants(case));
    if wanted.is_empty() && !bench.wants(HUNDRED) {
        return Ok(());
    }
    let module = redisbloom::module();
    let redis = match &module {
        Ok(module) => Program::redis_with(module)?,
        Err(why) => {
            println!("  RedisBloom: left out: {why}");
            Program::redis()?
        }
    };
    let tamis = Program::tamis(&["--appendonly", "no"])?;
    for program in [&redis, &tamis] {
        set_texts(program.port)?;
        if program.port == tamis.port || module.is_ok() {
            reserve(program.port, "seen", ITEMS, ITEMS)?;
        }
    }
    for (pipeline, case) in wanted {
        let of = |words| Load { pipeline, range: ITEMS, ..Load::of(words) };
        // The reply to GET has an additional line for the length.
        let get = Load { range: 1_000_000, reply_lines: 2, ..of(GET) };
        let mut contenders = vec![
            ("redis PING", &redis, of(&["PING"])),
            ("redis GET", &redis, get),
            ("tamis PING", &tamis, of(&["PING"])),
            ("tamis GET", &tamis, get),
            ("tamis BF.ADD", &tamis, of(ADD)),
            ("tamis BF.EXISTS", &tamis, of(EXISTS)),
        ];
        if module.is_ok() {
            contenders.push(("redisbloom BF.ADD", &redis, of(ADD)));
            contenders.push(("redisbloom BF.EXISTS", &redis, of(EXISTS)));
        }
        race(bench, case, &contenders)?;
    }
    if bench.wants(HUNDRED) {
        race_hundred(bench, HUNDRED, &tamis, module.is_ok().then_some(&redis))?;
    }
    Ok(())
}

/// Measures commands with a hundred items, beside RedisBloom if RedisBloom is installed.
fn race_hundred(
    bench: &mut Bench,
    case: &str,
    tamis: &Program,
    redisbloom: Option<&Program>,
) -> Result<(), String> {
    let (exists, add) = (of_hundred("BF.MEXISTS"), of_hundred("BF.MADD"));
    let of = |words| Load { pipeline: 16, range: ITEMS, ..Load::hundred(words) };
    let mut contenders =
        vec![("tamis BF.MEXISTS", tamis, of(&exists)), ("tamis BF.MADD", tamis, of(&add))];
    if let Some(redisbloom) = redisbloom {
        contenders.push(("redisbloom BF.MEXISTS", redisbloom, of(&exists)));
        contenders.push(("redisbloom BF.MADD", redisbloom, of(&add)));
    }
    race(bench, case, &contenders)
}

/// Measures the cost of the log: each batch of commands is written to the file before its reply.
fn logged(bench: &mut Bench, case: &str, pipeline: u32) -> Result<(), String> {
    let without = Program::tamis(&["--appendonly", "no"])?;
    let everysec = Program::tamis(&["--appendfsync", "everysec"])?;
    let always = Program::tamis(&["--appendfsync", "always"])?;
    for program in [&without, &everysec, &always] {
        // Most items are new, so most adds are logged. The filter never becomes full.
        reserve(program.port, "seen", 10 * ITEMS, ITEMS)?;
    }
    let load = Load { pipeline, range: 1_000_000_000, ..Load::of(ADD) };
    let contenders = [
        ("no log, BF.ADD", &without, load),
        ("everysec, BF.ADD", &everysec, load),
        ("always, BF.ADD", &always, load),
    ];
    race(bench, case, &contenders)
}

/// Measures the cost of the secret hash key: SipHash-1-3 instead of the default hash.
fn hash_key(bench: &mut Bench) -> Result<(), String> {
    let keyed = Program::tamis(&["--appendonly", "no"])?;
    let unkeyed = Program::tamis(&["--appendonly", "no", "--hash-key", "none"])?;
    for program in [&keyed, &unkeyed] {
        reserve(program.port, "seen", ITEMS, ITEMS)?;
    }
    let (exists, add) = (of_hundred("BF.MEXISTS"), of_hundred("BF.MADD"));
    let many = |words| Load { pipeline: 16, range: ITEMS, ..Load::hundred(words) };
    let one = Load { pipeline: 16, range: ITEMS, ..Load::of(EXISTS) };
    let contenders = [
        ("no key, BF.MEXISTS", &unkeyed, many(&exists)),
        ("random key, BF.MEXISTS", &keyed, many(&exists)),
        ("no key, BF.MADD", &unkeyed, many(&add)),
        ("random key, BF.MADD", &keyed, many(&add)),
        ("no key, BF.EXISTS of one", &unkeyed, one),
        ("random key, BF.EXISTS of one", &keyed, one),
    ];
    race(bench, HASH_KEY, &contenders)
}

/// Measures a filter that is larger than every cache.
fn large(bench: &mut Bench) -> Result<(), String> {
    let tamis = Program::tamis(&["--appendonly", "no"])?;
    // A filter with a rate of 1 % needs 10.1 bits per item.
    let items = (8_u64 << 30) * 10 / 101;
    reserve(tamis.port, "small", ITEMS, ITEMS)?;
    // The adds touch every page once.
    reserve(tamis.port, "seen", items, items / 20)?;
    let of = |words, range| Load { pipeline: 64, range, ..Load::of(words) };
    let contenders = [
        ("small, BF.ADD", &tamis, of(&["BF.ADD", "small", "__rand_int__"], ITEMS)),
        ("small, BF.EXISTS", &tamis, of(&["BF.EXISTS", "small", "__rand_int__"], ITEMS)),
        ("1 GiB, BF.ADD", &tamis, of(ADD, items)),
        ("1 GiB, BF.EXISTS", &tamis, of(EXISTS, items)),
    ];
    race(bench, LARGE, &contenders)
}

/// Measures the memory of a reserved filter and of a growing filter: the result of `MEMORY USAGE`,
/// beside the resident memory of the process.
fn memory(bench: &mut Bench) -> Result<(), String> {
    println!("\n{MEMORY}");
    let bits = |bytes: u64, items: u64| bytes as f64 * 8.0 / items as f64;
    let usage = |program: &Program| -> Result<u64, String> {
        let reply = ask(program.port, &["MEMORY", "USAGE", "seen"])?;
        reply.trim_start_matches(':').parse().map_err(|_| format!("MEMORY USAGE: {reply}"))
    };
    let reserved = Program::tamis(&["--appendonly", "no"])?;
    let empty = reserved.resident_bytes()?;
    reserve(reserved.port, "seen", ITEMS, ITEMS)?;
    let resident = reserved.resident_bytes()?.saturating_sub(empty);
    let of = |name, bits| Row { bits_per_item: Some(bits), ..Row::new(MEMORY, name) };
    let mut rows = vec![
        of("tamis, reserved", bits(usage(&reserved)?, ITEMS)),
        of("tamis, reserved, resident", bits(resident, ITEMS)),
    ];
    let grown = Program::tamis(&["--appendonly", "no"])?;
    let (mut sum, mut worst, mut steps) = (0.0, 0.0_f64, 0);
    let mut items = 0;
    while items < ITEMS {
        // Adds a twentieth of the current items.
        let more = (items / 20).max(5000);
        numbers(grown.port, "seen", items..items + more)?;
        items += more;
        if items >= 100_000 {
            let bits = bits(usage(&grown)?, items);
            sum += bits;
            worst = worst.max(bits);
            steps += 1;
        }
    }
    let resident = grown.resident_bytes()?.saturating_sub(empty);
    rows.push(of("tamis, grown, average", sum / f64::from(steps)));
    rows.push(of("tamis, grown, worst moment", worst));
    rows.push(of("tamis, grown, resident", bits(resident, items)));
    bench.keep(rows);
    Ok(())
}

/// Measures the resident memory per key, in bits, beside Redis. The keys hold short strings, or
/// filters of a hundred items.
fn small_keys(bench: &mut Bench) -> Result<(), String> {
    println!("\n{KEYS}");
    let (strings, filters) = if bench.quick { (600_000, 82_000) } else { (6_000_000, 820_000) };
    let set: &dyn Fn(u64) -> Vec<String> =
        &|i| vec!["SET".to_owned(), format!("k{i}"), "x".to_owned()];
    let reserve: &dyn Fn(u64) -> Vec<String> =
        &|i| ["BF.RESERVE".to_owned(), format!("f{i}"), "0.01".to_owned(), "100".to_owned()].into();
    let mut rows = Vec::new();
    for (name, is_redis, count, command) in [
        ("redis, SET", true, strings, set),
        ("tamis, SET", false, strings, set),
        ("tamis, BF.RESERVE of 100 items", false, filters, reserve),
    ] {
        let program = match is_redis {
            true => Program::redis()?,
            false => Program::tamis(&["--appendonly", "no"])?,
        };
        let empty = program.resident_bytes()?;
        commands(program.port, count, command)?;
        let resident = program.resident_bytes()?.saturating_sub(empty);
        let used = used_memory(program.port)?;
        let bits = |bytes: u64| Some(bytes as f64 * 8.0 / count as f64);
        rows.push(Row { bits_per_item: bits(resident), ..Row::new(KEYS, name) });
        let name = format!("{name}, used_memory");
        rows.push(Row { bits_per_item: bits(used), ..Row::new(KEYS, &name) });
    }
    bench.keep(rows);
    Ok(())
}
