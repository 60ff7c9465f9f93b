//! The set of items behind a Python object, of any kind.

pub mod exact;

use tamis::{
    Answers, AnyFilter, CompressedSet, Filter as _, Kind, Removed, SharedBloom, TryInsert as _,
};
use tamis_formats::{Contents, Format, Funnel, TamisFile};

use crate::decode_args::DecodeArgs;
use crate::keys::{Encoding, Keys, slices};
use crate::raw::map::MappedWords;
use crate::set_error::SetError;
use crate::state::exact::ExactSet;

/// What a batch does with its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Tests whether each item may be in the set.
    Contains,
    /// Inserts each item, and tests whether it is new.
    Insert,
}

/// A set of items.
pub enum State {
    /// A filter in memory, with what its file stores besides the filter.
    Owned(Box<TamisFile>),
    /// A filter in a mapped file, which cannot change.
    Mapped(Box<TamisFile<MappedWords>>),
    /// A Bloom filter into which several threads insert at the same time.
    Shared(Box<SharedBloom>),
    /// An exact set of 64-bit hashes.
    Exact64(Box<ExactSet<u64>>),
    /// An exact set of 128-bit hashes.
    Exact128(Box<ExactSet<u128>>),
    /// An exact set of integers.
    Integers(CompressedSet),
    /// A filter of another system.
    Foreign(Box<Foreign>),
    /// Nothing, after the file was closed.
    Closed,
}

/// A filter of another system.
#[derive(Clone)]
pub struct Foreign {
    /// The filter.
    pub contents: Contents,
    /// The format of the filter's file.
    pub format: &'static Format,
    /// The conversion of items. `None` if neither the file nor the caller states the conversion.
    pub funnel: Option<Funnel>,
    /// The decode options of the caller, with which the file is written again.
    pub args: DecodeArgs,
}

impl State {
    /// Returns the form in which the set tests its items.
    ///
    /// Returns `None` for a filter of another system whose items are of an unknown type.
    pub fn encoding(&self) -> Option<Encoding> {
        Some(match self {
            State::Owned(file) => Encoding::Hash64(file.filter.hasher()),
            State::Mapped(file) => Encoding::Hash64(file.filter.hasher()),
            State::Shared(filter) => Encoding::Hash64(filter.hasher()),
            State::Exact64(set) => Encoding::Hash64(set.hasher()),
            State::Exact128(set) => Encoding::Hash128(set.hasher()),
            State::Integers(_) => Encoding::Integer,
            State::Foreign(foreign) => Encoding::Foreign(foreign.funnel?),
            State::Closed => return None,
        })
    }

    /// Tests whether an insert needs only a shared reference.
    pub fn is_shared(&self) -> bool {
        matches!(self, State::Shared(_))
    }

