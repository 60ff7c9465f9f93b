//! Sets with several sources, compared with the exact ids of each source.

use std::collections::HashSet;

use tamis_testing::Random;

use super::*;
use crate::audit::binomial::upper_tail;
use crate::ids::change_kind::ChangeKind;

/// The exact ids of one source.
#[derive(Default)]
struct Exact {
    ids: HashSet<usize>,
    /// The ids at the start of the running full read.
    full_read: Option<HashSet<usize>>,
    /// Ids that the program has inserted, and that the current generation contains. Only the first source has them.
    pushed: HashSet<usize>,
    /// The pushed ids since the start of the running full read.
    pushed_since: HashSet<usize>,
    state: SyncState,
}

/// The number of different ids in a random test.
const IDS: usize = 12;

fn key(id: usize) -> Vec<u8> {
    (id + 1).to_string().into_bytes()
}

/// Returns a set of integers whose filters have practically no false positives.
fn set_of(sources: usize) -> IdSet {
    let options =
        IdSetOptions { rate: 1e-9, negative_requests: 0, ..IdSetOptions::new(integers()) };
    IdSet::with_sources(options, sources).unwrap()
}

fn start(set: &IdSet, source: usize) {
    let generation = Generation::new(1, set.source_rate()).unwrap();
    set.source_ids(source).start_generation(generation);
}

fn publish(set: &IdSet, source: usize, ids: impl IntoIterator<Item = usize>) {
    let generation = set.source_ids(source).building().unwrap();
    for id in ids {
        generation.load_key(&key(id), None).unwrap();
    }
    set.publish_generation_of(source);
}

/// Makes a random change of the set and of the exact ids.
fn change(set: &IdSet, exact: &mut [Exact], random: &mut Random) -> String {
    let (source, id) = (random.below(exact.len()), random.below(IDS));
    let one = &mut exact[source];
    match random.below(10) {
        0..=2 => {
            set.apply_change_of(source, ChangeKind::Insert, &key(id)).unwrap();
            one.ids.insert(id);
            format!("insert {id} into {source}")
        }
        3 | 4 => {
            set.apply_change_of(source, ChangeKind::Delete, &key(id)).unwrap();
            for ids in [&mut one.ids, &mut one.pushed, &mut one.pushed_since] {
                ids.remove(&id);
            }
            format!("delete {id} from {source}")
        }
        5 => {
            start(set, source);
            one.full_read = Some(one.ids.clone());
            one.pushed_since.clear();
            format!("begin a full read of {source}")
        }
        6 => {
            let Some(full_read) = one.full_read.take() else { return "nothing".to_owned() };
            publish(set, source, full_read);
            one.pushed = one.pushed_since.clone();
            // Only a source that has published becomes synced.
            set.set_synced_until(source, None);
            one.state = SyncState::Synced;
            format!("publish {source}")
        }
        7 => {
            set.end_sync(source);
            if one.state == SyncState::Synced {
                one.state = SyncState::Stale;
            }
            format!("lose {source}")
        }
        8 => {
            set.insert(id + 1).unwrap();
            exact[0].pushed.insert(id);
            exact[0].pushed_since.insert(id);
            format!("push {id}")
        }
        _ => {
            set.delete(id + 1).unwrap();
            for one in exact {
                for ids in [&mut one.ids, &mut one.pushed, &mut one.pushed_since] {
                    ids.remove(&id);
                }
            }
            format!("delete {id} from all sources")
        }
    }
}

