//! An exact set of digests, in memory or also in a file.

use std::path::Path;

use tamis::{Answers, Digest, DigestSet, Hasher};
use tamis_state::{SeenLog, StateError, StoredDigest};

use crate::set_error::SetError;

/// An exact set of digests.
///
/// A set with a file holds the digests that the file holds. An insert writes the digests to the file
/// first. If the write fails, neither the file nor the set holds the digests of the insert. The set
/// then still answers lookups, but every later insert, sync and close fails.
pub struct ExactSet<D: StoredDigest> {
    set: DigestSet<D>,
    hasher: Hasher,
    file: Option<DigestLog<D>>,
}

/// The log of the digests on disk.
struct DigestLog<D: StoredDigest> {
    /// The log, until the set is closed.
    log: Option<SeenLog<D>>,
    /// Memory for the new digests of an insert.
    new: Vec<D>,
    /// The reason why the log failed.
    failed: Option<String>,
}

impl<D: StoredDigest> ExactSet<D> {
    /// Creates a set in memory.
    pub fn new(set: DigestSet<D>, hasher: Hasher) -> Self {
        Self { set, hasher, file: None }
    }

    /// Opens or creates the file, and reads all digests.
    ///
    /// # Errors
    ///
    /// The errors of [`SeenLog::open`], or [`SetError::Memory`].
    pub fn open(path: &Path, description: &str, hasher: Hasher) -> Result<Self, SetError> {
        let mut log = SeenLog::open(path, description, hasher).map_err(|error| refused(&error))?;
        let (mut set, mut answers) = (DigestSet::new(), Answers::new());
        let mut replay = log.replay().map_err(|error| refused(&error))?;
        while let Some(digests) = replay.next_batch().map_err(|error| refused(&error))? {
            set.insert_each(digests, &mut answers)?;
        }
        let hasher = log.hasher();
        let file = Some(DigestLog { log: Some(log), new: Vec::new(), failed: None });
        Ok(Self { set, hasher, file })
    }

    /// Allocates the memory for more digests.
    ///
    /// # Errors
    ///
    /// [`SetError::Memory`].
    pub fn reserve(&mut self, digests: u64) -> Result<(), SetError> {
        Ok(self.set.reserve(digests)?)
    }

    /// Returns a copy in memory.
    pub fn copy(&self) -> Self {
        Self::new(self.set.clone(), self.hasher)
    }

    /// Returns the digests.
    pub fn digests(&self) -> &DigestSet<D> {
        &self.set
    }

    /// Returns the hash function. A file stores its hash function.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Tests whether the digests are also in a file.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Tests digests. Answer `i` is true if the set holds digest `i`.
    pub fn contains_each(&self, digests: &[D], answers: &mut Answers) {
        contains_each(&self.set, digests, answers);
    }

    /// Inserts a digest into a set without a file. Returns true if the digest is new, and `None` if
    /// the set has a file or no memory.
    pub fn insert_in_memory(&mut self, digest: D) -> Option<bool> {
        if self.has_file() { None } else { self.set.insert(digest).ok() }
    }

    /// Inserts digests, and writes the new digests to the file. Answer `i` is true if digest `i` is
    /// new.
    ///
    /// # Errors
    ///
    /// [`SetError::File`] if the file cannot be written, or in a forked process. [`SetError::Memory`].
    /// Neither the set nor the file then holds the new digests.
    pub fn insert_each(&mut self, digests: &[D], answers: &mut Answers) -> Result<(), SetError> {
        let Self { set, file, .. } = self;
        let Some(file) = file else { return Ok(set.insert_each(digests, answers)?) };
        file.check_failed()?;
        contains_each(set, digests, answers);
        file.new.clear();
        file.new.extend((0..digests.len()).filter(|&i| !answers.get(i)).map(|i| digests[i]));
        // The file stores a digest once, although the batch may repeat the digest.
        file.new.sort_unstable();
        file.new.dedup();
        set.reserve(digests.len() as u64)?;
        file.write(|log, new| match new {
            // An insert of present items fails too if the log accepts no digests.
            [] => log.check(),
            _ => log.write_all(new.iter().copied()),
        })?;
        set.insert_each(digests, answers).expect("the set has reserved the memory");
        Ok(())
    }

    /// Removes all digests of a set without a file.
    ///
    /// # Errors
    ///
    /// [`SetError::Unsupported`] if the set has a file.
    pub fn clear(&mut self) -> Result<(), SetError> {
        if self.has_file() {
            return Err(SetError::Unsupported("a DigestFile cannot be cleared: remove the file"));
        }
        self.set = DigestSet::new();
        Ok(())
    }

    /// Waits until all digests of a set with a file are on the disk.
    ///
    /// # Errors
    ///
    /// [`SetError::File`] if the file cannot be written, or in a forked process.
    pub fn sync(&mut self) -> Result<(), SetError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.check_failed()?;
        file.write(|log, _| log.sync())
    }

    /// Waits until all digests are on the disk, and closes the file. In a forked process, the
    /// process that opened the file keeps the file open.
    ///
    /// # Errors
    ///
    /// [`SetError::File`] if the file cannot be written. The file is closed also after an error, so
    /// that the program can open the file again. A second close then fails too.
    pub fn close(&mut self) -> Result<(), SetError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let closed = file.log.take().map_or(Ok(()), SeenLog::close);
        // The disk may lack digests after an earlier error, although this close succeeded.
        file.check_failed()?;
        file.record(closed)
    }
}

/// Two sets are equal if they have the same hash function and the same digests.
impl<D: StoredDigest> PartialEq for ExactSet<D> {
    fn eq(&self, other: &Self) -> bool {
        self.hasher == other.hasher && self.set == other.set
    }
}

impl<D: StoredDigest> DigestLog<D> {
    /// Runs an action on the log and the new digests.
    fn write(
        &mut self,
        action: impl FnOnce(&mut SeenLog<D>, &[D]) -> Result<(), StateError>,
    ) -> Result<(), SetError> {
        let log = self.log.as_mut().expect("only a failed close leaves a set without a log");
        let done = action(log, &self.new);
        self.record(done)
    }

    fn check_failed(&self) -> Result<(), SetError> {
        match &self.failed {
            Some(why) => Err(SetError::File(format!("{why}; open the file again"))),
            None => Ok(()),
        }
    }

    /// Keeps an error of the log for later operations.
    fn record(&mut self, done: Result<(), StateError>) -> Result<(), SetError> {
        done.map_err(|error| {
            // A log of another process has not failed, and can be closed.
            if !matches!(error, StateError::OtherProcess { .. }) {
                self.failed = Some(error.to_string());
            }
            refused(&error)
        })
    }
}

fn contains_each<D: Digest>(set: &DigestSet<D>, digests: &[D], answers: &mut Answers) {
    /// The number of digests whose memory is loaded ahead.
    const AHEAD: usize = 16;
    answers.fill_with(digests.len(), |i| {
        if let Some(&later) = digests.get(i + AHEAD) {
            set.prefetch(later);
        }
        set.contains(digests[i])
    });
}

fn refused(error: &StateError) -> SetError {
    if let StateError::Io { path, error } = error
        && let Some(number) = error.raw_os_error()
    {
        return SetError::System { path: path.clone(), number };
    }
    SetError::File(error.to_string())
}
