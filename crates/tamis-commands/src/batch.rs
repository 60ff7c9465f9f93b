//! Runs consecutive commands on one key as one batch: the hot path of pipelines.
//!
//! A single command, or a chunk of a long command, runs as a batch of one command. Each item is hashed once. If the
//! commands cannot run under a shared lock, the caller runs the commands under an exclusive lock with the hashes of the
//! batch. The log entry of an insert into a Bloom filter contains the hashes of the batch.

use std::ops::Range;

use tamis::{Answers, AnyFilter, Hasher, Item};
use tamis_resp::Reply;

use crate::command::argv::Argv;
use crate::command::run::KeyReply;
use crate::text::Text;
use crate::value::Value;

/// How a command uses items in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchItems {
    /// The family of filters that the command works on. For a filter of another family, a lookup
    /// finds no items.
    pub family: Family,
    /// True if the command inserts items; false if the command looks up items.
    pub inserts: bool,
    /// True if the command takes one item and replies with a single value, not an array.
    pub is_one: bool,
}

/// The family of filters that a command works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `BF.*`: all filters except RedisBloom's cuckoo filters.
    Bloom,
    /// `CF.*`: filters that can delete items.
    Cuckoo,
    /// `TM.*`: all filters.
    Tamis,
}

/// Consecutive commands with the same name and key, which run as one batch.
#[derive(Debug, Default)]
pub struct Batch<'w> {
    pub(crate) key: &'w [u8],
    pub(crate) items: Vec<&'w [u8]>,
    /// For each command, the index after its last item.
    pub(crate) ends: Vec<usize>,
    /// The hash of each item, computed with `hasher`. Empty if the items are not hashed yet.
    pub(crate) hashes: Vec<u64>,
    hasher: Option<Hasher>,
    pub(crate) answers: Answers,
    /// The items that the filter refused, in the order of the batch.
    pub(crate) refusals: Vec<Refusal>,
    /// The number of items that inserts under exclusive locks have processed.
    pub(crate) done: usize,
    /// The value of `done` at the start of the last part of the batch.
    pub(crate) began: usize,
    /// The index of an item, and the error reply of every command with items from this index on.
    error: Option<(usize, Text)>,
}

/// An item that a filter refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The index of the item in the batch.
    pub item: usize,
    pub text: Text,
    /// True if the command stops at this item and does not process later items.
    pub stops: bool,
}

impl<'w> Batch<'w> {
    /// Adds a command. `argv` contains the name, the key and the items.
    pub fn push(&mut self, argv: Argv<'w>) {
        if let [_, key, items @ ..] = argv {
            self.push_items(key, items);
        }
    }

    /// Adds a command with the given key and items.
    pub(crate) fn push_items(&mut self, key: &'w [u8], items: &[&'w [u8]]) {
        self.key = key;
        self.items.extend_from_slice(items);
        self.ends.push(self.items.len());
        self.hasher = None;
    }

    /// Counts the items of all commands in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Tests whether the batch has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the hashes of the items that were new to the Bloom filter in the last run.
    #[must_use]
    pub fn new_hashes(&self) -> Vec<u64> {
        self.answers.ones().map(|i| self.hashes[i]).collect()
    }

    /// Removes all commands.
    pub fn clear(&mut self) {
        self.items.clear();
        self.ends.clear();
        self.restart();
    }

    /// Hashes the items, unless the last call has already hashed the items with the same hash function.
    pub(crate) fn hash_items(&mut self, hasher: Hasher) {
        if self.hasher != Some(hasher) {
            self.hashes.resize(self.items.len(), 0);
            Item::hash_each(&self.items, &hasher, &mut self.hashes);
            self.hasher = Some(hasher);
        }
    }

    /// Runs the commands under a shared lock of the value, at `now_millis`, in milliseconds since 1970. If the commands
    /// need an exclusive lock, returns `None` without a change. After `None`, the caller must use
    /// [`insert`](Self::insert).
    pub fn run(
        &mut self,
        items: BatchItems,
        value: Option<&Value>,
        now_millis: u64,
    ) -> Option<BatchAnswers<'_>> {
        self.restart();
        if items.inserts {
            let Some(Value::Bloom(filter)) = value else { return None };
            self.hash_items(filter.hasher());
            if !filter.insert_hashes_shared(&self.hashes, &mut self.answers) {
                return None;
            }
        } else {
            match value {
                Some(value) => {
                    value.contains_each(items.family, &self.items, &mut self.answers, now_millis);
                }
                None => _ = self.answers.reset(self.items.len()),
            }
        }
        Some(self.answers(items))
    }

    /// Removes all commands and returns an empty batch that can borrow other items. The returned
    /// batch reuses the memory, so a host that runs one command at a time does not allocate.
    #[must_use]
    pub fn reused<'n>(mut self) -> Batch<'n> {
        self.clear();
        let Self { items, ends, hashes, hasher, answers, refusals, done, began, error, .. } = self;
        // The vector is empty, and the standard library reuses the memory of the vector.
        let items = items.into_iter().map(|_| &b""[..]).collect();
        Batch { key: b"", items, ends, hashes, hasher, answers, refusals, done, began, error }
    }

    /// Resets the results of the last run.
    fn restart(&mut self) {
        self.refusals.clear();
        self.done = 0;
        self.began = 0;
        self.error = None;
    }

    /// Tests whether the last [`insert`](Self::insert) has processed all items.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done == self.items.len()
    }

    /// Refuses the commands of the last part and all later commands, after the caller has undone
    /// the part. The reply of each refused command is the error `text`.
    pub fn refuse(&mut self, text: Text) {
        let began = self.began;
        self.refusals.retain(|refusal| refusal.item < began);
        self.error = Some((began, text));
        self.done = self.items.len();
    }

    /// Returns the answers of the last run.
    #[must_use]
    pub fn answers(&self, items: BatchItems) -> BatchAnswers<'_> {
        BatchAnswers {
            answers: &self.answers,
            ends: &self.ends,
            refusals: &self.refusals,
            error: self.error,
            is_one: items.is_one,
            first: 0,
        }
    }
}

