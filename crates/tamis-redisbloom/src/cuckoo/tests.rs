//! Compares the filter with a simple implementation of RedisBloom's rules, and tests forged dumps.

use std::collections::HashMap;

use proptest::prelude::*;

use crate::cuckoo::*;
use crate::error::RedisInsertError;
use crate::murmur2::hash64;

/// A simple implementation of RedisBloom's rules. The slots are lists of bytes. A failed eviction
/// restores a copy of the slots.
#[derive(Clone)]
struct Naive {
    sub_filters: Vec<Vec<u8>>,
    slots: usize,
    max_iterations: u16,
    expansion: usize,
    items: u64,
    removed: u64,
}

impl Naive {
    fn new(options: &RedisCuckooOptions) -> Self {
        let slots = usize::from(options.bucket_size);
        let buckets = (options.capacity as usize / slots).next_power_of_two();
        let expansion = match options.expansion {
            0 => 0,
            expansion => usize::from(expansion).next_power_of_two(),
        };
        let sub_filters = vec![vec![0; buckets * slots]];
        let max_iterations = options.max_iterations;
        Self { sub_filters, slots, max_iterations, expansion, items: 0, removed: 0 }
    }

    fn other(bucket: u64, fingerprint: u8) -> u64 {
        bucket ^ (u64::from(fingerprint) * 0x5bd1_e995)
    }

    fn fingerprint(item: u32) -> (u8, u64) {
        let hash = hash64(&item.to_le_bytes(), 0);
        ((hash % 255 + 1) as u8, hash)
    }

    /// Returns the slots of both buckets in the search order of the filter.
    fn slots(&self, sub_filter: usize, hash: u64, fingerprint: u8) -> Vec<usize> {
        let buckets = self.sub_filters[sub_filter].len() / self.slots;
        let first = |hash: u64| (hash % buckets as u64) as usize * self.slots;
        let (a, b) = (first(hash), first(Self::other(hash, fingerprint)));
        (a..a + self.slots).chain(b..b + self.slots).collect()
    }

    fn find(&self, sub_filter: usize, hash: u64, fingerprint: u8, wanted: u8) -> Option<usize> {
        let slots = self.slots(sub_filter, hash, fingerprint);
        slots.into_iter().find(|&i| self.sub_filters[sub_filter][i] == wanted)
    }

    fn count(&self, item: u32) -> u64 {
        let (fingerprint, hash) = Self::fingerprint(item);
        let count = |i: usize| {
            let slots = self.slots(i, hash, fingerprint);
            slots.iter().filter(|&&slot| self.sub_filters[i][slot] == fingerprint).count() as u64
        };
        (0..self.sub_filters.len()).map(count).sum()
    }

    fn insert(&mut self, item: u32) -> bool {
        let (fingerprint, hash) = Self::fingerprint(item);
        self.items += 1;
        for i in (0..self.sub_filters.len()).rev() {
            if let Some(slot) = self.find(i, hash, fingerprint, 0) {
                self.sub_filters[i][slot] = fingerprint;
                return true;
            }
        }
        let newest = self.sub_filters.len() - 1;
        let before = self.sub_filters[newest].clone();
        let buckets = (before.len() / self.slots) as u64;
        let (mut at_hand, mut bucket, mut victim) = (fingerprint, hash % buckets, 0);
        for _ in 0..self.max_iterations {
            let slot = bucket as usize * self.slots + victim;
            std::mem::swap(&mut at_hand, &mut self.sub_filters[newest][slot]);
            bucket = Self::other(bucket, at_hand) % buckets;
            let first = bucket as usize * self.slots;
            if let Some(slot) =
                (first..first + self.slots).find(|&slot| self.sub_filters[newest][slot] == 0)
            {
                self.sub_filters[newest][slot] = at_hand;
                return true;
            }
            victim = (victim + 1) % self.slots;
        }
        self.items -= 1;
        self.sub_filters[newest] = before;
        if self.expansion == 0 {
            return false;
        }
        self.sub_filters.push(vec![0; buckets as usize * self.expansion * self.slots]);
        self.insert(item)
    }

