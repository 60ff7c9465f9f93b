//! The exchange lists, run on the command functions in memory.

use tamis_commands::{Batch, Settings, find};
use tamis_resp::{Protocol, Reply};

use crate::host::{Host, received};
use crate::scenes::{Scene, scenes, shown};

fn host(scene: &Scene, protocol: Protocol) -> Host {
    let mut settings = Settings::default();
    // The server tests run the same lists over TCP with the same key.
    settings.set_hash_key(Some(*b"0123456789abcdef"));
    for (name, value) in &scene.settings {
        settings.set(name, value.as_bytes()).unwrap();
    }
    Host { now_millis: 1_700_000_000_000, ..Host::new(settings, protocol) }
}

/// Runs a command as a batch, if it is one that runs in batches under shared access.
fn run_batch(host: &Host, words: &[Vec<u8>]) -> Option<Reply> {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let command = find(words[0]).filter(|it| it.arity.takes(words.len()))?;
    let items = command.batch_items()?;
    let mut batch = Batch::default();
    batch.push(&words);
    let mut answers = batch.run(items, host.values.get(words[1]), host.now_millis)?;
    Some(answers.next().unwrap().reply)
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
                    let mut host = host(&scene, protocol);
                    for exchange in &scene.exchanges {
                        let words = &exchange.words;
                        let reply = in_batches.then(|| run_batch(&host, words)).flatten();
                        let reply = reply.unwrap_or_else(|| host.say(words));
                        assert_eq!(
                            shown(&received(&reply, protocol)),
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
