//! A run that compares hashes: exact or approximate, with or without a state.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use crate::arguments::numbers::HumanCount;
use crate::commands::dedup::approx::Expected;
use crate::commands::dedup::deduplicator::Deduplicator;
use crate::commands::dedup::digest::Width;
use crate::commands::dedup::sample::InputSample;
use crate::commands::dedup::seen::Seen;
use crate::commands::dedup::state::{Checkpoint, InputId, StateFile, failure};
use crate::commands::dedup::stats::{NOTABLE_LOSS, RunStats};
use crate::commands::dedup::stream::Resumed;
use crate::commands::dedup::{Args, Repeated};
use crate::exit::Failure;
use crate::io::input;
use crate::io::output::{Output, OutputPosition};
use crate::io::temporary::hint_at_interruption;

impl Args {
    /// Removes repeats by hash. The state or `--hash-bits` sets the width of the hash. Without a
    /// state and `--hash-bits`, the size of the input determines the width.
    pub(super) fn by_hash(
        &self,
        inputs: &[PathBuf],
        sample: Option<&InputSample>,
        state: Option<StateFile>,
    ) -> Result<RunStats, Failure> {
        // The sample holds only the first lines. Lines after the sample may be shorter, so the
        // input may hold more lines than estimated.
        let most = sample.map_or(0.0, |sample| sample.records * 1.5) as u64;
        let is_large = tamis::expected_collisions(most, 64) > NOTABLE_LOSS;
        // A filter uses only 64 bits of a hash of any width.
        let usual = if is_large && self.approx.is_none() { 128 } else { 64 };
        let bits = match &state {
            Some(state) => state.width_bits(),
            None => self.hash_bits().unwrap_or(usual),
        };
        if bits == 64 {
            self.by_digest::<u64>(inputs, sample, state)
        } else {
            self.by_digest::<u128>(inputs, sample, state)
        }
    }

    fn by_digest<D: Width>(
        &self,
        inputs: &[PathBuf],
        sample: Option<&InputSample>,
        state: Option<StateFile>,
    ) -> Result<RunStats, Failure> {
        let budget = self.budget();
        if let Some(recent) = self.window.recent::<D>(self.approx, self.items, budget.max_bytes) {
            return self.stream(inputs, Deduplicator::Window(Box::new(recent?)), None);
        }
        let seen = if self.approx.is_some() {
            let guess = sample.filter(|sample| sample.is_bound).map(|s| s.records as u64);
            let expected = match (self.items, guess) {
                (Some(HumanCount(items)), _) => Expected::Stated(items),
                (None, Some(records)) => Expected::Guessed(records),
                (None, None) => Expected::Unknown,
            };
            Seen::<D>::approx(budget, expected)?
        } else {
            Seen::<D>::exact(budget)
        };
        match state {
            Some(state) => self.with_state(inputs, seen, state),
            None => {
                let is_once = self.repeated == Some(Repeated::Once);
                let again = is_once.then(|| Box::new(Seen::exact(budget)));
                self.stream(inputs, Deduplicator::Digests { seen, again }, None)
            }
        }
    }

    /// Continues the run that was killed, or begins a new run after the last run of the state.
    fn with_state<D: Width>(
        &self,
        inputs: &[PathBuf],
        mut seen: Seen<D>,
        mut state: StateFile,
    ) -> Result<RunStats, Failure> {
        let mut from = Checkpoint { inputs: described(inputs), ..Checkpoint::default() };
        let killed = state.killed.take().filter(|_| !self.restart);
        if let Some(killed) = &killed {
            check_inputs(&killed.checkpoint, &from)?;
        }
        // If all input files can be identified and are unchanged, this run may repeat the last
        // finished run.
        let is_known = from.inputs.iter().all(|id| id.file.is_some());
        let again = state.last.take().filter(|last| {
            killed.is_none() && !self.restart && is_known && last.checkpoint.inputs == from.inputs
        });
        let mut begin_at = None;
        if let Some(last) = again
            && let Some((was, is)) =
                last.checkpoint.output.zip(OutputPosition::of_output(self.output.as_deref()))
        {
            if is.continues(&was) {
                state.begin(None).map_err(failure)?;
                note!("this run was finished before; its output is left as it is");
                return Ok(RunStats { records: last.checkpoint.records, ..RunStats::default() });
            }
            begin_at = is.is_cut(&was).then_some(last.start);
        }
        let mark = killed.as_ref().and_then(|killed| killed.checkpoint.output);
        let (output, is_resumed) = Output::open_resumable(self.output.as_deref(), mark.as_ref())?;
        hint_at_interruption(if output.is_resumable() {
            "run the same command again to continue, or add --restart to discard this run".into()
        } else {
            "no progress of this run was saved; run the same command again".into()
        });
        if let Some(killed) = killed.filter(|_| is_resumed) {
            (from, begin_at) = (killed.checkpoint, Some(killed.end));
        }
        state.begin(begin_at).map_err(failure)?;
        let mut new = tamis::Answers::new();
        let mut replay = state.replay::<D>().map_err(failure)?;
        while let Some(digests) = replay.next_batch().map_err(failure)? {
            seen.insert_each(digests, &mut new)?;
        }
        let deduplicator = Deduplicator::Digests { seen, again: None };
        self.stream(inputs, deduplicator, Some(Resumed { output, state, from }))
    }
}

/// Rejects inputs that differ from the inputs of the killed run.
fn check_inputs(killed: &Checkpoint, now: &Checkpoint) -> Result<(), Failure> {
    if killed.inputs == now.inputs {
        return Ok(());
    }
    let names: Vec<_> = killed.inputs.iter().map(|id| id.name.as_str()).collect();
    Err(Failure::new(format!(
        "a run over {} was killed before its end: give it the same input again, or forget it with \
         --restart",
        names.join(", ")
    )))
}

/// Returns the identities by which a later run recognises the inputs.
fn described(inputs: &[PathBuf]) -> Vec<InputId> {
    let file = |path: &PathBuf| {
        let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let is_named = !input::is_stdin(path);
        is_named.then_some((metadata.len(), changed.as_nanos() as u64))
    };
    inputs.iter().map(|path| InputId { name: input::name(path), file: file(path) }).collect()
}
