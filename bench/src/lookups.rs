//! Looks up hits, misses and a mix of both in filters, one at a time and in batches.

use tamis::{Answers, Bloom, ClassicBloom, ParquetBloom};

use crate::contender::{Bloomfilter, Contender, Fastbloom, Hashbrown, Sbbf};
use crate::floor::{Lines, OneBit};
use crate::items::{ABSENT, Hits, Integers, Source, Urls, Uuids, mix};
use crate::run::{Bench, Entry, time};

/// How the items are looked up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Single,
    Batch,
}

/// A lookup case as data. The name of the case is derived from the data.
struct Lookup {
    mode: Mode,
    hits: Hits,
}

const LOOKUPS: [Lookup; 5] = [
    Lookup { mode: Mode::Single, hits: Hits::All },
    Lookup { mode: Mode::Single, hits: Hits::None },
    Lookup { mode: Mode::Single, hits: Hits::Half },
    Lookup { mode: Mode::Batch, hits: Hits::Half },
    Lookup { mode: Mode::Batch, hits: Hits::None },
];

impl Lookup {
    fn name(&self, items: &str, size: u64, rate: f64) -> String {
        let mode = if self.mode == Mode::Single { "single" } else { "batch" };
        let percent = rate * 100.0;
        format!("{mode} {} {} {items} at {percent} %", self.hits.name(), short(size))
    }
}

/// Formats a size as in the tables: 10 k, 1 M.
pub fn short(size: u64) -> String {
    match size {
        1_000_000.. => format!("{} M", size / 1_000_000),
        1_000.. => format!("{} k", size / 1_000),
        _ => size.to_string(),
    }
}

/// Runs every lookup case.
pub fn run(bench: &mut Bench) {
    let sizes: &[u64] = if bench.quick {
        &[10_000, 1_000_000]
    } else {
        &[10_000, 1_000_000, 10_000_000, 100_000_000]
    };
    for &size in sizes {
        at::<Integers>(bench, "ints", size, 0.01);
    }
    at::<Integers>(bench, "ints", 1_000_000, 0.001);
    for &size in &sizes[1..sizes.len().min(3)] {
        at::<Urls>(bench, "urls", size, 0.01);
        at::<Uuids>(bench, "uuids", size, 0.01);
    }
}

/// Builds every contender of this size once, and queries each contender in every mode.
fn at<S: Source + 'static>(bench: &mut Bench, items: &str, size: u64, rate: f64) {
    if !LOOKUPS.iter().any(|lookup| bench.wants(&lookup.name(items, size, rate))) {
        return;
    }
    let is_ints = items == "ints";
    let mut lineup: Vec<Box<dyn Ask<S>>> = vec![
        Filled::<Bloom>::ask_box::<S>(size, rate),
        Filled::<OneBit>::ask_box::<S>(size, rate),
        Filled::<Sbbf>::ask_box::<S>(size, rate),
        Filled::<Fastbloom>::ask_box::<S>(size, rate),
    ];
    if size <= 10_000_000 && rate == 0.01 {
        lineup.push(Filled::<Bloomfilter<S>>::ask_box::<S>(size, rate));
        if is_ints {
            lineup.push(Filled::<Hashbrown<S>>::ask_box::<S>(size, rate));
            lineup.push(Filled::<ParquetBloom>::ask_box::<S>(size, rate));
            lineup.push(Filled::<ClassicBloom>::ask_box::<S>(size, rate));
        }
    }
    let ours = lineup[0].bits();
    for lookup in &LOOKUPS {
        let case = lookup.name(items, size, rate);
        if !bench.wants(&case) {
            continue;
        }
        // The number of queries is too large for a branch predictor to learn, and each line of the
        // filter is queried several times. The number is also small enough that the queries do not
        // evict each other from the caches.
        let questions = (size / 8).next_power_of_two().clamp(1 << 16, 1 << 22);
        let (source, inside) = lookup.hits.questions::<S>(size, questions);
        let mut entries: Vec<Entry<'_>> =
            lineup.iter().map(|set| set.entry(lookup.mode, &source, inside)).collect();
        if is_ints {
            entries.push(random_lines(ours, questions));
        }
        bench.case(&case, entries);
    }
}

