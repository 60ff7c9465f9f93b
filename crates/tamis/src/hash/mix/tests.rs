//! Tests the definition of the mix hash, and the distribution of hashes for items that have a
//! pattern.
//!
//! A random function would meet the bounds of all tests. Keys are fixed, so a test that passes once
//! always passes.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const ZERO: Keys = keys(0);

/// Item lengths that reach every branch of the hash, and both sides of each boundary.
const LENS: [usize; 22] =
    [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 32, 33, 48, 49, 64, 65, 96, 97, 128, 129];

fn bytes_256() -> Vec<u8> {
    (0..256_u32).map(|i| (i * i * 7 + i * 31 + 5) as u8).collect()
}

/// The length of a prefix of [`bytes_256`], the hash of this prefix with seed 0, and its hash with
/// another seed.
///
/// A Python script computed the hashes of this table. The script was written only from
/// `docs/formats/tamis.md`.
const FIXED: [(usize, u64, u64); 34] = [
    (0, 0x4821_8226_ff3c_d4bf, 0x1d53_f6b5_2b8c_1614),
    (1, 0xbdfc_704d_4906_3ba1, 0x64dd_5e2f_8e16_8c88),
    (2, 0x5193_48ea_3ce9_358b, 0x4178_6d47_6d5b_6963),
    (3, 0x23ab_42dc_4e3b_b713, 0x8295_952a_4cb4_1779),
    (4, 0x34f5_aeef_e198_f270, 0x61e9_b47f_6f8e_fb5a),
    (5, 0x37e3_9bc3_693c_3901, 0xffc7_2ee7_7e01_5509),
    (6, 0x1504_890d_eba0_0730, 0x79e5_403b_7aaf_2327),
    (7, 0x22ce_5551_9f66_55bc, 0x29e1_b055_721b_a97d),
    (8, 0x6815_d9fc_66ad_cfe9, 0x4925_5e5c_1381_b570),
    (9, 0x2a4a_769b_1947_5a31, 0x9937_39c0_07c3_d0e8),
    (10, 0x76f9_4820_6050_ea6f, 0xad7c_74fc_1acf_de5d),
    (11, 0xa583_765f_a35c_7cbc, 0x4151_aed7_cef6_20c3),
    (12, 0xdeb6_3d77_47e7_bce5, 0x0467_37b3_bd55_7a45),
    (13, 0x5d10_1798_e378_64dc, 0xe9e3_c902_2ba0_3595),
    (14, 0x2afb_4e25_7907_9727, 0x1f43_2b46_52e9_b7a4),
    (15, 0xb08c_12d1_23f3_d670, 0x0610_8034_5753_2b8f),
    (16, 0xf87c_4524_f417_344b, 0xe6ce_0cf3_0ea6_05c2),
    (17, 0xf42f_2393_75d9_6875, 0x7764_5c08_f4d4_55fc),
    (31, 0xcf72_e64b_3740_8712, 0x1b33_7973_ce16_c325),
    (32, 0x9dd7_80f6_cf01_8c2c, 0xd1a2_7836_33cb_fefb),
    (33, 0x3e5a_b6c4_bc60_3f49, 0xc7ca_c292_88ec_dfb3),
    (48, 0xd806_2513_5b3b_0a22, 0x9fc0_a636_343c_f340),
    (49, 0x0638_44ec_d5b8_ae3b, 0x0233_e20f_b2cc_8e3c),
    (64, 0xd504_39f8_9617_40d1, 0x4151_a28b_8395_0796),
    (65, 0x26bb_1340_4352_3ab7, 0x9d5d_7a29_2a1e_1740),
    (96, 0xacb4_d2c2_c00e_ff13, 0x4613_1ef9_8035_39f9),
    (97, 0x7657_c27d_4af8_aa99, 0x1a34_a7de_17f0_d15b),
    (127, 0x6a8a_e850_5383_12cd, 0xb5b1_6ab0_fcee_8896),
    (128, 0xb860_fdd7_0c81_a0f4, 0x3ff8_8572_85f7_1e14),
    (129, 0x4a13_67c9_62ad_0df4, 0x418c_188d_fe4f_156b),
    (192, 0x4b8b_2f70_fad0_c647, 0xd65c_921b_66fb_9517),
    (240, 0x0173_d5e3_3386_4fba, 0x929e_bb70_8040_8501),
    (241, 0x16ba_b641_c88f_b37b, 0x0450_4bf2_7b80_3958),
    (256, 0xeb83_a966_9178_e897, 0x7075_1420_7b58_46cd),
];

