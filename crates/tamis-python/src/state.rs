//! The set of items behind a Python object, of any kind.

pub mod durable;
mod lookup;

use tamis::{
    Answers, AnyFilter, CompressedSet, DigestSet, Filter as _, Hasher, Kind, Removed, SharedBloom,
    TryInsert as _,
};
use tamis_formats::{Contents, Format, Funnel, TamisFile};

use crate::decode_args::DecodeArgs;
use crate::keys::{Encoding, Keys, slices};
use crate::raw::map::MappedWords;
use crate::refusal::Refusal;
use crate::state::durable::DurableSet;

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
    Digests64(DigestSet<u64>, Hasher),
    /// An exact set of 128-bit hashes.
    Digests128(DigestSet<u128>, Hasher),
    /// An exact set of 64-bit hashes that are also in a file.
    Durable64(Box<DurableSet<u64>>),
    /// An exact set of 128-bit hashes that are also in a file.
    Durable128(Box<DurableSet<u128>>),
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
            State::Digests64(_, hasher) => Encoding::Hash64(*hasher),
            State::Digests128(_, hasher) => Encoding::Hash128(*hasher),
            State::Durable64(set) => Encoding::Hash64(set.hasher()),
            State::Durable128(set) => Encoding::Hash128(set.hasher()),
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
            State::Digests64(set, _) => Some(set.contains(hash)),
            State::Durable64(set) => Some(set.set().contains(hash)),
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
                file.added += 1;
                Some(is_new)
            }
            State::Digests64(set, _) => set.insert(hash).ok(),
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
    /// [`Refusal`] if the set cannot take the item.
    pub fn insert_copy(&mut self, keys: &Keys) -> Result<bool, Refusal> {
        match (self, keys) {
            (State::Owned(file), Keys::Hash64(hashes)) => {
                let is_new = file.filter.try_insert_copy_hash(hashes[0])?;
                file.added = file.added.saturating_add(1);
                Ok(is_new)
            }
            (State::Mapped(_), _) => Err(Refusal::ReadOnly),
            (State::Closed, _) => Err(Refusal::Closed),
            _ => Err(Refusal::Unsupported("only counting and cuckoo filters store copies")),
        }
    }

    /// Removes one copy of an item, the only one of a batch.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the set cannot remove items.
    pub fn remove(&mut self, keys: &Keys) -> Result<Removed, Refusal> {
        const NO_REMOVAL: Refusal =
            Refusal::Unsupported("only counting filters, cuckoo filters and IntSet remove items");
        match (self, keys) {
            (State::Owned(file), Keys::Hash64(hashes)) => {
                file.filter.remove_hash(hashes[0]).ok_or(NO_REMOVAL)
            }
            (State::Integers(set), Keys::Integer(values)) => {
                Ok(if set.remove(values[0]) { Removed::Yes } else { Removed::Absent })
            }
            (State::Mapped(_), _) => Err(Refusal::ReadOnly),
            (State::Closed, _) => Err(Refusal::Closed),
            _ => Err(NO_REMOVAL),
        }
    }

    /// Returns an upper bound of how often an item was inserted, the only one of a batch.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the set does not count.
    pub fn count(&self, keys: &Keys) -> Result<u64, Refusal> {
        let count = match (self, keys) {
            (State::Owned(file), Keys::Hash64(hashes)) => file.filter.count_hash(hashes[0]),
            (State::Mapped(file), Keys::Hash64(hashes)) => file.filter.count_hash(hashes[0]),
            (State::Closed, _) => return Err(Refusal::Closed),
            _ => None,
        };
        count.ok_or(Refusal::Unsupported("only counting and cuckoo filters count items"))
    }

    /// Tests a batch. Answer `i` is true if item `i` may be in the set.
    ///
    /// # Errors
    ///
    /// [`Refusal::Closed`].
    pub fn contains(&self, keys: &Keys, answers: &mut Answers) -> Result<(), Refusal> {
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
            (State::Digests64(set, _), Keys::Hash64(hashes)) => {
                lookup::contains_each(set, hashes, answers);
            }
            (State::Digests128(set, _), Keys::Hash128(hashes)) => {
                lookup::contains_each(set, hashes, answers);
            }
            (State::Durable64(set), Keys::Hash64(hashes)) => {
                lookup::contains_each(set.set(), hashes, answers);
            }
            (State::Durable128(set), Keys::Hash128(hashes)) => {
                lookup::contains_each(set.set(), hashes, answers);
            }
            (State::Integers(set), Keys::Integer(values)) => set.contains_each(values, answers),
            (State::Foreign(foreign), Keys::Foreign { bytes, ends, .. }) => {
                foreign.contents.contains_each(&slices(bytes, ends), answers);
            }
            (State::Closed, _) => return Err(Refusal::Closed),
            _ => unreachable!("the batch has the encoding of the set"),
        }
        Ok(())
    }

    /// Inserts a batch. Answer `i` is true if item `i` is new.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the set cannot take all items.
    pub fn insert(&mut self, keys: &Keys, answers: &mut Answers) -> Result<(), Refusal> {
        match (&mut *self, keys) {
            (State::Owned(file), Keys::Hash64(hashes)) => {
                let inserted = file.filter.try_insert_hashes(hashes, answers.reset(hashes.len()));
                let count = inserted.as_ref().err().map_or(hashes.len(), |error| error.inserted);
                file.added = file.added.saturating_add(count as u64);
                inserted?;
            }
            (State::Digests64(set, _), Keys::Hash64(hashes)) => set.insert_each(hashes, answers)?,
            (State::Digests128(set, _), Keys::Hash128(hashes)) => {
                set.insert_each(hashes, answers)?;
            }
            (State::Durable64(set), Keys::Hash64(hashes)) => set.insert(hashes, answers)?,
            (State::Durable128(set), Keys::Hash128(hashes)) => set.insert(hashes, answers)?,
            (State::Integers(set), Keys::Integer(values)) => set.insert_each(values, answers),
            (State::Foreign(foreign), Keys::Foreign { bytes, ends, .. }) => {
                foreign.contents.insert_each(&slices(bytes, ends), answers)?;
            }
            (State::Mapped(_), _) => return Err(Refusal::ReadOnly),
            (State::Closed, _) => return Err(Refusal::Closed),
            _ => self.insert_shared(keys, answers)?,
        }
        Ok(())
    }

    /// Inserts a batch through a shared reference, into a set that [is shared](Self::is_shared).
    ///
    /// # Errors
    ///
    /// [`Refusal::Closed`].
    pub fn insert_shared(&self, keys: &Keys, answers: &mut Answers) -> Result<(), Refusal> {
        match (self, keys) {
            (State::Shared(filter), Keys::Hash64(hashes)) => {
                let mut filter = &**filter;
                tamis::Insert::insert_hashes(&mut filter, hashes, answers.reset(hashes.len()));
                Ok(())
            }
            (State::Closed, _) => Err(Refusal::Closed),
            _ => unreachable!("the set is shared, and the batch has its encoding"),
        }
    }

    /// Waits until all items of a set in a file are on the disk.
    ///
    /// # Errors
    ///
    /// [`Refusal::File`] if the file cannot be written. [`Refusal::Closed`].
    pub fn sync(&mut self) -> Result<(), Refusal> {
        match self {
            State::Durable64(set) => set.sync(),
            State::Durable128(set) => set.sync(),
            State::Closed => Err(Refusal::Closed),
            _ => Ok(()),
        }
    }

    /// Closes the file of a set. A set in a file waits until all its items are on the disk. A set in
    /// memory stays open.
    ///
    /// # Errors
    ///
    /// [`Refusal::File`] if the file cannot be written. The file is closed also after an error.
    pub fn close(&mut self) -> Result<(), Refusal> {
        match self {
            State::Durable64(set) => set.close()?,
            State::Durable128(set) => set.close()?,
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
