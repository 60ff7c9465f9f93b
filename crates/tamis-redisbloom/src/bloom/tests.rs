//! Compares the filter with a simple implementation of RedisBloom's rules, and tests hostile dumps.

use proptest::prelude::*;

use crate::bloom::*;
use crate::error::{RedisChunkError, RedisHeaderErrorKind};
use crate::murmur2::hash64;

/// A simple implementation of a layer, with a list of bits and plain division.
struct Naive {
    layers: Vec<(Vec<bool>, u64, u64, f64)>,
    expansion: u64,
}

impl Naive {
    fn layer(capacity: u64, rate: f64) -> (Vec<bool>, u64, u64, f64) {
        let bits = (capacity as f64 * rate.ln().abs() / 0.480453013918201).max(1.0) as usize;
        (vec![false; bits.div_ceil(64) * 64], capacity, 0, rate)
    }

    fn probes(bits: usize, rate: f64, item: u32) -> Vec<usize> {
        let a = hash64(&item.to_le_bytes(), 0xc6a4_a793_5bd1_e995);
        let b = hash64(&item.to_le_bytes(), a);
        // The server's constants are slightly inexact. A rate that is a power of two therefore
        // needs one more probe than with exact constants: 4 probes for 1/8.
        let k = (rate.log2().abs() + 1e-9).ceil() as u64;
        (0..k).map(|i| (a.wrapping_add(i.wrapping_mul(b)) % bits as u64) as usize).collect()
    }

    fn contains(&self, item: u32) -> bool {
        self.layers.iter().any(|(bits, _, _, rate)| {
            Self::probes(bits.len(), *rate, item).iter().all(|&i| bits[i])
        })
    }

    fn insert(&mut self, item: u32) -> Option<bool> {
        if self.contains(item) {
            return Some(false);
        }
        let &(_, capacity, items, rate) = self.layers.last().unwrap();
        if items == capacity {
            if self.expansion == 0 {
                return None;
            }
            self.layers.push(Self::layer(capacity * self.expansion, rate / 2.0));
        }
        let (bits, _, items, rate) = self.layers.last_mut().unwrap();
        for i in Self::probes(bits.len(), *rate, item) {
            bits[i] = true;
        }
        *items += 1;
        Some(true)
    }
}

fn words_of(bits: &[bool]) -> Vec<u64> {
    let word = |bits: &[bool]| bits.iter().rev().fold(0, |word, &bit| word << 1 | u64::from(bit));
    bits.chunks(64).map(word).collect()
}

fn any_options() -> impl Strategy<Value = RedisBloomOptions> {
    let rate = prop::sample::select(vec![0.9, 0.2, 0.01, 1e-6]);
    (1..40_u64, rate, 0..4_u32, prop::bool::weighted(0.8)).prop_map(
        |(capacity, rate, expansion, is_scaling)| RedisBloomOptions {
            capacity,
            rate,
            expansion,
            is_scaling,
        },
    )
}

fn filled(options: &RedisBloomOptions, items: &[u32]) -> RedisBloom {
    let mut filter = RedisBloom::new(options).unwrap();
    filter.insert_each(items, |_| true);
    filter
}

fn reloaded(filter: &RedisBloom) -> RedisBloom {
    let mut copy = RedisBloom::from_header(&filter.header()).unwrap();
    let mut position = 1;
    while let Some((next, bytes)) = filter.chunk(position) {
        copy.load_chunk(next, &bytes).unwrap();
        position = next;
    }
    copy
}