    fn remove(&mut self, item: u32) -> bool {
        let (fingerprint, hash) = Self::fingerprint(item);
        for i in (0..self.sub_filters.len()).rev() {
            if let Some(slot) = self.find(i, hash, fingerprint, fingerprint) {
                self.sub_filters[i][slot] = 0;
                self.items -= 1;
                self.removed += 1;
                if self.sub_filters.len() > 1 && self.removed * 10 > self.items {
                    self.compact(true);
                }
                return true;
            }
        }
        false
    }

    fn compact(&mut self, stops: bool) {
        for i in (1..self.sub_filters.len()).rev() {
            let mut failed = false;
            for slot in 0..self.sub_filters[i].len() {
                let (fingerprint, bucket) = (self.sub_filters[i][slot], (slot / self.slots) as u64);
                if fingerprint == 0 {
                    continue;
                }
                let place =
                    (0..i).find_map(|j| self.find(j, bucket, fingerprint, 0).map(|slot| (j, slot)));
                match place {
                    Some((j, to)) => {
                        self.sub_filters[j][to] = fingerprint;
                        self.sub_filters[i][slot] = 0;
                    }
                    None => failed = true,
                }
            }
            if !failed && i == self.sub_filters.len() - 1 {
                self.sub_filters.pop();
            }
            if failed && stops {
                break;
            }
        }
        self.removed = 0;
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u32),
    InsertAbsent(u32),
    Remove(u32),
    Compact,
    Count(u32),
}

fn any_step() -> impl Strategy<Value = Step> {
    let item = || 0..60_u32;
    prop_oneof![
        6 => item().prop_map(Step::Insert),
        2 => item().prop_map(Step::InsertAbsent),
        4 => item().prop_map(Step::Remove),
        1 => Just(Step::Compact),
        2 => item().prop_map(Step::Count),
    ]
}

fn any_options() -> impl Strategy<Value = RedisCuckooOptions> {
    let bucket_size = prop::sample::select(vec![1, 2, 3, 4, 7, 12]);
    (0..24_u64, bucket_size, 1..30_u16, 0..5_u16).prop_map(
        |(more, bucket_size, max_iterations, expansion)| {
            let capacity = 2 * u64::from(bucket_size) + more;
            RedisCuckooOptions { capacity, bucket_size, max_iterations, expansion }
        },
    )
}

fn slots_of(sub_filter: &SubFilter) -> Vec<u8> {
    (0..sub_filter.len_bytes()).map(|i| sub_filter.slot(i)).collect()
}

pub(super) fn filled(
    options: &RedisCuckooOptions,
    items: impl IntoIterator<Item = u32>,
) -> RedisCuckoo {
    let mut filter = RedisCuckoo::new(options).unwrap();
    for item in items {
        let _ = filter.insert(&item);
    }
    filter
}

pub(super) fn reloaded(filter: &RedisCuckoo) -> RedisCuckoo {
    let mut copy = RedisCuckoo::from_header(&filter.header()).unwrap();
    let mut position = 1;
    while let Some((next, bytes)) = filter.chunk(position) {
        copy.load_chunk(next, &bytes).unwrap();
        position = next;
    }
    copy
}

#[test]
fn a_header_with_counts_at_their_limits_stays_readable() {
    let header = RedisCuckoo::new(&RedisCuckooOptions { capacity: 64, ..Default::default() });
    let header = header.unwrap().header();
    // The number of items is at byte 0 of the header. The number of removals is at byte 16 of the
    // header.
    for at in [0, 16] {
        for edge in [i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX] {
            let mut crafted = header;
            crafted[at..at + 8].copy_from_slice(&edge.to_le_bytes());
            let Ok(mut filter) = RedisCuckoo::from_header(&crafted) else { continue };
            for item in 0..40_u32 {
                filter.insert(&item).unwrap();
                if item % 3 == 0 {
                    assert!(filter.remove(&item));
                }
                RedisCuckoo::from_header(&filter.header()).unwrap();
            }
        }
    }
}

