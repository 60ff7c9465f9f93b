//! What a file of any format holds, for programs that find out only at run time.

use std::convert::Infallible;
use std::fmt;

use tamis::{
    Answers, Bloom, Filter as _, Hasher, Insert as _, OutOfMemory, Parquet, RedisBloom,
    RedisCuckoo, TryInsert as _,
};

use crate::foreign_bloom::ForeignBloom;
use crate::golomb_set::GolombSet;
use crate::hadoop::{CountingFilter, DynamicFilter};
use crate::integers::IntegerBitmap;
use crate::item_collector::ItemCollector;
use crate::layers::Layers;
use crate::leveldb::FilterBlock;
use crate::my_bloom_filter::MyBloomFilter;
use crate::orc::RowGroups;
use crate::redis_bitmaps::RedisBitmaps;
use crate::redisbloom;
use crate::roaring::Roaring;
use crate::rocksdb::Reserved;
use crate::rule::rate_std_error;
use crate::tamis_file::TamisFile;

/// What a file of any format holds. The kind is matched once a batch, not once an item.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Contents {
    /// A filter of this library.
    Tamis(TamisFile),
    /// One run of bits and a rule.
    Flat(ForeignBloom),
    /// A column's filter of a Parquet file, which this library's own kind is, with XXH64, seed 0.
    Parquet(Bloom<Parquet>),
    /// Counters of Hadoop.
    HadoopCounting(CountingFilter),
    /// Rows of Hadoop.
    HadoopDynamic(DynamicFilter),
    /// ORC's filters, each for a row group: answers are for any of them.
    Orc(RowGroups),
    /// Items of a filter that is written once, from all of them.
    ItemCollector(ItemCollector),
    /// LevelDB's filters, each for a part of the data: answers are for any part.
    LevelDb(FilterBlock),
    /// What RocksDB says to answer yes from.
    Reserved(Reserved),
    /// A Golomb-coded set, which is only read.
    Golomb(GolombSet),
    /// Bitmaps of `RedisBitmaps`.
    RedisBitmaps(RedisBitmaps),
    /// A scaling Bloom filter of RedisBloom.
    RedisBloom(RedisBloom),
    /// A cuckoo filter of RedisBloom.
    RedisCuckoo(RedisCuckoo),
    /// An exact set of integers, a bit each.
    Integers(IntegerBitmap),
    /// `MyBloomFilter` of Java articles.
    MyBloomFilter(MyBloomFilter),
    /// Filters that know for how much they were made, one behind the other.
    Layers(Layers),
    /// An exact set of integers, compressed.
    Roaring(Roaring),
}

/// All there is to tell of what a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterInfo {
    /// What it is, in a few words: the hash and the rule.
    pub rule: String,
    /// How many bits it has.
    pub bits: u64,
    /// How many probes an item has, if that is one number.
    pub probes: Option<u32>,
    /// The share of bits that are set.
    pub fill: f64,
    /// About how many distinct items are in; infinite if every bit is set, NaN if the bits do not tell.
    pub items: f64,
    /// The rate at which it takes absent items for present ones now; 0 for an exact set.
    pub rate: f64,
    /// How far chance moves `rate`, since other items set other bits: its standard deviation, as a share of it. 0 if not known.
    pub rate_std_error: f64,
    /// The rate that its bytes say it was planned for, of all its layers if it grows; `None` if they say none.
    pub planned_rate: Option<f64>,
    /// What else the format says, as names and values in the order in which they are shown.
    pub more: Vec<(&'static str, String)>,
    /// What a user should be warned of, each a line.
    pub warnings: Vec<String>,
}

/// Why items could not be inserted, or filters not be merged.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChangeError {
    /// The format or the original cannot do it; the text says why, and what to do.
    Refused(Box<str>),
    /// The memory is not there.
    Memory(OutOfMemory),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Refused(why) => f.write_str(why),
            ChangeError::Memory(OutOfMemory { bytes }) => {
                write!(f, "{bytes} more bytes of memory are not there")
            }
        }
    }
}

impl std::error::Error for ChangeError {}

