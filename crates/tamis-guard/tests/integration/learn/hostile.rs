//! Answers of a broken or hostile service: bounded memory, no panic, and the client gets each byte.

use std::collections::BTreeSet;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::scripted::*;
use crate::checker::Random;

fn below(random: &mut Random, end: usize) -> usize {
    random.below(end as u64) as usize
}

fn value(random: &mut Random, depth: usize) -> Value {
    match below(random, if depth == 0 { 4 } else { 6 }) {
        0 => Value::Null,
        1 => json!(below(random, 1000)),
        2 => json!(["}", "]\"", "\\", "{[", "七", "\u{1f600}\\\""][below(random, 6)]),
        3 => json!(below(random, 2) == 0),
        4 => (0..below(random, 4)).map(|_| value(random, depth - 1)).collect(),
        _ => {
            let name = |random: &mut Random| ["a", "}", "\"", "ids", "\\\""][below(random, 5)];
            let pairs = (0..below(random, 4))
                .map(|_| (name(random).to_owned(), value(random, depth - 1)))
                .collect::<serde_json::Map<_, _>>();
            Value::Object(pairs)
        }
    }
}

#[tokio::test]
async fn exactly_the_ids_of_a_complete_answer_are_learnt() {
    let mut random = Random(17);
    for round in 0..3000 {
        let ids: BTreeSet<usize> =
            (0..below(&mut random, 5)).map(|_| 1000 + below(&mut random, 100)).collect();
        let document = json!({"a": value(&mut random, 3), "new": ids, "z": value(&mut random, 3)});
        let text = match below(&mut random, 2) {
            0 => document.to_string(),
            _ => serde_json::to_string_pretty(&document).unwrap(),
        };
        let end =
            if below(&mut random, 2) == 0 { text.len() } else { below(&mut random, text.len()) };
        let tail = ["", "\n", "}", "x"][below(&mut random, 4)];
        let sent = [&text.as_bytes()[..end], if end == text.len() { tail.as_bytes() } else { b"" }];
        let sent = sent.concat();
        let mut parts = Vec::new();
        let mut rest = &sent[..];
        while !rest.is_empty() {
            let (part, after) = rest.split_at(1 + below(&mut random, rest.len().min(40)));
            parts.push(part);
            rest = after;
        }
        let script = Script::chunked(parts);
        let rules: &[(&str, &[&str])] = &[("/products", &["answer json:/new/*"])];
        let guarded = Guarded::new(rules, move |_| created(script.clone()));
        assert_eq!(guarded.post("/products", "").await.1, sent, "{round}");
        let learns = |id: usize| end == text.len() && ids.contains(&id);
        for id in 1000..1100 {
            assert_eq!(guarded.knows(&id.to_string()), learns(id), "{round}: {id} in {text}");
        }
    }
}

#[tokio::test]
async fn a_huge_answer_passes_with_a_bounded_copy() {
    // One body of 64 MiB in frames of 1 MiB that share their memory.
    let frame = Bytes::from(vec![b'['; 1 << 20]);
    let script = Script { frames: vec![Ok(frame); 64].into(), ..Script::default() };
    let rules: &[(&str, &[&str])] = &[("/products", &["answer json:/0"])];
    let guarded = Guarded::new(rules, move |_| created(script.clone()));
    let mut body = guarded.create().await.into_body();
    let mut len_bytes = 0;
    while let Some(frame) = body.frame().await {
        len_bytes += frame.unwrap().into_data().unwrap().len();
        // After the first frame, the body is known to be too large.
        assert_eq!(guarded.counts(), (0, vec![(tamis_guard::NotLearnt::TooLarge, 1)]));
    }
    assert_eq!(len_bytes, 64 << 20);
}

#[tokio::test]
async fn deep_json_does_not_overflow_the_stack() {
    let depth = 400_000;
    let set = |rule: &mut tamis_guard::LearnRule| rule.max_body_bytes = 1 << 20;
    let rules: &[(&str, &[&str])] = &[("/products", &["answer json:/0", "json:/0"])];
    let deep = "[".repeat(depth) + &"]".repeat(depth);
    let answer = deep.clone();
    let guarded = Guarded::with(rules, set, move |_| created(Script::whole(&answer)));
    assert_eq!(guarded.post("/products", &deep).await.1.len(), 2 * depth);
    assert_eq!(guarded.counts(), (0, vec![(tamis_guard::NotLearnt::NoId, 1)]));
}

#[tokio::test]
async fn random_bytes_are_no_panic() {
    let mut random = Random(18);
    for round in 0..2000 {
        let alphabet = b"{}[]\",:\\ 17ax\xff\n";
        let bytes: Vec<u8> = (0..below(&mut random, 60))
            .map(|_| alphabet[below(&mut random, alphabet.len())])
            .collect();
        let script = Script::chunked(bytes.chunks(1 + below(&mut random, 7)));
        let places = &["answer json:/*", "answer json:/a", "answer header:location /{id}"][..];
        let guarded = Guarded::new(&[("/products", places)], move |_| created(script.clone()));
        assert_eq!(guarded.post("/products", "").await.1, bytes, "{round}");
    }
}