proptest! {
    #[test]
    fn answers_and_bits_are_those_of_the_naive_rules(
        options in any_options(),
        items in prop::collection::vec(0..400_u32, 0..300),
    ) {
        let mut filter = RedisBloom::new(&options).unwrap();
        let rate = options.rate;
        let (rate, expansion) = match (options.is_scaling, u64::from(options.expansion)) {
            (true, expansion @ 1..) => (rate / 2.0, expansion),
            _ => (rate, 0),
        };
        let mut naive = Naive { layers: vec![Naive::layer(options.capacity, rate)], expansion };
        for &item in &items {
            prop_assert_eq!(filter.contains(&item), naive.contains(item));
            let before = filter.clone();
            match naive.insert(item) {
                Some(is_new) => prop_assert_eq!(filter.insert(&item), Ok(is_new)),
                None => {
                    let full = RedisInsertError::Full { items: filter.len() };
                    prop_assert_eq!(filter.insert(&item), Err(full));
                    prop_assert_eq!(&filter, &before, "a refused item leaves no trace");
                }
            }
        }
        prop_assert_eq!(filter.layers.len(), naive.layers.len());
        for (layer, (bits, capacity, items, _)) in filter.layers.iter().zip(&naive.layers) {
            prop_assert_eq!(layer.words(), words_of(bits));
            prop_assert_eq!((layer.numbers().capacity, layer.numbers().items), (*capacity, *items));
        }
    }

    #[test]
    fn batches_answer_as_single_items_and_find_every_item(
        options in any_options(),
        items in prop::collection::vec(0..400_u32, 0..300),
    ) {
        let mut one_by_one = RedisBloom::new(&options).unwrap();
        let expected: Vec<_> = items.iter().map(|item| one_by_one.insert(item)).collect();
        let mut filter = RedisBloom::new(&options).unwrap();
        let mut found = Vec::new();
        filter.insert_each(&items, |answer| {
            found.push(answer);
            true
        });
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(&filter, &one_by_one);
        let mut answers = Answers::new();
        filter.contains_each(&items, &mut answers);
        for (i, item) in items.iter().enumerate() {
            prop_assert_eq!(answers.get(i), filter.contains(item));
            prop_assert!(answers.get(i) || expected[i].is_err(), "no false negative");
        }
    }

    #[test]
    fn dumps_restore_filters(
        options in any_options(),
        items in prop::collection::vec(0..400_u32, 0..300),
    ) {
        let filter = filled(&options, &items);
        prop_assert_eq!(&reloaded(&filter), &filter);
        // A chunk may begin inside a layer, and a chunk may be split.
        let mut copy = RedisBloom::from_header(&filter.header()).unwrap();
        let mut position = 1;
        while let Some((_, bytes)) = filter.chunk(position) {
            let piece = &bytes[..bytes.len().min(5)];
            position += piece.len() as i64;
            copy.load_chunk(position, piece).unwrap();
        }
        prop_assert_eq!(copy, filter);
    }

    #[test]
    fn hostile_headers_are_refused_or_usable(
        options in any_options(),
        items in prop::collection::vec(0..400_u32, 0..100),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut header = filled(&options, &items).header();
        for (at, bit) in flips {
            let at = at.index(header.len());
            header[at] ^= 1 << bit;
        }
        if let Some(cut) = cut {
            header.truncate(cut.index(header.len()));
        }
        // With a forged capacity, an insert could allocate a layer of any size. The test therefore
        // inserts only into filters with small layers.
        if let Ok(mut filter) = RedisBloom::from_header(&header) {
            prop_assert_eq!(filter.header(), header, "what is accepted is kept");
            let _ = (filter.contains(&1_u32), filter.size_bytes(), filter.capacity());
            let _ = filter.load_chunk(9, &[255; 8]);
            if filter.layers().len() < 50 && filter.layers().all(|layer| layer.capacity < 1000) {
                let answers: Vec<_> = items.iter().map(|item| filter.insert(item)).collect();
                for (item, answer) in items.iter().zip(answers) {
                    prop_assert!(answer.is_err() || filter.contains(item));
                }
            }
        }
    }
}

