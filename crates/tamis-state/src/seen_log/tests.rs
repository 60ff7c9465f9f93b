//! Tests of logs that are closed, killed, full, damaged or used by `tamis dedup`.

use std::fs;
use std::path::PathBuf;

use crate::block::{DATA, MAX_DATA_BYTES};
use crate::seen_log::*;
use crate::state_file::StateFile;

mod hostile_bytes;
mod power_loss;

const TEXT: &str = "fingerprints";
const HASHER: Hasher = Hasher::keyed([1, 2]);

type Log = SeenLog<u64>;

fn open(path: &Path) -> Result<Log, StateError> {
    Log::open(path, TEXT, HASHER)
}

fn digests<D: StoredDigest>(log: &mut SeenLog<D>) -> Vec<D> {
    let (mut replay, mut all) = (log.replay().unwrap(), Vec::new());
    while let Some(digests) = replay.next_batch().unwrap() {
        assert!(size_of_val(digests) <= MAX_DATA_BYTES, "a replay reads in blocks");
        all.extend_from_slice(digests);
    }
    all
}

/// Ends a log in the same way as `kill -9`: the digests in the buffer are lost.
fn kill<D: StoredDigest>(mut log: SeenLog<D>) {
    log.log.disk.journal = None;
    log.log.disk.faults.full_at_bytes = Some(0);
}

const WANTED: Requirements<'_> = Requirements {
    description: TEXT,
    hasher: HASHER,
    is_hasher_fixed: false,
    width_bits: 64,
    is_width_fixed: true,
};

/// Creates a file that no log has opened yet.
fn empty(path: &Path) {
    drop(StateFile::<IgnoredAny>::open(path, &WANTED).unwrap());
}

#[track_caller]
fn refusal<D: StoredDigest>(opened: Result<SeenLog<D>, StateError>) -> StateError {
    opened.err().expect("the file is refused")
}

/// Returns the path of a log and the folder of the log.
fn folder() -> (PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (folder.path().join("seen"), folder)
}

#[test]
fn a_log_returns_all_digests_in_their_order() {
    let (path, _folder) = folder();
    let mut log = SeenLog::<u128>::open(&path, TEXT, HASHER).unwrap();
    let all: Vec<u128> = (0..20_000_u128).map(|n| (n << 64) | (n * n)).collect();
    log.append(all[..15_000].iter().copied()).unwrap();
    log.sync().unwrap();
    assert!(digests(&mut log) == all[..15_000]);
    log.append(all[15_000..].iter().copied()).unwrap();
    log.close().unwrap();
    let mut log = SeenLog::<u128>::open(&path, TEXT, Hasher::keyed([3, 4])).unwrap();
    assert_eq!(log.hasher(), HASHER, "a file keeps its hasher");
    assert!(digests(&mut log) == all);
}