/// The answers of a batch: an iterator over the replies to its commands.
#[derive(Debug)]
pub struct BatchAnswers<'a> {
    answers: &'a Answers,
    /// The remaining commands.
    ends: &'a [usize],
    /// The refusals in the remaining commands.
    refusals: &'a [Refusal],
    error: Option<(usize, Text)>,
    is_one: bool,
    /// The index of the first item of the next command.
    first: usize,
}

impl BatchAnswers<'_> {
    /// Counts the items with the answer "yes": found by a lookup, or new at an insert.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.answers.count_ones()
    }

    /// Returns the reply to a command with refused items.
    fn refused(&self, items: Range<usize>, refusals: &[Refusal]) -> KeyReply {
        let mut replies = Vec::with_capacity(items.len());
        let mut refusals = refusals.iter().peekable();
        let mut stops = false;
        for i in items {
            replies.push(match refusals.next_if(|refusal| refusal.item == i) {
                Some(refusal) => {
                    stops = refusal.stops;
                    Reply::error(refusal.text)
                }
                None => Reply::Bool(self.answers.get(i)),
            });
            if stops {
                break;
            }
        }
        let reply = if self.is_one { replies.pop() } else { None };
        KeyReply { reply: reply.unwrap_or(Reply::Array(replies)), stops }
    }
}

impl Iterator for BatchAnswers<'_> {
    type Item = KeyReply;

    #[inline]
    fn next(&mut self) -> Option<KeyReply> {
        let (&end, ends) = self.ends.split_first()?;
        let items = self.first..end;
        (self.first, self.ends) = (end, ends);
        if let Some((done, text)) = self.error
            && end > done
        {
            return Some(Reply::error(text).into());
        }
        let len = self.refusals.iter().take_while(|refusal| refusal.item < end).count();
        if len > 0 {
            let (refusals, later) = self.refusals.split_at(len);
            self.refusals = later;
            return Some(self.refused(items, refusals));
        }
        let reply = if self.is_one {
            Reply::Bool(self.answers.get(items.start))
        } else {
            let mask = bits(self.answers.words(), items.start, items.len());
            Reply::Bools { mask, len: items.len() }
        };
        Some(reply.into())
    }
}

/// Copies `len` bits, starting at bit `first`.
fn bits(words: &[u64], first: usize, len: usize) -> Vec<u64> {
    let word = |i: usize| words.get(i).copied().unwrap_or(0);
    let (start, shift) = (first / 64, first % 64);
    let mut copy: Vec<u64> = (0..len.div_ceil(64))
        .map(|i| word(start + i) >> shift | word(start + i + 1) << 1 << (63 - shift))
        .collect();
    if let Some(last) = copy.last_mut().filter(|_| !len.is_multiple_of(64)) {
        *last &= (1 << (len % 64)) - 1;
    }
    copy
}

impl Value {
    /// Looks up each item. If the value is not a filter of the given family, no item is found.
    pub(crate) fn contains_each(
        &self,
        family: Family,
        items: &[&[u8]],
        answers: &mut Answers,
        now_millis: u64,
    ) {
        match self {
            Value::Bloom(filter) if family != Family::Cuckoo => {
                filter.contains_each(items, answers);
            }
            Value::RedisBloom(filter) if family != Family::Cuckoo => {
                filter.contains_each(items, answers);
            }
            Value::RedisCuckoo(filter) if family != Family::Bloom => {
                filter.contains_each(items, answers);
            }
            Value::Filter(file)
                if family != Family::Cuckoo || file.filter.plan().kind().can_remove() =>
            {
                match &file.filter {
                    // The lock is shared, so set the time in a view of the window, not in the
                    // window.
                    AnyFilter::Window(window) => {
                        let mut window = window.as_view();
                        window.advance(now_millis);
                        window.contains_each(items, answers);
                    }
                    filter => filter.contains_each(items, answers),
                }
            }
            // The missing chunks of a partly loaded filter may contain any item, so each answer is "yes".
            Value::PartialLoad(_) => {
                answers.fill_with(items.len(), |_| true);
            }
            _ => _ = answers.reset(items.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_copied_from_anywhere(
            words in prop::collection::vec(any::<u64>(), 1..5),
            first in 0_usize..100,
            len in 0_usize..150,
        ) {
            let bit = |words: &[u64], i: usize| {
                words.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1)
            };
            let copy = bits(&words, first, len);
            prop_assert_eq!(copy.len(), len.div_ceil(64));
            for i in 0..copy.len() * 64 {
                prop_assert_eq!(bit(&copy, i), i < len && bit(&words, first + i));
            }
        }
    }
}
