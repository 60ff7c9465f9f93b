//! The reserved part of an expandable filter: a Bloom filter of fixed size that threads fill together.

use std::sync::atomic::{AtomicU64, Ordering};

use tamis::{
    Answers, AtomicBitmap, Bits as _, Bloom, Classic, Filter, Hasher, Insert, Item, Kind, Layout,
    Plan, PlanError, SplitBlock, allocation_bytes,
};

/// The reserved part of a filter: a Bloom filter that threads share, and a count of its items.
#[derive(Debug)]
pub(super) struct Reserved {
    bloom: Shared,
    /// Items that were new when they came.
    pub items: AtomicU64,
}

/// The kinds that [`Plan::new`] chooses from.
#[derive(Debug)]
enum Shared {
    /// A small one that holds nothing yet: its bits are made with the first insert.
    Empty(Plan, Hasher),
    SplitBlock(Bloom<SplitBlock, AtomicBitmap>),
    /// Boxed: it would make all others larger, and is for rates that few ask for.
    Classic(Box<Bloom<Classic, AtomicBitmap>>),
}

/// Filters of more bytes have their bits from the start.
const SMALL_BYTES: u64 = 4096;

/// Runs an expression for the filter, whichever it is, or gives that of an empty one.
macro_rules! shared {
    ($shared:expr, $bloom:ident => $answer:expr, $empty:expr) => {
        match $shared {
            Shared::Empty(..) => $empty,
            Shared::SplitBlock($bloom) => $answer,
            Shared::Classic($bloom) => {
                let $bloom = &**$bloom;
                $answer
            }
        }
    };
}

impl Reserved {
    pub fn new(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        let mut reserved = Self { bloom: Shared::Empty(*plan, hasher), items: AtomicU64::new(0) };
        if plan.bytes() > SMALL_BYTES {
            reserved.make_bits()?;
        }
        Ok(reserved)
    }

    pub fn has_bits(&self) -> bool {
        !matches!(self.bloom, Shared::Empty(..))
    }

    /// Gives an empty one its bits.
    pub fn make_bits(&mut self) -> Result<(), PlanError> {
        if let Shared::Empty(plan, hasher) = self.bloom {
            self.bloom = match plan.kind() {
                Kind::SplitBlock => Shared::SplitBlock(Bloom::shared(&plan, hasher)?),
                _ => Shared::Classic(Box::new(Bloom::shared(&plan, hasher)?)),
            };
        }
        Ok(())
    }

    pub fn heap_bytes(&self) -> u64 {
        let bits = shared!(&self.bloom, bloom => bloom.bits().heap_bytes(), 0);
        match &self.bloom {
            Shared::Classic(bloom) => bits + allocation_bytes(size_of_val(&**bloom)),
            _ => bits,
        }
    }

    pub fn plan(&self) -> Plan {
        match &self.bloom {
            Shared::Empty(plan, _) => *plan,
            Shared::SplitBlock(bloom) => *bloom.plan(),
            Shared::Classic(bloom) => *bloom.plan(),
        }
    }

    pub fn layout(&self) -> Layout {
        match &self.bloom {
            Shared::Empty(plan, hasher) => Layout {
                kind: plan.kind(),
                bits: plan.bits(),
                geometry: plan.geometry(),
                hasher: *hasher,
            },
            Shared::SplitBlock(bloom) => bloom.layout(),
            Shared::Classic(bloom) => bloom.layout(),
        }
    }

    /// Returns the words of the bits; none of an empty one that has none yet.
    pub fn words(&self) -> &[AtomicU64] {
        shared!(&self.bloom, bloom => bloom.bits().words(), &[])
    }

    /// Estimates the false positive rate, a probability; reads all bits.
    pub fn estimate_rate(&self) -> f64 {
        shared!(&self.bloom, bloom => bloom.estimate_rate(), 0.0)
    }

    /// Returns the share of the bits that are set; reads all bits.
    pub fn fill(&self) -> f64 {
        shared!(&self.bloom, bloom => bloom.fill(), 0.0)
    }

    /// Estimates how many distinct items it holds; reads all bits.
    pub fn estimate_items(&self) -> f64 {
        shared!(&self.bloom, bloom => bloom.estimate_items(), 0.0)
    }

    pub fn contains_hash(&self, hash: u64) -> bool {
        shared!(&self.bloom, bloom => bloom.contains_hash(hash), false)
    }

    pub fn contains_each(&self, items: &[&[u8]], answers: &mut Answers) {
        shared!(&self.bloom, bloom => bloom.contains_each(items, answers), {
            answers.reset(items.len());
        });
    }

    /// Tests items as a batch, and writes the hash of each item to `hashes`. The filter must have bits.
    pub fn contains_each_hashed(
        &self,
        items: &[&[u8]],
        hashes: &mut Vec<u64>,
        answers: &mut Answers,
    ) {
        hashes.resize(items.len(), 0);
        let words = answers.reset(items.len());
        shared!(&self.bloom, bloom => {
            Item::hash_each(items, &bloom.hasher(), hashes);
            bloom.contains_hashes(hashes, words);
        }, unreachable!("it has bits"));
    }

    /// Sets the bits of items by their hashes, and writes to `answers` which were new. Does not change the number of items.
    pub fn insert_hashes(&self, hashes: &[u64], answers: &mut Answers) {
        let words = answers.reset(hashes.len());
        shared!(&self.bloom, bloom => {
            let mut bloom = bloom;
            bloom.insert_hashes(hashes, words);
        }, unreachable!("it has bits"));
    }

    /// Copies the bits of another filter of this layout, and its number of items. No thread inserts meanwhile.
    pub fn follow(&self, source: &Self) {
        for (word, source) in self.words().iter().zip(source.words()) {
            // Relaxed: the copying thread has both filters exclusively. Most words are alike, and those stay unwritten.
            let bits = source.load(Ordering::Relaxed);
            if word.load(Ordering::Relaxed) != bits {
                word.store(bits, Ordering::Relaxed);
            }
        }
        self.items.store(source.items.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Inserts an item by its hash. The caller has checked that there is room.
    pub fn insert_hash(&self, hash: u64) -> bool {
        let is_new = shared!(
            &self.bloom,
            bloom => bloom.insert_hash(hash),
            unreachable!("it has bits")
        );
        self.items.fetch_add(u64::from(is_new), Ordering::Relaxed);
        is_new
    }

    /// Inserts items by their hashes and counts each of them, also above the capacity.
    pub fn restore_hashes(&self, hashes: &[u64]) {
        self.insert_hashes(hashes, &mut Answers::new());
        self.items.fetch_add(hashes.len() as u64, Ordering::Relaxed);
    }
}