proptest! {
    #[test]
    fn answers_and_slots_are_those_of_the_naive_rules(
        options in any_options(),
        steps in prop::collection::vec(any_step(), 0..400),
    ) {
        let mut filter = RedisCuckoo::new(&options).unwrap();
        let mut naive = Naive::new(&options);
        for step in steps {
            let before = filter.clone();
            match step {
                Step::Insert(item) => {
                    let inserted = filter.insert(&item);
                    prop_assert_eq!(inserted.is_ok(), naive.insert(item));
                    if let Err(error) = inserted {
                        prop_assert_eq!(error, RedisInsertError::Full { items: filter.len() });
                        prop_assert_eq!(&filter, &before, "a refused item leaves no trace");
                    }
                }
                Step::InsertAbsent(item) => match filter.insert_absent(&item) {
                    Ok(true) => prop_assert!(naive.insert(item)),
                    Ok(false) => prop_assert!(naive.count(item) > 0),
                    Err(_) => prop_assert!(naive.count(item) == 0 && !naive.insert(item)),
                },
                Step::Remove(item) => prop_assert_eq!(filter.remove(&item), naive.remove(item)),
                Step::Compact => {
                    filter.compact();
                    naive.compact(false);
                }
                Step::Count(item) => {
                    prop_assert_eq!(filter.count(&item), naive.count(item));
                    prop_assert_eq!(filter.contains(&item), naive.count(item) > 0);
                }
            }
            let slots: Vec<_> = filter.sub_filters.iter().map(slots_of).collect();
            prop_assert_eq!(slots, naive.sub_filters.clone());
            prop_assert_eq!((filter.items, filter.removed), (naive.items, naive.removed));
        }
        prop_assert!(filter.items == 0 || reloaded(&filter) == filter);
    }

    #[test]
    fn items_are_found_and_counted_while_only_they_are_removed(
        options in any_options(),
        steps in prop::collection::vec((0..60_u32, any::<bool>()), 0..400),
    ) {
        let mut filter = RedisCuckoo::new(&options).unwrap();
        let mut truth: HashMap<u32, u64> = HashMap::new();
        for (item, is_insert) in steps {
            let count = truth.entry(item).or_default();
            if is_insert {
                *count += u64::from(filter.insert(&item).is_ok());
            } else if *count > 0 {
                prop_assert!(filter.remove(&item));
                *count -= 1;
            }
            for (item, &count) in &truth {
                prop_assert!(filter.count(item) >= count, "{} of {} times", item, count);
            }
        }
        prop_assert_eq!(filter.len(), truth.values().sum::<u64>());
    }

    #[test]
    fn batches_answer_as_single_items(
        options in any_options(),
        items in prop::collection::vec(0..60_u32, 0..200),
    ) {
        let (mut single, mut batch) =
            (RedisCuckoo::new(&options).unwrap(), RedisCuckoo::new(&options).unwrap());
        let mut answers = Vec::new();
        batch.insert_each(&items[..items.len() / 2], |answer| {
            answers.push(answer.map(|()| true));
            true
        });
        batch.insert_absent_each(&items[items.len() / 2..], |answer| {
            answers.push(answer);
            true
        });
        let expected: Vec<_> = items
            .iter()
            .enumerate()
            .map(|(i, item)| match i < items.len() / 2 {
                true => single.insert(item).map(|()| true),
                false => single.insert_absent(item),
            })
            .collect();
        prop_assert_eq!(answers, expected);
        prop_assert_eq!(&batch, &single);
        let mut answers = Answers::new();
        batch.contains_each(&items, &mut answers);
        for (i, item) in items.iter().enumerate() {
            prop_assert_eq!(answers.get(i), batch.contains(item));
        }
    }

    #[test]
    fn hostile_dumps_are_refused_or_usable(
        options in any_options(),
        flips in prop::collection::vec((0..38_usize, 0..8_u32), 0..3),
        slots in prop::collection::vec(any::<u8>(), 1..40),
        items in prop::collection::vec(0..60_u32, 0..60),
    ) {
        let mut header = filled(&options, 0..50).header();
        for (at, bit) in flips {
            header[at] ^= 1 << bit;
        }
        // A forged header may cause growth of any size. The test therefore inserts only into small
        // filters with a low expansion.
        if let Ok(mut filter) = RedisCuckoo::from_header(&header) {
            prop_assert_eq!(filter.header(), header, "what is accepted is kept");
            let _ = filter.load_chunk(1 + slots.len() as i64, &slots);
            let _ = (filter.count(&1_u32), filter.chunk(1), filter.size_bytes());
            if filter.size_bytes() < 1 << 16 && filter.expansion < 9 {
                for item in items {
                    if filter.insert(&item).is_ok() {
                        prop_assert!(filter.contains(&item));
                    }
                }
                for item in 0..60_u32 {
                    let _ = filter.remove(&item);
                }
                filter.compact();
            }
        }
    }
}

