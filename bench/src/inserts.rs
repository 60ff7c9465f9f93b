//! Fills filters with items in memory and with streamed items.

use tamis::Bloom;

use crate::contender::{Contender, Fastbloom, Hashbrown, Sbbf};
use crate::floor::Lines;
use crate::items::{Integers, mix};
use crate::lookups::short;
use crate::run::{Bench, Entry, time};

/// Runs every insert case.
pub fn run(bench: &mut Bench) {
    let sizes: &[u64] =
        if bench.quick { &[10_000, 1_000_000] } else { &[10_000, 1_000_000, 100_000_000] };
    for &size in sizes {
        inserts(bench, size);
    }
}

/// Inserts `size` integers into an empty filter. The integers are created one block at a time. The
/// time of every entry, including the floor, contains this creation.
fn inserts(bench: &mut Bench, size: u64) {
    let case = format!("insert {} ints streamed at 1 %", short(size));
    if !bench.wants(&case) {
        return;
    }
    let mut entries = vec![
        streamed::<Bloom>(size),
        streamed::<OneByOne>(size),
        streamed::<Sbbf>(size),
        streamed::<Fastbloom>(size),
        random_lines(size),
    ];
    if size <= 1_000_000 {
        entries.push(streamed::<Hashbrown<Integers>>(size));
    }
    bench.case(&case, entries);
}

/// The default filter, with one `insert` call per item.
struct OneByOne(Bloom);

impl Contender<Integers> for OneByOne {
    const NAME: &'static str = "tamis, one by one";

    fn empty(items: u64, rate: f64) -> Self {
        Self(<Bloom as Contender<Integers>>::empty(items, rate))
    }

    #[inline(always)]
    fn add(&mut self, item: u64) {
        self.0.insert(&item);
    }

    #[inline(always)]
    fn has(&self, item: u64) -> bool {
        self.0.contains(&item)
    }

    fn memory_bits(&self) -> u64 {
        Contender::<Integers>::memory_bits(&self.0)
    }
}

/// The number of items in a block. Like a socket buffer or a block of lines, a block stays in the
/// fastest caches.
const BLOCK: u64 = 4096;

/// Passes the integers of the items `0..size` to `take`, one block at a time.
fn each_block(size: u64, block: &mut Vec<u64>, mut take: impl FnMut(&[u64])) {
    for first in (0..size).step_by(BLOCK as usize) {
        block.clear();
        block.extend((first..(first + BLOCK).min(size)).map(mix));
        take(block);
    }
}

pub fn streamed<C: Contender<Integers> + 'static>(size: u64) -> Entry<'static> {
    let mut block = Vec::new();
    let bits = {
        let mut set = C::empty(size, 0.01);
        if C::GROWS {
            each_block(size, &mut block, |items| set.add_each(items));
        }
        set.memory_bits()
    };
    let entry = Entry::new(C::NAME, size, 64..=64, move || {
        let mut set = C::empty(size, 0.01);
        let mut sample = time(|| {
            each_block(size, &mut block, |items| set.add_each(items));
            size
        });
        // This check proves that the loop has inserted the items.
        sample.yes = (0..64).map(|i| u64::from(set.has(mix(i * (size / 64))))).sum();
        sample
    });
    Entry { bits_per_item: Some(bits as f64 / size as f64), ..entry }
}

fn random_lines(size: u64) -> Entry<'static> {
    let bits = <Bloom as Contender<Integers>>::empty(size, 0.01);
    let bits = Contender::<Integers>::memory_bits(&bits);
    let mut block = Vec::new();
    Entry::new("floor: random line, modified", size, size..=size, move || {
        // The floor uses fresh memory, as the filters do.
        let mut lines = Lines::zeroed(bits);
        time(|| {
            let mut count = 0;
            each_block(size, &mut block, |items| count += lines.modify(items));
            count
        })
    })
}
