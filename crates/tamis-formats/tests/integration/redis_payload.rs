//! `DUMP` payloads recorded from a server decode to the same filters as its `SCANDUMP` chunks.

use crate::golden_data::base64;
use serde_json::Value as Json;
use tamis_formats::{PayloadError, RedisValue};
use tamis_redisbloom::{RedisBloom, RedisCuckoo};

/// An upper limit for the number of chunks of a recorded filter.
const MAX_BYTES: u64 = 1 << 20;

fn golden() -> Json {
    crate::golden_data::json("redisbloom/redisbloom.json")
}

fn read(payload: &[u8]) -> Result<RedisValue, PayloadError> {
    RedisValue::from_payload(payload, MAX_BYTES)
}

/// Loads the filter from the recorded chunks.
fn from_chunks(filter: &Json) -> RedisValue {
    let chunks = filter["chunks"].as_array().unwrap();
    let (header, rest) = chunks.split_first().unwrap();
    let header = base64(&header["data"]);
    let positions =
        rest.iter().map(|chunk| (chunk["iter"].as_i64().unwrap(), base64(&chunk["data"])));
    if filter["family"] == "BF" {
        let mut bloom = RedisBloom::from_header(&header).unwrap();
        positions.for_each(|(position, data)| bloom.load_chunk(position, &data).unwrap());
        RedisValue::Bloom(bloom)
    } else {
        let mut cuckoo = RedisCuckoo::from_header(&header).unwrap();
        positions.for_each(|(position, data)| cuckoo.load_chunk(position, &data).unwrap());
        RedisValue::Cuckoo(cuckoo)
    }
}

#[test]
fn recorded_payloads_are_read() {
    for filter in golden()["filters"].as_array().unwrap() {
        let name = &filter["name"];
        let value = read(&base64(&filter["dump_payload"]));
        let value = value.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(value, from_chunks(filter), "{name}");
        assert_eq!(read(&value.to_payload()).unwrap(), value, "{name}");
    }
}

#[test]
fn cut_and_changed_payloads_are_refused() {
    for filter in golden()["filters"].as_array().unwrap() {
        let payload = base64(&filter["dump_payload"]);
        for len in 0..payload.len() {
            assert!(read(&payload[..len]).is_err());
        }
        for at in 0..payload.len() {
            let mut changed = payload.clone();
            changed[at] ^= 1 << (at % 8);
            assert_eq!(read(&changed), Err(PayloadError::Checksum), "{at}");
            // Without the checksum, the decoder sees every change of the bytes. It returns a filter
            // or an error.
            let checksum = changed.len() - 8;
            changed[checksum..].fill(0);
            _ = read(&changed);
        }
    }
}

#[test]
fn a_payload_of_a_newer_server_is_read_if_its_type_is_known() {
    let of_version = |value: &[u8], version: u16| {
        // A checksum of zero is none.
        [value, &version.to_le_bytes(), &[0; 8]].concat()
    };
    for version in [9, 12, 13, 79, 80, 81, u16::MAX] {
        let text = read(&of_version(b"\0\x01x", version));
        assert_eq!(text, Ok(RedisValue::String(b"x".to_vec())), "{version}");
        let other = read(&of_version(b"\x63\x01x", version));
        let error = match version {
            9 | 12 | 80 => PayloadError::OtherType,
            version => PayloadError::Newer { version },
        };
        assert_eq!(other, Err(error), "{version}");
    }
    let error = PayloadError::Newer { version: 81 }.to_string();
    assert!(error.contains("RDB version 81, newer than 12 of Redis and 80 of Valkey"), "{error}");
}

#[test]
fn a_payload_takes_no_more_memory_than_allowed() {
    for filter in golden()["filters"].as_array().unwrap() {
        let payload = base64(&filter["dump_payload"]);
        let bytes = match read(&payload).unwrap() {
            RedisValue::Bloom(bloom) => bloom.layers().map(|layer| layer.bytes).sum(),
            RedisValue::Cuckoo(cuckoo) => {
                cuckoo.size_bytes() - 40 - 16 * cuckoo.sub_filters() as u64
            }
            RedisValue::String(bytes) | RedisValue::Tamis(bytes) => bytes.len() as u64,
        };
        assert!(RedisValue::from_payload(&payload, bytes).is_ok());
        assert_eq!(RedisValue::from_payload(&payload, bytes - 1), Err(PayloadError::TooLarge));
    }
    let long = RedisValue::String(vec![0; 1000]).to_payload();
    assert!(RedisValue::from_payload(&long, 1000).is_ok());
    assert_eq!(RedisValue::from_payload(&long, 999), Err(PayloadError::TooLarge));
}
