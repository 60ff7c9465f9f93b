//! Filters recorded from a live server: the same commands give the same replies and dumps.

use serde_json::Value as Json;
use tamis_commands::{BloomLayout, Settings};
use tamis_resp::{Protocol, Reply};

use crate::host::{Host, received};

fn golden() -> Json {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/redisbloom/redisbloom.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut len) = (Vec::new(), 0_u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        let digit = DIGITS.iter().position(|&it| it == c).expect("base64") as u32;
        (bits, len) = (bits << 6 | digit, len + 6);
        if len >= 8 {
            len -= 8;
            bytes.push((bits >> len) as u8);
        }
    }
    bytes
}

fn word(json: &Json) -> Vec<u8> {
    match json {
        Json::String(text) => text.as_bytes().to_vec(),
        Json::Number(number) => number.to_string().into_bytes(),
        _ => base64(json["b64"].as_str().unwrap()),
    }
}

/// Converts a reply to the form in which the recording stores it.
fn recorded(reply: &Reply) -> Json {
    match &received(reply, Protocol::Resp2) {
        Reply::Simple(text) => format!("+{text}").into(),
        Reply::Error(text) => format!("-{text}").into(),
        Reply::Integer(number) => (*number).into(),
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into(),
        Reply::Null | Reply::NullArray => Json::Null,
        Reply::Array(replies) => replies.iter().map(recorded).collect(),
        other => panic!("no reply of RESP2: {other:?}"),
    }
}

#[test]
fn recorded_filters_answer_and_dump_alike() {
    let golden = golden();
    for filter in golden["filters"].as_array().unwrap() {
        let name = filter["name"].as_str().unwrap();
        let family = filter["family"].as_str().unwrap();
        let settings = Settings { bf_layout: BloomLayout::RedisBloom, ..Settings::default() };
        let mut host = Host::new(settings, Protocol::Resp2);
        for step in filter["steps"].as_array().unwrap() {
            let words: Vec<Vec<u8>> = step["cmd"].as_array().unwrap().iter().map(word).collect();
            let reply = recorded(&host.say(&words));
            assert_eq!(reply, step["reply"], "{name}: {}", words[0].escape_ascii());
        }
        let say = |command: &str| format!("{family}.{command}");
        let assert_answers = |host: &mut Host, key: &str| {
            let debug = host.say(&[&say("DEBUG"), key]);
            assert_eq!(recorded(&debug), filter["debug"], "{name}");
            for answer in filter["exists"].as_array().unwrap() {
                let words = [say("EXISTS").into_bytes(), key.into(), word(&answer[0])];
                assert_eq!(recorded(&host.say(&words)), answer[1], "{name}");
            }
        };
        assert_eq!(recorded(&host.say(&[&say("INFO"), name])), filter["info_resp2"], "{name}");
        assert_answers(&mut host, name);

        // The dump equals the recorded one, and a loaded dump gives the same dump again.
        let mut at = "0".to_owned();
        for chunk in filter["chunks"].as_array().unwrap() {
            let reply = host.say(&[&say("SCANDUMP"), name, &at]);
            let Reply::Array(pair) = reply else { panic!("{name}: {reply:?}") };
            let data = base64(chunk["data"].as_str().unwrap());
            assert_eq!(pair[0], Reply::Integer(chunk["iter"].as_i64().unwrap()), "{name}");
            assert_eq!(pair[1], Reply::Bulk(data.clone()), "{name}");
            at = chunk["iter"].to_string();
            let words = [say("LOADCHUNK").into_bytes(), b"copy".to_vec(), at.clone().into(), data];
            assert_eq!(host.say(&words), Reply::ok(), "{name}");
        }
        assert_answers(&mut host, "copy");
    }
}