/// The rows of the fold hash that differ from [`FIXED`]. The same script computed these hashes.
const FIXED_FOLD: [(usize, u64, u64); 11] = [
    (0, 0x300e_085a_b607_8140, 0xff0e_2259_9f9c_1bd2),
    (1, 0x2367_b6ef_d6ae_56e2, 0xf9a6_5017_0402_6c29),
    (2, 0x3c7c_2c2d_fdca_b7a6, 0xab74_d4ed_65ee_9425),
    (3, 0x4ea6_4c1b_0da3_053e, 0xc93e_0191_cb10_f7d3),
    (4, 0x6451_27ef_bac5_a7e3, 0x2c5d_170a_7eb2_464f),
    (5, 0x8e2f_1e3d_f380_fdb2, 0x93eb_42cb_ce58_430f),
    (6, 0x639d_e88e_a183_f033, 0x4455_e08a_d97c_07a1),
    (7, 0xd5fa_250c_d595_1f66, 0x8903_8e72_73dc_ad26),
    (8, 0x6f27_8a4c_2bba_37e6, 0xdd33_70b0_989e_149f),
    (33, 0x416c_aa6b_a356_1cd1, 0x3f2e_e760_2fcd_8bda),
    (48, 0x39f5_986c_c71e_3344, 0x2e57_2c51_d8e0_ebfc),
];

#[test]
fn hashes_are_those_computed_from_the_page() {
    let bytes = bytes_256();
    for (len, zero, seeded) in FIXED {
        assert_eq!(hash(&bytes[..len], ZERO), zero, "{len} bytes");
        assert_eq!(hash(&bytes[..len], keys(0x0123_4567_89ab_cdef)), seeded, "{len} bytes, seeded");
    }
    // The examples in `docs/formats/tamis.md`.
    assert_eq!(hash(b"a", ZERO), 0x8844_f393_49de_5594);
    assert_eq!(hash(b"tamis", ZERO), 0x90d6_73fd_7983_1040);
    assert_eq!(hash_number(1, 8, ZERO), 0xf238_71bf_741f_21fc);
    for (len, zero, seeded) in FIXED {
        let row = FIXED_FOLD.into_iter().find(|row| row.0 == len).unwrap_or((len, zero, seeded));
        let fold = |seed| crate::hash::fold::hash(&bytes[..len], keys(seed));
        assert_eq!((len, fold(0), fold(0x0123_4567_89ab_cdef)), row, "the fold hash");
    }
    let fold = crate::hash::fold::hash;
    assert_eq!(fold(b"a", ZERO), 0x0658_75de_b665_9b04);
    assert_eq!(fold(b"tamis", ZERO), 0x2c4c_71fa_9529_d255);
    assert_eq!(fold(&1_u64.to_le_bytes(), ZERO), 0x9c99_e110_d821_e754);
}

proptest! {
    #[test]
    fn the_keys_give_the_seed_back(seed: u64) {
        for known in [seed, 0, 1, u64::MAX, 1 << 63] {
            prop_assert_eq!(super::seed(keys(known)), known);
        }
    }

    #[test]
    fn a_number_hashes_as_its_bytes(number: u64, seed: u64) {
        let keys = keys(seed);
        for len in 0..=8 {
            let number = if len == 8 { number } else { number & ((1 << (8 * len)) - 1) };
            let expected = hash(&number.to_le_bytes()[..len], keys);
            prop_assert_eq!(hash_number(number, len as u64, keys), expected);
        }
    }
}

/// Returns item number `i` of `len` bytes. Each group of eight bytes is derived from `i` and the
/// position of the group.
fn counted(len: usize, i: u64) -> Vec<u8> {
    (0..len).map(|at| finalize(i ^ (at as u64 / 8) << 32).to_le_bytes()[at % 8]).collect()
}

/// Checks that flipping one bit of an item, or of a seed, flips each bit of the hash in half of all
/// cases.
fn assert_avalanche(what: &str, samples: u64, flips: usize, flip: impl Fn(u64, usize) -> [u64; 2]) {
    // The bound is six standard deviations. By chance, about two comparisons in 10⁹ exceed six
    // standard deviations.
    let bound = 6.0 * (samples as f64).sqrt() / 2.0;
    for at in 0..flips {
        let mut changed = [0_u64; 64];
        for i in 0..samples {
            let [one, other] = flip(i, at);
            (0..64).for_each(|bit| changed[bit] += (one ^ other) >> bit & 1);
        }
        for (bit, &changed) in changed.iter().enumerate() {
            let off = (changed as f64 - samples as f64 / 2.0).abs();
            assert!(off < bound, "{what}: bit {at} flips bit {bit} in {changed} of {samples}");
        }
    }
}

#[cfg_attr(miri, ignore = "millions of hashes")]
#[test]
fn each_bit_of_an_item_flips_half_of_the_hash() {
    for len in LENS {
        assert_avalanche(&format!("{len} bytes"), 1000, 8 * len, |i, at| {
            let mut item = counted(len, i);
            // Items of one byte form only 128 pairs that differ in a given bit. Therefore each
            // sample has its own seed.
            let keys = keys(i);
            let before = hash(&item, keys);
            item[at / 8] ^= 1 << (at % 8);
            [before, hash(&item, keys)]
        });
    }
}

