//! Defines the targets of Tamis. Most targets are ratios within one run, because times depend on
//! the machine.

use crate::batches;
use crate::formats::READING;
use crate::guard;
use crate::run::Row;
use crate::server::{
    HOT, HUNDRED, KEYS, LARGE, LOG, LOG_16, LONG, MEMORY, ONE, PIPELINE_1, PIPELINE_16,
    PIPELINE_64, RECOVERY, SAVED, THOUSAND,
};
use crate::server::{bitmaps, module};

/// A target for one row of the results.
pub struct Target {
    case: &'static str,
    ours: &'static str,
    demand: Demand,
}

enum Demand {
    /// At most this many times the time of another row of the case.
    Time(&'static str, f64),
    /// At most this many bits per item.
    Bits(f64),
    /// At most this many bits per item above the information bound, log2(1 / measured rate).
    Above(f64),
    /// At most this measured rate.
    Rate(f64),
    /// At most this many MiB.
    Peak(f64),
    /// At most this many nanoseconds.
    Nanos(f64),
    /// At most this many nanoseconds more than another row of the case.
    Added(&'static str, f64),
}

use Demand::{Above, Added, Bits, Nanos, Peak, Rate, Time};

const fn target(case: &'static str, ours: &'static str, demand: Demand) -> Target {
    Target { case, ours, demand }
}

const FLOOR: &str = "floor: hash, one bit";
const LINE: &str = "floor: random line";
const RBLOOM_1_M: &str = "format rbloom 1 M ready hashes at 1 %";
const RBLOOM_10_M: &str = "format rbloom 10 M ready hashes at 1 %";
const GROWTH: &str = "family growing from 100 k to 10 M ints at 1 %";
const MODIFIED: &str = "floor: random line, modified";
const NATIVE_SINGLE: &str = "single, build for this CPU";
const NATIVE_BATCH: &str = "batch, build for this CPU";

// A rate that is measured with 2^20 absent items has a relative standard error of one percent, so
// targets allow four percent more. If a later target is less strict, the earlier target stays.
const TARGETS: &[Target] = &[
    target(guard::ABSENT, guard::TAMIS, Time(guard::NGINX, 1.0)),
    target(guard::ABSENT_P99, guard::TAMIS, Time(guard::NGINX, 1.2)),
    target(guard::AUTHORIZE, guard::TAMIS, Time(guard::NGINX_204, 1.0)),
    target(guard::AUTHORIZE_P99, guard::TAMIS, Time(guard::NGINX_204, 1.2)),
    target(guard::ABSENT, guard::TAMIS, Peak(40.0)),
    // This ratio means three times the requests per second of the site without a guard.
    target(guard::BESIDE_ABSENT, guard::beside::WITH, Time(guard::beside::WITHOUT, 0.333)),
    target(guard::BESIDE_ATTACK, guard::beside::ATTACKED, Time(guard::beside::QUIET, 1.2)),
    // This ratio means 1.1 times the requests per second of HAProxy.
    target(guard::PRESENT, guard::TAMIS, Time(guard::HAPROXY, 0.91)),
    target(guard::REBUILD, guard::rebuild::REBUILDING, Time(guard::rebuild::QUIET, 1.1)),
    target(guard::ATTACK, guard::attack::ATTACKED, Time(guard::attack::QUIET, 1.1)),
    target(guard::ATTACK, guard::attack::ATTACKED, Rate(0.001)),
    target(guard::READ_MARIADB, guard::TAMIS, Time("mariadb --quick", 2.2)),
    target(guard::READ_POSTGRES, guard::TAMIS, Time("psql COPY", 1.5)),
    target(guard::RESTART_MARIADB, guard::TAMIS, Nanos(1e9)),
    target(guard::RESTART_POSTGRES, guard::TAMIS, Nanos(1e9)),
    target(guard::COMMIT_MARIADB, guard::TAMIS, Nanos(5e6)),
    target(guard::COMMIT_POSTGRES, guard::TAMIS, Nanos(5e6)),
    target("format guava 1 M longs at 1 %", "tamis, batch", Time("guava, warm JVM", 0.5)),
    target("format guava 10 M longs at 1 %", "tamis, batch", Time("guava, warm JVM", 0.5)),
    target(RBLOOM_1_M, "tamis, batch", Time("rbloom, loop of Python, own hash", 0.5)),
    target(RBLOOM_1_M, "tamis, batch", Time("rbloom, loop of Python, given hash", 0.5)),
    target(RBLOOM_10_M, "tamis, batch", Time("rbloom, loop of Python, own hash", 0.5)),
    target(RBLOOM_10_M, "tamis, batch", Time("rbloom, loop of Python, given hash", 0.5)),
    target(
        "format pybloom-live 1 M texts at 1 %",
        "tamis, batch",
        Time("pybloom_live, loop of Python", 0.5),
    ),
    target(
        "format pybloom-live 10 M texts at 1 %",
        "tamis, batch",
        Time("pybloom_live, loop of Python", 0.5),
    ),
    // One nanosecond per byte is one gigabyte per second.
    target(READING, "guava", Nanos(1.0)),
    target(READING, "redisbloom", Nanos(1.0)),
    target(READING, "redis-bitmaps", Nanos(1.0)),
    target(READING, "redisson", Nanos(1.0)),
    target(READING, "parquet", Nanos(1.0)),
    target(READING, "spark", Nanos(1.0)),
    target(READING, "byte-buffer", Nanos(1.0)),
    target(READING, "pybloom-live", Nanos(1.0)),
    target(READING, "pybloomfiltermmap", Nanos(1.0)),
    target(READING, "rbloom", Nanos(1.0)),
    target("single hit 10 k ints at 1 %", "tamis", Time(FLOOR, 1.0)),
    target("single miss 10 k ints at 1 %", "tamis", Time(FLOOR, 1.0)),
    target("single hit 1 M ints at 1 %", "tamis", Time(FLOOR, 1.0)),
    target("single miss 1 M ints at 1 %", "tamis", Time(FLOOR, 1.0)),
    target("single hit 10 k ints at 1 %", "tamis", Bits(10.15)),
    target("single hit 10 k ints at 1 %", "tamis", Rate(0.0104)),
    target("single hit 1 M ints at 1 %", "tamis", Bits(10.15)),
    target("single hit 1 M ints at 1 %", "tamis", Rate(0.0104)),
    target("single hit 1 M ints at 0.1 %", "tamis", Bits(15.8)),
    target("single hit 1 M ints at 0.1 %", "tamis", Rate(0.00113)),
    target("single mixed 10 k ints at 1 %", "tamis", Time("sbbf-rs", 1.05)),
    target("single mixed 1 M ints at 1 %", "tamis", Time("sbbf-rs", 1.05)),
    target("single mixed 10 M ints at 1 %", "tamis", Time("sbbf-rs", 1.0)),
    target("batch mixed 10 k ints at 1 %", "tamis", Time("sbbf-rs", 0.5)),
    target("batch mixed 10 k ints at 1 %", "tamis", Time("sbbf-rs", 1.0 / 3.0)),
    target("batch mixed 10 k ints at 1 %", "tamis", Time("fastbloom", 1.0 / 15.0)),
    target("batch mixed 1 M ints at 1 %", "tamis", Time("sbbf-rs", 0.8)),
    target("batch mixed 1 M ints at 1 %", "tamis", Time("sbbf-rs", 1.0 / 3.0)),
    target("batch mixed 1 M ints at 1 %", "tamis", Time("fastbloom", 1.0 / 15.0)),
    target("batch mixed 10 M ints at 1 %", "tamis", Time("sbbf-rs", 0.36)),
    target("batch mixed 100 M ints at 1 %", "tamis", Time(LINE, 1.15)),
    target("batch mixed 100 M ints at 1 %", "tamis", Time("sbbf-rs", 0.25)),
    target("batch mixed 100 M ints at 1 %", "tamis", Time("fastbloom", 0.1)),
    target("single mixed 100 M ints at 1 %", "tamis", Time(LINE, 3.0)),
    target("batch mixed 1 M ints at 1 %", "tamis", Time("sbbf-rs", 0.7)),
    target("lookups beside batches, 10 k ints", NATIVE_BATCH, Time("batch", 1.1)),
    target("plan 1 items", "tamis at 1e-2", Nanos(1000.0)),
    target("plan 1 items", "tamis at 1e-9", Nanos(1000.0)),
    target("plan 100 items", "tamis at 1e-2", Nanos(1000.0)),
    target("plan 100 items", "tamis at 1e-9", Nanos(1000.0)),
    target("plan 1 M items", "tamis at 1e-2", Nanos(1000.0)),
    target("plan 1 M items", "tamis at 1e-9", Nanos(1000.0)),
    target("plan 1000 M items", "tamis at 1e-2", Nanos(1000.0)),
    target("plan 1000 M items", "tamis at 1e-9", Nanos(1000.0)),
    target("insert 10 k ints streamed at 1 %", "tamis", Time("sbbf-rs", 1.0)),
    target("insert 10 k ints streamed at 1 %", "tamis", Time("sbbf-rs", 0.8)),
    target("insert 10 k ints streamed at 1 %", "tamis, one by one", Time("sbbf-rs", 1.3)),
    target("insert 1 M ints streamed at 1 %", "tamis", Time("sbbf-rs", 1.0)),
    target("insert 1 M ints streamed at 1 %", "tamis", Time("sbbf-rs", 0.8)),
    target("insert 1 M ints streamed at 1 %", "tamis, one by one", Time("sbbf-rs", 1.3)),
    target("insert 100 M ints streamed at 1 %", "tamis", Time(MODIFIED, 1.3)),
    target("build 100 M ints at 1 %", "tamis, 1 thread", Time("sbbf-rs", 0.25)),
    target("build 100 M ints at 1 %", "tamis, 1 thread", Time("fastbloom", 1.0 / 15.0)),
    target("build 100 M ints at 1 %", "tamis, 2 threads", Time("tamis, 1 thread", 1.0 / 1.5)),
    target(
        "shared insert 1 M ints at 1 %",
        "tamis, batches, 1 thread",
        Time("fastbloom, 1 thread", 0.2),
    ),
    target(
        "shared insert 1 M ints at 1 %",
        "tamis, batches, 2 threads",
        Time("tamis, batches, 1 thread", 1.0 / 1.8),
    ),
    target("single mixed 1 M urls at 1 %", "tamis", Time("sbbf-rs", 0.9)),
    target("single mixed 1 M urls at 1 %", "tamis", Time("sbbf-rs", 0.75)),
    target("single mixed 1 M uuids at 1 %", "tamis", Time("sbbf-rs", 0.9)),
    target("single mixed 1 M uuids at 1 %", "tamis", Time("sbbf-rs", 0.75)),
    target("batch mixed 1 M urls at 1 %", "tamis", Time("sbbf-rs", 0.4)),
    target("batch mixed 1 M uuids at 1 %", "tamis", Time("sbbf-rs", 0.4)),
    target("batch mixed 10 M urls at 1 %", "tamis", Time("sbbf-rs", 1.0 / 3.0)),
    target("batch mixed 10 M uuids at 1 %", "tamis", Time("sbbf-rs", 1.0 / 3.0)),
    target("family single mixed 1 M ints at 1 %", "tamis cuckoo", Above(3.0)),
    target("family single mixed 10 M ints at 1 %", "tamis cuckoo", Above(3.0)),
    target("family single mixed 1 M ints at 1 %", "tamis cuckoo", Time("tamis", 2.5)),
    target("family batch mixed 1 M ints at 1 %", "tamis cuckoo", Time("tamis", 2.5)),
    target("family single mixed 10 M ints at 1 %", "tamis cuckoo", Time("tamis", 2.5)),
    target("family batch mixed 10 M ints at 1 %", "tamis cuckoo", Time("tamis", 2.5)),
    target("family insert 1 M ints streamed at 1 %", "tamis cuckoo", Time("cuckoofilter", 0.5)),
    target("family insert 10 M ints streamed at 1 %", "tamis cuckoo", Time("cuckoofilter", 0.5)),
    target("family single mixed 1 M ints at 1 %", "tamis counting", Bits(46.9)),
    target("family insert 1 M ints streamed at 1 %", "tamis counting", Time("tamis", 2.0)),
    target("family insert 10 M ints streamed at 1 %", "tamis counting", Time("tamis", 2.0)),
    target("family delete 1 M ints at 1 %", "tamis counting", Time("tamis, inserting", 2.0)),
    target("family delete 10 M ints at 1 %", "tamis counting", Time("tamis, inserting", 2.0)),
    target("family single mixed 1 M ints at 1 %", "tamis window", Bits(25.3)),
    target("family single mixed 1 M ints at 1 %", "tamis window", Time("tamis", 3.0)),
    target("family batch mixed 1 M ints at 1 %", "tamis window", Time("tamis", 3.0)),
    target("family single mixed 10 M ints at 1 %", "tamis window", Time("tamis", 3.0)),
    target("family batch mixed 10 M ints at 1 %", "tamis window", Time("tamis", 3.0)),
    target("family insert 1 M ints streamed at 1 %", "tamis window", Time("tamis", 3.0)),
    target("family insert 10 M ints streamed at 1 %", "tamis window", Time("tamis", 3.0)),
    target("family single mixed 1 M ints at 1 %", "tamis growing", Time("tamis", 3.0)),
    target("family single mixed 10 M ints at 1 %", "tamis growing", Time("tamis", 3.0)),
    target("family batch mixed 10 M ints at 1 %", "tamis growing", Time("tamis", 3.0)),
    target("family insert 1 M ints streamed at 1 %", "tamis growing", Time("tamis", 6.0)),
    target("family insert 1 M ints streamed at 1 %", "tamis growing", Time("tamis", 4.0)),
    target("family insert 10 M ints streamed at 1 %", "tamis growing", Time("tamis", 6.0)),
    target("family insert 10 M ints streamed at 1 %", "tamis growing", Time("tamis", 4.0)),
    target(GROWTH, "tamis growing, on average", Bits(16.0)),
    target(GROWTH, "tamis growing, at the worst moment", Bits(24.0)),
    target(GROWTH, "tamis growing, at the worst moment", Rate(0.01)),
    target(
        "repeats in 1000 M random u32, exact",
        "tamis, 1 thread",
        Time("naive test-and-set", 0.3),
    ),
    target(
        "repeats in 1000 M random u32, exact",
        "tamis, 2 threads",
        Time("naive test-and-set", 0.2),
    ),
    target("dedup of 20 M URL lines", "tamis dedup", Time("cat", 2.2)),
    target("dedup of 20 M URL lines", "tamis dedup", Peak(200.0)),
    target("dedup of 20 M URL lines", "tamis dedup --full", Time("cat", 6.0)),
    target("dedup of 20 M URL lines", "tamis dedup --approx", Time("cat", 1.4)),
    target("dedup of 20 M URL lines", "tamis dedup --approx", Peak(45.0)),
    target("ints of 100 M u32 as text", "tamis ints uniq", Time("cat", 6.0)),
    target("ints of 100 M u32 as text", "tamis ints uniq", Peak(530.0)),
    target("ints of 100 M u32 as text", "tamis ints dups", Time("cat", 6.0)),
    target("ints of 100 M u32 as text", "tamis ints dups", Peak(1075.0)),
    target(PIPELINE_1, "tamis PING", Time("redis PING", 1.0)),
    target(PIPELINE_1, "tamis BF.ADD", Time("redisbloom BF.ADD", 1.0 / 1.1)),
    target(PIPELINE_1, "tamis BF.EXISTS", Time("redisbloom BF.EXISTS", 1.0 / 1.1)),
    target(PIPELINE_16, "tamis PING", Time("redis PING", 1.0)),
    target(PIPELINE_16, "tamis BF.ADD", Time("redisbloom BF.ADD", 1.0 / 1.6)),
    target(PIPELINE_16, "tamis BF.EXISTS", Time("redisbloom BF.EXISTS", 1.0 / 1.6)),
    target(PIPELINE_64, "tamis BF.ADD", Time("redisbloom BF.ADD", 1.0 / 3.0)),
    target(PIPELINE_64, "tamis BF.EXISTS", Time("redisbloom BF.EXISTS", 1.0 / 3.0)),
    target(HUNDRED, "tamis BF.MEXISTS", Time("redisbloom BF.MEXISTS", 1.0 / 8.0)),
    target(HUNDRED, "tamis BF.MADD", Time("redisbloom BF.MADD", 1.0 / 6.0)),
    target(THOUSAND, "tamis, filter of redisbloom", Time("redisbloom", 0.5)),
    target(ONE, "tamis, filter of redisbloom", Time("redisbloom", 0.5)),
    target(LARGE, "1 GiB, BF.ADD", Time("small, BF.ADD", 1.0 / 0.7)),
    target(LARGE, "1 GiB, BF.EXISTS", Time("small, BF.EXISTS", 1.0 / 0.7)),
    target(HOT, "tamis BF.ADD, 2 threads", Time("tamis BF.ADD, 1 thread", 1.0 / 1.8)),
    target(HOT, "tamis BF.EXISTS, 2 threads", Time("tamis BF.EXISTS, 1 thread", 1.0 / 1.8)),
    target(LOG, "everysec, BF.ADD", Time("no log, BF.ADD", 1.0 / 0.85)),
    target(LOG_16, "everysec, BF.ADD", Time("no log, BF.ADD", 1.1)),
    target(KEYS, "tamis, BF.RESERVE of 100 items", Bits(8.0 * 300.0)),
    target(LONG, "beside BF.MADD seen", Nanos(5e6)),
    target(LONG, "beside BF.MEXISTS seen", Nanos(5e6)),
    target(LONG, "beside CF.INSERT cuckoo ITEMS", Nanos(5e6)),
    target(LONG, "beside BF.MADD grown", Nanos(5e6)),
    target(SAVED, "BF.ADD while it is saved", Added("BF.ADD", 2e6)),
    target(SAVED, "BF.ADD while it is saved", Peak(51.0)),
    target(RECOVERY, "tamis", Nanos(50.0)),
    target(MEMORY, "tamis, reserved", Bits(10.8)),
    target(MEMORY, "tamis, grown, average", Bits(16.0)),
    target(MEMORY, "tamis, grown, worst moment", Bits(24.0)),
    target(module::PIPELINE_1, "tamis BF.ADD", Time("redisbloom BF.ADD", 1.0)),
    target(module::PIPELINE_1, "tamis BF.EXISTS", Time("redisbloom BF.EXISTS", 1.0)),
    target(module::PIPELINE_1, "tamis BF.EXISTS", Time("redis GET", 1.0)),
    target(module::PIPELINE_16, "tamis BF.ADD", Time("redisbloom BF.ADD", 1.0 / 1.2)),
    target(module::PIPELINE_16, "tamis BF.EXISTS", Time("redisbloom BF.EXISTS", 1.0 / 1.2)),
    target(module::PIPELINE_16, "tamis BF.EXISTS", Time("redis GET", 1.0)),
    // The no-op command takes 56 to 59 % of the time of `BF.EXISTS` (Intel, Emerald Rapids).
    target(module::PIPELINE_16, "tamis BF.EXISTS", Time(module::NOOP, 1.6)),
    target(module::PIPELINE_64, "tamis BF.EXISTS", Time(module::NOOP, 1.6)),
    target(module::PIPELINE_64, "tamis BF.ADD", Time("redisbloom BF.ADD", 1.0 / 1.3)),
    target(module::PIPELINE_64, "tamis BF.EXISTS", Time("redisbloom BF.EXISTS", 1.0 / 1.3)),
    target(module::PIPELINE_64, "tamis BF.EXISTS", Time("redis GET", 1.0)),
    target(bitmaps::INSERT, "tamis, insert_each", Time("article, pipeline of SETBIT", 0.2)),
    target(bitmaps::INSERT, "tamis, insert_each", Bits(12.8)),
    target(
        bitmaps::ANSWER,
        "tamis, insert_each of 500",
        Time("article, SETBIT and its reply", 0.1),
    ),
    target(module::HUNDRED, "tamis BF.MADD", Time("redisbloom BF.MADD", 0.4)),
    target(module::HUNDRED, "tamis BF.MEXISTS", Time("redisbloom BF.MEXISTS", 0.4)),
];

/// A target with the result of this run.
pub struct Verdict {
    pub case: String,
    pub what: String,
    pub found: String,
    pub reached: bool,
}

/// Compares the rows with the targets whose cases ran.
pub fn verdicts(rows: &[&Row]) -> Vec<Verdict> {
    let row = |case: &str, name: &str| {
        rows.iter().copied().find(|row| row.case == case && row.name == name)
    };
    let judge = |case: &str, name: &str, demand: &Demand| {
        let ours = row(case, name)?;
        let (most, value, what, found) = match *demand {
            Time(rival, most) => {
                let ratio = ours.ratio(row(case, rival)?);
                (most, ratio, format!("at most {most:.2}× {rival}"), format!("{ratio:.2}×"))
            }
            Bits(most) => {
                let bits = ours.bits_per_item?;
                (most, bits, format!("at most {most} bits/item"), format!("{bits:.2}"))
            }
            Above(most) => {
                let bits = ours.bits_per_item? - (1.0 / ours.rate?).log2();
                let what = format!("at most log2(1/rate) + {most} bits/item");
                (most, bits, what, format!("log2 + {bits:.2}"))
            }
            Rate(most) => {
                let rate = ours.rate?;
                (most, rate, format!("a rate of at most {most}"), format!("{rate:.5}"))
            }
            Nanos(most) => {
                let nanos = ours.min();
                (most, nanos, format!("at most {most} ns"), format!("{nanos:.0} ns"))
            }
            Added(other, most) => {
                let nanos = ours.min() - row(case, other)?.min();
                let what = format!("at most {most} ns more than {other}");
                (most, nanos, what, format!("{nanos:.0} ns"))
            }
            Peak(most) => {
                let peak = ours.peak_mib?;
                (most, peak, format!("at most {most} MiB"), format!("{peak:.0}"))
            }
        };
        let what = format!("{name}: {what}");
        Some(Verdict { case: case.to_owned(), what, found, reached: value <= most })
    };
    let targets = TARGETS.iter();
    let found = targets.filter_map(|target| judge(target.case, target.ours, &target.demand));
    // A batch is never slower than single calls beyond the noise.
    let batches = batches::SIZES.iter().flat_map(|&size| batches::cases(size)).flat_map(|case| {
        [("batch", "single"), (NATIVE_BATCH, NATIVE_SINGLE)]
            .map(|(batch, single)| judge(&case, batch, &Time(single, 1.03)))
    });
    found.chain(batches.flatten()).collect()
}
