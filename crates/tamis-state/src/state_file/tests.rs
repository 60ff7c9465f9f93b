//! Tests of logs that are incomplete, cut or damaged.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::block::DATA;
use crate::state_file::*;

mod power_loss;

/// A checkpoint with the fields and the length of a checkpoint of `tamis dedup`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Checkpoint {
    inputs: Vec<String>,
    input: usize,
    at_bytes: u64,
    output: Option<u64>,
    records: u64,
    written: u64,
}

type State = StateFile<Checkpoint>;

const WANTED: Requirements<'_> = Requirements {
    description: "record",
    hasher: Hasher::keyed([1, 2]),
    is_hasher_fixed: false,
    width_bits: 64,
    is_width_fixed: false,
};

fn open(path: &Path) -> Result<State, StateError> {
    State::open(path, &WANTED)
}

fn digests(state: &mut State) -> Vec<u8> {
    let (mut replay, mut all) = (state.replay::<u64>().unwrap(), Vec::new());
    while let Some(digests) = replay.next_batch().unwrap() {
        all.extend(digests.iter().flat_map(|digest| digest.to_le_bytes()));
    }
    all
}

/// Ends a run in the same way as `kill -9`.
fn kill(mut state: State) {
    state.is_running = false;
}

/// Writes a log with one finished run (digest 1) and a killed run (digest 2, a checkpoint, digest
/// 3).
fn killed(folder: &Path) -> PathBuf {
    let path = folder.join("state");
    let mut state = open(&path).unwrap();
    state.begin(None).unwrap();
    state.remember([1_u64]).unwrap();
    state.finish(&Checkpoint::default()).unwrap();
    let mut state = open(&path).unwrap();
    state.begin(None).unwrap();
    state.remember([2_u64]).unwrap();
    state.checkpoint(&Checkpoint { at_bytes: 77, ..Checkpoint::default() }).unwrap();
    state.remember([3_u64]).unwrap();
    state.log.write_pending().unwrap();
    kill(state);
    path
}

#[test]
fn a_killed_run_goes_on_or_starts_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = killed(folder.path());
    let mut state = open(&path).unwrap();
    let killed = state.killed.take().unwrap();
    assert_eq!(killed.checkpoint.at_bytes, 77);
    state.begin(Some(killed.end)).unwrap();
    assert_eq!(digests(&mut state), [1_u64.to_le_bytes(), 2_u64.to_le_bytes()].concat());
    drop(state);
    let mut state = open(&path).unwrap();
    assert!(state.killed.is_some(), "a failure keeps the checkpoint it began with");
    state.begin(None).unwrap();
    assert_eq!(digests(&mut state), 1_u64.to_le_bytes());
}

#[test]
fn only_the_tail_of_a_killed_run_may_be_cut() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(killed(folder.path())).unwrap();
    let marker = memchr::memmem::rfind(&whole, &MARK).unwrap();
    let tail = memchr::memmem::rfind(&whole, &DATA).unwrap();
    assert!(tail > marker);
    let path = folder.path().join("cut");
    for len in 0..whole.len() {
        // After the cut, the file is shorter or contains zeros.
        for zeros in [0, whole.len() - len] {
            let cut = [&whole[..len], &vec![0; zeros]].concat();
            if cut == whole {
                continue;
            }
            fs::write(&path, &cut).unwrap();
            let opened = open(&path);
            if len >= tail {
                opened.unwrap().begin(None).unwrap();
                continue;
            }
            let Err(error) = opened else { panic!("cut at {len}") };
            let line = error.to_string();
            let is_named = ["is damaged", "is not a state", "of version 0"];
            assert!(is_named.iter().any(|words| line.contains(words)), "cut at {len}: {line}");
            assert_eq!(fs::read(&path).unwrap(), cut, "a refused file is untouched");
        }
    }
}

#[test]
fn a_run_that_is_refused_keeps_the_progress_of_a_killed_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = killed(folder.path());
    drop(open(&path).unwrap());
    assert!(open(&path).unwrap().killed.is_some());
}

#[test]
fn damage_before_the_last_marker_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(killed(folder.path())).unwrap();
    let marker = memchr::memmem::rfind(&whole, &MARK).unwrap();
    let path = folder.path().join("flipped");
    for at in 0..marker {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&path, &flipped).unwrap();
        assert!(open(&path).is_err(), "a flipped bit in byte {at}");
        assert_eq!(fs::read(&path).unwrap(), flipped, "a refused file is untouched");
    }
}
