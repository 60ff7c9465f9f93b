//! Filters recorded from a server decode from each of its export formats and re-encode to it.

use crate::golden_data::{base64, chunks_as_commands, json, list, number, text};
use crate::support::{
    self, answers, assert_fails, decode_with, encode, encode_with, format, insert, keyed,
};
use serde_json::Value as Json;
use tamis::Answers;
use tamis_formats::{ChangeError, Contents, DecodeErrorKind, Format, Parameter, Sniff};
use tamis_redisbloom::{RedisBloom, RedisBloomOptions, RedisCuckoo, RedisCuckooOptions};

/// The name of the format.
const NAME: &str = "redisbloom";

fn decode(bytes: &[u8]) -> Contents {
    support::decode(NAME, bytes).unwrap()
}

fn filters() -> Vec<Json> {
    list(&json("redisbloom/redisbloom.json")["filters"]).to_vec()
}

/// Encodes recorded values as a snapshot. A `DUMP` payload is the value with a different trailer.
fn snapshot(filters: &[(u64, &str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"REDIS0010\xfa\x01a\x01b".to_vec();
    for (database, key, payload) in filters {
        bytes.extend([0xfe, *database as u8, payload[0], key.len() as u8]);
        bytes.extend(key.as_bytes());
        bytes.extend(&payload[1..payload.len() - 10]);
    }
    bytes.push(0xff);
    bytes.extend([0; 8]);
    bytes
}

#[test]
fn payloads_chunks_and_snapshots_are_one_filter() {
    for filter in &filters() {
        let (name, payload) = (text(&filter["name"]), base64(&filter["dump_payload"]));
        let from_payload = decode(&payload);
        assert_eq!(decode(&chunks_as_commands(filter)), from_payload, "{name}");
        let snapshot = snapshot(&[(0, name, payload.clone())]);
        assert_eq!(decode(&snapshot), from_payload, "{name}");
        assert_eq!(format(NAME).sniff(&snapshot), Sniff::Maybe, "{name}");
        // The output of `redis-cli --raw DUMP key`.
        assert_eq!(decode(&[&payload[..], b"\n"].concat()), from_payload, "{name}");
        assert_eq!(Format::of(&payload)[0].name, "redisbloom");
        let commands = encode_with(NAME, &from_payload, &keyed(name)).unwrap();
        assert!(commands == chunks_as_commands(filter), "{name}");
        let again = encode(NAME, &from_payload).unwrap();
        assert_eq!(decode(&again), from_payload, "{name}");
        let restore = [
            format!("*5\r\n$7\r\nrestore\r\n$1\r\nk\r\n$1\r\n0\r\n${}\r\n", again.len()).as_bytes(),
            &again,
            b"\r\n$7\r\nREPLACE\r\n",
        ]
        .concat();
        assert_eq!(decode(&restore), from_payload, "{name}");
    }
}

#[test]
fn recorded_answers_come_back() {
    for filter in &filters() {
        let (name, mut contents) = (&filter["name"], decode(&base64(&filter["dump_payload"])));
        let items: Vec<Vec<u8>> = list(&filter["exists"])
            .iter()
            .map(|pair| match pair[0].get("b64") {
                Some(bytes) => base64(bytes),
                None => text(&pair[0]).as_bytes().to_vec(),
            })
            .collect();
        let expected: Vec<_> = list(&filter["exists"]).iter().map(|pair| pair[1] == 1).collect();
        assert_eq!(answers(&contents, &items), expected, "{name}");
        // The server does not insert items that are present.
        let present = items.iter().zip(&expected).filter(|&(_, &is_in)| is_in);
        let present: Vec<_> = present.map(|(item, _)| item).collect();
        let before = contents.clone();
        let new = insert(&mut contents, &present).unwrap();
        assert!(!new.contains(&true), "{name}");
        assert_eq!(contents, before, "{name}");
    }
}

#[test]
fn info_equals_that_of_the_server() {
    for filter in &filters() {
        let (name, info) = (&filter["name"], decode(&base64(&filter["dump_payload"])).info());
        let reply = list(&filter["info_resp2"]);
        let field = |name: &str| {
            let at = reply.iter().position(|it| it == &format!("+{name}")).unwrap();
            number(&reply[at + 1])
        };
        assert_eq!(info.items as i128, field("Number of items inserted"), "{name}");
        let layers = info.details.iter().filter(|(name, _)| *name == "layer").count();
        if filter["family"] == "BF" {
            assert_eq!(layers as i128, field("Number of filters"), "{name}");
            assert_eq!(info.probes.is_some(), layers == 1, "{name}");
            assert!(info.rate_planned.is_some_and(|rate| rate > 0.0 && rate < 1.0), "{name}");
        } else {
            let sub_filters = info.details.iter().find(|(name, _)| *name == "sub-filters").unwrap();
            assert_eq!(sub_filters.1, field("Number of filters").to_string(), "{name}");
        }
        assert!(info.fill > 0.0 && info.fill <= 1.0, "{name}");
        let lookups = 200_000;
        let contents = decode(&base64(&filter["dump_payload"]));
        let absent: Vec<_> = (0..lookups).map(|i| format!("no such item {i}")).collect();
        let found = answers(&contents, &absent).iter().filter(|&&found| found).count();
        let measured = found as f64 / f64::from(lookups);
        // The tolerance is large, because layers this small deviate far from the expected number of
        // items.
        let stated = info.rate_now;
        let within = 0.5 * stated + 1e-4;
        assert!((measured - stated).abs() < within, "{name}: {measured}, not {stated}");
    }
}

#[test]
fn a_full_filter_says_so() {
    let full = filters().into_iter().find(|it| it["name"] == "bf-nonscaling-full").unwrap();
    let mut contents = decode(&base64(&full["dump_payload"]));
    assert!(contents.info().warnings[0].contains("full"), "{:?}", contents.info().warnings);
    let items: Vec<_> = (0..100).map(|i| format!("new {i}")).collect();
    let error = insert(&mut contents, &items).unwrap_err();
    assert!(matches!(&error, ChangeError::Full(why) if why.contains("full")), "{error}");
    let other = contents.clone();
    assert!(contents.merge(&other).unwrap_err().to_string().contains("insert the items"));
}

#[test]
fn one_of_several_filters_must_be_named() {
    let filters = filters();
    let payload = |i: usize| base64(&filters[i]["dump_payload"]);
    let both = snapshot(&[(0, "one", payload(0)), (0, "other", payload(1))]);
    let commands = [chunks_as_commands(&filters[0]), chunks_as_commands(&filters[1])].concat();
    for (bytes, keys) in [(&both, ["one", "other"]), (&commands, ["bf-default", "bf-odd-items"])] {
        let error = support::decode(NAME, bytes).unwrap_err();
        let expected = match bytes.starts_with(b"REDIS") {
            true => DecodeErrorKind::SeveralKeys { keys: keys.join(", ").into() },
            false => DecodeErrorKind::Missing(Parameter::Key),
        };
        assert_eq!(error.kind, expected);
        for (i, key) in keys.iter().enumerate() {
            let read = decode_with(NAME, bytes, &keyed(key)).unwrap();
            assert_eq!(read, decode(&payload(i)), "{key}");
        }
        assert_fails(decode_with(NAME, bytes, &keyed("none")), "key");
    }
    let twice = snapshot(&[(0, "one", payload(0)), (7, "one", payload(1))]);
    assert_fails(decode_with(NAME, &twice, &keyed("one")), "databases 0 and 7");
}

#[test]
fn chunks_that_are_missing_or_out_of_order_are_refused() {
    let scaled = filters().into_iter().find(|it| it["name"] == "bf-scaled").unwrap();
    for indices in [&[0, 1, 2, 3][..], &[1, 2, 3, 4], &[0, 2, 1, 3, 4], &[0, 1, 1, 2, 3, 4], &[0]] {
        let mut some = scaled.clone();
        let chunks = list(&scaled["chunks"]);
        some["chunks"] = indices.iter().map(|&i| chunks[i].clone()).collect();
        assert_fails(support::decode(NAME, &chunks_as_commands(&some)), "in order");
    }
}

#[test]
fn a_header_allocates_no_more_than_its_chunks_contain() {
    let mut filter = filters()[0].clone();
    let header = "////////////////////////////////////////////////////////////////////////////////////////////////AA==";
    filter["chunks"][0]["data"] = header.into();
    assert!(support::decode(NAME, &chunks_as_commands(&filter)).is_err());
}

#[test]
fn values_of_other_types_are_reported_by_type() {
    let bytes = std::fs::read(crate::golden_data::path("redis_rdb/lfu.rdb")).unwrap();
    let error = decode_with(NAME, &bytes, &keyed("bitmap")).unwrap_err().to_string();
    assert!(error.contains("a string") && error.contains("redis-bitmap"), "{error}");
    assert_fails(decode_with(NAME, &bytes, &keyed("stream")), "is a stream");
    assert_fails(support::decode(NAME, &bytes), "none of its keys");
    assert_eq!(format(NAME).sniff(&bytes), Sniff::No);
}

fn insert_numbers(contents: &mut Contents, items: u32) -> Result<Vec<bool>, ChangeError> {
    insert(contents, &(0..items).map(u32::to_le_bytes).collect::<Vec<_>>())
}

#[test]
fn a_forged_header_does_not_grow_to_gigabytes() {
    let options = RedisBloomOptions { capacity: 10, ..Default::default() };
    // The fuzzer found a file with this expansion.
    let mut header = RedisBloom::new(&options).unwrap().header();
    header[16..20].copy_from_slice(&117_440_512_u32.to_le_bytes());
    let mut filter = Contents::new(RedisBloom::from_header(&header).unwrap());
    assert_fails(insert_numbers(&mut filter, 100), "next part would take");
    // A full filter whose header states a capacity that its bits do not have.
    let full = 1_u64 << 40;
    let mut header = RedisBloom::new(&options).unwrap().header();
    header[..8].copy_from_slice(&full.to_le_bytes());
    header[20 + 16..20 + 24].copy_from_slice(&full.to_le_bytes());
    header[20 + 44..20 + 52].copy_from_slice(&full.to_le_bytes());
    let mut filter = Contents::new(RedisBloom::from_header(&header).unwrap());
    assert_fails(insert_numbers(&mut filter, 1), "cannot grow any more");
}

#[test]
fn a_filter_grows_to_64_times_its_size_and_no_further() {
    let options = RedisBloomOptions { capacity: 40_000, expansion: 32_768, ..Default::default() };
    let mut filter = Contents::new(RedisBloom::new(&options).unwrap());
    let error = insert_numbers(&mut filter, 41_000).unwrap_err().to_string();
    assert!(error.contains("next part would take") && error.contains("67108864"), "{error}");
    let options = RedisBloomOptions { expansion: 60, ..options };
    let mut filter = Contents::new(RedisBloom::new(&options).unwrap());
    insert_numbers(&mut filter, 41_000).unwrap();

    let options = RedisCuckooOptions { capacity: 20_000, expansion: 32_768, ..Default::default() };
    let mut filter = Contents::new(RedisCuckoo::new(&options).unwrap());
    assert_fails(insert_numbers(&mut filter, 41_000), "next part would take");
}

#[test]
fn a_filter_with_very_many_layers_states_its_rate() {
    // `EXPANSION 1` adds equal layers. The probes of many of them repeat, because they are small.
    let options = RedisBloomOptions { capacity: 16, rate: 0.05, expansion: 1, is_scaling: true };
    let mut filter = RedisBloom::new(&options).unwrap();
    for item in 0..9_000_u32 {
        filter.insert(&item).unwrap();
    }
    assert!(filter.layers().len() > 500);
    let absent: Vec<u32> = (10_000..40_000).collect();
    let mut answers = Answers::new();
    filter.contains_each(&absent, &mut answers);
    let measured = answers.count_ones() as f64 / absent.len() as f64;
    let info = Contents::new(filter).info();
    let (ratio, error) = (info.rate_now / measured, info.rate_std_error);
    assert!(error < 1.0 && (ratio - 1.0).abs() < 3.0 * error, "{ratio} {error} {measured}");
}
