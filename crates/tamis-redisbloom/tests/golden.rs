//! `RedisBloom` and `RedisCuckoo` give the same answers and bytes as a real server.

#[path = "../../tamis-formats/tests/golden_data/json.rs"]
mod golden_json;

use golden_json::{base64, json, list, text};
use serde_json::Value;
use tamis::Answers;
use tamis_redisbloom::{
    RedisBloom, RedisBloomOptions, RedisCuckoo, RedisCuckooOptions, RedisHash, RedisInsertError,
};

fn golden() -> Value {
    json("redisbloom/redisbloom.json")
}

fn item(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.as_bytes().to_vec(),
        _ => base64(&value["b64"]),
    }
}

/// Returns the name of the command and its arguments after the key.
fn arguments(step: &Value) -> (&str, Vec<Vec<u8>>) {
    let words = list(&step["cmd"]);
    (text(&words[0]), words[2..].iter().map(item).collect())
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(word: &[u8]) -> T {
    std::str::from_utf8(word).unwrap().parse().unwrap()
}

/// Splits the argv before ITEMS from the items.
fn split_at_items(words: &[Vec<u8>]) -> (&[Vec<u8>], &[Vec<u8>]) {
    let at = words.iter().position(|word| word == b"ITEMS").unwrap();
    (&words[..at], &words[at + 1..])
}

fn bloom_options(words: &[Vec<u8>], mut options: RedisBloomOptions) -> RedisBloomOptions {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_slice() {
            b"CAPACITY" => options.capacity = parsed(words.next().unwrap()),
            b"ERROR" => options.rate = parsed(words.next().unwrap()),
            b"EXPANSION" => options.expansion = parsed(words.next().unwrap()),
            b"NONSCALING" => options.is_scaling = false,
            _ => panic!("a new option: {word:?}"),
        }
    }
    options
}

fn bloom_reply(answer: Result<bool, RedisInsertError>) -> Value {
    match answer {
        Ok(is_new) => Value::from(i32::from(is_new)),
        Err(RedisInsertError::Full { .. }) => Value::from("-ERR non scaling filter is full"),
        Err(error) => panic!("{error}"),
    }
}

fn replayed_bloom(case: &Value) -> RedisBloom {
    let mut made = None;
    for step in list(&case["steps"]) {
        let (command, words) = arguments(step);
        let (options, items) = match command {
            "BF.RESERVE" => {
                // RedisBloom 8 reduces a rate above 0.25, as `tamis-commands` does.
                let options = RedisBloomOptions {
                    rate: parsed::<f64>(&words[0]).min(0.25),
                    capacity: parsed(&words[1]),
                    ..Default::default()
                };
                made = Some(RedisBloom::new(&bloom_options(&words[2..], options)).unwrap());
                assert_eq!(text(&step["reply"]), "+OK");
                continue;
            }
            "BF.MADD" => (&[][..], words.as_slice()),
            "BF.INSERT" => split_at_items(&words),
            _ => panic!("a new command: {command}"),
        };
        let options = bloom_options(options, RedisBloomOptions::default());
        let filter = made.get_or_insert_with(|| RedisBloom::new(&options).unwrap());
        let mut replies = Vec::new();
        filter.insert_each(items, |answer| {
            replies.push(bloom_reply(answer));
            answer.is_ok()
        });
        assert_eq!(replies, list(&step["reply"]), "{command} of {}", case["name"]);
    }
    made.unwrap()
}

