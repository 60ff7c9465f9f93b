//! Measures the filters that delete, count, grow and forget, beside the default filter and the
//! rivals.

use std::hash::{DefaultHasher, Hash};

use tamis::{
    Answers, Bloom, Counting, Cuckoo, Growing, Hasher, Kind, Plan, Remove, Removed, Span,
    TryInsert, Window,
};

use crate::contender::Contender;
use crate::inserts::streamed;
use crate::items::{ABSENT, Hits, Integers, Source, mix};
use crate::lookups::{Ask, Filled, Mode, short};
use crate::run::{Bench, Entry, Row, time};

/// The code that all filters of Tamis share.
macro_rules! ours {
    ($filter:ty, $name:literal, $kind:expr, $new:expr, $bits:expr) => {
        impl<S: Source> Contender<S> for $filter {
            const NAME: &'static str = $name;
            const GROWS: bool = $kind.grows();

            fn empty(items: u64, rate: f64) -> Self {
                let plan = Plan::for_kind($kind, items, rate).expect("a sound plan");
                $new(&plan)
            }

            #[inline(always)]
            fn add(&mut self, item: S::Item<'_>) {
                self.try_insert(&item).expect("room for what was planned");
            }

            #[inline(always)]
            fn has(&self, item: S::Item<'_>) -> bool {
                self.contains(&item)
            }

            fn memory_bits(&self) -> u64 {
                $bits(self)
            }

            fn add_each(&mut self, items: &[S::Item<'_>]) {
                self.try_insert_each(items, &mut Answers::new())
                    .expect("room for what was planned");
            }

            fn count_each(&self, items: &[S::Item<'_>], answers: &mut Answers) -> u64 {
                self.contains_each(items, answers);
                answers.count_ones() as u64
            }
        }
    };
}

const MEMORY: &str = "memory for the filter";

ours!(
    Counting,
    "tamis counting",
    Kind::Counting,
    |plan| Counting::from_plan(plan, Hasher::default()).expect(MEMORY),
    |filter: &Counting| filter.plan().bits()
);
ours!(
    Cuckoo,
    "tamis cuckoo",
    Kind::Cuckoo,
    |plan| Cuckoo::from_plan(plan, Hasher::default()).expect(MEMORY),
    |filter: &Cuckoo| filter.plan().bits()
);
ours!(
    Window,
    "tamis window",
    Kind::Window,
    |plan: &Plan| Window::from_plan(plan, Hasher::default(), Span::Items(plan.items()))
        .expect(MEMORY),
    |filter: &Window| filter.plan().bits()
);
// This filter is created without the number of items.
ours!(
    Growing,
    "tamis growing",
    Kind::Growing,
    |plan: &Plan| Growing::new(plan.rate()).expect(MEMORY),
    |filter: &Growing| filter.memory_bytes() * 8
);

/// `cuckoofilter` 0.5, whose fingerprints have eight bits at every rate.
pub struct CuckooFilter(cuckoofilter::CuckooFilter<DefaultHasher>);

impl<S: Source> Contender<S> for CuckooFilter {
    const NAME: &'static str = "cuckoofilter";

    fn empty(items: u64, _: f64) -> Self {
        Self(cuckoofilter::CuckooFilter::with_capacity(items as usize))
    }

    #[inline(always)]
    fn add(&mut self, item: S::Item<'_>) {
        // The filter is sometimes full before its capacity, and then returns an error.
        let _ = self.0.add(std::borrow::Borrow::<S::Key>::borrow(&item));
    }

    #[inline(always)]
    fn has(&self, item: S::Item<'_>) -> bool {
        self.0.contains(std::borrow::Borrow::<S::Key>::borrow(&item))
    }

    fn memory_bits(&self) -> u64 {
        self.0.memory_usage() as u64 * 8
    }
}

/// `growable-bloom-filter`, with an initial capacity of 100 items.
pub struct GrowableBloom(growable_bloom_filter::GrowableBloom);

impl<S: Source> Contender<S> for GrowableBloom
where
    S::Key: Hash,
{
    const NAME: &'static str = "growable-bloom";
    const GROWS: bool = true;

    fn empty(_: u64, rate: f64) -> Self {
        Self(growable_bloom_filter::GrowableBloom::new(rate, 100))
    }

    #[inline(always)]
    fn add(&mut self, item: S::Item<'_>) {
        self.0.insert(std::borrow::Borrow::<S::Key>::borrow(&item));
    }

    #[inline(always)]
    fn has(&self, item: S::Item<'_>) -> bool {
        self.0.contains(std::borrow::Borrow::<S::Key>::borrow(&item))
    }

    fn memory_bits(&self) -> u64 {
        // The crate does not report its memory, but its serialized form consists of its bits.
        bincode::serialized_size(&self.0).expect("a size") * 8
    }
}

/// Runs every case of the family.
pub fn run(bench: &mut Bench) {
    let sizes: &[u64] = if bench.quick { &[1_000_000] } else { &[1_000_000, 10_000_000] };
    for &size in sizes {
        lookups(bench, size);
        inserts(bench, size);
        removes(bench, size);
    }
    growth(bench);
}

fn lookups(bench: &mut Bench, size: u64) {
    let cases = [(Mode::Single, "single"), (Mode::Batch, "batch")]
        .map(|(mode, name)| (mode, format!("family {name} mixed {} ints at 1 %", short(size))));
    if !cases.iter().any(|(_, case)| bench.wants(case)) {
        return;
    }
    let lineup: Vec<Box<dyn Ask<Integers>>> = vec![
        Filled::<Bloom>::ask_box(size, 0.01),
        Filled::<Counting>::ask_box(size, 0.01),
        Filled::<Cuckoo>::ask_box(size, 0.01),
        Filled::<Growing>::ask_box(size, 0.01),
        Filled::<Window>::ask_box(size, 0.01),
        Filled::<CuckooFilter>::ask_box(size, 0.01),
        Filled::<GrowableBloom>::ask_box(size, 0.01),
    ];
    for (mode, case) in cases {
        let questions = (size / 8).next_power_of_two().clamp(1 << 16, 1 << 20);
        let (source, inside) = Hits::Half.questions::<Integers>(size, questions);
        let entries = lineup.iter().map(|set| set.entry(mode, &source, inside)).collect();
        bench.case(&case, entries);
    }
}

fn inserts(bench: &mut Bench, size: u64) {
    let case = format!("family insert {} ints streamed at 1 %", short(size));
    if !bench.wants(&case) {
        return;
    }
    let entries = vec![
        streamed::<Bloom>(size),
        streamed::<Counting>(size),
        streamed::<Cuckoo>(size),
        streamed::<Growing>(size),
        streamed::<Window>(size),
        streamed::<CuckooFilter>(size),
        streamed::<GrowableBloom>(size),
    ];
    bench.case(&case, entries);
}

/// Deletes every second item of a full filter.
fn removes(bench: &mut Bench, size: u64) {
    let case = format!("family delete {} ints at 1 %", short(size));
    if !bench.wants(&case) {
        return;
    }
    let gone: Vec<u64> = (0..size).step_by(2).map(mix).collect();
    let all: Vec<u64> = (0..size).map(mix).collect();
    let entries = vec![
        plain_inserts(&gone, size),
        removed::<Counting>("tamis counting", &gone, &all),
        removed::<Cuckoo>("tamis cuckoo", &gone, &all),
    ];
    bench.case(&case, entries);
}

/// Measures how long the default filter takes to insert the same number of items. The default
/// filter cannot delete items.
fn plain_inserts(items: &[u64], size: u64) -> Entry<'_> {
    let len = items.len() as u64;
    Entry::new("tamis, inserting", len, len * 95 / 100..=len, move || {
        let mut set: Bloom = Bloom::for_items(size, 0.01).expect(MEMORY);
        let mut answers = Answers::new();
        time(|| {
            let insert = |items: &[u64]| {
                set.insert_each(items, &mut answers);
                answers.count_ones() as u64
            };
            items.chunks(4096).map(insert).sum()
        })
    })
}

fn removed<'a, C>(name: &'static str, gone: &'a [u64], all: &'a [u64]) -> Entry<'a>
where
    C: Contender<Integers> + Remove + 'a,
{
    let len = gone.len() as u64;
    Entry::new(name, len, len..=len, move || {
        let mut set = C::empty(all.len() as u64, 0.01);
        set.add_each(all);
        let mut answers = Answers::new();
        let sample = time(|| {
            let remove = |items: &[u64]| {
                set.remove_each(items, &mut answers);
                answers.count_ones() as u64
            };
            gone.chunks(4096).map(remove).sum()
        });
        // The remaining items are found, and an absent item is not deleted.
        let stays = all.iter().skip(1).step_by(2).take(1000);
        assert!(stays.copied().all(|item| set.has(item)), "{name}: a false negative");
        assert!(set.remove(&(ABSENT + 1)) != Removed::Yes || set.estimate_rate() > 0.0);
        sample
    })
}