#[cfg_attr(miri, ignore = "millions of hashes")]
#[test]
fn each_bit_of_a_seed_flips_half_of_the_hash() {
    for len in LENS {
        let item = counted(len, 1);
        assert_avalanche(&format!("seeds, {len} bytes"), 1000, 64, |seed, at| {
            [seed, seed ^ 1 << at].map(|seed| hash(&item, keys(seed)))
        });
    }
}

/// Tests that hashes of distinct items are distinct, and that no part of the hash repeats more
/// often than by chance.
fn assert_spread(what: &str, hashes: &[u64]) {
    let distinct: HashSet<u64> = hashes.iter().copied().collect();
    assert_eq!(distinct.len(), hashes.len(), "{what}: equal hashes");
    let n = hashes.len() as f64;
    // The parts include the parts that a split-block filter uses: the high bits for the block, and
    // the low 32 bits for the lanes.
    type Part = (&'static str, fn(u64) -> u64);
    let parts: [Part; 4] = [
        ("high 32 bits", |hash| hash >> 32),
        ("low 32 bits", |hash| hash & u64::from(u32::MAX)),
        ("middle 32 bits", |hash| hash >> 16 & u64::from(u32::MAX)),
        ("16 bits of each end", |hash| hash >> 48 << 16 | hash & 0xffff),
    ];
    for (name, part) in parts {
        let distinct: HashSet<u64> = hashes.iter().map(|&hash| part(hash)).collect();
        let repeated = n - distinct.len() as f64;
        let expected = n * n / 2.0_f64.powi(33);
        let bound = expected + 6.0 * expected.sqrt() + 3.0;
        assert!(repeated <= bound, "{what}, {name}: {repeated} repeats, not {expected}");
    }
    // Chi-square test of 256 bins for each byte of the hash, with 255 degrees of freedom.
    for byte in 0..8 {
        let mut bins = [0_u64; 256];
        hashes.iter().for_each(|hash| bins[(hash >> (8 * byte) & 255) as usize] += 1);
        let chi: f64 = bins.iter().map(|&count| (count as f64 - n / 256.0).powi(2)).sum();
        let off = chi / (n / 256.0) - 255.0;
        assert!(off < 7.0 * (2.0 * 255.0_f64).sqrt(), "{what}: byte {byte} is off by {off}");
    }
}

/// Calls `with` with every item of `len` bytes that has at most `most` set bits.
fn each_sparse(len: usize, most: usize, with: &mut impl FnMut(&[u8])) {
    fn from(bit: usize, left: usize, item: &mut [u8], with: &mut impl FnMut(&[u8])) {
        with(item);
        for bit in bit..if left == 0 { bit } else { 8 * item.len() } {
            item[bit / 8] ^= 1 << (bit % 8);
            from(bit + 1, left - 1, item, with);
            item[bit / 8] ^= 1 << (bit % 8);
        }
    }
    from(0, most, &mut vec![0; len], with);
}

#[cfg_attr(miri, ignore = "millions of hashes")]
#[test]
fn items_of_few_ones_spread() {
    for (len, most) in
        [(4, 6), (8, 4), (9, 3), (16, 3), (17, 3), (32, 2), (64, 2), (128, 2), (150, 2)]
    {
        for seed in [0, 1] {
            let mut hashes = Vec::new();
            each_sparse(len, most, &mut |item| hashes.push(hash(item, keys(seed))));
            assert_spread(&format!("{len} bytes, {most} ones, seed {seed}"), &hashes);
        }
    }
}

#[cfg_attr(miri, ignore = "millions of hashes")]
#[test]
fn orders_of_the_same_words_spread() {
    // Hashes every sequence of 2 to 16 words; each word has one of `values` values.
    let words = [0, 1, 1 << 31, 1 << 63, u64::MAX, SECRET[0], SECRET[0] ^ SECRET[4], !1];
    for (len, values) in [(2, 8), (3, 8), (4, 8), (6, 6), (8, 4), (16, 2)] {
        let mut hashes = Vec::new();
        for number in 0..u64::pow(values, len) {
            let word = |i: u32| words[(number / u64::pow(values, i) % values) as usize];
            let item: Vec<u8> = (0..len).flat_map(|i| word(i).to_le_bytes()).collect();
            hashes.push(hash(&item, ZERO));
        }
        assert_spread(&format!("{len} of {values} words"), &hashes);
    }
}

#[cfg_attr(miri, ignore = "millions of hashes")]
#[test]
fn zeros_of_every_length_and_one_byte_at_every_place_spread() {
    let mut hashes = Vec::new();
    let mut item = vec![0; 300];
    for len in 0..item.len() {
        hashes.push(hash(&item[..len], ZERO));
        for at in 0..len {
            for value in [1, 0x80, 0xff] {
                item[at] = value;
                hashes.push(hash(&item[..len], ZERO));
            }
            item[at] = 0;
        }
    }
    assert_spread("zeros", &hashes);
}

#[cfg_attr(miri, ignore = "millions of hashes")]
#[test]
fn seeds_spread() {
    for item in [&b""[..], b"a", b"12345678", b"0123456789abcdef", &[7; 100], &[7; 200]] {
        for step in [1, 1 << 16, 1 << 48] {
            let seeds = (0..1 << 16).map(|seed| hash(item, keys(seed * step)));
            assert_spread(&format!("seeds of step {step}"), &seeds.collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_seed_whose_second_output_mixes_nothing_has_another_key() {
    // The second outputs of SplitMix64 for these seeds are 0, 2⁶⁴ − 1, a third of 2⁶⁴ − 1, and 1.
    // If the first two outputs were used as keys, all integers would have the same hash.
    let seeds = [0xc391_0c8d_016b_07d6, 0x932b_113c_fbd6_b596]
        .into_iter()
        .chain([u64::MAX / 3, 1].map(|output| super::seed([output, 0]).wrapping_sub(GOLDEN)));
    for seed in seeds {
        let output = finalize(seed.wrapping_add(GOLDEN).wrapping_add(GOLDEN));
        assert!([0, u64::MAX, u64::MAX / 3, 1].contains(&output), "{output:x}");
        let hashes: Vec<u64> = (0..1 << 16).map(|i| hash_number(i, 8, keys(seed))).collect();
        assert_spread(&format!("seed {seed}"), &hashes);
        assert_eq!(super::seed(keys(seed)), seed);
    }
}

/// Tests pairs of items that would collide under every seed if the keys were XORed to the secret
/// words. In each pair, the words of two places are exchanged, and each word is XORed with the
/// secret words of both places.
#[test]
fn an_exchange_of_words_collides_under_no_seed() {
    let (a, b) = (0x0123_4567_89ab_cdef_u64, 0xfedc_ba98_7654_3210_u64);
    let item = |words: &[u64]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    for seed in 1..1000 {
        let keys = keys(seed);
        for [s, t] in [ZERO, [SECRET[0], SECRET[4]], [0, 0]] {
            let exchanged = [b ^ s ^ t, a ^ s ^ t];
            assert_ne!(hash(&item(&[a, b]), keys), hash(&item(&exchanged), keys), "{seed}");
        }
        // Exchanges the two halves of an item of 32 bytes.
        let four = [a, b, b ^ 1, a ^ 1];
        let [s0, s1, s2, s3] = [SECRET[0], SECRET[1], SECRET[2], SECRET[3]];
        let exchanged =
            [four[2] ^ s0 ^ s2, four[3] ^ s1 ^ s3, four[0] ^ s0 ^ s2, four[1] ^ s1 ^ s3];
        assert_ne!(hash(&item(&four), keys), hash(&item(&exchanged), keys), "{seed}");
    }
}

/// Counts the distinct values of 28 bits of the hashes of 2²⁸ integers. The hashes themselves are
/// distinct for any number of integers, because the finalizer is a bijection.
///
/// The test takes a minute: `cargo test --release -p tamis --lib by_chance -- --ignored`.
#[ignore = "takes a minute"]
#[test]
fn parts_of_many_hashes_repeat_by_chance() {
    let families = [
        ("u32", 4, (|i| i) as fn(u64) -> u64),
        ("u64", 8, |i| i),
        ("i << 32", 8, |i| i << 32),
        ("reversed", 8, u64::reverse_bits),
    ];
    let n = 2.0_f64.powi(28);
    let e = std::f64::consts::E;
    // Of n random numbers below n, n · (1 − 1/e) are distinct, with this standard deviation.
    let (expected, deviation) = (n * (1.0 - 1.0 / e), (n * (e - 2.0)).sqrt() / e);
    for (name, len, number) in families {
        for shift in [0, 18, 36] {
            let mut seen = vec![0_u64; 1 << 22];
            for i in 0..1 << 28 {
                let part = hash_number(number(i), len, ZERO) >> shift & ((1 << 28) - 1);
                seen[(part / 64) as usize] |= 1 << (part % 64);
            }
            let distinct: u64 = seen.iter().map(|word| u64::from(word.count_ones())).sum();
            let off = (distinct as f64 - expected) / deviation;
            assert!(off.abs() < 6.0, "{name}, bits from {shift}: {distinct}, {off:.1} deviations");
        }
    }
}
