//! Inserts bits into a bit sequence. The bits below the new bits move down.
//!
//! The words of the moving range are moved eight at a time, with vectors. Each move also changes
//! bits outside the range, in its first and last word, so the code restores these bits after the
//! move. The compiler vectorizes the loop if the loop is inlined into
//! [`run_wide`](crate::arch::level::run_wide). No branch depends on the bit at which the range
//! begins or ends.

/// The number of words that are moved at once.
const STEP: usize = 8;

/// `STEP` words of ones, followed by `STEP` words of zeros. The slice that starts at index `STEP -
/// n` is the mask of the first `n` words of a step.
static FIRST: [u64; 2 * STEP] = {
    let mut masks = [0; 2 * STEP];
    let mut i = 0;
    while i < STEP {
        masks[i] = u64::MAX;
        i += 1;
    }
    masks
};

#[inline(always)]
fn first(n: usize) -> &'static [u64; STEP] {
    FIRST[STEP - n..].first_chunk().expect("n is at most STEP")
}

/// Inserts the lowest `width` bits of `bits` so that the new bits end before bit `high` of `words`.
/// Bits are numbered from the lowest bit of the first word. The bits from `low + width` to `high`
/// move down by `width`, so the moved bits start at `low`. Bits outside the range from `low` to
/// `high` are unchanged. The bits of `bits` above `width` must be zero.
///
/// # Panics
///
/// Panics if the range is outside the words or shorter than `width`; if `width` is not in 1..=63;
/// if there are fewer than nine words.
#[inline(always)]
pub(crate) fn insert_bits(words: &mut [u64], low: usize, high: usize, width: usize, bits: u64) {
    assert!((1..64).contains(&width) && low + width <= high && high <= words.len() * 64);
    assert!(words.len() > STEP);
    let (bottom, top) = (low / 64, (high - 1) / 64);
    let used = (high - 1) % 64 + 1;
    let stays = u64::MAX << 1 << (used - 1);
    let old_bottom = words[bottom];
    let old_top = words[top];
    // The new bits are placed above the moving bits, so one shift of two words moves the new bits
    // and the moving bits.
    let moved = u128::from(bits) << used | u128::from(old_top & !stays);
    let new_top = old_top & stays | (moved >> width) as u64;
    let next = words[top.saturating_sub(1)] >> width | (moved as u64) << (64 - width);
    // The loop starts at the lowest word. A step reads only words that no earlier step has written.
    let mut from = bottom;
    while from < top {
        let start = from.min(words.len() - STEP - 1);
        let step: &mut [u64; STEP + 1] = words[start..].first_chunk_mut().expect("nine words");
        let (below, above) = (first(from - start), first((top - start).min(STEP)));
        let old = *step;
        for i in 0..STEP {
            let shifted = old[i] >> width | old[i + 1] << (64 - width);
            let mask = above[i] & !below[i];
            step[i] = old[i] ^ (old[i] ^ shifted) & mask;
        }
        from = start + STEP;
    }
    if bottom < top {
        words[top - 1] = next;
    }
    words[top] = new_top;
    let kept = (1_u64 << (low % 64)) - 1;
    words[bottom] = words[bottom] & !kept | old_bottom & kept;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::level::run_wide;

    /// Returns the expected result of `insert_bits`, computed bit by bit.
    fn expected(words: &[u64], low: usize, high: usize, width: usize, bits: u64) -> Vec<u64> {
        let mut new = words.to_vec();
        let mut set = |at: usize, bit: u64| {
            new[at / 64] = new[at / 64] & !(1 << (at % 64)) | bit << (at % 64);
        };
        for at in low + width..high {
            set(at - width, words[at / 64] >> (at % 64) & 1);
        }
        for i in 0..width {
            set(high - width + i, bits >> i & 1);
        }
        new
    }

    proptest! {
        #[test]
        fn bits_are_inserted_anywhere(
            words in prop::collection::vec(any::<u64>(), 9..60),
            places in prop::collection::vec((any::<usize>(), any::<usize>(), 1_usize..64, any::<u64>()), 20),
        ) {
            for (a, b, width, bits) in places {
                let len = words.len() * 64;
                let low = a % (len - width + 1);
                let room = len - low - width;
                let high = low + width + b % (room + 1);
                let bits = bits >> (64 - width);
                let expected = expected(&words, low, high, width, bits);
                let mut new = words.clone();
                insert_bits(&mut new, low, high, width, bits);
                prop_assert_eq!(&new, &expected, "{} {} {}", low, high, width);
                let mut new = words.clone();
                run_wide(|| insert_bits(&mut new, low, high, width, bits));
                prop_assert_eq!(&new, &expected, "by vectors");
            }
        }
    }
}