#[test]
fn a_header_with_counts_at_their_limits_stays_readable() {
    let options = RedisBloomOptions { capacity: 5, expansion: 2, ..Default::default() };
    let header = filled(&options, &(0..12).collect::<Vec<_>>()).header();
    let layers = RedisBloom::from_header(&header).unwrap().layers().len() as u64;
    assert_eq!(layers, 2);
    // The header contains an item count for each layer and an item count for the whole filter.
    let layer_bytes = (header.len() - 20) / 2;
    let first = 20 + 16;
    let second = u64::from_le_bytes(header[first + layer_bytes..][..8].try_into().unwrap());
    let mut accepted = 0;
    for edge in [1 << 62, i64::MAX as u64 - 9, i64::MAX as u64, 1 << 63, u64::MAX - 9, u64::MAX] {
        let mut crafted = header.clone();
        crafted[first..first + 8].copy_from_slice(&edge.to_le_bytes());
        crafted[..8].copy_from_slice(&edge.saturating_add(second).to_le_bytes());
        let Ok(mut filter) = RedisBloom::from_header(&crafted) else { continue };
        accepted += 1;
        for item in 100..160_u32 {
            if filter.insert(&item).is_ok() {
                RedisBloom::from_header(&filter.header()).unwrap();
            }
        }
    }
    assert!(accepted > 0);
}

#[test]
fn rates_equal_those_in_the_documentation() {
    let rate = |capacity: u64, items: u32| {
        let options = RedisBloomOptions { capacity, ..Default::default() };
        let filter = filled(&options, &(0..items).collect::<Vec<_>>());
        let absent: Vec<u32> = (items..items + 400_000).collect();
        let mut answers = Answers::new();
        filter.contains_each(&absent, &mut answers);
        answers.count_ones() as f64 / absent.len() as f64
    };
    let planned = rate(10_000, 10_000);
    assert!((0.0045..0.0055).contains(&planned), "half of 1 % in the first layer: {planned}");
    let grown = rate(10, 10_000);
    assert!((0.018..0.023).contains(&grown), "twice 1 %: {grown}");
}

#[test]
fn options_out_of_range_are_refused() {
    let options = RedisBloomOptions::default();
    for rate in [0.0, 1.0, -0.1, f64::NAN, f64::INFINITY, 5e-324] {
        let made = RedisBloom::new(&RedisBloomOptions { rate, ..options });
        assert!(matches!(made, Err(RedisBloomError::Rate { .. })), "{rate:e}");
    }
    for capacity in [0, u64::MAX] {
        let made = RedisBloom::new(&RedisBloomOptions { capacity, ..options });
        assert_eq!(made, Err(RedisBloomError::Capacity { capacity }));
    }
}

#[test]
fn options_that_only_redisbloom_2_accepts_give_its_layers() {
    // `BF.DEBUG` of RedisBloom 2.8.2 shows the same layers as this test.
    let layer = |options| {
        let filter = RedisBloom::new(&options).unwrap();
        let layer = *filter.layers().next().unwrap();
        (layer.bytes, layer.probes, layer.rate)
    };
    let options = RedisBloomOptions { rate: 0.9, ..Default::default() };
    assert_eq!(layer(options), (24, 2, 0.45));
    assert_eq!(layer(RedisBloomOptions { is_scaling: false, ..options }), (8, 1, 0.9));
    let capacity = 1_500_000_000;
    let options = RedisBloomOptions { capacity, rate: 0.24, expansion: 2, is_scaling: false };
    assert_eq!(layer(options), (556_941_704, 3, 0.24));
    let options = RedisBloomOptions { capacity: 2, expansion: 40_000, ..Default::default() };
    let grown = filled(&options, &[1, 2, 3, 4]);
    let sizes: Vec<_> = grown.layers().map(|layer| (layer.bytes, layer.capacity)).collect();
    assert_eq!(sizes, [(8, 2), (124_712, 80_000)]);
    assert_eq!(reloaded(&grown), grown);
}