/// The floor of all lookups: reads one random line per item with prefetch.
fn random_lines(bits: u64, count: u64) -> Entry<'static> {
    let items: Vec<u64> = (0..count).map(mix).collect();
    let lines = Lines::new(bits);
    Entry::new("floor: random line", count, count..=count, move || time(|| lines.read(&items)))
}

/// A filled set of any type, with its own query loops.
pub trait Ask<S: Source> {
    fn bits(&self) -> u64;

    /// Creates an entry that looks up all of `source`, which contains `inside` members.
    fn entry<'a>(&'a self, mode: Mode, source: &'a S, inside: u64) -> Entry<'a>;
}

pub struct Filled<C> {
    set: C,
    size: u64,
    rate: f64,
    measured: f64,
}

impl<C: 'static> Filled<C> {
    pub fn ask_box<S: Source + 'static>(size: u64, rate: f64) -> Box<dyn Ask<S>>
    where
        C: Contender<S>,
    {
        let mut set = C::empty(size, rate);
        fill::<S, C>(&mut set, size);
        let measured = measure_rate::<S, C>(&set);
        Box::new(Filled { set, size, rate, measured })
    }
}

/// The number of items that are created at a time, if not all items fit in memory.
const BLOCK: u64 = 1 << 16;

/// Inserts the items `0..size`.
pub fn fill<S: Source, C: Contender<S>>(set: &mut C, size: u64) {
    let mut source = S::new();
    for first in (0..size).step_by(BLOCK as usize) {
        source.clear();
        (first..(first + BLOCK).min(size)).for_each(|i| source.push(i));
        set.add_each(&source.items());
    }
}

/// Looks up a million absent items. Returns the fraction of false positives.
fn measure_rate<S: Source, C: Contender<S>>(set: &C) -> f64 {
    let lookups = 1 << 20;
    let mut source = S::new();
    (0..lookups).for_each(|j| source.push(2 * ABSENT + j));
    let yes = set.count_each(&source.items(), &mut Answers::new());
    yes as f64 / lookups as f64
}

impl<S: Source, C: Contender<S>> Ask<S> for Filled<C> {
    fn bits(&self) -> u64 {
        self.set.memory_bits()
    }

    fn entry<'a>(&'a self, mode: Mode, source: &'a S, inside: u64) -> Entry<'a> {
        let items = source.items();
        let count = items.len() as u64;
        let absent = (count - inside) as f64;
        let is_floor = C::NAME.starts_with("floor");
        let most_false = match (C::EXACT, C::NAME.starts_with("tamis")) {
            (true, _) => 0.0,
            // The measured rate must be the requested rate, within six standard deviations.
            (false, true) => absent * self.rate + 6.0 * (absent * self.rate).sqrt(),
            // Only the false negatives of the rivals are checked here, not their rates.
            (false, false) => absent,
        };
        let expect = if is_floor { 0..=count } else { inside..=inside + most_false as u64 };
        let mut answers = Answers::new();
        let set = &self.set;
        Entry {
            name: C::NAME.to_owned(),
            items: count,
            bits_per_item: (!is_floor).then(|| set.memory_bits() as f64 / self.size as f64),
            rate: (!is_floor).then_some(self.measured),
            expect,
            work: match mode {
                Mode::Single => Box::new(move || time(|| one_by_one::<S, C>(set, &items))),
                Mode::Batch => Box::new(move || time(|| set.count_each(&items, &mut answers))),
            },
        }
    }
}

/// The loop of the single lookups, the same for all contenders.
#[inline(never)]
fn one_by_one<S: Source, C: Contender<S>>(set: &C, items: &[S::Item<'_>]) -> u64 {
    items.iter().map(|&item| u64::from(set.has(item))).sum()
}