    /// Returns the kind of a filter.
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            State::Owned(file) => file.filter.plan().kind(),
            State::Mapped(file) => file.filter.plan().kind(),
            State::Shared(filter) => filter.plan().kind(),
            _ => return None,
        })
    }

    /// Tests whether an item with a 64-bit hash may be in the set. Returns `None` if the set has no
    /// 64-bit hashes, or is closed.
    ///
    /// The result is an `Option`, because the `Result` of [`contains`](Self::contains) passes
    /// through memory, which takes a sixth of the time of a lookup.
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> Option<bool> {
        match self {
            State::Owned(file) => Some(match &file.filter {
                AnyFilter::SplitBlock(filter) => filter.contains_hash(hash),
                filter => contains_in_any(filter, hash),
            }),
            State::Shared(filter) => Some(filter.contains_hash(hash)),
            other => other.contains_hash_otherwise(hash),
        }
    }

    #[inline(never)]
    fn contains_hash_otherwise(&self, hash: u64) -> Option<bool> {
        match self {
            State::Mapped(file) => Some(file.filter.contains_hash(hash)),
            State::Exact64(set) => Some(set.digests().contains(hash)),
            _ => None,
        }
    }

    /// Inserts an item by its 64-bit hash. Returns true if the item is new, and `None` if the set
    /// cannot take the item.
    #[inline(always)]
    pub fn insert_hash(&mut self, hash: u64) -> Option<bool> {
        match self {
            State::Owned(file) => {
                let is_new = match &mut file.filter {
                    AnyFilter::SplitBlock(filter) => filter.insert_hash(hash),
                    filter => insert_in_any(filter, hash)?,
                };
                file.added = file.added.saturating_add(1);
                Some(is_new)
            }
            State::Exact64(set) => set.insert_in_memory(hash),
            _ => None,
        }
    }

    /// Inserts an item by its 64-bit hash through a shared reference, into a set that
    /// [is shared](Self::is_shared). Returns true if the item is new, and `None` for another set.
    #[inline(always)]
    pub fn insert_hash_shared(&self, hash: u64) -> Option<bool> {
        match self {
            State::Shared(filter) => Some(filter.insert_hash(hash)),
            _ => None,
        }
    }

    /// Inserts one more copy of an item, the only one of a batch. Returns true if the item is new.
    ///
    /// # Errors
    ///
    /// [`SetError`] if the set cannot take the item.
    pub fn insert_copy(&mut self, keys: &Keys) -> Result<bool, SetError> {
        match (self, keys) {
            (State::Owned(file), Keys::Hash64(hashes)) => {
                let is_new = file.filter.try_insert_copy_hash(hashes[0])?;
                file.added = file.added.saturating_add(1);
                Ok(is_new)
            }
            (State::Mapped(_), _) => Err(SetError::ReadOnly),
            (State::Closed, _) => Err(SetError::Closed),
            _ => Err(SetError::Unsupported("only counting and cuckoo filters store copies")),
        }
    }

    /// Removes one copy of an item, the only one of a batch.
    ///
    /// # Errors
    ///
    /// [`SetError`] if the set cannot remove items.
    pub fn remove(&mut self, keys: &Keys) -> Result<Removed, SetError> {
        const NO_REMOVAL: SetError =
            SetError::Unsupported("only counting filters, cuckoo filters and IntSet remove items");
        match (self, keys) {
            (State::Owned(file), Keys::Hash64(hashes)) => {
                file.filter.remove_hash(hashes[0]).ok_or(NO_REMOVAL)
            }
            (State::Integers(set), Keys::Integer(values)) => {
                Ok(if set.remove(values[0]) { Removed::Yes } else { Removed::Absent })
            }
            (State::Mapped(_), _) => Err(SetError::ReadOnly),
            (State::Closed, _) => Err(SetError::Closed),
            _ => Err(NO_REMOVAL),
        }
    }

    /// Returns an upper bound of how often an item was inserted, the only one of a batch.
    ///
    /// # Errors
    ///
    /// [`SetError`] if the set does not count.
    pub fn count(&self, keys: &Keys) -> Result<u64, SetError> {
        let count = match (self, keys) {
            (State::Owned(file), Keys::Hash64(hashes)) => file.filter.count_hash(hashes[0]),
            (State::Mapped(file), Keys::Hash64(hashes)) => file.filter.count_hash(hashes[0]),
            (State::Closed, _) => return Err(SetError::Closed),
            _ => None,
        };
        count.ok_or(SetError::Unsupported("only counting and cuckoo filters count items"))
    }

    /// Tests a batch. Answer `i` is true if item `i` may be in the set.
    ///
    /// # Errors
    ///
    /// [`SetError::Closed`].
    pub fn contains(&self, keys: &Keys, answers: &mut Answers) -> Result<(), SetError> {
        match (self, keys) {
            (State::Owned(file), Keys::Hash64(hashes)) => {
                file.filter.contains_hashes(hashes, answers.reset(hashes.len()));
            }
            (State::Mapped(file), Keys::Hash64(hashes)) => {
                file.filter.contains_hashes(hashes, answers.reset(hashes.len()));
            }
            (State::Shared(filter), Keys::Hash64(hashes)) => {
                filter.contains_hashes(hashes, answers.reset(hashes.len()));
            }
            (State::Exact64(set), Keys::Hash64(hashes)) => set.contains_each(hashes, answers),
            (State::Exact128(set), Keys::Hash128(hashes)) => set.contains_each(hashes, answers),
            (State::Integers(set), Keys::Integer(values)) => set.contains_each(values, answers),
            (State::Foreign(foreign), Keys::Foreign { bytes, ends, .. }) => {
                foreign.contents.contains_each(&slices(bytes, ends), answers);
            }
            (State::Closed, _) => return Err(SetError::Closed),
            _ => unreachable!("the batch has the encoding of the set"),
        }
        Ok(())
    }

    /// Inserts a batch. Answer `i` is true if item `i` is new.
    ///
    /// # Errors
    ///
    /// [`SetError`] if the set cannot take all items.
    pub fn insert(&mut self, keys: &Keys, answers: &mut Answers) -> Result<(), SetError> {
        match (&mut *self, keys) {
            (State::Owned(file), Keys::Hash64(hashes)) => {
                let inserted = file.filter.try_insert_hashes(hashes, answers.reset(hashes.len()));
                let count = inserted.as_ref().err().map_or(hashes.len(), |error| error.inserted);
                file.added = file.added.saturating_add(count as u64);
                inserted?;
            }
            (State::Exact64(set), Keys::Hash64(hashes)) => set.insert_each(hashes, answers)?,
            (State::Exact128(set), Keys::Hash128(hashes)) => set.insert_each(hashes, answers)?,
            (State::Integers(set), Keys::Integer(values)) => set.insert_each(values, answers),
            (State::Foreign(foreign), Keys::Foreign { bytes, ends, .. }) => {
                foreign.contents.insert_each(&slices(bytes, ends), answers)?;
            }
            (State::Mapped(_), _) => return Err(SetError::ReadOnly),
            (State::Closed, _) => return Err(SetError::Closed),
            _ => self.insert_shared(keys, answers)?,
        }
        Ok(())
    }

    /// Inserts a batch through a shared reference, into a set that [is shared](Self::is_shared).
    ///
    /// # Errors
    ///
    /// [`SetError::Closed`].
    pub fn insert_shared(&self, keys: &Keys, answers: &mut Answers) -> Result<(), SetError> {
        match (self, keys) {
            (State::Shared(filter), Keys::Hash64(hashes)) => {
                let mut filter = &**filter;
                tamis::Insert::insert_hashes(&mut filter, hashes, answers.reset(hashes.len()));
                Ok(())
            }
            (State::Closed, _) => Err(SetError::Closed),
            _ => unreachable!("the set is shared, and the batch has its encoding"),
        }
    }

    /// Waits until all items of a set in a file are on the disk.
    ///
    /// # Errors
    ///
    /// [`SetError::File`] if the file cannot be written. [`SetError::Closed`].
    pub fn sync(&mut self) -> Result<(), SetError> {
        match self {
            State::Exact64(set) => set.sync(),
            State::Exact128(set) => set.sync(),
            State::Closed => Err(SetError::Closed),
            _ => Ok(()),
        }
    }

    /// Closes the file of a set. A set in a file waits until all its items are on the disk. A set in
    /// memory stays open.
    ///
    /// # Errors
    ///
    /// [`SetError::File`] if the file cannot be written. The file is closed also after an error.
    pub fn close(&mut self) -> Result<(), SetError> {
        match self {
            State::Exact64(set) if set.has_file() => set.close()?,
            State::Exact128(set) if set.has_file() => set.close()?,
            State::Mapped(_) => {}
            _ => return Ok(()),
        }
        *self = State::Closed;
        Ok(())
    }

    /// Sets the time of a filter that forgets items.
    pub fn advance(&mut self, now_millis: u64) {
        match self {
            State::Owned(file) => file.filter.advance(now_millis),
            State::Mapped(file) => file.filter.advance(now_millis),
            _ => {}
        }
    }
}

#[inline(never)]
fn contains_in_any(filter: &AnyFilter, hash: u64) -> bool {
    filter.contains_hash(hash)
}

#[inline(never)]
fn insert_in_any(filter: &mut AnyFilter, hash: u64) -> Option<bool> {
    filter.try_insert_hash(hash).ok()
}
