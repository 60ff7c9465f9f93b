//! Queries a filter of any format. A Tamis filter is queried by hashes. A filter of another system
//! is queried by the bytes that this system hashes. A filter on a Redis server is queried on the
//! server.

use tamis::{Answers, AnyFilter, BitView, Filter as _};
use tamis_formats::{Contents, TamisFile};

use crate::clock::now_millis;
use crate::exit::Failure;
use crate::filters::metadata::expect_same_items;
use crate::filters::open_filter::OpenFilter;
use crate::filters::redis_key::RedisTarget;
use crate::records::items::{ItemBatch, ItemEncoding};
use crate::records::key::KeyRule;

/// A filter prepared for queries.
pub enum Lookup<'a> {
    /// A Tamis filter, used in place and queried by hashes.
    Hashes(Box<TamisFile<BitView<'a>>>),
    /// A filter of another system, queried by the bytes of the encoding.
    Keys(&'a Contents, ItemEncoding),
    /// A filter on a Redis server.
    Redis(&'a mut RedisTarget),
}

impl<'a> Lookup<'a> {
    /// Prepares queries for the items that `rule` extracts.
    ///
    /// # Errors
    ///
    /// The errors of [`OpenFilter::encoding`].
    pub fn new(filter: &'a OpenFilter, rule: &KeyRule) -> Result<Self, Failure> {
        match filter.view()? {
            Some(file) => {
                expect_same_items(&file.metadata, rule, &filter.name)?;
                Ok(Lookup::Hashes(Box::new(file)))
            }
            None => Ok(Lookup::Keys(filter.contents(), filter.key_encoding()?)),
        }
    }

    /// Returns the encoding of items for this filter.
    pub fn encoding(&self) -> ItemEncoding {
        match self {
            Lookup::Hashes(file) => ItemEncoding::Hash(file.filter.hasher()),
            Lookup::Keys(_, encoding) => *encoding,
            Lookup::Redis(target) => target.encoding(),
        }
    }

    /// Tests a batch of items, encoded as [`encoding`](Self::encoding) requires, and writes the
    /// answers to a bit mask.
    ///
    /// # Errors
    ///
    /// A message with the error of the Redis server or the connection.
    pub fn contains_each(
        &mut self,
        batch: &ItemBatch,
        answers: &mut Answers,
    ) -> Result<(), Failure> {
        match self {
            Lookup::Hashes(file) => {
                file.filter.advance(now_millis());
                file.filter.contains_hashes(batch.hashes(), answers.reset(batch.len()));
            }
            Lookup::Keys(contents, _) => contents.contains_each(&batch.keys(), answers),
            Lookup::Redis(target) => {
                let found = target.contains_each(batch)?;
                answers.fill_with(found.len(), |index| found[index]);
            }
        }
        Ok(())
    }

    /// Returns the filter if the filter counts the copies of an item.
    pub fn counting(&self) -> Option<&AnyFilter<BitView<'_>>> {
        match self {
            Lookup::Hashes(file) if file.filter.plan().kind().can_remove() => Some(&file.filter),
            _ => None,
        }
    }
}
