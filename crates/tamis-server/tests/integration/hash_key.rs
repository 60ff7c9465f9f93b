//! New filters hash with a secret key of the server, which each filter stores.

use crate::client::Client;
use crate::data_folder::{config, restart, start_new};
use crate::support::{self, chunks, load_chunk, restore, start_with};
use tamis::Answers;
use tamis_commands::ScalableBloom;
use tamis_resp::{Protocol, Reply};
use tamis_server::{Config, HashKey, Server};

const FIXED: HashKey = HashKey::Fixed(*b"0123456789abcdef");
const OTHER: HashKey = HashKey::Fixed(*b"fedcba9876543210");

fn in_memory(hash_key: HashKey) -> (Server, Client) {
    start_with(Config { hash_key, ..support::config() })
}

/// Commands that create a filter of each kind with the key of the server, with one item.
const FILTERS: [&str; 11] = [
    "BF.ADD unasked a",
    "BF.INSERT inserted CAPACITY 10 ITEMS a",
    "BF.RESERVE reserved 0.01 100",
    "BF.RESERVE full 0.01 1 NONSCALING",
    "TM.RESERVE split KIND split-block ITEMS 100",
    "TM.RESERVE classic KIND classic ITEMS 100",
    "TM.RESERVE growing KIND growing",
    "TM.RESERVE cuckoo KIND cuckoo ITEMS 100",
    "TM.RESERVE counting KIND counting ITEMS 100",
    "TM.RESERVE items KIND window WINDOW 100 ITEMS",
    "TM.RESERVE time KIND window WINDOW 4000000000000 ITEMS 100",
];

fn make(client: &mut Client) {
    for filter in FILTERS {
        let reply = client.ask(filter);
        assert!(!matches!(reply, Reply::Error(_)), "{filter}: {reply:?}");
        client.say(&["TM.ADD", filter.split(' ').nth(1).unwrap(), "b"]);
    }
    // A filter that has grown beyond its reserved capacity.
    client.ask("BF.RESERVE grown 0.01 2");
    client.ask("BF.MADD grown a b c d e f");
}

fn keys() -> impl Iterator<Item = &'static str> {
    FILTERS.iter().map(|filter| filter.split(' ').nth(1).unwrap()).chain(["grown"])
}

fn dumps(client: &mut Client) -> Vec<(&'static str, Vec<u8>)> {
    keys().map(|key| (key, client.bytes(&["DUMP", key]))).collect()
}

#[test]
fn filters_keep_their_key_and_new_ones_get_it_after_a_restart() {
    for saves in [false, true] {
        let (dir, server, mut client) = start_new();
        make(&mut client);
        if saves {
            assert_eq!(client.say(&["SAVE"]), Reply::ok());
        }
        let before = dumps(&mut client);
        let (_server, mut client) = restart(server, &dir);
        assert_eq!(dumps(&mut client), before);
        client.ask("TM.RESERVE later KIND split-block ITEMS 100");
        client.ask("BF.RESERVE late 0.01 100");
        assert_eq!(client.ask("TM.MERGE later split"), Reply::ok());
        assert_eq!(client.ask("TM.MERGE late reserved"), Reply::ok());
    }
}

#[test]
fn filters_keep_their_key_when_the_option_changes() {
    let (dir, server, mut client) = start_new();
    make(&mut client);
    drop(server);
    let mut items = 0;
    for hash_key in [HashKey::None, FIXED, HashKey::Random, OTHER, FIXED] {
        let (server, mut client) = start_with(Config { hash_key, ..config(dir.path()) });
        items += 1;
        for key in keys().filter(|key| *key != "full") {
            let item = format!("item:{items}");
            client.say(&["TM.ADD", key, &item]);
            for i in 1..=items {
                let answer = client.say(&["TM.EXISTS", key, &format!("item:{i}")]);
                assert_eq!(answer, Reply::Integer(1), "item {i} of {key} under {hash_key:?}");
            }
            assert_eq!(client.say(&["TM.EXISTS", key, "b"]), Reply::Integer(1), "{key}");
        }
        // A filter with this key, beside filters with other keys.
        client.ask("BF.MADD each a b c");
        assert_eq!(client.ask("BF.CARD each"), Reply::Integer(3));
        client.ask("DEL each");
        if items == 3 {
            client.say(&["SAVE"]);
        }
        drop(server);
    }
}

#[test]
fn each_server_has_a_different_key_unless_it_is_fixed() {
    let dumps_of = |hash_key| {
        let (_server, mut client) = in_memory(hash_key);
        make(&mut client);
        dumps(&mut client)
    };
    let (one, other) = (dumps_of(HashKey::Random), dumps_of(HashKey::Random));
    for (one, other) in one.iter().zip(&other) {
        assert_ne!(one, other, "the bytes of {} tell of a key", one.0);
    }
    // A time-based window stores the time of its creation.
    let equal = |a: &[(&str, Vec<u8>)], b: &[(&str, Vec<u8>)]| {
        a.iter().zip(b).all(|(a, b)| a.0 == "time" || a == b)
    };
    assert!(equal(&dumps_of(FIXED), &dumps_of(FIXED)));
    assert!(equal(&dumps_of(HashKey::None), &dumps_of(HashKey::None)));
    assert!(!equal(&dumps_of(FIXED), &dumps_of(OTHER)));
}