#[test]
fn an_id_is_refused_only_if_no_source_has_it_and_all_sources_are_synced() {
    let mut refused = 0;
    for seed in 1..=60 {
        let sources = 1 + seed % 4;
        let (set, mut random) = (set_of(sources), Random(seed as u64));
        let mut exact: Vec<_> = (0..sources).map(|_| Exact::default()).collect();
        let mut changes = Vec::new();
        for _ in 0..200 {
            changes.push(change(&set, &mut exact, &mut random));
            let is_synced = exact.iter().all(|one| one.state == SyncState::Synced);
            let states = exact.iter().map(|one| one.state);
            assert_eq!(set.state(), states.fold(SyncState::Synced, SyncState::worse));
            for id in 0..IDS {
                let has = |one: &Exact| one.ids.contains(&id) || one.pushed.contains(&id);
                let exists = exact.iter().any(has);
                let verdict = set.decide(&key(id));
                assert_eq!(verdict.passes(), exists || !is_synced, "{id} after {changes:?}");
                assert_eq!(set.generations().contains(&key(id)), exists, "{id} after {changes:?}");
                refused += usize::from(!verdict.passes());
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn the_worst_source_decides_about_the_state() {
    let set = set_of(3);
    set.add_source();
    for source in 0..3 {
        assert_eq!(set.state(), SyncState::Warming, "{source}");
        set.set_synced_until(source, Some(Instant::now() + Duration::from_secs(60)));
    }
    assert_eq!((set.state(), set.decide(b"1")), (SyncState::Synced, ABSENT));
    set.end_sync(1);
    assert_eq!((set.state(), set.state_of(0)), (SyncState::Stale, SyncState::Synced));
    assert!(set.decide(b"1").passes());
    assert!(set.lacks_source(), "one of three sources runs");
    set.set_synced_until(1, None);
    // The time of one source has passed.
    set.set_synced_until(2, Some(Instant::now()));
    assert_eq!(set.decide(b"1"), Verdict::Pass(PassReason::Unsure));
}

#[test]
fn a_new_id_is_missing_only_after_all_sources_have_read_everything_up_to_its_answer() {
    let options = IdSetOptions { recent_for: Duration::ZERO, ..IdSetOptions::new(integers()) };
    let set = IdSet::with_sources(options, 2).unwrap();
    set.set_synced_until(0, None);
    set.set_synced_until(1, None);
    for id in [b"1", b"2", b"3"] {
        set.missed(id);
    }
    let later = Instant::now() + Duration::from_secs(1);
    set.set_known_until(0, Some(later));
    assert_eq!(set.state(), SyncState::Synced, "the other source may report the ids");
    set.set_known_until(1, Some(later));
    assert_eq!(set.state(), SyncState::Stale);
    set.apply_change_of(1, ChangeKind::Insert, b"2").unwrap();
    set.set_known_until(1, Some(later));
    assert_eq!(set.state(), SyncState::Synced);
}

#[test]
fn the_next_ids_follow_the_highest_id_of_all_sources() {
    let options = IdSetOptions { next_ids: 5, ..IdSetOptions::new(integers()) };
    let set = IdSet::with_sources(options, 2).unwrap();
    set.set_state(SyncState::Synced);
    set.apply_change_of(0, ChangeKind::Insert, b"100").unwrap();
    set.apply_change_of(1, ChangeKind::Insert, b"200").unwrap();
    assert_eq!(set.decide(b"203"), Verdict::Pass(PassReason::Next));
    assert_eq!(set.decide(b"103"), ABSENT);
}

/// Publishes an empty generation with a fold.
fn publish_with(set: &IdSet, source: usize, fold: Fold) {
    let generation = Generation::new(1, set.source_rate()).unwrap().with_fold(fold);
    set.source_ids(source).start_generation(generation);
    set.publish_generation_of(source);
}

#[test]
fn each_source_finds_ids_by_its_own_collation() {
    let options = IdSetOptions {
        rate: 1e-9,
        recent_for: Duration::ZERO,
        ..IdSetOptions::new(IdType::text())
    };
    let set = IdSet::with_sources(options, 2).unwrap();
    publish_with(&set, 0, Fold::Exact);
    publish_with(&set, 1, Fold::General);
    set.set_state(SyncState::Synced);
    set.apply_change_of(0, ChangeKind::Insert, b"Abc").unwrap();
    // A source reports the key of an id.
    set.apply_change_of(1, ChangeKind::Insert, &Fold::General.key(b"Xyz")).unwrap();
    assert_eq!((set.decide(b"Abc"), set.decide(b"abc")), (KNOWN, ABSENT));
    assert_eq!((set.decide(b"Xyz"), set.decide("x\u{FF}z".as_bytes())), (KNOWN, KNOWN));
    // The insert of `xyz` removes no 404 of `Xyz` from a cache whose keys are exact.
    set.not_found(b"Xyz", set.passed(b"Xyz"), request());
    assert!(!set.is_not_found(b"Xyz", request()));
    let late = set.passed(b"xyz");
    publish_with(&set, 0, Fold::General);
    set.not_found(b"xyz", late, request());
    assert!(!set.is_not_found(b"xyz", request()), "a generation was published");
    set.not_found(b"Xyz", set.passed(b"Xyz"), request());
    assert!(set.is_not_found(b"xyz", request()));
    set.apply_change_of(0, ChangeKind::Insert, &Fold::General.key(b"xYz")).unwrap();
    assert!(!set.is_not_found(b"Xyz", request()));
}

#[test]
fn a_recent_id_passes_under_the_collation_of_each_source() {
    let options = IdSetOptions { rate: 1e-9, ..IdSetOptions::new(IdType::text()) };
    let set = IdSet::with_sources(options, 2).unwrap();
    publish_with(&set, 0, Fold::Exact);
    publish_with(&set, 1, Fold::General);
    set.set_state(SyncState::Synced);
    set.insert_recent("Abc").unwrap();
    set.delete("Abc").unwrap();
    for id in ["Abc", "abc", "ABC "] {
        assert_eq!(set.decide(id.as_bytes()), Verdict::Pass(PassReason::Recent), "{id}");
    }
    assert_eq!(set.decide(b"abcd"), ABSENT);
}

/// Returns a set whose sources have `ids` different ids each, for which their filters are planned.
fn filled(sources: usize, ids: u64, rate: f64) -> IdSet {
    let options = IdSetOptions { rate, items: 0, ..IdSetOptions::new(integers()) };
    let set = IdSet::with_sources(options, sources).unwrap();
    for source in 0..sources {
        let generation = Generation::new(ids, set.source_rate()).unwrap();
        let generation = set.source_ids(source).start_generation(generation);
        let mut batch = Batch::new(&generation);
        for id in 1..=ids {
            let id = source as u64 * ids + id;
            batch.load_key(id.to_string().as_bytes(), None).unwrap();
        }
        batch.flush().unwrap();
        set.publish_generation_of(source);
    }
    set.set_state(SyncState::Synced);
    set
}

/// The guide states these numbers.
#[test]
fn sixteen_full_sources_keep_the_rate_of_their_set_and_take_more_bits_an_id() {
    for (rate, bits_of_one, bits_of_many) in [(0.001, 17.8, 28.8), (0.01, 11.6, 19.4)] {
        let (one, many) = (filled(1, 160_000, rate), filled(16, 10_000, rate));
        assert!((many.generations().rate() - rate).abs() < rate * 1e-9);
        for (set, expected) in [(one, bits_of_one), (many, bits_of_many)] {
            let bits = 8.0 * set.generations().bytes() as f64 / 160_000.0;
            println!("{bits:.2} bits an id at the rate {rate}");
            assert!((bits - expected).abs() < 0.05, "{bits}");
            let absent = (1_000_000..1_100_000_u32).map(|id| id.to_string());
            let passed = absent.filter(|id| set.decide(id.as_bytes()).passes()).count() as u64;
            println!("{:.4} % of the absent ids pass", passed as f64 / 1000.0);
            // The first filter of a generation has half of the rate.
            assert!(upper_tail(100_000, rate / 2.0, passed) > 1e-6, "{passed}");
        }
    }
}

#[test]
fn sources_that_grow_keep_the_rate_of_their_set() {
    let options = IdSetOptions { rate: 0.01, items: 0, ..IdSetOptions::new(integers()) };
    let set = IdSet::with_sources(options, 16).unwrap();
    for source in 0..16_u64 {
        // The filter is planned for 10,000 ids.
        let generation = Generation::new(1, set.source_rate()).unwrap();
        set.source_ids(source as usize).start_generation(generation);
        let generation = set.source_ids(source as usize).building().unwrap();
        let mut batch = Batch::new(&generation);
        for id in 1..=40_000 {
            batch.load_key((source * 40_000 + id).to_string().as_bytes(), None).unwrap();
        }
        batch.flush().unwrap();
        set.publish_generation_of(source as usize);
    }
    set.set_state(SyncState::Synced);
    let absent = (1_000_000..1_100_000_u32).map(|id| id.to_string());
    let passed = absent.filter(|id| set.decide(id.as_bytes()).passes()).count() as u64;
    assert!(upper_tail(100_000, 0.01, passed) > 1e-6, "{passed}");
}