/// Measures the bits per item and the false positive rate while a filter grows from 100 k to 10 M
/// items.
fn growth(bench: &mut Bench) {
    let case = "family growing from 100 k to 10 M ints at 1 %";
    if !bench.wants(case) {
        return;
    }
    println!("\n{case}");
    let most = if bench.quick { 1_000_000 } else { 10_000_000 };
    grown::<Growing>(bench, case, most);
    grown::<GrowableBloom>(bench, case, most);
}

fn grown<C: Contender<Integers>>(bench: &mut Bench, case: &str, most: u64) {
    let mut set = C::empty(100, 0.01);
    let (mut bits, mut rates) = (Vec::new(), Vec::new());
    let absent: Vec<u64> = (0..1 << 18).map(|i| mix(ABSENT + i)).collect();
    let mut len = 0;
    // Measures forty steps per decade. Between two steps, measures the memory every 4096 items.
    let mut next = 100_000.0_f64;
    let mut worst = 0.0_f64;
    while len < most {
        let block: Vec<u64> = (len..(len + 4096).min(most)).map(mix).collect();
        set.add_each(&block);
        len += block.len() as u64;
        let now = set.memory_bits() as f64 / len as f64;
        if len >= 100_000 {
            worst = worst.max(now);
        }
        if len as f64 >= next {
            bits.push(now);
            let yes = set.count_each(&absent, &mut Answers::new());
            rates.push(yes as f64 / absent.len() as f64);
            next *= 10_f64.powf(1.0 / 40.0);
        }
    }
    let average = bits.iter().sum::<f64>() / bits.len() as f64;
    let highest = rates.into_iter().fold(0.0, f64::max);
    for (what, bits) in [("on average", average), ("at the worst moment", worst)] {
        let row = Row::new(case, &format!("{}, {what}", C::NAME));
        bench.keep([Row { bits_per_item: Some(bits), rate: Some(highest), ..row }]);
    }
}