fn replayed_cuckoo(case: &Value) -> RedisCuckoo {
    let mut made: Option<RedisCuckoo> = None;
    for step in list(&case["steps"]) {
        let (command, words) = arguments(step);
        if command == "CF.RESERVE" {
            let capacity = parsed(&words[0]);
            let mut options = RedisCuckooOptions { capacity, ..Default::default() };
            for pair in words[1..].chunks(2) {
                match pair[0].as_slice() {
                    b"BUCKETSIZE" => options.bucket_size = parsed(&pair[1]),
                    b"MAXITERATIONS" => options.max_iterations = parsed(&pair[1]),
                    b"EXPANSION" => options.expansion = parsed(&pair[1]),
                    word => panic!("a new option: {word:?}"),
                }
            }
            made = Some(RedisCuckoo::new(&options).unwrap());
            assert_eq!(text(&step["reply"]), "+OK");
            continue;
        }
        let options = RedisCuckooOptions::default();
        let filter = made.get_or_insert_with(|| RedisCuckoo::new(&options).unwrap());
        let mut replies = Vec::new();
        match command {
            "CF.INSERT" => filter.insert_each(split_at_items(&words).1, |answer| {
                replies.push(Value::from(if answer.is_ok() { 1 } else { -1 }));
                true
            }),
            "CF.INSERTNX" => filter.insert_absent_each(split_at_items(&words).1, |answer| {
                replies.push(Value::from(answer.map_or(-1, i32::from)));
                true
            }),
            "CF.DEL" => {
                let removed = filter.remove(&words[0]);
                assert_eq!(step["reply"], i32::from(removed), "{}", case["name"]);
                continue;
            }
            "CF.COMPACT" => {
                filter.compact();
                continue;
            }
            _ => panic!("a new command: {command}"),
        }
        assert_eq!(replies, list(&step["reply"]), "{command} of {}", case["name"]);
    }
    made.unwrap()
}

fn cases(family: &str) -> Vec<Value> {
    let mut cases = list(&golden()["filters"]).to_vec();
    cases.retain(|case| case["family"] == family);
    assert_eq!(cases.len(), 10);
    cases
}

/// Returns the chunks of a dump, the header first, each with its position.
fn chunks(case: &Value) -> Vec<(i64, Vec<u8>)> {
    let chunk = |chunk: &Value| (chunk["iter"].as_i64().unwrap(), base64(&chunk["data"]));
    list(&case["chunks"]).iter().map(chunk).collect()
}

/// Dumps a filter as SCANDUMP does, from the first chunk to the last.
fn dumped(header: &[u8], chunk: impl Fn(i64) -> Option<(i64, Vec<u8>)>) -> Vec<(i64, Vec<u8>)> {
    let mut chunks = vec![(1, header.to_vec())];
    while let Some(next) = chunk(chunks[chunks.len() - 1].0) {
        chunks.push(next);
    }
    chunks
}

/// Returns the items and the answers of the server, including its false positives.
fn answers(case: &Value) -> Vec<(Vec<u8>, bool)> {
    let lookups = list(&case["exists"]).iter().map(|pair| (item(&pair[0]), pair[1] == 1));
    let wrong = list(&case["false_positives"]).iter().map(|absent| (item(absent), true));
    lookups.chain(wrong).collect()
}

/// Returns the value after `name` in a flat list of names and values.
fn info<'a>(case: &'a Value, name: &str) -> &'a Value {
    let pairs = list(&case["info_resp2"]).as_chunks::<2>().0;
    &pairs.iter().find(|[key, _]| text(key)[1..] == *name).unwrap()[1]
}

/// Returns the value of a name in a line of `name:value` words.
fn word<'a>(line: &'a str, name: &str) -> &'a str {
    let mut words = line.split(' ').filter_map(|word| word.split_once(':'));
    words.find(|(key, _)| *key == name).unwrap().1
}

fn assert_bloom(case: &Value, filter: &RedisBloom) {
    let name = text(&case["name"]);
    assert_eq!(dumped(&filter.header(), |at| filter.chunk(at)), chunks(case), "{name}");
    let answers = answers(case);
    let items: Vec<_> = answers.iter().map(|(item, _)| item).collect();
    let mut batch = Answers::new();
    filter.contains_each(&items, &mut batch);
    for (i, (item, answer)) in answers.iter().enumerate() {
        assert_eq!(filter.contains(item), *answer, "{name} {item:?}");
        assert_eq!(batch.get(i), *answer, "{name} {item:?}");
    }
    assert_eq!(case["card"], filter.len());
    assert_eq!(*info(case, "Capacity"), filter.capacity());
    assert_eq!(*info(case, "Size"), filter.size_bytes());
    assert_eq!(*info(case, "Number of filters"), filter.layers().len());
    assert_eq!(*info(case, "Number of items inserted"), filter.len());
    assert_eq!(info(case, "Expansion rate").as_u64(), filter.expansion().map(u64::from));
    let debug = list(&case["debug"]);
    assert_eq!(text(&debug[0]), format!("size:{}", filter.len()));
    assert_eq!(debug.len() - 1, filter.layers().len());
    for (line, layer) in debug[1..].iter().map(text).zip(filter.layers()) {
        for (name, number) in [
            ("bytes", layer.bytes),
            ("bits", layer.bits),
            ("hashes", u64::from(layer.probes)),
            ("hashwidth", u64::from(filter.hash_bits())),
            ("capacity", layer.capacity),
            ("size", layer.items),
        ] {
            assert_eq!(word(line, name).parse(), Ok(number), "{name} in {line}");
        }
        let rate: f64 = word(line, "ratio").parse().unwrap();
        assert!((rate / layer.rate - 1.0).abs() < 1e-5, "{line}");
    }
}

