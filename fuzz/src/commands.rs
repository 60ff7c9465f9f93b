//! Tests that every command returns a reply for any arguments. Also tests that a value equals the value that is decoded
//! from its image.

use std::collections::HashMap;

use tamis_commands::{Batch, BloomLayout, Env, Handler, Settings, Value, find};
use tamis_resp::{Protocol, Reply};

pub(crate) fn run(data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let bf_layout = if first & 1 == 1 { BloomLayout::RedisBloom } else { BloomLayout::Tamis };
    let protocol = if first & 2 == 2 { Protocol::Resp3 } else { Protocol::Resp2 };
    let settings = Settings { bf_layout, max_filter_bytes: 1 << 16, ..Settings::default() };
    let mut values: HashMap<Vec<u8>, Value> = HashMap::new();
    for (now_millis, line) in data.split(|&byte| byte == b'\n').enumerate() {
        let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        let Some(command) = find(words[0]) else { continue };
        if !command.arity.takes(words.len()) {
            continue;
        }
        let env = Env {
            settings: &settings,
            protocol,
            now_millis: now_millis as u64,
            items_per_second: None,
            max_reply_bytes: u64::MAX,
        };
        let key = words.get(1).copied().unwrap_or_default();
        let mut batch = Batch::default();
        batch.push(&words);
        if let Some(items) = command.batch_items()
            && let Some(mut answers) = batch.run(items, values.get(key), now_millis as u64)
        {
            check(&answers.next().unwrap().reply, protocol);
            continue;
        }
        let reply = match command.handler {
            Handler::Key(handler) => {
                let mut value = values.remove(key);
                let outcome = handler.run(&mut value, &words, &env);
                values.extend(value.map(|value| (key.to_vec(), value)));
                outcome.reply
            }
            Handler::Answer(run) => run(&words, &env),
            _ => continue,
        };
        check(&reply, protocol);
    }
    for value in values.values().filter(|value| value.memory_bytes() < 1 << 20) {
        let image = value.to_image();
        assert_eq!(Value::from_image(&image).unwrap().to_image(), image);
    }
}

fn check(reply: &Reply, protocol: Protocol) {
    let mut bytes = Vec::new();
    reply.encode(protocol, &mut bytes);
    let (_, len) = Reply::decode(&bytes).unwrap().unwrap();
    assert_eq!(len, bytes.len());
}