impl ChangeError {
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        ChangeError::Refused(why.into().into())
    }
}

impl Contents {
    /// Tells for many items, each as the bytes that the original hashes, whether they may be in.
    pub fn contains_each<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Answers) {
        match self {
            Contents::Tamis(file) => {
                let hashes = hashes(file.filter.hasher(), keys);
                file.filter.contains_hashes(&hashes, answers.reset(keys.len()));
            }
            Contents::Flat(filter) => match filter.rule().key_len() {
                // No key of another width can have been inserted.
                Some(len) if fitting(keys, len) < keys.len() => {
                    answer_each(keys, answers, |key| key.len() == len && filter.contains(key));
                }
                _ => filter.contains_each(keys, answers),
            },
            Contents::Parquet(filter) => {
                let hashes = hashes(filter.hasher(), keys);
                filter.contains_hashes(&hashes, answers.reset(keys.len()));
            }
            Contents::HadoopCounting(filter) => {
                answer_each(keys, answers, |key| filter.contains(key));
            }
            Contents::HadoopDynamic(filter) => filter.contains_each(keys, answers),
            Contents::Orc(row_groups) => row_groups.contains_each(keys, answers),
            Contents::ItemCollector(items) => items.contains_each(keys, answers),
            Contents::LevelDb(block) => answer_each(keys, answers, |key| block.contains_any(key)),
            Contents::Reserved(_) => answer_each(keys, answers, |_| true),
            Contents::Golomb(set) => set.contains_each(keys, answers),
            Contents::RedisBitmaps(it) => it.contains_each(keys, answers),
            Contents::RedisBloom(it) => it.contains_each(&redisbloom::slices(keys), answers),
            Contents::RedisCuckoo(it) => it.contains_each(&redisbloom::slices(keys), answers),
            Contents::Integers(set) => set.contains_each(keys, answers),
            Contents::MyBloomFilter(filter) => filter.contains_each(keys, answers),
            Contents::Layers(layers) => layers.contains_each(keys, answers),
            Contents::Roaring(set) => set.contains_each(keys, answers),
        }
    }

    /// Inserts many items in order; tells which were new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if there is no room, or the original would fail; items before the one that failed are in then.
    pub fn insert_each<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        answers: &mut Answers,
    ) -> Result<(), ChangeError> {
        match self {
            Contents::Tamis(file) => {
                let hashes = hashes(file.filter.hasher(), keys);
                let inserted = file.filter.try_insert_hashes(&hashes, answers.reset(keys.len()));
                let count = inserted.err().map_or(keys.len(), |error| error.inserted);
                file.added = file.added.saturating_add(count as u64);
                inserted.map_err(|error| ChangeError::refused(error.to_string()))
            }
            Contents::Flat(filter) => match filter.rule().key_len() {
                Some(len) if fitting(keys, len) < keys.len() => {
                    filter.insert_each(&keys[..fitting(keys, len)], answers);
                    Err(ChangeError::refused(format!(
                        "its items are hashes of {len} bytes: name another funnel"
                    )))
                }
                _ => {
                    filter.insert_each(keys, answers);
                    Ok(())
                }
            },
            Contents::Parquet(filter) => {
                let hashes = hashes(filter.hasher(), keys);
                filter.insert_hashes(&hashes, answers.reset(keys.len()));
                Ok(())
            }
            Contents::HadoopCounting(filter) => {
                answer_each(keys, answers, |key| filter.insert(key));
                Ok(())
            }
            Contents::HadoopDynamic(filter) => filter.insert_each(keys, answers),
            Contents::Orc(row_groups) => row_groups.insert_each(keys, answers),
            Contents::ItemCollector(items) => {
                items.insert_each(keys, answers);
                Ok(())
            }
            Contents::LevelDb(_) => Err(ChangeError::refused(
                "LevelDB has a filter for each part of a table's data, planned for its keys: build them again",
            )),
            Contents::Reserved(_) => Err(ChangeError::refused(
                "a filter of a later RocksDB, whose rule is not known: build one from the items",
            )),
            Contents::Golomb(_) => Err(ChangeError::refused(GolombSet::WRITTEN_ONCE)),
            Contents::RedisBitmaps(it) => it.insert_each(keys, answers),
            Contents::RedisBloom(it) => redisbloom::insert_bloom(it, keys, answers),
            Contents::RedisCuckoo(it) => redisbloom::insert_cuckoo(it, keys, answers),
            Contents::Integers(set) => set.insert_each(keys, answers),
            Contents::MyBloomFilter(filter) => filter.insert_each(keys, answers),
            Contents::Layers(layers) => layers.insert_each(keys, answers),
            Contents::Roaring(set) => set.insert_each(keys, answers),
        }
    }

    /// Adds all items of another.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if they do not fit together; nothing has changed then.
    pub fn merge(&mut self, other: &Self) -> Result<(), ChangeError> {
        let is_merged = match (&mut *self, other) {
            (Contents::Tamis(one), Contents::Tamis(other)) => {
                let refused = |error: tamis::MergeError| ChangeError::refused(error.to_string());
                one.filter.merge(&other.filter).map_err(refused)?;
                one.added = one.added.saturating_add(other.added);
                true
            }
            (Contents::Flat(one), Contents::Flat(other)) => one.merge(other),
            (Contents::Parquet(one), Contents::Parquet(other)) => one.merge(other).is_ok(),
            (Contents::HadoopCounting(one), Contents::HadoopCounting(other)) => one.merge(other),
            (Contents::HadoopDynamic(one), Contents::HadoopDynamic(other)) => one.merge(other),
            (Contents::Orc(one), Contents::Orc(other)) => one.merge(other),
            (Contents::LevelDb(_), Contents::LevelDb(_))
            | (Contents::Reserved(_), Contents::Reserved(_)) => {
                let why = "such filters belong to the data of one table: build one from the items of both";
                return Err(ChangeError::refused(why));
            }
            (Contents::Golomb(_), _) | (_, Contents::Golomb(_)) => {
                return Err(ChangeError::refused(GolombSet::WRITTEN_ONCE));
            }
            (Contents::RedisBitmaps(one), Contents::RedisBitmaps(other)) => one.merge(other),
            (Contents::RedisBloom(_) | Contents::RedisCuckoo(_), _) => {
                let why = "RedisBloom's filters count their items, which no union of bits tells, and do not merge: insert the items of \
                           both into one; of filters of Redis, those of redis-bitmap, redis-bitmaps and redisson merge";
                return Err(ChangeError::refused(why));
            }
            (Contents::Integers(one), Contents::Integers(other)) => {
                one.merge(other).map(|()| true)?
            }
            (Contents::MyBloomFilter(one), Contents::MyBloomFilter(other)) => {
                one.merge(other).map(|()| true)?
            }
            (Contents::Layers(one), Contents::Layers(other)) => one.merge(other),
            (Contents::Roaring(one), Contents::Roaring(other)) => {
                one.merge(other);
                true
            }
            (_, _) => false,
        };
        if is_merged {
            return Ok(());
        }
        let (one, other) = (self.info(), other.info());
        Err(ChangeError::refused(format!(
            "not of one layout: {} against {}",
            one.layout(),
            other.layout()
        )))
    }

    /// Tells whether it holds so much that its rate is above the one that `told` says or its bytes say; returns that one if so.
    /// `facts` are its own. Of a filter that grows the told rate is what its program was asked for, and what its layers together
    /// come to is what counts; one of ours knows its own, whatever is told.
    ///
    /// Chance is allowed for: of filters that hold exactly what they were planned for, half lie above the planned rate.
    #[must_use]
    pub fn exceeded_rate(&self, info: &FilterInfo, options: Option<f64>) -> Option<f64> {
        let planned = match self {
            // Its plan knows better what chance does to it.
            Contents::Tamis(file) => return info.planned_rate.filter(|_| file.is_over_rate()),
            Contents::RedisBitmaps(filter) => Some(filter.planned_rate(options)),
            Contents::Layers(layers) => layers.planned_rate(options),
            _ => options.or(info.planned_rate),
        };
        planned.filter(|&planned| info.is_over(planned))
    }

    /// Reads from the bits what there is to tell. Linear time.
    #[must_use]
    pub fn info(&self) -> FilterInfo {
        match self {
            Contents::RedisBitmaps(filter) => filter.info(),
            Contents::RedisBloom(filter) => redisbloom::bloom_info(filter),
            Contents::RedisCuckoo(filter) => redisbloom::cuckoo_info(filter),
            Contents::Parquet(filter) => FilterInfo {
                rule: "split blocks of Parquet, xxh64 seed 0".into(),
                bits: filter.plan().bits(),
                probes: Some(filter.plan().probes()),
                fill: filter.fill(),
                items: filter.estimate_items(),
                rate: filter.estimate_rate(),
                rate_std_error: rate_std_error(
                    filter.fill(),
                    filter.plan().bits(),
                    filter.plan().probes(),
                ),
                ..FilterInfo::default()
            },
            Contents::HadoopCounting(filter) => filter.info(),
            Contents::HadoopDynamic(filter) => filter.info(),
            Contents::Orc(row_groups) => row_groups.info(),
            Contents::ItemCollector(items) => items.info(),
            Contents::LevelDb(block) => block.info(),
            Contents::Reserved(reserved) => reserved.info(),
            Contents::Flat(filter) => filter.info(),
            Contents::Golomb(set) => set.info(),
            Contents::Integers(set) => set.info(),
            Contents::MyBloomFilter(filter) => filter.info(),
            Contents::Layers(layers) => layers.info(),
            Contents::Roaring(set) => set.info(),
            Contents::Tamis(file) => FilterInfo {
                rule: file.filter.layout().to_string(),
                // A growing filter has other bits than it was planned with.
                bits: file.filter.len_words() * 64,
                fill: file.filter.fill(),
                items: file.filter.estimate_items(),
                rate: file.filter.estimate_rate(),
                planned_rate: Some(file.filter.plan().rate()),
                ..FilterInfo::default()
            },
        }
    }
}

