//! Inserts the items of a batch under an exclusive lock of the value.

use std::ops::Range;

use tamis::{Answers, NoRoom, TryInsert as _};
use tamis_redisbloom::{RedisCuckoo, RedisInsertError};

use crate::batch::{Batch, BatchItems, Family, Refusal};
use crate::bf::create_default;
use crate::run::{Change, Env, Outcome};
use crate::scalable_bloom::ExpandError;
use crate::text::{self, Text, bf, tm};
use crate::value::Value;

/// The number of items before the first refused one, the error of that item, and whether the
/// command stops there.
type Refused = (usize, Text, bool);

impl Batch<'_> {
    /// Runs commands that insert, under an exclusive lock of the value. `BF.*` commands create the
    /// filter of a key that does not exist. The replies are in [`answers`](Self::answers).
    pub fn insert(
        &mut self,
        items: BatchItems,
        value: &mut Option<Value>,
        env: &Env<'_>,
    ) -> Outcome<()> {
        let mut created = None;
        let value = match (value, items.family) {
            (Some(value), _) => value,
            (None, Family::Tamis) => {
                self.refuse(tm::NOT_FOUND);
                return Outcome::unchanged(());
            }
            (value, _) => match create_default(env.settings) {
                Ok(new) => {
                    created = Some(new.new_image());
                    value.insert(new)
                }
                Err(text) => {
                    self.refuse(text);
                    return Outcome::unchanged(());
                }
            },
        };
        Outcome { created, ..self.insert_into(items.family, value, env) }
    }

    /// Inserts the items in order into a value that exists. Each command stops at its first item
    /// that does not fit a full filter.
    pub(crate) fn insert_into(
        &mut self,
        family: Family,
        value: &mut Value,
        env: &Env<'_>,
    ) -> Outcome<()> {
        _ = value.build();
        self.forget_refusals();
        let change = match value {
            Value::Bloom(filter) => {
                self.hash_items(filter.hasher());
                self.insert_each(|batch, range, answers| {
                    filter.insert_hashes(&batch.hashes[range], answers).map_err(|(done, error)| {
                        match error {
                            ExpandError::Full => (done, bf::FULL, true),
                            // Later items may already be in the filter, or may fit.
                            ExpandError::NoRoom => (done, bf::NOT_INSERTED, false),
                        }
                    })
                });
                let hashes = self.new_hashes();
                if hashes.is_empty() { Change::None } else { Change::Inserted(hashes) }
            }
            Value::Filter(file) => {
                let full = if family == Family::Tamis { tm::FULL } else { bf::FULL };
                file.filter.advance(env.now_millis);
                self.hash_items(file.filter.hasher());
                self.insert_each(|batch, range, answers| {
                    let words = answers.reset(range.len());
                    file.filter.try_insert_hashes(&batch.hashes[range], words).map_err(|error| {
                        match error.reason {
                            NoRoom::Crowded => (error.inserted, tm::CROWDED, false),
                            NoRoom::Memory(_) => (error.inserted, tm::NO_MEMORY, true),
                            _ => (error.inserted, full, true),
                        }
                    })
                });
                let (inserted, change) = if self.refusals.is_empty() {
                    (self.items.len(), Change::Words)
                } else {
                    let name: &[u8] = if family == Family::Tamis { b"TM.MADD" } else { b"BF.MADD" };
                    let accepted = self.accepted(|_| true);
                    (accepted.len(), Change::accepted(&[name, self.key], &accepted))
                };
                file.added = file.added.saturating_add(inserted as u64);
                change
            }
            Value::RedisBloom(filter) => {
                self.insert_each(|batch, range, answers| {
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
                            Err(RedisInsertError::OverLimit { .. }) => {
                                (done, text::server::MEMORY, false)
                            }
                            Err(_) => (done, bf::NOT_INSERTED, false),
                        };
                        refused = Some(refusal);
                        false
                    });
                    refused.map_or(Ok(()), Err)
                });
                // Inserting a repeated item changes nothing.
                let accepted = self.accepted(|is_new| is_new);
                Change::accepted(&[b"BF.MADD", self.key], &accepted)
            }
            Value::RedisCuckoo(filter) if family == Family::Tamis => {
                let max_sub_filters = env.settings.cf_max_expansions as usize;
                self.insert_each(|batch, range, answers| {
                    insert_redis_cuckoo(filter, &batch.items[range], max_sub_filters, answers)
                });
                Change::accepted(&[b"TM.MADD", self.key], &self.accepted(|_| true))
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

    /// Calls `insert` with all items. After a refused item, calls it for each later item alone, so
    /// that each command stops for itself.
    fn insert_each(
        &mut self,
        mut insert: impl FnMut(&Self, Range<usize>, &mut Answers) -> Result<(), Refused>,
    ) {
        let len = self.items.len();
        let mut answers = std::mem::take(&mut self.answers);
        let mut refused = insert(self, 0..len, &mut answers).err();
        if let Some((done, ..)) = refused {
            (done..len).for_each(|item| answers.set(item, false));
        }
        let (mut first, mut one) = (0, Answers::new());
        while let Some((done, text, stops)) = refused.take() {
            let item = first + done;
            self.refusals.push(Refusal { item, text, stops });
            first = if stops { self.end_of_command(item) } else { item + 1 };
            while first < len && refused.is_none() {
                match insert(self, first..first + 1, &mut one) {
                    Ok(()) => {
                        answers.set(first, one.get(0));
                        first += 1;
                    }
                    Err(error) => refused = Some(error),
                }
            }
        }
        self.answers = answers;
    }

    /// Returns the index after the last item of the command with this item.
    fn end_of_command(&self, item: usize) -> usize {
        self.ends[self.ends.partition_point(|end| *end <= item)]
    }

    /// Returns the items that the filter accepted and whose answer is `wanted`.
    fn accepted(&self, wanted: impl Fn(bool) -> bool) -> Vec<&[u8]> {
        let (mut accepted, mut first) = (Vec::with_capacity(self.items.len()), 0);
        let mut refusals = self.refusals.iter().peekable();
        while first < self.items.len() {
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

/// Inserts each item again even if it is present, as Tamis' own cuckoo filters do.
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
