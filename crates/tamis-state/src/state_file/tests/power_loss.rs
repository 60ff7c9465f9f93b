//! Tests a power loss at any time of a run.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::journal::Journal;
use crate::power_loss::{Random, each_image};
use crate::state_file::tests::{Checkpoint, State, digests, kill, open};

/// The digests that the state holds from a point in time onwards.
struct Moment {
    /// The number of operations before which the state cannot hold the digests.
    from: usize,
    /// The number of operations after which the state must hold at least these digests.
    acknowledged: usize,
    digests: Vec<u8>,
}

/// A state with a journal of its operations.
struct Recorded {
    path: PathBuf,
    journal: Journal,
    moments: Vec<Moment>,
    digests: Vec<u8>,
    next: u64,
}

impl Recorded {
    fn open(&self) -> State {
        let mut state = open(&self.path).unwrap();
        state.log.disk.journal = Some(Arc::clone(&self.journal));
        state
    }

    /// Runs `change`, after which the state holds `self.digests`.
    fn moment<R>(&mut self, change: impl FnOnce() -> R) -> R {
        let from = self.journal.lock().len();
        let result = change();
        let acknowledged = self.journal.lock().len();
        self.moments.push(Moment { from, acknowledged, digests: self.digests.clone() });
        result
    }

    fn remember(&mut self, state: &mut State, digests: u64) {
        for _ in 0..digests {
            self.next += 1;
            // The values contain no zero bytes, so a lost sector changes each value.
            let digest = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 0x0101_0101_0101_0101;
            state.remember([digest]).unwrap();
            self.digests.extend(digest.to_le_bytes());
        }
        state.log.write_pending().unwrap();
    }
}

#[test]
fn a_power_loss_keeps_what_was_acknowledged_and_is_never_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    drop(open(&path).unwrap());
    let start = fs::read(&path).unwrap();
    let (journal, moments) = (Journal::default(), Vec::new());
    let mut log = Recorded { path, journal, moments, digests: Vec::new(), next: 0 };
    log.moment(|| ());

    let finish = |log: &mut Recorded, state: State| {
        log.moment(|| state.finish(&Checkpoint::default()).unwrap());
    };
    let mark = |log: &mut Recorded, state: &mut State| {
        log.moment(|| state.checkpoint(&Checkpoint::default()).unwrap());
    };
    // The first run has two checkpoints and finishes.
    let mut state = log.open();
    state.begin(None).unwrap();
    mark(&mut log, &mut state);
    log.remember(&mut state, 300);
    log.remember(&mut state, 10);
    mark(&mut log, &mut state);
    log.remember(&mut state, 70);
    finish(&mut log, state);
    let finished = log.digests.clone();
    // The second run is killed after a checkpoint and resumed.
    let mut state = log.open();
    state.begin(None).unwrap();
    log.remember(&mut state, 200);
    mark(&mut log, &mut state);
    let marked = log.digests.clone();
    log.remember(&mut state, 100);
    kill(state);
    let mut state = log.open();
    let end = state.killed.take().unwrap().end;
    log.digests.clone_from(&marked);
    log.moment(|| state.begin(Some(end)).unwrap());
    log.remember(&mut state, 90);
    mark(&mut log, &mut state);
    kill(state);
    // The third run starts over with `--restart` and finishes. The blocks of the killed run must
    // not return.
    let mut state = log.open();
    log.digests = finished;
    log.moment(|| state.begin(None).unwrap());
    log.remember(&mut state, 200);
    log.remember(&mut state, 90);
    finish(&mut log, state);

    let ops = log.journal.lock().clone();
    let image_path = folder.path().join("image");
    let (mut random, mut images) = (Random(32), 0);
    for lost_at in 0..=ops.len() {
        let first = log.moments.iter().rposition(|moment| moment.acknowledged <= lost_at).unwrap();
        each_image(&start, &ops[..lost_at], &mut random, |image| {
            fs::write(&image_path, image).unwrap();
            let found = open(&image_path);
            let mut found = found.unwrap_or_else(|error| panic!("after {lost_at}: {error:?}"));
            let end = found.killed.take().map(|killed| killed.end);
            found.begin(end).unwrap();
            let held = digests(&mut found);
            let mut allowed = log.moments[first..].iter().filter(|it| it.from <= lost_at);
            assert!(allowed.any(|it| it.digests == held), "after {lost_at}: {} bytes", held.len());
            images += 1;
        });
    }
    assert!(images > 500, "{images} files");
}
