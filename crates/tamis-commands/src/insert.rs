//! Inserts the items of a batch under an exclusive lock of the value.

use std::ops::Range;

use tamis::{Answers, Kind, NoRoom, TryInsert as _};
use tamis_formats::TamisFile;
use tamis_redisbloom::{RedisBloom, RedisCuckoo, RedisInsertError};

use crate::batch::{Batch, BatchItems, Family, Refusal};
use crate::bf::reserve::create_default;
use crate::command::run::{Change, Env, Outcome};
use crate::text::{self, Text, bf, tm};
use crate::value::Value;
use crate::value::scalable_bloom::{ExpandError, ScalableBloom};

/// The number of items before the first refused item, the error of the refused item, and whether
/// the command stops at the refused item.
type Refused = (usize, Text, bool);

/// The part of a batch that one insert under an exclusive lock processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPart {
    /// The whole batch.
    All,
    /// A part of the batch that takes a short time. A filter that moves stored items may search for milliseconds before
    /// the filter refuses an item. In a filter that moves stored items, a short part has few items and ends with the
    /// command of a refused item. A short part that creates a filter ends with the first command. A short part always
    /// consists of whole commands.
    Short,
}

/// The end of a part of a batch.
#[derive(Clone, Copy)]
pub(crate) struct PartEnd {
    /// The index after the last item.
    pub end: usize,
    /// True if the part ends early with the command of a refused item.
    pub ends_at_refusal: bool,
}

/// The number of items after which a short part ends, if the filter moves stored items. A short part also includes the
/// remaining items of the last command.
const SHORT: usize = 64;