#[test]
fn a_log_that_is_closed_without_a_change_keeps_its_length() {
    let (path, _folder) = folder();
    open(&path).unwrap().close().unwrap();
    let bytes = fs::read(&path).unwrap();
    for _ in 0..3 {
        let mut log = open(&path).unwrap();
        log.sync().unwrap();
        log.close().unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_kill_loses_only_the_buffer_and_a_drop_loses_nothing() {
    let (path, _folder) = folder();
    let mut log = open(&path).unwrap();
    log.append([1]).unwrap();
    log.sync().unwrap();
    log.append([2]).unwrap();
    log.flush().unwrap();
    log.append([3]).unwrap();
    kill(log);
    let mut log = open(&path).unwrap();
    assert_eq!(digests(&mut log), [1, 2]);
    log.append([4]).unwrap();
    drop(log);
    assert_eq!(digests(&mut open(&path).unwrap()), [1, 2, 4]);
}

#[test]
fn a_recovered_tail_is_synced_when_the_log_opens() {
    let (path, _folder) = folder();
    let mut log = open(&path).unwrap();
    log.append([1]).unwrap();
    drop(log);
    drop(open(&path).unwrap());
    // A state without the tail behind the last DONE.
    let mut state = StateFile::<IgnoredAny>::open(&path, &WANTED).unwrap();
    state.begin(None).unwrap();
    assert_eq!(state.replay::<u64>().unwrap().next_batch().unwrap(), Some(&[1][..]));
}

#[test]
fn only_one_log_has_the_file_open() {
    let (path, _folder) = folder();
    let log = open(&path).unwrap();
    let error = refusal(open(&path));
    assert!(matches!(error, StateError::Locked { .. }), "{error}");
    log.close().unwrap();
    open(&path).unwrap();
}

/// A fork copies the log, and the copy has the id of the other process.
#[test]
fn a_log_of_another_process_accepts_no_digest_and_its_drop_writes_nothing() {
    let (path, _folder) = folder();
    let forked = || {
        let mut log = open(&path).unwrap();
        log.append([1]).unwrap();
        log.log.disk.locked_by += 1;
        log
    };
    open(&path).unwrap().close().unwrap();
    let before = fs::read(&path).unwrap();
    let mut log = forked();
    let replayed = log.replay().map(drop);
    for failed in [replayed, log.check(), log.append([2]), log.flush(), log.sync()] {
        let error = failed.unwrap_err();
        assert!(matches!(error, StateError::OtherProcess { .. }), "{error}");
        let pid = std::process::id() + 1;
        assert_eq!(
            error.to_string(),
            format!(
                "{}: the file was opened by another process (pid {pid}): close it there and open \
                 it in this process, or use one file per process",
                path.display()
            )
        );
    }
    drop(log);
    assert_eq!(fs::read(&path).unwrap(), before);
    forked().close().unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A duplicate of a handle shares the lock, in the same way as the copy of a forked process.
#[test]
fn the_lock_ends_with_the_log_although_another_handle_shares_the_lock() {
    let (path, _folder) = folder();
    let log = open(&path).unwrap();
    let _handle = log.log.disk.as_file().try_clone().unwrap();
    log.close().unwrap();
    let mut log = open(&path).unwrap();
    let _handle = log.log.disk.as_file().try_clone().unwrap();
    log.log.disk.locked_by += 1;
    drop(log);
    let error = refusal(open(&path));
    assert!(matches!(error, StateError::Locked { .. }), "another process keeps the lock: {error}");
}

#[test]
fn a_file_for_other_digests_is_refused_and_untouched() {
    let (path, folder) = folder();
    open(&path).unwrap().close().unwrap();
    let bytes = fs::read(&path).unwrap();
    let error = refusal(Log::open(&path, "urls", HASHER)).to_string();
    assert!(error.contains("holds digests of 'fingerprints', not of 'urls'; use"), "{error}");
    let error = refusal(SeenLog::<u128>::open(&path, TEXT, HASHER)).to_string();
    assert!(error.contains("holds 64-bit digests, not 128-bit ones; use"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), bytes);

    let other = folder.path().join("other");
    fs::write(&other, "some text").unwrap();
    let error = refusal(open(&other)).to_string();
    assert!(error.contains("is not a state file of Tamis; name"), "{error}");
    let error = refusal(open(folder.path())).to_string();
    assert!(error.contains("must be a regular file"), "{error}");
    let error = refusal(open(&folder.path().join("missing/seen")));
    assert!(matches!(error, StateError::Io { .. }), "{error}");
    let missing = folder.path().join("missing");
    let error = refusal(Log::open(&missing, &"x".repeat(65_536), HASHER)).to_string();
    assert!(error.contains("65536 bytes, and a state stores at most 65535"), "{error}");
    assert!(!missing.exists());
}

#[test]
fn damage_before_the_synced_length_names_file_offset_and_advice() {
    let (path, _folder) = folder();
    let mut log = open(&path).unwrap();
    log.append([1, 2, 3]).unwrap();
    log.close().unwrap();
    let whole = fs::read(&path).unwrap();
    let at = memchr::memmem::find(&whole, &DATA).unwrap();
    let mut damaged = whole.clone();
    damaged[at + 20] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let error = refusal(open(&path)).to_string();
    let name = path.display();
    assert_eq!(
        error,
        format!(
            "{name}: the state is damaged at byte {at}; restore it from a copy, or remove it to \
             start over"
        )
    );
    fs::write(&path, &whole[..at + 20]).unwrap();
    let error = refusal(open(&path)).to_string();
    assert!(error.contains(&format!("truncated to {} bytes; restore", at + 20)), "{error}");
}

#[test]
fn a_full_disk_loses_nothing_and_the_log_goes_on_when_there_is_space() {
    let (path, _folder) = folder();
    let mut log = open(&path).unwrap();
    log.append(0..10).unwrap();
    log.sync().unwrap();
    let len = fs::metadata(&path).unwrap().len();
    log.append(10..20).unwrap();
    // The disk is full in the middle of DATA, in the middle of DONE, and behind DONE.
    for full_at in [len, len + 3, len + 50, len + 16 + 80, len + 16 + 80 + 20] {
        log.log.disk.faults.full_at_bytes = Some(full_at);
        let error = log.sync().unwrap_err();
        assert!(matches!(error, StateError::Io { .. }), "{error}");
    }
    // A buffer that is full on a full disk takes no more digests.
    let more = 20..20_000;
    assert!(log.append(more.clone()).is_err());
    assert!(log.append([0]).is_err());
    log.log.disk.faults.full_at_bytes = None;
    log.append(more).unwrap();
    log.close().unwrap();
    let mut held = digests(&mut open(&path).unwrap());
    held.sort_unstable();
    held.dedup();
    assert!(held == (0..20_000).collect::<Vec<u64>>());
}

#[test]
fn a_log_on_a_full_disk_keeps_what_it_has_synced_after_a_kill() {
    let (path, _folder) = folder();
    let mut log = open(&path).unwrap();
    log.append(0..10).unwrap();
    log.sync().unwrap();
    let len = fs::metadata(&path).unwrap().len();
    log.append(10..20).unwrap();
    for full_at in len..len + 16 + 80 {
        log.log.disk.faults.full_at_bytes = Some(full_at);
        assert!(log.flush().is_err());
    }
    kill(log);
    assert_eq!(digests(&mut open(&path).unwrap()), (0..10).collect::<Vec<u64>>());
}

#[test]
fn a_write_that_does_not_fit_on_the_disk_leaves_no_digest_of_the_call() {
    let (path, _folder) = folder();
    let mut log = open(&path).unwrap();
    log.write_all(0..10).unwrap();
    log.append([10]).unwrap();
    let len = fs::metadata(&path).unwrap().len();
    // The buffer with one digest fits in all cases, and the digests of the call do not fit.
    let buffer = 16 + 8;
    let block = (16 + MAX_DATA_BYTES) as u64;
    for full_at in [buffer, buffer + 3, buffer + 40, buffer + block, buffer + 2 * block + 5] {
        log.log.disk.faults.full_at_bytes = Some(len + full_at);
        let error = log.write_all(100..20_100).unwrap_err();
        assert!(matches!(error, StateError::Io { .. }), "{error}");
        assert_eq!(fs::metadata(&path).unwrap().len(), len + buffer);
        assert_eq!(digests(&mut log), (0..11).collect::<Vec<u64>>());
    }
    log.log.disk.faults.full_at_bytes = None;
    log.write_all([11]).unwrap();
    drop(log);
    assert_eq!(digests(&mut open(&path).unwrap()), (0..12).collect::<Vec<u64>>());
}

#[test]
fn a_log_that_cannot_be_cut_after_a_failed_write_accepts_no_digest() {
    let (path, _folder) = folder();
    let mut log = open(&path).unwrap();
    log.write_all([1]).unwrap();
    let len = fs::metadata(&path).unwrap().len();
    log.log.disk.faults.full_at_bytes = Some(len + 20);
    log.log.disk.faults.is_sync_failing = true;
    let error = log.write_all([2]).unwrap_err();
    assert!(matches!(error, StateError::Io { .. }), "{error}");
    log.log.disk.faults = Default::default();
    for failed in [log.check(), log.write_all([3]), log.sync()] {
        let error = failed.unwrap_err();
        assert!(matches!(error, StateError::SyncFailed { .. }), "{error}");
    }
    drop(log);
    assert_eq!(digests(&mut open(&path).unwrap()), [1]);
}

#[test]
fn a_full_disk_does_not_hinder_the_open_of_a_file_with_an_unsynced_tail() {
    let (path, _folder) = folder();
    let mut log = open(&path).unwrap();
    log.write_all(0..10).unwrap();
    drop(log);
    let before = fs::read(&path).unwrap();
    let open_with = |full_at| {
        let (mut log, scan) = LogFile::open(&path, &WANTED)?;
        log.disk.faults.full_at_bytes = Some(full_at);
        let mut log = Log { log, has_sync_failed: false, digest: PhantomData };
        log.recover(&scan).map(|()| log)
    };
    let len = before.len() as u64;
    for full_at in [len, len + 5, len + 40] {
        let mut log = open_with(full_at).unwrap();
        assert_eq!(digests(&mut log), (0..10).collect::<Vec<u64>>());
        assert_eq!(fs::read(&path).unwrap(), before, "the file is unchanged");
        assert!(matches!(log.sync().unwrap_err(), StateError::Io { .. }));
        log.log.disk.faults.full_at_bytes = None;
        log.log.discard_after(len).unwrap();
    }
    // A file without a block needs DONE before its first digest.
    let (path, _folder) = folder();
    empty(&path);
    let before = fs::read(&path).unwrap();
    let (mut log, scan) = LogFile::open(&path, &WANTED).unwrap();
    log.disk.faults.full_at_bytes = Some(before.len() as u64 + 5);
    let mut log = Log { log, has_sync_failed: false, digest: PhantomData };
    assert!(matches!(log.recover(&scan).unwrap_err(), StateError::Io { .. }));
    assert_eq!(fs::read(&path).unwrap(), before, "the file is unchanged");
}

#[test]
fn a_log_whose_sync_failed_accepts_no_digest() {
    let (path, _folder) = folder();
    let mut log = open(&path).unwrap();
    log.append([1]).unwrap();
    log.log.disk.faults.is_sync_failing = true;
    let error = log.sync().unwrap_err();
    assert!(matches!(error, StateError::Io { .. }), "{error}");
    log.log.disk.faults.is_sync_failing = false;
    for failed in [log.append([2]), log.flush(), log.sync()] {
        let error = failed.unwrap_err();
        assert!(matches!(error, StateError::SyncFailed { .. }), "{error}");
    }
    drop(log);
    assert_eq!(digests(&mut open(&path).unwrap()), [1]);
}

/// Ends a run in the same way as `kill -9`.
fn leave(mut state: StateFile<Run>) {
    state.is_running = false;
}

/// A checkpoint with the field of `tamis dedup` that this log reads.
#[derive(serde::Serialize, Deserialize)]
struct Run {
    inputs: Vec<String>,
}

#[test]
fn the_log_refuses_the_digests_of_a_killed_run_and_continues_after_a_finished_one() {
    let (path, _folder) = folder();
    let run = || Run { inputs: vec!["in".into()] };
    let begin = || {
        let mut state = StateFile::<Run>::open(&path, &WANTED).unwrap();
        state.begin(None).unwrap();
        state
    };
    // The first run is killed after its first checkpoint.
    let mut state = begin();
    state.checkpoint(&run()).unwrap();
    leave(state);
    let error = refusal(open(&path));
    assert!(matches!(error, StateError::KilledRun { .. }), "{error}");
    // The second run finishes.
    let mut state = begin();
    state.remember([1_u64]).unwrap();
    state.finish(&run()).unwrap();
    // The third run writes to a pipe, so it has no checkpoint, and is killed.
    let mut state = begin();
    state.remember(0..10_000_u64).unwrap();
    leave(state);
    let error = refusal(open(&path));
    assert!(matches!(error, StateError::KilledRun { .. }), "{error}");
    begin().finish(&run()).unwrap();

    let mut log = open(&path).unwrap();
    assert_eq!(digests(&mut log), [1]);
    log.append([2]).unwrap();
    log.close().unwrap();
    let state = begin();
    let last = state.last.as_ref().unwrap();
    assert!(last.checkpoint.inputs.is_empty(), "a run without inputs");
    drop(state);
    assert_eq!(digests(&mut open(&path).unwrap()), [1, 2]);
}
