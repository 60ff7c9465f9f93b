//! The exchange lists, run on the command functions in memory.

use std::collections::HashMap;

use crate::scenes::{Scene, scenes, shown};
use tamis_commands::{
    Argv, Batch, Env, Handler, Outcome, Settings, Value, WriteKeys, find, made_like, merge,
    reserve_like, text,
};
use tamis_resp::{Protocol, Reply};

/// The time of every command, in milliseconds since 1970.
const NOW_MILLIS: u64 = 1_700_000_000_000;

/// The smallest host: keys in memory, one command at a time.
struct Host {
    settings: Settings,
    protocol: Protocol,
    values: HashMap<Vec<u8>, Value>,
}

impl Host {
    fn new(scene: &Scene, protocol: Protocol) -> Self {
        let mut settings = Settings::default();
        // The server tests run the same lists over TCP with the same key.
        settings.set_hash_key(Some(*b"0123456789abcdef"));
        for (name, value) in &scene.settings {
            settings.set(name, value.as_bytes()).unwrap();
        }
        Self { settings, protocol, values: HashMap::new() }
    }

    fn run(&mut self, words: &[Vec<u8>], in_batches: bool) -> Reply {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let Some(command) = find(words[0]) else { return text::unknown_command(&words) };
        if !command.arity.takes(words.len()) {
            return text::wrong_arity(command.name);
        }
        let env = Env::new(&self.settings, self.protocol, NOW_MILLIS);
        let key = command.keys.of(&words).next().unwrap_or_default().to_vec();
        if let Some(items) = command.batch_items().filter(|_| in_batches) {
            let mut batch = Batch::default();
            batch.push(&words);
            if let Some(mut answers) = batch.run(items, self.values.get(&key), env.now_millis) {
                return answers.next().unwrap().reply;
            }
        }
        match command.handler {
            Handler::Key(handler) => {
                let like = command.like_key(&words).map(|other| self.values.get(other));
                let made = match like.map(|other| made_like(other, &env)).transpose() {
                    Ok(made) => made,
                    Err(reply) => return reply,
                };
                let mut value = self.values.remove(&key);
                let outcome = match made {
                    Some(made) => reserve_like(&mut value, made).unwrap_or_else(Outcome::from),
                    None => handler.run(&mut value, &words, &env),
                };
                if let Some(value) = value {
                    self.values.insert(key, value);
                }
                outcome.reply
            }
            Handler::Answer(run) => run(&words, &env),
            Handler::WriteKeys(WriteKeys::Merge) => self.merge(&words),
            _ => panic!("{} needs a server", command.name),
        }
    }

    fn merge(&mut self, words: Argv<'_>) -> Reply {
        let env = Env::new(&self.settings, self.protocol, NOW_MILLIS);
        let mut value = self.values.remove(words[1]);
        let sources: Vec<_> = words[2..]
            .iter()
            .filter(|key| **key != words[1])
            .map(|key| (*key, self.values.get(*key)))
            .collect();
        let merged = merge(words[1], &mut value, &sources, &env);
        let outcome = merged.unwrap_or_else(Outcome::from);
        if let Some(value) = value {
            self.values.insert(words[1].to_vec(), value);
        }
        outcome.reply
    }
}

#[test]
fn every_exchange_has_its_recorded_reply() {
    let lists = [
        ("bf.txt", include_str!("../../../../tests/exchanges/bf.txt")),
        ("cf.txt", include_str!("../../../../tests/exchanges/cf.txt")),
        ("bf_tamis.txt", include_str!("../../../../tests/exchanges/bf_tamis.txt")),
        ("tm.txt", include_str!("../../../../tests/exchanges/tm.txt")),
        ("bitmaps.txt", include_str!("../../../../tests/exchanges/bitmaps.txt")),
    ];
    for (name, list) in lists {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            for in_batches in [false, true] {
                for scene in scenes(list) {
                    let mut host = Host::new(&scene, protocol);
                    for exchange in &scene.exchanges {
                        let mut bytes = Vec::new();
                        host.run(&exchange.words, in_batches).encode(protocol, &mut bytes);
                        let (reply, len) = Reply::decode(&bytes).unwrap().unwrap();
                        assert_eq!(len, bytes.len());
                        assert_eq!(
                            shown(&reply),
                            exchange.expected(protocol),
                            "{name}, line {}, {protocol:?}",
                            exchange.line
                        );
                    }
                }
            }
        }
    }
}
