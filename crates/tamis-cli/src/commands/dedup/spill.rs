//! Counts records when the distinct records exceed the memory. The records go to a temporary file,
//! and approximate structures stay in memory.
//!
//! ```text
//! record ─▶ filter: seen before? ─ no ──▶ temporary file: hash | times | length | record      in first-seen order
//!                                 └ yes ▶ sketch: add one
//! ```
//!
//! At the end of the run, the file is read back, and the sketch gives the count of each record. A
//! new record is lost if the filter answers that the record was seen. The sketch may return a count
//! that is too high.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use tamis::Answers;

use crate::commands::dedup::approx::Approx;
use crate::commands::dedup::key_set::KeySet;
use crate::commands::dedup::seen::{Accuracy, Budget};
use crate::commands::dedup::sketch::Sketch;
use crate::exit::Failure;

/// Records in a temporary file, and their approximate counts.
pub struct Spill {
    seen: Approx,
    sketch: Sketch,
    records: BufWriter<File>,
    folder: PathBuf,
    new: Answers,
}

/// The size of the read and write buffers.
const BUFFER_BYTES: usize = 128 << 10;

impl Spill {
    /// Moves the records of `set` to a file in `folder`. `hash` computes the hash of a key, or of
    /// a record without a key.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full, or if there is too little memory for a filter.
    pub fn new(
        set: KeySet,
        folder: &Path,
        budget: Budget,
        hash: impl Fn(&[u8], bool) -> u64,
    ) -> Result<Self, Failure> {
        let file = tempfile::tempfile_in(folder).map_err(of_file(folder))?;
        let mut records = BufWriter::with_capacity(BUFFER_BYTES, file);
        let distinct = set.len();
        set.each(|it| append(&mut records, hash(it.key, it.found), it.count - 1, it.record))
            .map_err(of_file(folder))?;
        // The filter and the sketch need the memory of the set.
        drop(set);
        // For equal error probabilities, the sketch needs more memory than the filter.
        let seen_bytes = budget.max_bytes / 4;
        let seen = Approx::within(distinct, budget.target, seen_bytes).map_err(Failure::new)?;
        let sketch = Sketch::new(budget.max_bytes - seen_bytes).map_err(Failure::new)?;
        let new = Answers::new();
        let mut all = Self { seen, sketch, records, folder: folder.to_path_buf(), new };
        let (seen, sketch, new) = (&mut all.seen, &mut all.sketch, &mut all.new);
        read_back(&mut all.records, folder, |hash, times, _| {
            if times > 0 {
                sketch.add(hash, times);
            }
            seen.insert_each(&[hash], new).map_err(Failure::new)
        })?;
        all.records.seek(io::SeekFrom::End(0)).map_err(of_file(folder))?;
        // All records of the set are in the file, so the filter has lost no record so far.
        all.seen.forget_losses();
        Ok(all)
    }

    /// Counts the records with the given hashes. `record` returns a record by its index.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full.
    pub fn insert_each<'a>(
        &mut self,
        hashes: &[u64],
        record: impl Fn(usize) -> &'a [u8],
    ) -> Result<(), Failure> {
        self.seen.insert_each(hashes, &mut self.new).map_err(Failure::new)?;
        for i in self.new.ones() {
            append(&mut self.records, hashes[i], 0, record(i)).map_err(of_file(&self.folder))?;
        }
        self.new.zeros().for_each(|i| self.sketch.add(hashes[i], 1));
        Ok(())
    }

    /// Calls `each` with every record and its count, in first-seen order.
    ///
    /// # Errors
    ///
    /// Returns the errors of the file and of `each`.
    pub fn each(
        &mut self,
        mut each: impl FnMut(&[u8], u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Self { sketch, records, folder, .. } = self;
        read_back(records, folder, |hash, _, record| each(record, sketch.count(hash) + 1))
    }

    /// Returns the accuracy of the counts, and the expected number of counts that are too high.
    pub fn accuracy(&self) -> (Accuracy, f64) {
        let (lost, too_high) = (self.seen.rate(), self.sketch.rate());
        let accuracy = Accuracy {
            method: "approximate, counted by a sketch".into(),
            distinct: self.seen.items(),
            expected_lost: self.seen.expected_lost(),
            rates: Some((1.0 - (1.0 - lost) * (1.0 - too_high), self.seen.target())),
            memory_bytes: self.seen.memory_bytes() + self.sketch.memory_bytes(),
        };
        let miscounted = too_high * accuracy.distinct as f64;
        (accuracy, miscounted)
    }
}

/// Converts an I/O error of the temporary file in `folder` to a failure.
fn of_file(folder: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| {
        // The function `Failure::io` reports a broken pipe as success, because a reader that closes
        // the output is not an error. The temporary file is not a pipe.
        let (folder, why) = (folder.display(), crate::exit::plain(&error));
        Failure::new(format!("{folder}: a temporary file: {why}; name another folder with TMPDIR"))
    }
}

fn append(records: &mut BufWriter<File>, hash: u64, times: u64, record: &[u8]) -> io::Result<()> {
    for word in [hash, times, record.len() as u64] {
        records.write_all(&word.to_le_bytes())?;
    }
    records.write_all(record)
}

/// Reads all records from the first to the last, and calls `each` with the hash, the number of
/// occurrences and the bytes of each record.
fn read_back(
    records: &mut BufWriter<File>,
    folder: &Path,
    mut each: impl FnMut(u64, u64, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failure = of_file(folder);
    let end = records.stream_position().map_err(&failure)?;
    records.rewind().map_err(&failure)?;
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, records.get_ref()).take(end);
    let mut record = Vec::new();
    while reader.limit() > 0 {
        let mut words = [[0; 8]; 3];
        reader.read_exact(words.as_flattened_mut()).map_err(&failure)?;
        let [hash, times, len] = words.map(u64::from_le_bytes);
        record.resize(len as usize, 0);
        reader.read_exact(&mut record).map_err(&failure)?;
        each(hash, times, &record)?;
    }
    Ok(())
}
