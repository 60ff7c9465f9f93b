//! Tests every interleaving of threads that share a filter, with the model checker loom.
//!
//! `cargo xtask test` runs it as `RUSTFLAGS="--cfg loom" cargo test -p tamis-loom`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use tamis::{Answers, AtomicBitmap, Bits, BloomFilter, Classic, Hasher, Kind, Plan, SplitBlock};

const LEFT: [u64; 2] = [0b0011, 0b0100];
const RIGHT: [u64; 2] = [0b0110, 0b1000];

fn words(bits: &AtomicBitmap) -> Vec<u64> {
    bits.words().iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

#[test]
fn no_bit_of_two_threads_in_one_block_is_lost() {
    loom::model(|| {
        let bits = Arc::new(AtomicBitmap::zeroed(128).unwrap());
        let left = {
            let bits = bits.clone();
            thread::spawn(move || bits.set(0, &LEFT))
        };
        let new_right = bits.set(0, &RIGHT);
        let new_left = left.join().unwrap();
        assert_eq!(words(&bits), [0b0111, 0b1100]);
        // Each thread sets a bit that the other one does not set.
        assert!(new_left && new_right);
    });
}

#[test]
fn one_of_two_threads_finds_an_item_new() {
    loom::model(|| {
        let bits = Arc::new(AtomicBitmap::zeroed(128).unwrap());
        let other = {
            let bits = bits.clone();
            thread::spawn(move || bits.set(0, &LEFT))
        };
        let mine = bits.set(0, &LEFT);
        assert!(mine ^ other.join().unwrap());
    });
}

#[test]
fn a_thread_finds_bits_that_another_published() {
    loom::model(|| {
        let bits = Arc::new(AtomicBitmap::zeroed(128).unwrap());
        let is_published = Arc::new(AtomicBool::new(false));
        let writer = {
            let (bits, is_published) = (bits.clone(), is_published.clone());
            thread::spawn(move || {
                bits.set(0, &LEFT);
                is_published.store(true, Ordering::Release);
            })
        };
        bits.set(0, &RIGHT);
        if is_published.load(Ordering::Acquire) {
            let found = words(&bits);
            assert!(found.iter().zip(LEFT).all(|(word, mask)| word & mask == mask));
        }
        writer.join().unwrap();
    });
}

type Shared = BloomFilter<SplitBlock, AtomicBitmap>;

/// Checks a filter of one block in every interleaving with at most two thread switches.
fn check_filter(body: impl Fn(Arc<Shared>) + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    // Two inserts of eight lanes have too many interleavings. Most bugs need two switches or fewer.
    model.preemption_bound = Some(2);
    model.check(move || {
        let plan =
            Plan::from_parts(Kind::SplitBlock, 1, 0.5, 512, tamis::Geometry::Probes(8)).unwrap();
        body(Arc::new(Shared::from_plan(&plan, Hasher::default()).unwrap()));
    });
}

/// Inserts a batch, which the default filter sorts and sets with a kernel. Returns the number of
/// new items.
fn insert_each(seen: &Shared, items: &[&str]) -> usize {
    let mut answers = Answers::new();
    seen.insert_each(items, &mut answers);
    answers.count_ones()
}

/// Two threads insert into the same block with the kernels of the default filter. No thread may
/// clear a bit that the other one has set.
#[test]
fn two_threads_in_one_block_of_a_filter_lose_nothing() {
    check_filter(|seen| {
        let other = {
            let seen = seen.clone();
            thread::spawn(move || seen.insert("left"))
        };
        let new = seen.insert("right");
        assert!(seen.contains("right"), "at once");
        assert!(new && other.join().unwrap(), "each sets a bit that the other does not set");
        assert!(seen.contains("left") && seen.contains("right"));
    });
}

#[test]
fn a_batch_and_a_single_item_in_one_block_lose_nothing() {
    check_filter(|seen| {
        let other = {
            let seen = seen.clone();
            thread::spawn(move || seen.insert("left"))
        };
        assert_eq!(
            insert_each(&seen, &["right"]),
            1,
            "the batch sets a bit that the single insert does not set"
        );
        assert!(other.join().unwrap(), "the single insert sets a bit that the batch does not set");
        assert!(seen.contains("left") && seen.contains("right"));
    });
}

#[test]
fn two_batches_in_one_block_lose_nothing_and_one_finds_a_common_item_new() {
    check_filter(|seen| {
        let other = {
            let seen = seen.clone();
            thread::spawn(move || insert_each(&seen, &["left", "middle"]))
        };
        let new = insert_each(&seen, &["right", "middle"]);
        assert_eq!(
            new + other.join().unwrap(),
            3,
            "one of the two batches finds the common item new"
        );
        assert!(["left", "middle", "right"].iter().all(|item| seen.contains(item)));
    });
}

#[test]
fn a_third_thread_finds_what_a_batch_published() {
    check_filter(|seen| {
        let is_published = Arc::new(AtomicBool::new(false));
        let batch = {
            let (seen, is_published) = (seen.clone(), is_published.clone());
            thread::spawn(move || {
                insert_each(&seen, &["left"]);
                is_published.store(true, Ordering::Release);
            })
        };
        let single = {
            let seen = seen.clone();
            thread::spawn(move || seen.insert("right"))
        };
        if is_published.load(Ordering::Acquire) {
            assert!(seen.contains("left"));
        }
        batch.join().unwrap();
        assert!(single.join().unwrap());
        assert!(seen.contains("left") && seen.contains("right"));
    });
}

/// Two threads insert the same item of the classic filter, whose bits are in two stripes. One of
/// the threads finds the item new, and no thread waits forever.
#[test]
fn one_of_two_threads_finds_an_item_of_a_classic_filter_new() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        // Three lines have two stripes under the model checker.
        let plan =
            Plan::from_parts(Kind::Classic, 1, 0.5, 3 * 512, tamis::Geometry::Probes(4)).unwrap();
        let seen =
            BloomFilter::<Classic, AtomicBitmap>::from_plan(&plan, Hasher::default()).unwrap();
        let seen = Arc::new(seen);
        let other = {
            let seen = seen.clone();
            thread::spawn(move || (seen.insert("left"), seen.insert("middle")))
        };
        let new = (seen.insert("middle"), seen.insert("right"));
        let (new_left, new_middle) = other.join().unwrap();
        assert!(new_left && new.1 && (new.0 ^ new_middle));
        assert!(["left", "middle", "right"].iter().all(|item| seen.contains(*item)));
    });
}