impl Batch<'_> {
    /// Runs the insert commands of the batch under an exclusive lock of the value. If the key does
    /// not exist, `BF.*` commands create a filter. [`answers`](Self::answers) returns the replies.
    ///
    /// After a short part, the batch may not be [done](Self::is_done). If the batch is not done, the caller logs the
    /// outcome, releases the lock, and calls this method again.
    pub fn insert(
        &mut self,
        items: BatchItems,
        value: &mut Option<Value>,
        part: BatchPart,
        env: &Env<'_>,
    ) -> Outcome<()> {
        self.began = self.done;
        let mut created = None;
        let mut limit = PartEnd { end: self.items.len(), ends_at_refusal: false };
        let value = match (value, items.family) {
            (Some(value), _) => value,
            (None, Family::Tamis) => {
                self.refuse(tm::NOT_FOUND);
                return Outcome::unchanged(());
            }
            (value, _) => match create_default(env.settings) {
                Ok(new) => {
                    if part == BatchPart::Short {
                        limit.end = self.end_of_command(self.done);
                    }
                    created = Some(new.new_image());
                    value.insert(new)
                }
                Err(text) => {
                    self.refuse(text);
                    return Outcome::unchanged(());
                }
            },
        };
        if part == BatchPart::Short && moves_items(value) {
            limit.end = limit.end.min(self.end_of_command(self.done + SHORT - 1));
            limit.ends_at_refusal = true;
        }
        Outcome { created, ..self.insert_into(items.family, value, limit, env) }
    }

    /// Inserts items in order into an existing value, up to `limit`. If the filter is full, each
    /// command stops at the first item that does not fit.
    pub(crate) fn insert_into(
        &mut self,
        family: Family,
        value: &mut Value,
        limit: PartEnd,
        env: &Env<'_>,
    ) -> Outcome<()> {
        _ = value.build();
        let change = match value {
            Value::Bloom(filter) => self.insert_into_scalable_bloom(filter, limit),
            Value::Filter(file) => self.insert_into_file(family, file, limit, env),
            Value::RedisBloom(filter) => self.insert_into_redis_bloom(filter, limit),
            Value::RedisCuckoo(filter) if family == Family::Tamis => {
                let (first, refused) = (self.done, self.refusals.len());
                let max_sub_filters = env.settings.cf_max_expansions as usize;
                self.insert_each(limit, |batch, range, answers| {
                    insert_redis_cuckoo(filter, &batch.items[range], max_sub_filters, answers)
                });
                self.accepted(b"TM.MADD", first, refused, |_| true)
            }
            Value::PartialLoad(_) => {
                self.refuse(bf::INCOMPLETE);
                Change::None
            }
            _ => {
                self.refuse(text::WRONG_TYPE);
                Change::None
            }
        };
        Outcome { change, ..Outcome::unchanged(()) }
    }

    fn insert_into_scalable_bloom(&mut self, filter: &mut ScalableBloom, limit: PartEnd) -> Change {
        let (first, refused) = (self.done, self.refusals.len());
        self.hash_items(filter.hasher());
        self.insert_each(limit, |batch, range, answers| {
            filter.insert_hashes(&batch.hashes[range], answers).map_err(|(done, error)| {
                match error {
                    ExpandError::Full => (done, bf::FULL, true),
                    // Continue after the refused item: later items may already be in the filter, or may fit into the
                    // filter.
                    ExpandError::NoRoom => (done, bf::NOT_INSERTED, false),
                }
            })
        });
        let new = self.answers.ones().filter(|item| (first..self.done).contains(item));
        let hashes: Vec<u64> = new.map(|item| self.hashes[item]).collect();
        if hashes.is_empty() {
            Change::None
        } else if self.refusals.len() > refused {
            // Log only the accepted items, because a server with more memory than this server would accept more items.
            self.accepted(b"BF.MADD", first, refused, |is_new| is_new)
        } else {
            Change::Inserted(hashes)
        }
    }

    fn insert_into_file(
        &mut self,
        family: Family,
        file: &mut TamisFile,
        limit: PartEnd,
        env: &Env<'_>,
    ) -> Change {
        let (first, refused) = (self.done, self.refusals.len());
        let (name, full): (&[u8], _) = match family {
            Family::Tamis => (b"TM.MADD", tm::FULL),
            _ => (b"BF.MADD", bf::FULL),
        };
        file.filter.advance(env.now_millis);
        self.hash_items(file.filter.hasher());
        self.insert_each(limit, |batch, range, answers| {
            let words = answers.reset(range.len());
            file.filter.try_insert_copy_hashes(&batch.hashes[range], words).map_err(|error| {
                match error.reason {
                    NoRoom::Crowded => (error.inserted, tm::CROWDED, false),
                    NoRoom::Copies { .. } => (error.inserted, tm::COPIES, true),
                    NoRoom::Memory(_) => (error.inserted, tm::NO_MEMORY, true),
                    _ => (error.inserted, full, true),
                }
            })
        });
        let is_whole = (first, self.done) == (0, self.items.len());
        let (inserted, change) = if is_whole && self.refusals.is_empty() {
            (self.items.len(), Change::Argv)
        } else {
            let accepted = self.accepted_items(first, refused, |_| true);
            (accepted.len(), Change::accepted(&[name, self.key], &accepted))
        };
        file.added = file.added.saturating_add(inserted as u64);
        change
    }

    fn insert_into_redis_bloom(&mut self, filter: &mut RedisBloom, limit: PartEnd) -> Change {
        let (first, refused) = (self.done, self.refusals.len());
        self.insert_each(limit, |batch, range, answers| {
            let (mut done, mut refused) = (0, None);
            answers.reset(range.len());
            filter.insert_each(&batch.items[range], |inserted| {
                let refusal = match inserted {
                    Ok(is_new) => {
                        answers.set(done, is_new);
                        done += 1;
                        return true;
                    }
                    Err(RedisInsertError::Full { .. }) => (done, bf::FULL, true),
                    Err(RedisInsertError::OverLimit { .. }) => (done, text::server::MEMORY, false),
                    Err(_) => (done, bf::NOT_INSERTED, false),
                };
                refused = Some(refusal);
                false
            });
            refused.map_or(Ok(()), Err)
        });
        // Log only new items, because inserting a repeated item changes nothing.
        self.accepted(b"BF.MADD", first, refused, |is_new| is_new)
    }

    /// Calls `insert` with all unprocessed items up to `limit`. After a refused item, calls
    /// `insert` for each later item separately, so that a refusal does not affect later commands.
    fn insert_each(
        &mut self,
        limit: PartEnd,
        mut insert: impl FnMut(&Self, Range<usize>, &mut Answers) -> Result<(), Refused>,
    ) {
        let (len, mut first, end) = (self.items.len(), self.done, limit.end);
        let mut answers = std::mem::take(&mut self.answers);
        let mut some = Answers::new();
        if first == 0 {
            answers.reset(len);
        }
        // If one call inserts the whole batch, the call writes directly to the answers of the
        // batch.
        let is_whole = first == 0 && end == len;
        let mut refused =
            insert(self, first..end, if is_whole { &mut answers } else { &mut some }).err();
        let done = refused.map_or(end - first, |(done, ..)| done);
        if is_whole {
            (done..len).for_each(|item| answers.set(item, false));
        } else {
            (0..done).for_each(|item| answers.set(first + item, some.get(item)));
        }
        if refused.is_none() {
            first = end;
        }
        while let Some((done, text, stops)) = refused.take() {
            let item = first + done;
            self.refusals.push(Refusal { item, text, stops });
            let end_of_command = self.end_of_command(item);
            first = if stops { end_of_command } else { item + 1 };
            let end = if limit.ends_at_refusal { end_of_command } else { limit.end };
            while first < end && refused.is_none() {
                match insert(self, first..first + 1, &mut some) {
                    Ok(()) => {
                        answers.set(first, some.get(0));
                        first += 1;
                    }
                    Err(error) => refused = Some(error),
                }
            }
        }
        self.answers = answers;
        self.done = first;
    }

    /// Returns the index after the last item of the command that contains the given item. Returns the number of items
    /// in the batch if no command contains the item.
    fn end_of_command(&self, item: usize) -> usize {
        let command = self.ends.partition_point(|end| *end <= item);
        self.ends.get(command).copied().unwrap_or(self.items.len())
    }

    /// Returns the change of a command `name` that inserts the
    /// [accepted items](Self::accepted_items).
    fn accepted(
        &self,
        name: &[u8],
        first: usize,
        refused: usize,
        wanted: impl Fn(bool) -> bool,
    ) -> Change {
        Change::accepted(&[name, self.key], &self.accepted_items(first, refused, wanted))
    }

    /// Returns the accepted items from index `first` on, if `wanted` returns true for the answer of the item. `refused`
    /// is the number of refusals before the item `first`.
    fn accepted_items(
        &self,
        mut first: usize,
        refused: usize,
        wanted: impl Fn(bool) -> bool,
    ) -> Vec<&[u8]> {
        let mut accepted = Vec::with_capacity(self.done - first);
        let mut refusals = self.refusals[refused..].iter().peekable();
        while first < self.done {
            match refusals.next_if(|refusal| refusal.item == first) {
                Some(Refusal { stops: true, .. }) => {
                    first = self.end_of_command(first);
                    continue;
                }
                Some(_) => {}
                None if wanted(self.answers.get(first)) => accepted.push(self.items[first]),
                None => {}
            }
            first += 1;
        }
        accepted
    }
}

/// Tests whether an insert into the value may move stored items to make space. An insert that moves
/// items may take a million times as long as a lookup.
fn moves_items(value: &Value) -> bool {
    match value {
        Value::RedisCuckoo(_) => true,
        Value::Filter(file) => file.filter.plan().kind() == Kind::Cuckoo,
        _ => false,
    }
}

/// Inserts each item even if the filter already contains the item. The cuckoo filters of Tamis also insert an item that
/// the filter already contains.
fn insert_redis_cuckoo(
    filter: &mut RedisCuckoo,
    items: &[&[u8]],
    max_sub_filters: usize,
    answers: &mut Answers,
) -> Result<(), Refused> {
    answers.reset(items.len());
    for (i, item) in items.iter().enumerate() {
        if filter.sub_filters() >= max_sub_filters {
            return Err((i, tm::FULL, true));
        }
        answers.set(i, !filter.contains(*item));
        filter.insert(*item).map_err(|error| {
            let text = match error {
                RedisInsertError::Memory(_) => tm::NO_MEMORY,
                RedisInsertError::OverLimit { .. } => text::server::MEMORY,
                _ => tm::FULL,
            };
            (i, text, true)
        })?;
    }
    Ok(())
}
