//! Tests of `TM.*` against simple models: windows with a clock that the test sets, files, merges,
//! hostile arguments.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use tamis_commands::{Env, Settings};
use tamis_resp::{Protocol, Reply};

use crate::host::Host;

impl Default for Host {
    fn default() -> Self {
        Self::new(Settings::default(), Protocol::Resp3)
    }
}

impl Host {
    fn dump(&mut self, key: &str) -> Vec<u8> {
        match self.say(&["TM.DUMP", key]) {
            Reply::Bulk(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    fn field(&mut self, key: &str, field: &str) -> Reply {
        let Reply::Map(fields) = self.say(&["TM.INFO", key]) else { panic!("no map") };
        let found = fields.into_iter().find(|(name, _)| *name == Reply::simple(field.to_owned()));
        found.unwrap_or_else(|| panic!("no {field}")).1
    }
}

/// The options of `TM.RESERVE` for each kind.
const KINDS: [&str; 9] = [
    "KIND split-block ITEMS 500",
    "KIND classic ITEMS 500 RATE 0.001",
    "KIND growing RATE 0.01",
    "KIND cuckoo ITEMS 800",
    "KIND cuckoo MEMORY 4000 BUCKET 3",
    "KIND counting ITEMS 500 COUNTER 8",
    "KIND window WINDOW 1000 ITEMS 500",
    "KIND window WINDOW 600 ITEMS",
    "KIND window WINDOW 600 ITEMS 500 SLICES 3 REFRESH",
];

fn words(name: &str, key: &str, items: impl IntoIterator<Item = u32>) -> Vec<String> {
    let items = items.into_iter().map(|item| item.to_string());
    [name.to_owned(), key.to_owned()].into_iter().chain(items).collect()
}

/// Returns the reply about each item.
fn replies(reply: Reply) -> Vec<Reply> {
    match reply {
        Reply::Bools { mask, len } => {
            (0..len).map(|i| Reply::Bool(mask[i / 64] >> (i % 64) & 1 == 1)).collect()
        }
        Reply::Array(replies) => replies,
        other => panic!("{other:?}"),
    }
}

fn yes(reply: Reply) -> Vec<bool> {
    replies(reply).into_iter().map(|reply| reply == Reply::Bool(true)).collect()
}

fn all_in(host: &mut Host, key: &str, items: impl IntoIterator<Item = u32>) -> bool {
    let words = words("TM.MEXISTS", key, items);
    words.len() == 2 || yes(host.say(&words)).iter().all(|it| *it)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_window_remembers_for_its_span_under_any_access(
        steps in prop::collection::vec((0_u64..700, 0_u32..30, any::<bool>()), 1..60),
        slices in 1_u64..6,
        refreshes in any::<bool>(),
    ) {
        let mut host = Host { now_millis: 1_000_000, ..Host::default() };
        let refresh = if refreshes { " REFRESH" } else { "" };
        let line = "TM.RESERVE k KIND window WINDOW 1000 ITEMS 1000 RATE 1e-9 SLICES";
        prop_assert_eq!(host.line(&format!("{line} {slices}{refresh}")), Reply::ok());
        // The time of the last insert of each item.
        let mut stored: BTreeMap<u32, u64> = BTreeMap::new();
        let most = 1000 + 1000_u64.div_ceil(slices) + slices;
        for (later, item, is_added) in steps {
            host.now_millis += later;
            let now = host.now_millis;
            let item_word = item.to_string();
            if is_added {
                let is_new = host.say(&["TM.ADD", "k", &item_word]) == Reply::Bool(true);
                if is_new || refreshes {
                    stored.insert(item, now);
                }
            }
            for (item, at) in &stored {
                let found = host.say(&["BF.EXISTS", "k", &item.to_string()]) == Reply::Bool(true);
                prop_assert!(found || now - at > 1000, "{item} of {at} forgotten at {now}");
                prop_assert!(!found || now - at < most, "{item} of {at} remembered at {now}");
            }
        }
    }

    #[test]
    fn a_dump_loads_as_it_was(
        kind in 0..KINDS.len(),
        items in prop::collection::vec(0_u32..1000, 0..400),
        more in prop::collection::vec(0_u32..1000, 0..100),
    ) {
        let mut host = Host { now_millis: 5_000, ..Host::default() };
        prop_assert_eq!(host.line(&format!("TM.RESERVE k {}", KINDS[kind])), Reply::ok());
        if !items.is_empty() {
            host.say(&words("TM.MADD", "k", items.iter().copied()));
        }
        let bytes = host.dump("k");
        prop_assert_eq!(host.say(&[&b"TM.LOAD"[..], b"copy", &bytes]), Reply::ok());
        prop_assert_eq!(host.dump("copy"), bytes.clone());
        for name in ["TM.MEXISTS", "TM.MADD", "TM.MEXISTS"] {
            let ask = |key| words(name, key, items.iter().chain(&more).copied().chain([1]));
            let (one, two) = (host.say(&ask("k")), host.say(&ask("copy")));
            prop_assert_eq!(yes(one), yes(two));
        }
        prop_assert_eq!(host.dump("k"), host.dump("copy"));
        prop_assert_eq!(host.say(&[&b"TM.LOAD"[..], b"copy", &bytes, b"replace"]), Reply::ok());
        prop_assert_eq!(host.dump("copy"), bytes);
    }

    #[test]
    fn damaged_bytes_are_refused_and_change_nothing(
        kind in 0..KINDS.len(),
        at in any::<prop::sample::Index>(),
        change in 1_u8..,
        is_cut in any::<bool>(),
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut host = Host::default();
        prop_assert_eq!(host.line(&format!("TM.RESERVE k {}", KINDS[kind])), Reply::ok());
        host.say(&words("TM.MADD", "k", 0..50));
        let bytes = host.dump("k");
        let mut damaged = bytes.clone();
        let at = at.index(bytes.len());
        if is_cut { damaged.truncate(at) } else { damaged[at] ^= change }
        for data in [damaged, noise] {
            let replace: [&[u8]; 4] = [b"TM.LOAD", b"k", &data, b"REPLACE"];
    for words in [&replace[..], &[b"TM.LOAD", b"new", &data]] {
                let Reply::Error(text) = host.say(words) else { panic!("it was taken") };
                prop_assert!(text.starts_with("ERR ") && !text.contains('\n'), "{text}");
            }
        }
        prop_assert_eq!(host.dump("k"), bytes);
        prop_assert!(!host.values.contains_key(&b"new"[..]));
    }

    #[test]
    fn a_merge_holds_all_or_changes_nothing(
        kinds in prop::collection::vec(0..KINDS.len(), 1..3),
        sets in prop::collection::vec(prop::collection::vec(0_u32..500, 0..100), 1..4),
        has_destination in any::<bool>(),
    ) {
        let mut host = Host { now_millis: 5_000, ..Host::default() };
        let mut names = Vec::new();
        for (i, set) in sets.iter().enumerate() {
            let key = if has_destination && i == 0 { "d".to_owned() } else { i.to_string() };
            let kind = KINDS[kinds[i % kinds.len()]];
            prop_assert_eq!(host.line(&format!("TM.RESERVE {key} {kind}")), Reply::ok());
            if !set.is_empty() {
                host.say(&words("TM.MADD", &key, set.iter().copied()));
            }
            names.push(key);
        }
        let sources: Vec<&String> = names.iter().filter(|name| *name != "d").collect();
        prop_assume!(!sources.is_empty());
        let before: Vec<Vec<u8>> = names.iter().map(|name| host.dump(name)).collect();
        let line = ["TM.MERGE", "d"].into_iter().chain(sources.iter().map(|name| name.as_str()));
        let reply = host.say(&line.collect::<Vec<_>>());
        let held: Vec<u32> = sets.iter().flatten().copied().collect();
        if reply == Reply::ok() {
            prop_assert!(all_in(&mut host, "d", held));
        }
        for (name, before) in names.iter().zip(before) {
            if name != "d" || reply != Reply::ok() {
                prop_assert_eq!(host.dump(name), before);
            }
        }
        let is_alike = (0..sets.len()).all(|i| kinds[i % kinds.len()] == kinds[0]);
        prop_assert_eq!(reply == Reply::ok(), is_alike, "{:?}", reply);
    }

    #[test]
    fn an_item_is_present_until_it_is_deleted_as_often_as_it_was_added(
        kind in prop::sample::select(vec![KINDS[3], KINDS[4], KINDS[5]]),
        steps in prop::collection::vec((0_u32..12, any::<bool>()), 1..150),
    ) {
        let mut host = Host::default();
        let line = format!("TM.RESERVE k {kind} RATE 0.000001").replace("MEMORY 4000", "ITEMS 800");
        prop_assert_eq!(host.line(&line), Reply::ok());
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for (item, is_added) in steps {
            let count = counts.entry(item).or_default();
            // Both kinds count up to three copies exactly.
            if is_added && *count < 3 {
                prop_assert_eq!(host.say(&words("TM.ADD", "k", [item])), Reply::Bool(*count == 0));
                *count += 1;
            } else if !is_added {
                prop_assert_eq!(yes(host.say(&words("TM.DEL", "k", [item]))), [*count > 0]);
                *count = count.saturating_sub(1);
            }
            let expected = counts.values().map(|&count| Reply::Integer(count as i64)).collect();
            let counted = host.say(&words("TM.COUNT", "k", counts.keys().copied()));
            prop_assert_eq!(counted, Reply::Array(expected));
        }
    }

    #[test]
    fn any_arguments_get_a_reply(
        name in prop::sample::select(vec!["TM.RESERVE", "TM.PLAN"]),
        tail in prop::collection::vec(prop::sample::select(vec![
            "KIND", "classic", "window", "cuckoo", "counting", "growing", "ITEMS", "RATE", "MEMORY",
            "WINDOW", "SLICES", "REFRESH", "BUCKET", "COUNTER", "4", "1000", "0.01", "1e-300", "0.999", "",
            "9223372036854775807", "-1", "inf", "nan", "\u{0}",
        ]), 3..9),
    ) {
        let mut host = Host::default();
        let key = if name == "TM.RESERVE" { vec!["k"] } else { vec![] };
        let reply = host.say(&[vec![name], key, tail].concat());
        let is_error = matches!(&reply, Reply::Error(text) if text.starts_with("ERR "));
        prop_assert_eq!(is_error || name == "TM.PLAN", host.values.is_empty() );
    }
}

#[test]
fn clearing_keeps_kind_and_plan() {
    for kind in KINDS {
        let mut host = Host { now_millis: 5_000, ..Host::default() };
        assert_eq!(host.line(&format!("TM.RESERVE k {kind}")), Reply::ok());
        let empty = host.dump("k");
        host.say(&words("TM.MADD", "k", 0..100));
        assert!(all_in(&mut host, "k", 0..100), "{kind}");
        assert_eq!(host.say(&["TM.CLEAR", "k"]), Reply::ok());
        assert_eq!(host.dump("k"), empty, "{kind}");
    }
}

#[test]
fn a_forged_capacity_does_not_make_a_large_filter() {
    // The header of a RedisBloom filter with one layer of 8 bytes and a forged capacity of 10¹².
    let (rate, bits_per_item) = (0.005_f64, 0.005_f64.ln().abs() / 0.480453013918201);
    let mut header = [0; 8].to_vec();
    [1_u32, 5, 2].iter().for_each(|number| header.extend(number.to_le_bytes()));
    let numbers = [8, 64, 0, rate.to_bits(), bits_per_item.to_bits()];
    numbers.iter().for_each(|number: &u64| header.extend(number.to_le_bytes()));
    header.extend(8_u32.to_le_bytes());
    header.extend(1_000_000_000_000_u64.to_le_bytes());
    header.push(0);
    let mut host = Host::default();
    let load: [&[u8]; 4] = [b"BF.LOADCHUNK", b"k", b"1", &header];
    assert_eq!(host.say(&load), Reply::ok());
    let before = host.values[&b"k"[..]].heap_bytes();
    assert_eq!(host.say(&["TM.CLEAR", "k"]), Reply::ok());
    assert!(host.values[&b"k"[..]].heap_bytes() <= before);
    let env = Env::new(&host.settings, Protocol::Resp3, 0);
    let like = tamis_commands::made_like(host.values.get(&b"k"[..]), &env).unwrap();
    assert!(like.heap_bytes() <= before);
}

#[test]
fn items_that_are_refused_take_no_longer_than_others() {
    let mut host = Host::default();
    assert_eq!(host.line("TM.RESERVE k KIND growing RATE 1e-9"), Reply::ok());
    // These items share a page of the filter, because their hashes begin with six zeros.
    let hasher = host.settings.hasher;
    let mut crowd = (0_u64..)
        .map(|i| i.to_string().into_bytes())
        .filter(|item| hasher.hash_item(&item[..]) >> 58 == 0);
    let mut add = |crowd: &mut dyn Iterator<Item = Vec<u8>>| {
        let items: Vec<Vec<u8>> = crowd.take(1024).collect();
        let items = items.iter().map(Vec::as_slice);
        let words: Vec<&[u8]> = [&b"TM.MADD"[..], b"k"].into_iter().chain(items).collect();
        let began = std::time::Instant::now();
        (host.say(&words), began.elapsed())
    };
    let is_refused = |reply: &Reply| matches!(reply, Reply::Error(_));
    let mut quickest = std::time::Duration::MAX;
    let mut refused = 0;
    while refused < 1000 {
        let (reply, took) = add(&mut crowd);
        match reply {
            Reply::Array(replies) => refused = replies.iter().filter(|it| is_refused(it)).count(),
            _ => quickest = quickest.min(took),
        }
    }
    // In an older version each refused item took the time of a thousand other items.
    let refusing = (0..3).map(|_| add(&mut crowd).1).min().unwrap();
    assert!(refusing < 50 * quickest, "{refusing:?}, inserted in {quickest:?}");
}

#[test]
fn reserved_bloom_filters_merge() {
    let reserves =
        [("BF.RESERVE {} 0.01 1000", false), ("BF.RESERVE {} 0.01 5000 NONSCALING", true)];
    for (reserve, is_fixed) in reserves {
        let mut host = Host::default();
        for (i, key) in ["a", "b", "c"].into_iter().enumerate() {
            assert_eq!(host.line(&reserve.replace("{}", key)), Reply::ok());
            host.say(&words("BF.MADD", key, i as u32 * 800..i as u32 * 800 + 1500));
        }
        assert_eq!(host.line("TM.MERGE d a b"), Reply::ok());
        assert_eq!(host.line("TM.MERGE d c"), Reply::ok());
        assert!(all_in(&mut host, "d", 0..3100), "{reserve}");
        assert!(all_in(&mut host, "a", 0..1500), "{reserve}");
        let Reply::Integer(items) = host.field("d", "items") else { panic!() };
        // An item in the reserved part of one filter and in the growing part of another counts
        // twice.
        assert!((3000..if is_fixed { 3200 } else { 4500 }).contains(&items), "{items}");
        // A reserved part that was full then holds three times its capacity.
        assert_eq!(host.field("d", "over_rate"), Reply::Bool(!is_fixed));
    }
}

#[test]
fn a_refused_merge_of_bloom_filters_names_the_difference() {
    let mut host = Host::default();
    for line in [
        "BF.RESERVE a 0.01 1000",
        "BF.RESERVE other 0.01 2000",
        "TM.RESERVE split KIND split-block ITEMS 1000",
        "SET text word",
    ] {
        assert_eq!(host.line(line), Reply::ok());
    }
    for (line, why) in [
        ("TM.MERGE d a other", "ERR 'a' and 'other' cannot be merged: reserve both"),
        ("TM.MERGE a other", "ERR 'a' and 'other' cannot be merged: reserve both"),
        ("TM.MERGE a split", "ERR filters of different kinds cannot be merged: 'a' is bloom ("),
        ("TM.MERGE d split a", "ERR 'a' is of kind bloom (growing): TM.MERGE merges filters"),
        ("TM.MERGE a text", "WRONGTYPE "),
        ("TM.MERGE a nothing", "ERR the filter 'nothing' does not exist"),
    ] {
        let Reply::Error(text) = host.line(line) else { panic!("{line}") };
        assert!(text.starts_with(why), "{line}: {text}");
        assert!(!host.values.contains_key(&b"d"[..]));
    }
}

#[test]
fn a_reserved_bloom_filter_is_a_file_until_it_grows() {
    let mut host = Host::default();
    assert_eq!(host.line("BF.RESERVE k 0.01 1000"), Reply::ok());
    host.say(&words("BF.ADD", "unasked", [0]));
    for key in ["k", "unasked"] {
        host.say(&words("BF.MADD", key, 0..900));
        let bytes = host.dump(key);
        assert_eq!(host.say(&[&b"TM.LOAD"[..], b"copy", &bytes, b"REPLACE"]), Reply::ok());
        assert!(all_in(&mut host, "copy", 0..900));
        let ask = |name| words("BF.MEXISTS", name, 900..5000);
        assert_eq!(yes(host.say(&ask(key))), yes(host.say(&ask("copy"))));
    }
    host.say(&words("BF.MADD", "k", 900..2000));
    let text = tamis_commands::text::tm::TWO_PARTS;
    assert_eq!(host.say(&["TM.DUMP", "k"]), Reply::error(text));
}

#[test]
fn the_answers_of_a_full_cuckoo_filter_end_with_its_error() {
    let mut host = Host::default();
    host.line("TM.RESERVE k KIND cuckoo ITEMS 100");
    let Reply::Array(answers) = host.say(&words("TM.MADD", "k", 0..1000)) else { panic!() };
    let (last, answered) = answers.split_last().unwrap();
    assert_eq!(*last, Reply::error(tamis_commands::text::tm::FULL));
    assert!(answered.len() >= 100);
    assert!(all_in(&mut host, "k", 0..answered.len() as u32));
    // A single item may still fit, but of a hundred items at least one does not.
    let full = Reply::error(tamis_commands::text::bf::FULL);
    let is_refused = |&item: &u32| host.say(&words("BF.ADD", "k", [item])) == full;
    assert!((1000..1100).find(is_refused).is_some());
}

#[test]
fn a_window_from_the_future_is_refused() {
    let mut host = Host { now_millis: 1_000_000, ..Host::default() };
    host.line("TM.RESERVE k KIND window WINDOW 1000 ITEMS 100");
    host.say(&words("TM.ADD", "k", [1]));
    let bytes = host.dump("k");
    let chunks: Vec<(i64, Vec<u8>)> = [0, 1]
        .map(|position| {
            let reply = host.say(&words("BF.SCANDUMP", "k", [position]));
            let Reply::Array(parts) = reply else { panic!() };
            let [Reply::Integer(next), Reply::Bulk(bytes)] = &parts[..] else { panic!() };
            (*next, bytes.clone())
        })
        .into();
    host.now_millis = 10;
    let text = tamis_commands::text::tm::CLOCK_AHEAD;
    for ((next, bytes), expected) in chunks.iter().zip([Reply::ok(), Reply::error(text)]) {
        let next = next.to_string();
        let load: [&[u8]; 4] = [b"BF.LOADCHUNK", b"chunks", next.as_bytes(), bytes];
        assert_eq!(host.say(&load), expected);
    }
    assert_eq!(host.line("BF.EXISTS chunks 1"), Reply::Bool(false), "no chunk is left");
    assert_eq!(host.say(&[&b"TM.LOAD"[..], b"new", &bytes]), Reply::error(text));
    assert_eq!(host.say(&words("TM.EXISTS", "k", [1])), Reply::Bool(true), "time never goes back");
}

#[test]
fn info_reports_how_much_room_every_kind_has_left() {
    let mut names = HashSet::new();
    for kind in KINDS {
        let mut host = Host { now_millis: 5_000, ..Host::default() };
        host.line(&format!("TM.RESERVE k {kind}"));
        // Fewer items than the capacity of a slice.
        host.say(&words("TM.MADD", "k", 0..150));
        let Reply::Integer(items) = host.field("k", "items") else { panic!() };
        assert!((145..=155).contains(&items), "{kind}: {items}");
        assert_eq!(host.field("k", "over_rate"), Reply::Bool(false), "{kind}");
        let is_endless = kind.contains("growing") || kind.contains("window");
        assert_eq!(host.field("k", "headroom_items") == Reply::Null, is_endless, "{kind}");
        let Reply::Double(rate) = host.field("k", "rate_now") else { panic!() };
        assert!(rate > 0.0 && rate < 0.011, "{kind}: {rate}");
        if let Reply::Bulk(name) = host.field("k", "kind") {
            names.insert(name);
        }
    }
    assert_eq!(names.len(), 6);

    let mut host = Host::default();
    host.line("TM.RESERVE k KIND split-block ITEMS 1000");
    host.say(&words("TM.MADD", "k", 0..5000));
    assert_eq!(host.field("k", "over_rate"), Reply::Bool(true));
    assert_eq!(host.field("k", "headroom_items"), Reply::Integer(0));
}

#[test]
fn a_plan_shows_all_kinds_side_by_side() {
    let mut host = Host::default();
    for line in [
        "TM.PLAN ITEMS 1000000 RATE 0.01",
        "TM.PLAN MEMORY 1000000 RATE 0.01",
        "TM.PLAN ITEMS 1000000 MEMORY 4000000",
    ] {
        let Reply::Array(plans) = host.line(line) else { panic!("{line}") };
        assert_eq!(plans.len(), 6, "{line}");
    }
}

#[test]
fn an_item_whose_place_is_crowded_is_refused_and_others_go_in() {
    let hasher = tamis::Hasher::default();
    // Without a secret key, an attacker can compute items whose hashes begin with the same bits.
    let chosen = (0_u64..).map(u64::to_le_bytes).filter(|item| hasher.hash(item) >> 58 == 0);
    let chosen: Vec<_> = chosen.take(40_000).collect();
    let is_refused = |reply: &Reply| matches!(reply, Reply::Error(_));
    for is_keyed in [false, true] {
        let mut host = Host::default();
        host.settings.set_hash_key(is_keyed.then_some([7; 16]));
        for line in ["TM.RESERVE tm KIND growing RATE 1e-9", "BF.INSERT bf ERROR 1e-9 ITEMS a"] {
            host.line(line);
        }
        for (add, exists) in [("TM.MADD tm", "TM.MEXISTS tm"), ("BF.MADD bf", "BF.MEXISTS bf")] {
            let mut say = |line: &str, items: &[[u8; 8]]| {
                let mut words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                words.extend(items.iter().map(<[u8; 8]>::as_slice));
                replies(host.say(&words))
            };
            let mut taken = Vec::new();
            for items in chosen.chunks(1000) {
                let replies = say(add, items);
                assert_eq!(replies.len(), items.len(), "each item has a reply");
                let pairs = items.iter().zip(&replies);
                taken.extend(pairs.filter(|(_, it)| !is_refused(it)).map(|it| *it.0));
            }
            assert_eq!(taken.len() == chosen.len(), is_keyed, "{add}: {}", taken.len());
            // One chosen item among other items is refused.
            let mut others: Vec<_> = (1_u64 << 60..).take(1000).map(u64::to_le_bytes).collect();
            others[500] = chosen[chosen.len() - 1];
            let refused = say(add, &others).iter().filter(|it| is_refused(it)).count();
            let is_right = is_keyed && refused == 0 || (1..1000 / 16).contains(&refused);
            assert!(is_right, "{add}: {refused}");
            let seen = say(exists, &taken);
            assert!(seen.iter().all(|it| *it == Reply::Bool(true)), "{add}: an item is lost");
        }
    }
}