#[test]
fn items_that_collide_without_a_key_do_not_collide_with_one() {
    // What an attacker computes: absent items that a filter without a key reports as present.
    let mut known = ScalableBloom::reserve(1000, 0.01, None).unwrap();
    let name = |i: u32| format!("known:{i}").into_bytes();
    let (seen, absent): (Vec<_>, Vec<_>) =
        ((0..1000).map(name).collect(), (1000..40_000).map(name).collect());
    let mut answers = Answers::new();
    assert_eq!(known.insert_each(&borrowed(&seen), &mut answers), Ok(()));
    known.contains_each(&borrowed(&absent), &mut answers);
    let forged: Vec<Vec<u8>> = answers.ones().map(|i| absent[i].clone()).collect();
    assert!(forged.len() > 100, "{}", forged.len());
    let yes = |hash_key| {
        let (_server, mut client) = in_memory(hash_key);
        client.ask("BF.RESERVE k 0.01 1000 NONSCALING");
        let say = |client: &mut Client, name: &str, items: &[Vec<u8>]| {
            let mut words = vec![name.as_bytes().to_vec(), b"k".to_vec()];
            words.extend_from_slice(items);
            client.list(&words)
        };
        say(&mut client, "BF.MADD", &seen);
        let answers = say(&mut client, "BF.MEXISTS", &forged);
        answers.iter().filter(|answer| **answer == Reply::Integer(1)).count()
    };
    assert_eq!(yes(HashKey::None), forged.len(), "without a key the attacker is right");
    assert!(yes(FIXED) < forged.len() / 10, "with a key as often as chance");
}

fn borrowed(items: &[Vec<u8>]) -> Vec<&[u8]> {
    items.iter().map(Vec::as_slice).collect()
}

#[test]
fn copies_and_dumps_keep_the_key_on_another_server() {
    let (_one, mut from) = in_memory(FIXED);
    make(&mut from);
    let (_two, mut to) = in_memory(OTHER);
    for (key, dump) in dumps(&mut from) {
        assert_eq!(to.say(&restore(key, &dump)), Reply::ok(), "{key}");
        assert_eq!(to.say(&["COPY", key, "copy"]), Reply::Integer(1));
        assert_eq!(to.bytes(&["DUMP", "copy"]), dump, "{key}");
        assert_eq!(to.say(&["TM.EXISTS", "copy", "b"]), Reply::Integer(1), "{key}");
        assert_eq!(to.say(&["TM.CLEAR", "copy"]), Reply::ok());
        if !["full", "cuckoo"].contains(&key) {
            assert_eq!(to.say(&["TM.MERGE", "copy", key]), Reply::ok(), "{key}: of one key");
        }
        to.say(&["DEL", "copy"]);
    }
    // Copies the filters with SCANDUMP and LOADCHUNK.
    for key in ["unasked", "reserved", "grown"] {
        for (iterator, data) in chunks(&mut from, key) {
            assert_eq!(to.say(&load_chunk("loaded", iterator, &data)), Reply::ok());
        }
        assert_eq!(to.say(&["DUMP", "loaded"]), from.say(&["DUMP", key]), "{key}");
        to.say(&["DEL", "loaded"]);
    }
}

#[test]
fn the_key_is_shown_to_no_client() {
    let (_server, mut client) = in_memory(FIXED);
    let shown = |client: &mut Client, words: &[&str]| {
        let mut bytes = Vec::new();
        client.say(words).encode(Protocol::Resp2, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    assert!(shown(&mut client, &["CONFIG", "GET", "hash-key"]).contains("fixed"));
    // The start of the key, as text and in hexadecimal digits.
    for words in [&["CONFIG", "GET", "*"][..], &["INFO"], &["INFO", "everything"]] {
        let text = shown(&mut client, words);
        assert!(text.len() > 100 && !text.contains("30313233") && !text.contains("0123456789a"));
    }
    let set = shown(&mut client, &["CONFIG", "SET", "hash-key", "none"]);
    assert!(set.starts_with("-ERR") && set.contains("hash-key"), "{set}");
    for (hash_key, text) in [(HashKey::Random, "random"), (HashKey::None, "none")] {
        let (_server, mut client) = in_memory(hash_key);
        assert!(shown(&mut client, &["CONFIG", "GET", "hash-key"]).contains(text));
    }
}

#[test]
fn a_filter_made_like_one_of_another_server_merges_with_it() {
    let (_other, mut from) = in_memory(OTHER);
    make(&mut from);
    let (dir, server, mut client) = start_new();
    make(&mut client);
    let mut made = Vec::new();
    for (key, dump) in dumps(&mut from) {
        let theirs = format!("theirs:{key}");
        assert_eq!(client.say(&restore(&theirs, &dump)), Reply::ok(), "{key}");
        let refusal = client.refused(&["TM.MERGE", key, &theirs]);
        assert!(refusal.contains("hash functions or hash keys differ"), "{refusal}");
        let like = format!("like:{key}");
        assert_eq!(client.say(&["TM.RESERVE", &like, "LIKE", &theirs]), Reply::ok(), "{key}");
        assert_eq!(client.say(&["TM.EXISTS", &like, "b"]), Reply::Integer(0), "{key}");
        client.say(&["TM.ADD", &like, "c"]);
        made.push((like, theirs));
    }
    let dumped = |client: &mut Client| -> Vec<Reply> {
        made.iter().map(|(like, _)| client.say(&["DUMP", like])).collect()
    };
    let before = dumped(&mut client);
    let (_server, mut client) = restart(server, &dir);
    assert_eq!(dumped(&mut client), before);
    for (like, theirs) in &made {
        // The filter for one item has no room for two, and a cuckoo filter may be full.
        if !theirs.ends_with("full") {
            assert_eq!(client.say(&["TM.MERGE", like, theirs]), Reply::ok(), "{like}");
        }
    }
}
