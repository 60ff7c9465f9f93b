//! Neighbours on one key as one batch: the hot path of pipelines.

use tamis::{Answers, AnyFilter, Kind};
use tamis_resp::Reply;

use crate::argv::Argv;
use crate::run::Env;
use crate::value::Value;

/// Which arguments of a command are items, and how the command may be split at them.
#[derive(Clone, Copy, Debug)]
pub enum Items {
    /// The command has no items.
    None,
    /// The arguments behind the key are items. Neighbours on one key run as one batch.
    Batch(BatchItems),
    /// The function returns the number of the first item. A long command runs in chunks, each as a command of its own.
    Chunks(fn(Argv<'_>) -> Option<usize>),
}

/// What a command does with its items in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchItems {
    /// Whose filters it is about. Others hold none of its items.
    pub family: Family,
    /// True if it adds items, false if it asks for them.
    pub inserts: bool,
    /// True if it takes one item and answers with its answer alone.
    pub is_one: bool,
}

/// Whose filters a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `BF.*`: all but cuckoo filters of RedisBloom.
    Bloom,
    /// `CF.*`: filters from which items can be deleted.
    Cuckoo,
    /// `TM.*`: all filters.
    Tamis,
}

/// Commands on one key that run as one.
///
/// The host gathers neighbours with the same name and key, and locks the value shared.
#[derive(Debug, Default)]
pub struct Batch<'w> {
    items: Vec<&'w [u8]>,
    /// Of the items that a Bloom filter took last.
    hashes: Vec<u64>,
    answers: Answers,
}

impl<'w> Batch<'w> {
    /// Adds a command, whose words are name, key and items.
    pub fn push(&mut self, argv: Argv<'w>) {
        self.items.extend_from_slice(argv.get(2..).unwrap_or_default());
    }

    /// Returns how many items the commands have.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the hashes of those items that were new to the Bloom filter the commands ran on last.
    #[must_use]
    pub fn new_hashes(&self) -> Vec<u64> {
        self.answers.ones().map(|i| self.hashes[i]).collect()
    }

    /// Forgets the commands.
    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// Runs the commands at this time, in milliseconds since 1970. `None` if each command needs the value under an exclusive lock
    /// by itself: nothing has changed then.
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

    /// Runs commands that insert, where [`run`](Self::run) did not, under an exclusive lock of the value. `None` if each must run
    /// by itself: nothing has changed then.
    pub fn run_alone(
        &mut self,
        value: &mut Option<Value>,
        now_millis: u64,
    ) -> Option<BatchAnswers<'_>> {
        let Some(Value::Filter(file)) = value else { return None };
        // What may refuse an item answers each command by itself.
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

/// The answers of a batch, taken command by command in the order in which they were pushed.
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

    /// Returns how many items were answered yes, or were new.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.answers.count_ones()
    }
}

/// Returns whether there may be no room for an item.
pub(crate) fn may_refuse(filter: &AnyFilter) -> bool {
    let kind = filter.plan().kind();
    kind == Kind::Cuckoo || kind.grows()
}

/// Copies `len` bits from a bit on.
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
    /// Returns which items may be in. No item is in a value that is no filter of this family.
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
                    // A view has a clock, which is set under shared access.
                    AnyFilter::Window(window) => {
                        let mut window = window.as_view();
                        window.advance(now_millis);
                        window.contains_each(items, answers);
                    }
                    filter => filter.contains_each(items, answers),
                }
            }
            // What has not come yet may be in.
            Value::PartialLoad(_) => {
                let words = answers.reset(items.len());
                (0..items.len()).for_each(|i| words[i / 64] |= 1 << (i % 64));
            }
            _ => _ = answers.reset(items.len()),
        }
    }
}

/// Answers a command that asks for items, by itself.
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
