//! An exact set of digests whose digests are also in a file.

use std::path::Path;

use tamis::{Answers, DigestSet, Hasher};
use tamis_state::{SeenLog, StateError, StoredDigest};

use crate::refusal::Refusal;

/// An exact set of digests, and the log of the digests on disk.
pub struct DurableSet<D: StoredDigest> {
    set: DigestSet<D>,
    log: SeenLog<D>,
    new: Vec<D>,
    /// The reason why the log failed. The set may hold digests that are not in the log, so the set
    /// accepts no more digests.
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
        Ok(Self { set, log, new: Vec::new(), failed: None })
    }

    /// Returns the set.
    pub fn set(&self) -> &DigestSet<D> {
        &self.set
    }

    /// Returns the hash function, which the file stores.
    pub fn hasher(&self) -> Hasher {
        self.log.hasher()
    }

    /// Inserts digests, and writes the new digests to the file. Answer `i` is true if digest `i` is
    /// new.
    ///
    /// # Errors
    ///
    /// [`Refusal::File`] if the file cannot be written. The set then accepts no more digests.
    pub fn insert(&mut self, digests: &[D], answers: &mut Answers) -> Result<(), Refusal> {
        if let Some(why) = &self.failed {
            return Err(Refusal::File(format!("{why}; open the file again")));
        }
        if let Err(error) = self.set.insert_each(digests, answers) {
            // The set may hold some of the digests, which the file does not have.
            self.failed = Some("there was no memory for more items".to_owned());
            return Err(error.into());
        }
        self.new.clear();
        self.new.extend(answers.ones().map(|i| digests[i]));
        let written = self.log.append(self.new.iter().copied()).and_then(|()| self.log.flush());
        self.check(written)
    }

    /// Waits until all digests are on the disk.
    ///
    /// # Errors
    ///
    /// [`Refusal::File`] if the file cannot be written.
    pub fn sync(&mut self) -> Result<(), Refusal> {
        if let Some(why) = &self.failed {
            return Err(Refusal::File(why.clone()));
        }
        let synced = self.log.sync();
        self.check(synced)
    }

    fn check(&mut self, written: Result<(), StateError>) -> Result<(), Refusal> {
        written.map_err(|error| {
            self.failed = Some(error.to_string());
            refused(&error)
        })
    }
}

fn refused(error: &StateError) -> Refusal {
    Refusal::File(error.to_string())
}