#[test]
fn growth_ends_when_half_the_rate_is_zero() {
    let options = RedisBloomOptions { capacity: 1, rate: 1e-322, expansion: 1, is_scaling: true };
    let mut filter = RedisBloom::new(&options).unwrap();
    let error = (0..10_u32).find_map(|item| filter.insert(&item).err());
    assert_eq!(error, Some(RedisInsertError::Rate));
    let before = filter.clone();
    assert_eq!(filter.insert(&77_u32), Err(RedisInsertError::Rate));
    assert_eq!(filter.insert(&0_u32), Ok(false), "present items are still answered");
    assert_eq!(filter, before);
    assert!(filter.layers().len() < 10);
}

#[test]
fn chunks_outside_the_filter_are_refused_as_by_the_server() {
    let mut filter = filled(&RedisBloomOptions { capacity: 20, ..Default::default() }, &[]);
    let before = filter.clone();
    for (position, len, error) in [
        (0, 1, RedisChunkError::Position),
        (-1, 1, RedisChunkError::Position),
        (i64::MIN, 0, RedisChunkError::Position),
        (3, 4, RedisChunkError::Position),
        (1, 1, RedisChunkError::Outside),
        (34, 1, RedisChunkError::Outside),
        (33, 0, RedisChunkError::Outside),
        (i64::MAX, 1, RedisChunkError::Outside),
        (34, 33, RedisChunkError::TooLong),
        (35, 20, RedisChunkError::TooLong),
    ] {
        assert_eq!(filter.load_chunk(position, &vec![1; len]), Err(error), "{position} {len}");
        assert_eq!(filter, before);
    }
    assert_eq!(filter.load_chunk(33, &[1; 32]), Ok(()));
    assert_eq!(filter.chunk(30).unwrap(), (33, vec![1; 3]));
    assert!(
        [0, -1, 33, i64::MAX, i64::MIN].iter().all(|&position| filter.chunk(position).is_none())
    );
}

#[test]
fn large_layers_are_dumped_in_chunks_of_16_mib() {
    let options = RedisBloomOptions { capacity: 13_000_000, ..Default::default() };
    let filter = filled(&options, &(0..1000).collect::<Vec<u32>>());
    let (next, bytes) = filter.chunk(1).unwrap();
    assert_eq!((next, bytes.len()), ((16 << 20) + 1, 16 << 20));
    assert_eq!(reloaded(&filter), filter);
}

#[test]
fn old_filters_use_a_power_of_two_and_32_bit_hashes() {
    let mut header = filled(&RedisBloomOptions::default(), &[]).header();
    // This header has no option FORCE64, and 2¹⁰ of the 1152 bits of the layer are in use.
    header[12] = 1;
    header[20 + 52] = 10;
    let mut filter = RedisBloom::from_header(&header).unwrap();
    assert_eq!(filter.hash_bits(), 32);
    assert_eq!(filter.hash("item"), RedisHash::of_32_bits(b"item"));
    assert_eq!(filter.insert("item"), Ok(true));
    assert!(filter.contains("item"));
    let (a, b) = RedisHash::of_32_bits(b"item").parts();
    for i in 0..8 {
        let bit = (a + i * b) % 1024;
        assert_eq!(filter.layers[0].words()[(bit / 64) as usize] >> (bit % 64) & 1, 1);
    }
    (0..200_u32).for_each(|item| assert!(filter.insert(&item).is_ok()));
    assert!((0..200_u32).all(|item| filter.contains(&item)), "also in appended layers");
    assert_eq!(reloaded(&filter), filter);
}

#[test]
fn a_header_for_too_much_memory_is_refused() {
    let mut header = filled(&RedisBloomOptions::default(), &[]).header();
    header[20..28].copy_from_slice(&(1_u64 << 52).to_le_bytes());
    header[28..36].copy_from_slice(&(1_u64 << 55).to_le_bytes());
    let error = RedisBloom::from_header(&header).unwrap_err();
    assert!(matches!(error.kind, RedisHeaderErrorKind::Memory(_)), "{error:?}");
}
