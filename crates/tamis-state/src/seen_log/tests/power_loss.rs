//! Tests a power loss at any time of a log.

use std::fs;
use std::path::Path;

use crate::disk::journal::{Journal, record};
use crate::power_loss::{Random, each_image};
use crate::seen_log::tests::{Log, digests, empty, folder, kill, open};

/// A sequence of logs on one file, with a journal of the operations.
struct Recorded {
    journal: Journal,
    // The digests in the order of the calls.
    appended: Vec<u64>,
    // The number of operations, and the number of digests that the log must hold after these
    // operations.
    synced: Vec<(usize, usize)>,
}

impl Recorded {
    fn open(&self, path: &Path) -> Log {
        record(&self.journal, || open(path)).unwrap()
    }

    fn append(&mut self, log: &mut Log, count: u64) {
        for _ in 0..count {
            let next = self.appended.len() as u64 + 1;
            // The values contain no zero bytes, so a lost sector changes each value.
            let digest = next.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 0x0101_0101_0101_0101;
            log.append([digest]).unwrap();
            self.appended.push(digest);
        }
    }

    fn is_synced(&mut self) {
        self.synced.push((self.journal.lock().len(), self.appended.len()));
    }
}

#[test]
fn a_power_loss_keeps_all_synced_digests_and_invents_none() {
    let (path, folder) = folder();
    empty(&path);
    let start = fs::read(&path).unwrap();
    let mut all =
        Recorded { journal: Journal::default(), appended: Vec::new(), synced: vec![(0, 0)] };
    let mut log = all.open(&path);
    all.append(&mut log, 600);
    log.flush().unwrap();
    all.append(&mut log, 10);
    log.sync().unwrap();
    all.is_synced();
    for _ in 0..3 {
        all.append(&mut log, 70);
        log.flush().unwrap();
    }
    all.append(&mut log, 70);
    log.close().unwrap();
    all.is_synced();
    let mut log = all.open(&path);
    all.append(&mut log, 200);
    log.sync().unwrap();
    all.is_synced();
    all.append(&mut log, 90);
    log.flush().unwrap();
    // The kill interrupts a write. The digests in the buffer are lost.
    let end = fs::metadata(&path).unwrap().len();
    log.log.disk.write_at(end, &[b'D'; 700]).unwrap();
    log.append([7]).unwrap();
    kill(log);
    // The open cuts the block of the interrupted write, and syncs the blocks before that block.
    let mut log = all.open(&path);
    all.is_synced();
    all.append(&mut log, 60);
    log.close().unwrap();
    all.is_synced();

    let ops = all.journal.lock().clone();
    let image_path = folder.path().join("image");
    let (mut random, mut images, mut tails) = (Random(36), 0, 0);
    for lost_at in 0..=ops.len() {
        let synced = all.synced.iter().rev().find(|(after, _)| *after <= lost_at).unwrap().1;
        each_image(&start, &ops[..lost_at], &mut random, |image| {
            fs::write(&image_path, image).unwrap();
            let found = open(&image_path);
            let mut found = found.unwrap_or_else(|error| panic!("after {lost_at}: {error}"));
            let held = digests(&mut found);
            assert!(held.len() >= synced, "after {lost_at}: {} of {synced}", held.len());
            assert!(held == all.appended[..held.len()], "after {lost_at}");
            tails += usize::from(held.len() > synced);
            images += 1;
            if images % 8 == 0 {
                // The log continues behind the cut.
                found.append([9]).unwrap();
                found.close().unwrap();
                let again = digests(&mut open(&image_path).unwrap());
                assert!(again == [&held[..], &[9]].concat(), "after {lost_at}");
            }
        });
    }
    assert!(images > 500 && tails > 50, "{images} files, {tails} with a tail");
}
