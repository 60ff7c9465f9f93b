//! XXH3 as in xxHash 0.7.2, which is a preview of the final XXH3. RocksDB still uses the preview.
//!
//! The hash of the preview differs from the final XXH3 at every length of the input:
//!
//! * For an input of any length, the last multiplier of [`avalanche`] differs from the final XXH3.
//! * For an input of up to 8 bytes, the mixing differs from the final XXH3.
//! * For an input above 240 bytes, two things differ from the final XXH3: the lane to which a word is added, and the
//!   start of the last stripe.
//!
//! Source: Collet, xxHash, the public specification of XXH3, and hashes recorded from RocksDB.

const PRIME32_1: u64 = 0x9e37_79b1;
const PRIME32_2: u64 = 0x85eb_ca77;
const PRIME32_3: u64 = 0xc2b2_ae3d;
const PRIME64_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME64_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME64_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME64_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME64_5: u64 = 0x27d4_eb2f_1656_67c5;

/// The default secret of XXH3.
#[rustfmt::skip]
const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

/// The offset in the secret for the last 16 bytes of an item of 129 to 240 bytes. The offset is computed for a secret
/// of the minimum length.
const MIDDLE_LAST: usize = 136 - 17;

const STRIPE: usize = 64;
const STRIPES: usize = (SECRET.len() - STRIPE) / 8;

/// Returns the 64-bit hash with seed 0.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let len = bytes.len() as u64;
    match bytes.len() {
        // For an empty input, RocksDB returns this hash, but the preview of xxHash returns 0.
        0 => fold(secret(0), PRIME64_2),
        1..=3 => {
            let [first, middle, last] =
                [0, bytes.len() / 2, bytes.len() - 1].map(|at| u64::from(bytes[at]));
            let combined = first | middle << 8 | last << 16 | len << 24;
            avalanche((combined ^ u64::from(secret(0) as u32)).wrapping_mul(PRIME64_1))
        }
        4..=8 => {
            let (low, high) = (word_32(bytes, 0), word_32(bytes, bytes.len() - 4));
            let keyed = (low | high << 32) ^ secret(0);
            let mixed = (keyed ^ keyed >> 51).wrapping_mul(PRIME32_1).wrapping_add(len);
            avalanche((mixed ^ mixed >> 47).wrapping_mul(PRIME64_2))
        }
        9..=16 => {
            let low = word(bytes, 0) ^ secret(0);
            let high = word(bytes, bytes.len() - 8) ^ secret(8);
            avalanche(len.wrapping_add(low).wrapping_add(high).wrapping_add(fold(low, high)))
        }
        17..=128 => {
            let mut sum = len.wrapping_mul(PRIME64_1);
            // Each step reads a block from the start and a block from the end. The blocks of each step are nearer to
            // the middle than the blocks of the previous step.
            for i in 0..bytes.len().div_ceil(32) {
                sum = sum.wrapping_add(mix_16(bytes, 16 * i, 32 * i));
                sum = sum.wrapping_add(mix_16(bytes, bytes.len() - 16 * (i + 1), 32 * i + 16));
            }
            avalanche(sum)
        }
        129..=240 => {
            let start = len.wrapping_mul(PRIME64_1);
            let sum = (0..8).fold(start, |sum, i| sum.wrapping_add(mix_16(bytes, 16 * i, 16 * i)));
            let sum = (8..bytes.len() / 16).fold(avalanche(sum), |sum, i| {
                sum.wrapping_add(mix_16(bytes, 16 * i, 16 * (i - 8) + 3))
            });
            avalanche(sum.wrapping_add(mix_16(bytes, bytes.len() - 16, MIDDLE_LAST)))
        }
        _ => long(bytes),
    }
}

fn long(bytes: &[u8]) -> u64 {
    let mut sums =
        [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1];
    let mut blocks = bytes.chunks_exact(STRIPE * STRIPES);
    for block in &mut blocks {
        for (i, stripe) in block.chunks_exact(STRIPE).enumerate() {
            accumulate(&mut sums, stripe, 8 * i);
        }
        for (i, sum) in sums.iter_mut().enumerate() {
            let key = secret(SECRET.len() - STRIPE + 8 * i);
            *sum = (*sum ^ *sum >> 47 ^ key).wrapping_mul(PRIME32_1);
        }
    }
    for (i, stripe) in blocks.remainder().chunks_exact(STRIPE).enumerate() {
        accumulate(&mut sums, stripe, 8 * i);
    }
    if !bytes.len().is_multiple_of(STRIPE) {
        accumulate(&mut sums, &bytes[bytes.len() - STRIPE..], SECRET.len() - STRIPE - 7);
    }
    let start = (bytes.len() as u64).wrapping_mul(PRIME64_1);
    let (pairs, _) = sums.as_chunks::<2>();
    avalanche(pairs.iter().enumerate().fold(start, |sum, (i, [one, two])| {
        sum.wrapping_add(fold(one ^ secret(11 + 16 * i), two ^ secret(19 + 16 * i)))
    }))
}

fn accumulate(sums: &mut [u64; 8], stripe: &[u8], secret_at: usize) {
    for (i, sum) in sums.iter_mut().enumerate() {
        let word = word(stripe, 8 * i);
        let keyed = word ^ secret(secret_at + 8 * i);
        let product = (keyed & u64::from(u32::MAX)).wrapping_mul(keyed >> 32);
        *sum = sum.wrapping_add(word).wrapping_add(product);
    }
}

fn mix_16(bytes: &[u8], at: usize, secret_at: usize) -> u64 {
    fold(word(bytes, at) ^ secret(secret_at), word(bytes, at + 8) ^ secret(secret_at + 8))
}

/// Returns the XOR of both halves of the product.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn avalanche(h: u64) -> u64 {
    let h = (h ^ h >> 37).wrapping_mul(PRIME64_3);
    h ^ h >> 32
}

fn secret(at: usize) -> u64 {
    word(&SECRET, at)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn word_32(bytes: &[u8], at: usize) -> u64 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    // `tests/integration/rocksdb.rs` tests every length up to 2100 with filters that RocksDB created.
    #[test]
    fn known_hashes() {
        let bytes: Vec<u8> = (0..300_u32).map(|i| (i * 5) as u8).collect();
        for (len, expected) in [
            (0, 0x5342_c301_0fe1_dd04),
            (1, 0x7198_d737_cfe7_f386),
            (8, 0x5dd5_5b38_d3c9_8753),
            (16, 0x08f8_d5e2_29dc_80eb),
            (128, 0xd498_ce6b_1d70_d012),
            (240, 0x2282_07e1_254e_49da),
            (300, 0x1764_902b_41f7_96e7),
        ] {
            assert_eq!(hash(&bytes[..len]), expected, "{len}");
        }
    }
}
