//! The module of Tamis beside RedisBloom's module, each in Debian's Redis.

use super::load::{Load, ask, commands, fill};
use super::program::Program;
use super::{ADD, EXISTS, GET, ITEMS, race, redisbloom};
use crate::run::Bench;

pub const PIPELINE_1: &str = "module in Redis, pipeline 1";
pub const PIPELINE_16: &str = "module in Redis, pipeline 16";
pub const PIPELINE_64: &str = "module in Redis, pipeline 64";
pub const HUNDRED: &str = "module in Redis, 100 items a command at pipeline 16";

pub const CASES: [&str; 4] = [PIPELINE_1, PIPELINE_16, PIPELINE_64, HUNDRED];

/// Runs the cases.
pub fn run(bench: &mut Bench) -> Result<(), String> {
    if !CASES.iter().any(|case| bench.wants(case)) {
        return Ok(());
    }
    let module = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release"));
    let module = module.join("libtamis.so");
    if !module.exists() {
        println!("  the module is not built: its cases are left out");
        return Ok(());
    }
    let tamis = Program::redis_with(&module)?;
    let redisbloom = redisbloom::module().and_then(|module| Program::redis_with(&module));
    let redisbloom = match &redisbloom {
        Ok(program) => Some(program),
        Err(why) => {
            println!("  RedisBloom: left out: {why}");
            None
        }
    };
    for program in [Some(&tamis), redisbloom].into_iter().flatten() {
        ask(program.port, &["BF.RESERVE", "seen", "0.01", &ITEMS.to_string()])?;
        fill(program.port, "seen", ITEMS)?;
    }
    commands(tamis.port, 1_000_000, |i| {
        vec!["SET".to_owned(), format!("{i:012}"), "xxx".to_owned()]
    })?;
    for (pipeline, case) in [(1, PIPELINE_1), (16, PIPELINE_16), (64, PIPELINE_64)] {
        if !bench.wants(case) {
            continue;
        }
        let of = |words| Load { pipeline, range: ITEMS, ..Load::of(words) };
        // The reply to GET has a line for the length.
        let get = Load { range: 1_000_000, reply_lines: 2, ..of(GET) };
        // A module command that finds no key: the cost of the interface.
        let absent = of(&["BF.EXISTS", "absent", "__rand_int__"]);
        let mut contenders = vec![
            ("redis GET", &tamis, get),
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
        let many = |name| -> Vec<&str> {
            [name, "seen"].into_iter().chain(std::iter::repeat_n("__rand_int__", 100)).collect()
        };
        let (exists, add) = (many("BF.MEXISTS"), many("BF.MADD"));
        let of = |words| Load { pipeline: 16, range: ITEMS, ..Load::hundred(words) };
        let mut contenders =
            vec![("tamis BF.MEXISTS", &tamis, of(&exists)), ("tamis BF.MADD", &tamis, of(&add))];
        if let Some(redisbloom) = redisbloom {
            contenders.push(("redisbloom BF.MEXISTS", redisbloom, of(&exists)));
            contenders.push(("redisbloom BF.MADD", redisbloom, of(&add)));
        }
        race(bench, HUNDRED, &contenders)?;
    }
    Ok(())
}
