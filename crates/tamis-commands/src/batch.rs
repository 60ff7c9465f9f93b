//! Runs consecutive commands on one key as one batch: the hot path of pipelines.

use tamis::{Answers, AnyFilter, Kind};
use tamis_resp::Reply;

use crate::argv::Argv;
use crate::run::Env;
use crate::value::Value;

/// Which arguments of a command are items, and how a host may split the command between them.
#[derive(Clone, Copy, Debug)]
pub enum Items {
    /// The command has no items.
    None,
    /// All arguments after the key are items. Consecutive commands on one key run as one batch.
    Batch(BatchItems),
    /// The function returns the index of the first item. A long command runs in chunks; each chunk
    /// runs as a separate command.
    Chunks(fn(Argv<'_>) -> Option<usize>),
}

/// What a command does with its items in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchItems {
    /// The commands' family of filters. A filter of another family contains none of the items.
    pub family: Family,
    /// True if the command inserts its items; false if it looks them up.
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

/// Commands on one key that run as one batch.
///
/// The host collects consecutive commands with the same name and key, and takes the shared lock of
/// the value.
#[derive(Debug, Default)]
pub struct Batch<'w> {
    items: Vec<&'w [u8]>,
    /// The hashes of the items that a Bloom filter processed in the last run.
    hashes: Vec<u64>,
    answers: Answers,
}

impl<'w> Batch<'w> {
    /// Adds a command. `argv` is the name, the key and the items.
    pub fn push(&mut self, argv: Argv<'w>) {
        self.items.extend_from_slice(argv.get(2..).unwrap_or_default());
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
    }

    /// Runs the commands at `now_millis`, in milliseconds since 1970. Returns `None`, with nothing
    /// changed, if the commands need an exclusive lock of the value.
    pub fn run(
        &mut self,
        items: BatchItems,
        value: Option<&Value>,
        now_millis: u64,
    ) -> Option<BatchAnswers<'_>> {
        if items.inserts {
            let Some(Value::Bloom(filter)) = value else { return None };
            if !filter.insert_each_hashed(&self.items, &mut self.hashes, &mut self.answers) {
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
        Some(BatchAnswers { answers: &self.answers, next: 0 })
    }

    /// Runs inserts that [`run`](Self::run) could not, under an exclusive lock of the value.
    /// Returns `None`, with nothing changed, if each command must run separately.
    pub fn run_alone(
        &mut self,
        value: &mut Option<Value>,
        now_millis: u64,
    ) -> Option<BatchAnswers<'_>> {
        let Some(Value::Filter(file)) = value else { return None };
        // A filter that can reject an item runs each command separately.
        if may_refuse(&file.filter) {
            return None;
        }
        file.filter.advance(now_millis);
        let done = file.filter.try_insert_each(&self.items, &mut self.answers);
        debug_assert!(done.is_ok(), "these kinds refuse nothing");
        file.added = file.added.saturating_add(self.items.len() as u64);
        Some(BatchAnswers { answers: &self.answers, next: 0 })
    }
}

/// The answers of a batch. The caller takes them command by command, in the order of the pushes.
#[derive(Debug)]
pub struct BatchAnswers<'a> {
    answers: &'a Answers,
    next: usize,
}

impl BatchAnswers<'_> {
    /// Returns the reply to the next command, which has `words` words.
    pub fn next_reply(&mut self, items: BatchItems, words: usize) -> Reply {
        let first = self.next;
        if items.is_one {
            self.next += 1;
            return Reply::Bool(self.answers.get(first));
        }
        let len = words - 2;
        self.next += len;
        Reply::Bools { mask: bits(self.answers.words(), first, len), len }
    }

    /// Counts the items that the filter contained or, after an insert, that were new.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.answers.count_ones()
    }
}

/// Tests whether the filter can reject an item because it is full.
pub(crate) fn may_refuse(filter: &AnyFilter) -> bool {
    let kind = filter.plan().kind();
    kind == Kind::Cuckoo || kind.grows()
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
    /// Looks up each item. A value that is no filter of this family contains none of them.
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
                    // Setting the clock needs a view, because access to the value is shared.
                    AnyFilter::Window(window) => {
                        let mut window = window.as_view();
                        window.advance(now_millis);
                        window.contains_each(items, answers);
                    }
                    filter => filter.contains_each(items, answers),
                }
            }
            // The missing chunks may contain any item.
            Value::PartialLoad(_) => {
                let words = answers.reset(items.len());
                (0..items.len()).for_each(|i| words[i / 64] |= 1 << (i % 64));
            }
            _ => _ = answers.reset(items.len()),
        }
    }
}

/// Runs a lookup command that is not part of a batch.
pub(crate) fn contains(
    items: BatchItems,
    value: Option<&Value>,
    argv: Argv<'_>,
    env: &Env<'_>,
) -> Reply {
    let mut batch = Batch::default();
    batch.push(argv);
    let mut answers =
        batch.run(items, value, env.now_millis).expect("asking needs no exclusive access");
    answers.next_reply(items, argv.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_copied_from_anywhere(words in prop::collection::vec(any::<u64>(), 1..5), first in 0_usize..100, len in 0_usize..150) {
            let bit = |words: &[u64], i: usize| words.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1);
            let copy = bits(&words, first, len);
            prop_assert_eq!(copy.len(), len.div_ceil(64));
            for i in 0..copy.len() * 64 {
                prop_assert_eq!(bit(&copy, i), i < len && bit(&words, first + i));
            }
        }
    }
}
