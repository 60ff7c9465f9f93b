//! Computes the probability that a probe finds a set bit.

use std::ops::Range;

/// Returns the probability that a probe finds a set bit. The probe is the remainder of a random
/// number of `log2_values` bits.
///
/// If the number of values is not a multiple of `bits`, each of the first positions gets one value more than each of
/// the last positions. The additional value matters if a position gets only a few values. If there are fewer values
/// than bits, the last positions are never drawn.
pub(crate) fn drawn_fill(words: &[u64], bits: u64, log2_values: u32) -> f64 {
    drawn_fill_of(words, 0..bits, log2_values)
}

/// Returns the same probability as [`drawn_fill`], for the bits of a range.
pub(crate) fn drawn_fill_of(words: &[u64], range: Range<u64>, log2_values: u32) -> f64 {
    let bits = range.end - range.start;
    if bits == 0 {
        return 1.0;
    }
    let values = 1_u128 << log2_values;
    let (times, rest) = (values / u128::from(bits), (values % u128::from(bits)) as u64);
    let (first, others) = (range.start..range.start + rest, range.start + rest..range.end);
    let (first, others) = (count_ones(words, first) as f64, count_ones(words, others) as f64);
    ((first + others) * times as f64 + first) / values as f64
}

/// Counts the set bits of a range.
pub(crate) fn count_ones(words: &[u64], range: Range<u64>) -> u64 {
    if range.is_empty() {
        return 0;
    }
    let [first, last] = [range.start, range.end - 1].map(|bit| (bit / 64) as usize);
    let (low, high) = (u64::MAX << (range.start % 64), u64::MAX >> (63 - (range.end - 1) % 64));
    let ones = |word: u64| u64::from(word.count_ones());
    if first == last {
        return ones(words[first] & low & high);
    }
    let between = words[first + 1..last].iter().map(|&word| ones(word)).sum::<u64>();
    ones(words[first] & low) + between + ones(words[last] & high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_counted_as_bit_by_bit() {
        let words = [0x8000_0000_0000_0005, u64::MAX, 0x0f0f, 1];
        for start in 0..200 {
            for end in start..200 {
                let one_by_one =
                    (start..end).filter(|&bit| words[bit as usize / 64] >> (bit % 64) & 1 == 1);
                assert_eq!(
                    count_ones(&words, start..end),
                    one_by_one.count() as u64,
                    "{start}..{end}"
                );
            }
        }
    }

    #[test]
    fn positions_that_are_drawn_more_often_weigh_more() {
        // Eight values are reduced to the positions 0 to 5, so the positions 0 and 1 are drawn twice.
        assert_eq!(drawn_fill(&[0b00_0001], 6, 3), 2.0 / 8.0);
        assert_eq!(drawn_fill(&[0b10_0000], 6, 3), 1.0 / 8.0);
        // Eight values never reach the positions 8 to 11.
        assert_eq!(drawn_fill(&[0b1111_0000_0011], 12, 3), 2.0 / 8.0);
        assert_eq!(drawn_fill(&[], 0, 32), 1.0);
    }
}