#[test]
fn fingerprints_are_those_of_a_live_server() {
    let filter = RedisCuckoo::new(&RedisCuckooOptions::default()).unwrap();
    for (item, hash, fingerprint) in [("", 0, 1), ("a", 0x0717_17d2_d36b_6b11_u64, 196)] {
        assert_eq!(filter.hash(item), hash);
        let mut filter = filter.clone();
        filter.insert(item).unwrap();
        assert_eq!(filter.sub_filters[0].slot(hash % 512 * 2), fingerprint);
    }
}

#[test]
fn sub_filters_are_sized_as_by_the_server() {
    let sized = |capacity, bucket_size| {
        let options = RedisCuckooOptions { capacity, bucket_size, ..Default::default() };
        let filter = RedisCuckoo::new(&options).unwrap();
        (filter.buckets(), filter.size_bytes() - 56)
    };
    assert_eq!(sized(10_000_000, 2), (8_388_608, 16_777_216));
    assert_eq!(sized(1024, 2), (512, 1024));
    assert_eq!(sized(7, 3), (2, 6));
}

#[test]
fn options_out_of_range_are_refused() {
    let options = RedisCuckooOptions::default();
    let error = |options| RedisCuckoo::new(&options).unwrap_err();
    for bucket_size in [0, 256] {
        let expected = RedisCuckooError::BucketSize { bucket_size };
        assert_eq!(error(RedisCuckooOptions { bucket_size, ..options }), expected);
    }
    for capacity in [3, u64::MAX] {
        let expected = RedisCuckooError::Capacity { capacity, least: 4 };
        assert_eq!(error(RedisCuckooOptions { capacity, ..options }), expected);
    }
    let (max_iterations, expansion) = (0, 32_769);
    let expected = RedisCuckooError::Expansion { expansion };
    assert_eq!(error(RedisCuckooOptions { expansion, ..options }), expected);
    let expected = RedisCuckooError::MaxIterations;
    assert_eq!(error(RedisCuckooOptions { max_iterations, ..options }), expected);
}

#[test]
fn the_rate_of_a_grown_filter_is_the_measured_one() {
    for (expansion, items) in [(1, 900_u64), (1, 4000), (2, 2200), (2, 3100), (4, 5500)] {
        let options = RedisCuckooOptions { expansion, ..RedisCuckooOptions::default() };
        let mut filter = RedisCuckoo::new(&options).unwrap();
        (0..items).for_each(|item| filter.insert(&item).unwrap());
        let absent = 200_000_u64;
        let found = (0..absent).filter(|i| filter.contains(&(i + (1 << 40)))).count();
        let (measured, estimated) = (found as f64 / absent as f64, filter.estimate_rate(u64::MAX));
        let parts = filter.sub_filters();
        let off = (estimated / measured - 1.0).abs();
        assert!(off < 0.1, "{parts} parts: {estimated}, measured {measured}");
        // The hash distributes items evenly. An estimate from a part of each sub-filter is
        // therefore nearly the same as the estimate from all slots.
        let by_part = filter.estimate_rate(1024);
        assert!((by_part / estimated - 1.0).abs() < 0.2, "{by_part} {estimated}");
    }
}

#[test]
fn a_filter_that_does_not_grow_reports_that_it_refuses() {
    let options =
        RedisCuckooOptions { capacity: 64, expansion: 0, ..RedisCuckooOptions::default() };
    let mut filter = RedisCuckoo::new(&options).unwrap();
    let mut item = 0_u64;
    while filter.insert(&item).is_ok() {
        assert!(!filter.is_refusing());
        item += 1;
    }
    assert!(filter.is_refusing());
    let mut other = filter.clone();
    other.is_refusing.0 = false;
    assert_eq!(filter, other, "it is no part of the filter");
    assert!(filter.remove(&0_u64) && !filter.is_refusing());
}
