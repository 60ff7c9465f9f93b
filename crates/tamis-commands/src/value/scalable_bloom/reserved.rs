//! The reserved part of a scalable filter: a Bloom filter of fixed size into which several threads
//! can insert.

use std::sync::atomic::{AtomicU64, Ordering};

use tamis::{
    Answers, AtomicBitmap, Bits as _, BloomFilter, Classic, Filter, Hasher, Insert, Kind, Layout,
    Plan, PlanError, SharedBloom, allocation_bytes,
};

/// The reserved part: a Bloom filter that threads share, and the number of items in the filter.
#[derive(Debug)]
pub(super) struct Reserved {
    bloom: ReservedBloom,
    /// The number of items that were new at the time of the insert.
    pub items: AtomicU64,
}

/// The kinds of filters that [`Plan::new`] can choose.
#[derive(Debug)]
enum ReservedBloom {
    /// A small filter without items. The first insert allocates its bits.
    Empty(Plan, Hasher),
    SplitBlock(SharedBloom),
    /// A classic filter is boxed, because this large variant is used only for rare rates.
    Classic(Box<BloomFilter<Classic, AtomicBitmap>>),
}

/// The maximum size, in bytes, of a filter that allocates its bits at the first insert.
const SMALL_BYTES: u64 = 4096;

/// Evaluates `$answer` for a filter of either kind, or `$empty` for a filter without bits.
macro_rules! shared {
    ($shared:expr, $bloom:ident => $answer:expr, $empty:expr) => {
        match $shared {
            ReservedBloom::Empty(..) => $empty,
            ReservedBloom::SplitBlock($bloom) => $answer,
            ReservedBloom::Classic($bloom) => {
                let $bloom = &**$bloom;
                $answer
            }
        }
    };
}

impl Reserved {
    pub fn new(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        let mut reserved =
            Self { bloom: ReservedBloom::Empty(*plan, hasher), items: AtomicU64::new(0) };
        if plan.bytes() > SMALL_BYTES {
            reserved.make_bits()?;
        }
        Ok(reserved)
    }

    pub fn has_bits(&self) -> bool {
        !matches!(self.bloom, ReservedBloom::Empty(..))
    }

    /// Allocates the bits of an empty filter.
    pub fn make_bits(&mut self) -> Result<(), PlanError> {
        if let ReservedBloom::Empty(plan, hasher) = self.bloom {
            self.bloom = match plan.kind() {
                Kind::SplitBlock => {
                    ReservedBloom::SplitBlock(BloomFilter::from_plan(&plan, hasher)?)
                }
                _ => ReservedBloom::Classic(Box::new(BloomFilter::from_plan(&plan, hasher)?)),
            };
        }
        Ok(())
    }

    pub fn heap_bytes(&self) -> u64 {
        let bits = shared!(&self.bloom, bloom => bloom.bits().heap_bytes(), 0);
        match &self.bloom {
            ReservedBloom::Classic(bloom) => bits + allocation_bytes(size_of_val(&**bloom)),
            _ => bits,
        }
    }

    pub fn plan(&self) -> Plan {
        match &self.bloom {
            ReservedBloom::Empty(plan, _) => *plan,
            ReservedBloom::SplitBlock(bloom) => *bloom.plan(),
            ReservedBloom::Classic(bloom) => *bloom.plan(),
        }
    }

    pub fn layout(&self) -> Layout {
        match &self.bloom {
            ReservedBloom::Empty(plan, hasher) => Layout {
                kind: plan.kind(),
                bits: plan.bits(),
                geometry: plan.geometry(),
                hasher: *hasher,
            },
            ReservedBloom::SplitBlock(bloom) => bloom.layout(),
            ReservedBloom::Classic(bloom) => bloom.layout(),
        }
    }

    /// Returns the words of the bits; an empty slice if the bits are not allocated yet.
    pub fn words(&self) -> &[AtomicU64] {
        shared!(&self.bloom, bloom => bloom.bits().words(), &[])
    }

    /// Estimates the false positive rate, a probability. Reads all bits.
    pub fn estimate_rate(&self) -> f64 {
        shared!(&self.bloom, bloom => bloom.estimate_rate(), 0.0)
    }

    /// Returns the share of the bits that are set. Reads all bits.
    pub fn fill(&self) -> f64 {
        shared!(&self.bloom, bloom => bloom.fill(), 0.0)
    }

    /// Estimates the number of distinct items. Reads all bits.
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

    /// Looks up items by their hashes. The bits of the filter must be allocated.
    pub fn contains_hashes(&self, hashes: &[u64], answers: &mut Answers) {
        let words = answers.reset(hashes.len());
        shared!(
            &self.bloom,
            bloom => bloom.contains_hashes(hashes, words),
            unreachable!("it has bits")
        );
    }

    /// Sets the bits of items by their hashes, and writes to `answers` which items were new. Does
    /// not change the item count.
    pub fn insert_hashes(&self, hashes: &[u64], answers: &mut Answers) {
        let words = answers.reset(hashes.len());
        shared!(&self.bloom, bloom => {
            let mut bloom = bloom;
            bloom.insert_hashes(hashes, words);
        }, unreachable!("it has bits"));
    }

    /// Copies the bits and the item count of another filter with the same layout. No thread may
    /// insert during the call.
    pub fn follow(&self, source: &Self) {
        for (word, source) in self.words().iter().zip(source.words()) {
            // Relaxed ordering is sufficient, because the copying thread has exclusive access to both filters. Most
            // words of the two filters are equal, and equal words are not written.
            let bits = source.load(Ordering::Relaxed);
            if word.load(Ordering::Relaxed) != bits {
                word.store(bits, Ordering::Relaxed);
            }
        }
        self.items.store(source.items.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Inserts an item by its hash. The caller must check the capacity before the insert.
    pub fn insert_hash(&self, hash: u64) -> bool {
        let is_new = shared!(
            &self.bloom,
            bloom => bloom.insert_hash(hash),
            unreachable!("it has bits")
        );
        self.items.fetch_add(u64::from(is_new), Ordering::Relaxed);
        is_new
    }

    /// Inserts items by their hashes and counts each hash, even above the capacity.
    pub fn restore_hashes(&self, hashes: &[u64]) {
        self.insert_hashes(hashes, &mut Answers::new());
        self.items.fetch_add(hashes.len() as u64, Ordering::Relaxed);
    }
}
