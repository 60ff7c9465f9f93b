//! Measures how much threads speed up one hot filter in the keyspace, without sockets.

use tamis_commands::{Batch, ScalableBloom, Value, find};
use tamis_server::keyspace::Keyspace;

use super::ITEMS;
use crate::run::{Bench, Entry, time_threads};

pub const CASE: &str = "server in process, one hot filter, batches of 64";

/// The number of commands that a thread executes in a run.
const COMMANDS: usize = 1 << 20;

/// Runs the case of the hot filter, if the user selected the case.
pub fn run(bench: &mut Bench) {
    if !bench.wants(CASE) {
        return;
    }
    let keyspace = Keyspace::new();
    keyspace.shared().write(b"seen", 0, |value| {
        let filter = ScalableBloom::reserve(ITEMS, 0.01, Some(2)).expect("a sound plan");
        *value = Some(Value::Bloom(Box::new(filter)));
    });
    let items: Vec<String> =
        (0..2 * COMMANDS as u64).map(|i| format!("{:012}", i * 7_919 % ITEMS)).collect();
    let argv = |name: &'static str| -> (&str, Vec<[&[u8]; 3]>) {
        (name, items.iter().map(|item| [name.as_bytes(), b"seen", item.as_bytes()]).collect())
    };
    let argvs = ["BF.ADD", "BF.EXISTS"].map(argv);
    let mut entries = Vec::new();
    for (name, argvs) in &argvs {
        for threads in [1, 2] {
            let keyspace = &keyspace;
            let plural = if threads == 1 { "" } else { "s" };
            let title = format!("tamis {name}, {threads} thread{plural}");
            entries.push(Entry::new(title, (COMMANDS * threads) as u64, 0..=0, move || {
                let parts = argvs.chunks(COMMANDS).take(threads);
                time_threads(parts, |part| commands(keyspace, name, part))
            }));
        }
    }
    bench.case(CASE, entries);
}

/// Runs a command for each item, in batches of sixty-four, as a session does.
fn commands(keyspace: &Keyspace, name: &str, argvs: &[[&[u8]; 3]]) {
    let command = find(name.as_bytes()).and_then(|command| command.batch_items());
    let command = command.expect("a command about items");
    let mut batch = Batch::default();
    for argvs in argvs.chunks(64) {
        batch.clear();
        argvs.iter().for_each(|argv| batch.push(argv));
        let keys = keyspace.shared();
        if command.inserts {
            // A batch of repeated items changes nothing.
            keys.insert(b"seen", 0, |value| {
                batch.run(command, value, 0).is_some_and(|answers| answers.count_ones() > 0)
            });
        } else {
            keys.read(b"seen", 0, |value| batch.run(command, value, 0).is_some());
        }
    }
}
