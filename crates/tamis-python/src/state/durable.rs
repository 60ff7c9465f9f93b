//! An exact set of digests whose digests are also in a file.

use std::path::Path;

use tamis::{Answers, DigestSet, Hasher};
use tamis_state::{SeenLog, StateError, StoredDigest};

use crate::refusal::Refusal;
use crate::state::lookup;

/// An exact set of digests, and the log of the digests on disk.
///
/// The set holds the digests that the file holds. An insert writes the digests to the file first.
/// If the write fails, neither the file nor the set holds the digests of the insert. The set then
/// still answers lookups, but every later insert, sync and close fails.
pub struct DurableSet<D: StoredDigest> {
    set: DigestSet<D>,
    hasher: Hasher,
    /// The log, until the set is closed.
    log: Option<SeenLog<D>>,
    new: Vec<D>,
    /// The reason why the log failed.
    failed: Option<String>,
}

impl<D: StoredDigest> DurableSet<D> {
    /// Opens or creates the file, and reads all digests.
    ///
    /// # Errors
    ///
    /// The errors of [`SeenLog::open`], or [`Refusal::Memory`].
    pub fn open(path: &Path, description: &str, hasher: Hasher) -> Result<Self, Refusal> {
        let mut log = SeenLog::open(path, description, hasher).map_err(|error| refused(&error))?;
        let (mut set, mut answers) = (DigestSet::new(), Answers::new());
        let mut replay = log.replay().map_err(|error| refused(&error))?;
        while let Some(digests) = replay.next_batch().map_err(|error| refused(&error))? {
            set.insert_each(digests, &mut answers)?;
        }
        let hasher = log.hasher();
        Ok(Self { set, hasher, log: Some(log), new: Vec::new(), failed: None })
    }

    /// Returns the set.
    pub fn set(&self) -> &DigestSet<D> {
        &self.set
    }

    /// Returns the hash function, which the file stores.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Inserts digests, and writes the new digests to the file. Answer `i` is true if digest `i` is
    /// new.
    ///
    /// # Errors
    ///
    /// [`Refusal::File`] if the file cannot be written, or in a forked process. [`Refusal::Memory`].
    /// Neither the set nor the file then holds the new digests.
    pub fn insert(&mut self, digests: &[D], answers: &mut Answers) -> Result<(), Refusal> {
        self.check_failed()?;
        lookup::contains_each(&self.set, digests, answers);
        self.new.clear();
        self.new.extend((0..digests.len()).filter(|&i| !answers.get(i)).map(|i| digests[i]));
        // The file stores a digest once, although the batch may repeat the digest.
        self.new.sort_unstable();
        self.new.dedup();
        self.set.reserve(digests.len() as u64)?;
        self.with_log(|log, new| match new {
            // An insert of present items fails too if the log accepts no digests.
            [] => log.check(),
            _ => log.write_all(new.iter().copied()),
        })?;
        self.set.insert_each(digests, answers).expect("the set has reserved the memory");
        Ok(())
    }

    /// Waits until all digests are on the disk.
    ///
    /// # Errors
    ///
    /// [`Refusal::File`] if the file cannot be written, or in a forked process.
    pub fn sync(&mut self) -> Result<(), Refusal> {
        self.check_failed()?;
        self.with_log(|log, _| log.sync())
    }

    /// Waits until all digests are on the disk, and closes the file. In a forked process, the
    /// process that opened the file keeps the file open.
    ///
    /// # Errors
    ///
    /// [`Refusal::File`] if the file cannot be written. The file is closed also after an error, so
    /// that the program can open the file again. A second close then fails too.
    pub fn close(&mut self) -> Result<(), Refusal> {
        let closed = self.log.take().map_or(Ok(()), SeenLog::close);
        // The disk may lack digests after an earlier error, although this close succeeded.
        self.check_failed()?;
        self.record(closed)
    }

    /// Runs an action on the log and the new digests.
    fn with_log(
        &mut self,
        action: impl FnOnce(&mut SeenLog<D>, &[D]) -> Result<(), StateError>,
    ) -> Result<(), Refusal> {
        let log = self.log.as_mut().expect("only a failed close leaves a set without a log");
        let done = action(log, &self.new);
        self.record(done)
    }

    fn check_failed(&self) -> Result<(), Refusal> {
        match &self.failed {
            Some(why) => Err(Refusal::File(format!("{why}; open the file again"))),
            None => Ok(()),
        }
    }

    /// Keeps an error of the log for later operations.
    fn record(&mut self, done: Result<(), StateError>) -> Result<(), Refusal> {
        done.map_err(|error| {
            // A log of another process has not failed, and can be closed.
            if !matches!(error, StateError::OtherProcess { .. }) {
                self.failed = Some(error.to_string());
            }
            refused(&error)
        })
    }
}

fn refused(error: &StateError) -> Refusal {
    Refusal::File(error.to_string())
}
