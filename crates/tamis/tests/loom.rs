//! Every interleaving of threads that share a filter, by the loom model checker.
//!
//! Run by `cargo xtask test` as `RUSTFLAGS="--cfg loom" cargo test --release -p tamis --test loom`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use tamis::{AtomicBitmap, Bits};

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
        // Each sets a bit that the other does not.
        assert!(new_left && new_right);
    });
}

#[test]
fn of_two_threads_with_one_item_exactly_one_finds_it_new() {
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
fn what_one_thread_published_the_other_finds() {
    loom::model(|| {
        let bits = Arc::new(AtomicBitmap::zeroed(128).unwrap());
        let told = Arc::new(AtomicBool::new(false));
        let writer = {
            let (bits, told) = (bits.clone(), told.clone());
            thread::spawn(move || {
                bits.set(0, &LEFT);
                told.store(true, Ordering::Release);
            })
        };
        bits.set(0, &RIGHT);
        if told.load(Ordering::Acquire) {
            let found = words(&bits);
            assert!(found.iter().zip(LEFT).all(|(word, mask)| word & mask == mask));
        }
        writer.join().unwrap();
    });
}