impl FilterInfo {
    /// Tells whether the rate is above a planned one by more than chance explains: four standard deviations, and a tenth at least,
    /// as plans round the number of probes.
    #[must_use]
    pub fn is_over(&self, planned: f64) -> bool {
        // The rate is a power of the fill, so that its logarithm is what chance moves evenly.
        self.rate > planned * (4.0 * self.rate_std_error).exp().max(1.1)
    }

    fn layout(&self) -> String {
        match self.probes {
            Some(probes) => format!("{}, {probes} probes of {} bits", self.rule, self.bits),
            None => format!("{}, {} bits", self.rule, self.bits),
        }
    }
}

/// Answers for one item after the other.
pub(crate) fn answer_each(
    keys: &[impl AsRef<[u8]>],
    answers: &mut Answers,
    mut answer: impl FnMut(&[u8]) -> bool,
) {
    let answered = try_answer_each(keys, answers, |key| Ok::<_, Infallible>(answer(key)));
    answered.unwrap_or_else(|never| match never {});
}

/// Answers for one item after the other, until one fails.
pub(crate) fn try_answer_each<E>(
    keys: &[impl AsRef<[u8]>],
    answers: &mut Answers,
    mut answer: impl FnMut(&[u8]) -> Result<bool, E>,
) -> Result<(), E> {
    for (keys, word) in keys.chunks(64).zip(answers.reset(keys.len())) {
        for (i, key) in keys.iter().enumerate() {
            *word |= u64::from(answer(key.as_ref())?) << i;
        }
    }
    Ok(())
}

/// Returns how many keys come before the first that is not of so many bytes.
fn fitting(keys: &[impl AsRef<[u8]>], len: usize) -> usize {
    keys.iter().take_while(|key| key.as_ref().len() == len).count()
}

fn hashes(hasher: Hasher, keys: &[impl AsRef<[u8]>]) -> Vec<u64> {
    keys.iter().map(|key| hasher.hash(key.as_ref())).collect()
}