fn assert_cuckoo(case: &Value, filter: &RedisCuckoo) {
    let name = text(&case["name"]);
    assert_eq!(dumped(&filter.header(), |at| filter.chunk(at)), chunks(case), "{name}");
    for (item, answer) in answers(case) {
        assert_eq!(filter.contains(&item), answer, "{name} {item:?}");
    }
    for pair in list(&case["counts"]) {
        assert_eq!(pair[1], filter.count(&item(&pair[0])), "{name} {pair}");
    }
    for (name, number) in [
        ("Size", filter.size_bytes()),
        ("Number of buckets", filter.buckets()),
        ("Number of filters", filter.sub_filters() as u64),
        ("Number of items inserted", filter.len()),
        ("Number of items deleted", filter.removed()),
        ("Bucket size", filter.bucket_size().into()),
        ("Expansion rate", filter.expansion().into()),
        ("Max iterations", filter.max_iterations().into()),
    ] {
        assert_eq!(*info(case, name), number, "{name}");
    }
}

#[test]
fn hashes_are_those_of_a_live_server() {
    let golden = golden();
    let vectors = list(&golden["hash_vectors"]);
    assert_eq!(vectors.len(), 20);
    let cuckoo = RedisCuckoo::new(&RedisCuckooOptions::default()).unwrap();
    for vector in vectors {
        let item = item(&vector["item"]);
        let (a, b) = RedisHash::of(&item).parts();
        assert_eq!(format!("{a:016x}"), text(&vector["bf_a"]), "{vector}");
        assert_eq!(format!("{b:016x}"), text(&vector["bf_b"]), "{vector}");
        let hash = cuckoo.hash(&item);
        assert_eq!(format!("{hash:016x}"), text(&vector["cf_hash"]), "{vector}");
        // The fingerprint is the only nonzero slot.
        let mut filter = cuckoo.clone();
        filter.insert(&item).unwrap();
        let slots = filter.chunk(1).unwrap().1;
        let fingerprint = slots.into_iter().find(|&slot| slot != 0).unwrap();
        assert_eq!(vector["cf_fp"], fingerprint, "{vector}");
    }
}

#[test]
fn bloom_filters_replayed_and_loaded_are_those_of_a_live_server() {
    for case in cases("BF") {
        let chunks = chunks(&case);
        let mut loaded = RedisBloom::from_header(&chunks[0].1).unwrap();
        for (position, bytes) in &chunks[1..] {
            loaded.load_chunk(*position, bytes).unwrap();
        }
        assert_bloom(&case, &loaded);
        assert_eq!(loaded, replayed_bloom(&case));
    }
}

#[test]
fn cuckoo_filters_replayed_and_loaded_are_those_of_a_live_server() {
    for case in cases("CF") {
        let chunks = chunks(&case);
        let mut loaded = RedisCuckoo::from_header(&chunks[0].1).unwrap();
        for (position, bytes) in &chunks[1..] {
            loaded.load_chunk(*position, bytes).unwrap();
        }
        assert_cuckoo(&case, &loaded);
        assert_eq!(loaded, replayed_cuckoo(&case));
    }
}

#[test]
fn debug_shows_the_layers() {
    let mut bloom = RedisBloom::new(&Default::default()).unwrap();
    let mut cuckoo = RedisCuckoo::new(&Default::default()).unwrap();
    bloom.insert("a").unwrap();
    cuckoo.insert("a").unwrap();
    assert!(format!("{bloom:?}").starts_with("RedisBloom { capacity: 100, items: 1, "));
    assert!(format!("{cuckoo:?}").starts_with("RedisCuckoo { items: 1, removed: 0, "));
}
