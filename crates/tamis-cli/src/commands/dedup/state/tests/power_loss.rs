//! Tests a power loss at any time: the disk may have stored any part of the writes since the last
//! sync.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::commands::dedup::state::disk::journal::{DiskOp, Journal};
use crate::commands::dedup::state::tests::{digests, kill, open};
use crate::commands::dedup::state::*;

/// A disk writes a sector completely or not at all.
const SECTOR_BYTES: u64 = 512;

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
    fn open(&self) -> StateFile {
        let mut state = open(&self.path).unwrap();
        state.disk.journal = Some(Arc::clone(&self.journal));
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

    fn remember(&mut self, state: &mut StateFile, digests: u64) {
        for _ in 0..digests {
            self.next += 1;
            // The values contain no zero bytes, so a lost sector changes each value.
            let digest = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 0x0101_0101_0101_0101;
            state.remember([digest]).unwrap();
            self.digests.extend(digest.to_le_bytes());
        }
        state.write_pending().unwrap();
    }
}

/// A generator with a fixed seed (xorshift).
struct Random(u64);

impl Random {
    fn is_kept(&mut self) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 & 1 == 1
    }
}

/// Splits an operation into the parts that reach the disk independently.
fn parts(op: &DiskOp) -> Vec<DiskOp> {
    let DiskOp::Write(at, bytes) = op else { return vec![op.clone()] };
    let (mut parts, mut from) = (Vec::new(), 0);
    while from < bytes.len() {
        let start = at + from as u64;
        let len = (SECTOR_BYTES - start % SECTOR_BYTES) as usize;
        let end = bytes.len().min(from + len);
        parts.push(DiskOp::Write(start, bytes[from..end].to_vec()));
        from = end;
    }
    parts
}

fn apply(image: &mut Vec<u8>, op: &DiskOp) {
    match op {
        DiskOp::Write(at, bytes) => {
            let end = *at as usize + bytes.len();
            image.resize(image.len().max(end), 0);
            image[*at as usize..end].copy_from_slice(bytes);
        }
        DiskOp::SetLen(len) => image.resize(*len as usize, 0),
        DiskOp::Sync => {}
    }
}

/// Calls `each` with each file that a power loss after the operations `ops` may leave.
fn each_image(start: &[u8], ops: &[DiskOp], random: &mut Random, mut each: impl FnMut(&[u8])) {
    let synced = ops.iter().rposition(|op| *op == DiskOp::Sync).map_or(0, |at| at + 1);
    let mut base = start.to_vec();
    ops[..synced].iter().for_each(|op| apply(&mut base, op));
    let pending: Vec<_> = ops[synced..].iter().flat_map(parts).collect();
    let mut with = |is_kept: &mut dyn FnMut(usize) -> bool| {
        let mut image = base.clone();
        let kept = (0..pending.len()).filter(|&part| is_kept(part));
        kept.for_each(|part| apply(&mut image, &pending[part]));
        each(&image);
    };
    with(&mut |_| false);
    with(&mut |_| true);
    for one in 0..pending.len() {
        with(&mut |part| part == one);
        with(&mut |part| part != one);
    }
    for _ in 0..8 {
        with(&mut |_| random.is_kept());
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

    let finish = |log: &mut Recorded, state: StateFile| {
        log.moment(|| state.finish(&Checkpoint::default()).unwrap());
    };
    let mark = |log: &mut Recorded, state: &mut StateFile| {
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
    let (_, end) = state.killed.take().unwrap();
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
            let end = found.killed.take().map(|(_, end)| end);
            found.begin(end).unwrap();
            let held = digests(&mut found);
            let mut allowed = log.moments[first..].iter().filter(|it| it.from <= lost_at);
            assert!(allowed.any(|it| it.digests == held), "after {lost_at}: {} bytes", held.len());
            images += 1;
        });
    }
    assert!(images > 500, "{images} files");
}
