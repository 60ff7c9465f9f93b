//! The filter of the class `RedisBitmaps` of Java articles, which adds bitmaps when the number of
//! items grows.
//!
//! After every item, the Java class counts the set bits of the newest bitmap. This module inserts
//! several items in one round trip only if the items cannot fill more than half of the bitmap. This
//! module therefore adds a bitmap after the same item as the Java class. A batch of this module
//! needs a few round trips; the Java class needs several round trips for each item.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::Value;
use tamis_formats::{RedisBitmaps, Rule};

use crate::error::{Difference, RedisItemError, RedisOpenError, printable};
use crate::layouts::bits::{self, MAX_SCRIPT_BITS};
use crate::transport::blocking::{Transport, ask};
use crate::transport::request::{NodeReply, NodeRequest, bytes, integer};

const CURSOR: &[u8] = b"cursor";

/// Creates the first bitmap if both the first bitmap and the cursor are missing. If the cursor
/// exists and the first bitmap is missing, the server has lost the bitmap. The keys are the cursor
/// and the bitmap. The argument is the number of the last bit. The script replies with the cursor
/// and the length of the bitmap.
const CREATE: &str = "\
local cursor = redis.call('GET', KEYS[1])
if not cursor and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('SETBIT', KEYS[2], ARGV[1], 0)
end
return {cursor or '0', redis.call('STRLEN', KEYS[2])}";

/// Sets bits if the bitmap has its full length. The key is the bitmap. The arguments are the length
/// of the bitmap and the arguments of `BITFIELD`. The script replies with nil if the bitmap is
/// missing or does not have its full length.
const CHECKED_SET: &str = "\
if redis.call('STRLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return false end
return redis.call('BITFIELD', KEYS[1], unpack(ARGV, 2))";

/// Adds a bitmap if the newest bitmap is more than half full, unless another client changed the
/// cursor. The keys are the cursor, the newest bitmap and the next bitmap. The arguments are the
/// cursor that the client has read and the number of bits. The script replies with the value of the
/// cursor at the end of the script.
const GROW: &str = "\
local cursor = redis.call('GET', KEYS[1]) or '0'
if cursor ~= ARGV[1] then return cursor end
if 2 * redis.call('BITCOUNT', KEYS[2]) <= tonumber(ARGV[2]) then return cursor end
redis.call('DEL', KEYS[3])
redis.call('SETBIT', KEYS[3], ARGV[2] - 1, 0)
redis.call('INCR', KEYS[1])
return redis.call('GET', KEYS[1])";

/// Deletes all bitmaps and creates an empty bitmap, unless another client changed the cursor. The
/// keys are the cursor and the bitmaps. The arguments are the cursor that the client has read and
/// the number of the last bit. The script replies with the value that the cursor had before the
/// reset.
const RESET: &str = "\
local cursor = redis.call('GET', KEYS[1]) or '0'
if cursor ~= ARGV[1] then return cursor end
for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end
redis.call('SET', KEYS[1], '0')
redis.call('SETBIT', KEYS[2], ARGV[2], 0)
return cursor";

/// The largest number of items in a round trip.
const MAX_ITEMS: usize = 1000;

/// The largest number of tests in a round trip. A round trip tests each item in each bitmap.
const MAX_TESTS: u64 = 64_000;

/// The largest valid cursor. The limit of the cursor bounds the number of commands if the cursor in
/// Redis is damaged.
const MAX_CURSOR: u64 = 4095;

/// The filter of a Java program with the class `RedisBitmaps`. The bits in Redis are the same as
/// with the Java class.
///
/// All filters of a database share the keys `cursor` and `bloomfilter-0`, `bloomfilter-1`, …, as in
/// Java. If several clients grow the filter at the same time, the filter adds only one bitmap. The
/// filter does not work on a cluster, because the keys are in several slots.
///
/// All methods take `&self`. Calls at the same time behave as the calls of several clients.
///
/// # Examples
///
/// ```no_run
/// use tamis_redis::{BitmapsFilter, Patience, SingleNode};
///
/// let node = SingleNode::new("redis://localhost", Patience::default())?;
/// let seen = BitmapsFilter::open_or_create(node, 1_000_000, 0.01)?;
/// assert_eq!(seen.insert_each(&["alice"]), [Ok(true)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct BitmapsFilter<T> {
    transport: T,
    rule: Rule,
    /// The number of the newest bitmap that the client has read.
    ///
    /// Each batch first reads the cursor from the server, so the number needs no ordering with other
    /// memory.
    cursor: Arc<AtomicU64>,
}

/// Decodes the value of the cursor. Only the canonical decimal form is valid, because the scripts
/// compare the cursor as text.
fn cursor_of(text: &[u8]) -> Result<u64, RedisItemError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number
        .filter(|&number: &u64| number <= MAX_CURSOR && number.to_string().as_bytes() == text)
        .ok_or_else(|| RedisItemError::unexpected(CURSOR, "is not a number from 0 to 4095"))
}

fn bitmap(number: u64) -> Vec<u8> {
    format!("bloomfilter-{number}").into_bytes()
}

impl<T: Transport> BitmapsFilter<T> {
    /// Opens the filter. Creates the first bitmap if the bitmap is missing. Each bitmap is planned
    /// for `items` items at the false positive rate `rate`.
    ///
    /// # Errors
    ///
    /// [`RedisOpenError::Plan`] if Guava refuses the plan; [`RedisOpenError::Differs`] if the first
    /// bitmap has another length than planned; [`RedisOpenError::Redis`] if the server or the
    /// connection fails. If the key `cursor` exists and the first bitmap is missing, the error
    /// contains [`RedisItemError::MissingShard`]. To start with an empty filter again, delete the
    /// key `cursor`.
    pub fn open_or_create(transport: T, items: u64, rate: f64) -> Result<Self, RedisOpenError> {
        let rule = RedisBitmaps::plan(items, rate)
            .map_err(|error| RedisOpenError::Plan { why: error.to_string() })?;
        let mut request = NodeRequest::script(CREATE, &[CURSOR.to_vec(), bitmap(0)]);
        request.command.arg(rule.bits() - 1);
        let reply = ask(&transport, request)?;
        let (cursor, len): (Vec<u8>, u64) = redis::from_redis_value(reply)
            .map_err(|_| RedisItemError::unexpected(CURSOR, "has a wrong number of values"))?;
        if len == 0 {
            return Err(RedisItemError::MissingShard { key: printable(&bitmap(0)) }.into());
        }
        let cursor = Arc::new(AtomicU64::new(cursor_of(&cursor)?));
        let filter = Self { transport, rule, cursor };
        let difference = Difference::of("bytes of a bitmap", &filter.len_bytes(), &len);
        RedisOpenError::check(&bitmap(0), Difference::all([difference]))?;
        Ok(filter)
    }

    /// Inserts items. Returns one result for each item, in the order of the items: true if the item
    /// is new.
    ///
    /// An insert takes two round trips for each 1000 items, and some more round trips when a bitmap
    /// becomes half full.
    pub fn insert_each<I: AsRef<[u8]>>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(items, true)
    }

    /// Tests whether each item may be in any bitmap, with one round trip for each 1000 items.
    pub fn contains_each<I: AsRef<[u8]>>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(items, false)
    }

    /// Returns the number of the newest bitmap that the client has read.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor.load(Ordering::Relaxed)
    }

    /// Removes all items: deletes all bitmaps except the first bitmap, which becomes empty.
    ///
    /// # Errors
    ///
    /// [`RedisItemError`] if the server or the connection fails; [`RedisItemError::Unsettled`] if
    /// other clients repeatedly add bitmaps during the call.
    pub fn reset(&self) -> Result<(), RedisItemError> {
        for _ in 0..8 {
            let cursor = self.cursor();
            let keys: Vec<_> =
                [CURSOR.to_vec()].into_iter().chain((0..=cursor).map(bitmap)).collect();
            let mut request = NodeRequest::script(RESET, &keys);
            request.command.arg(cursor).arg(self.rule.bits() - 1);
            let reply = ask(&self.transport, request)?;
            if self.learn_cursor(Ok(reply))? == cursor {
                self.cursor.store(0, Ordering::Relaxed);
                return Ok(());
            }
        }
        Err(RedisItemError::Unsettled)
    }

    fn len_bytes(&self) -> u64 {
        self.rule.bits() / 8
    }

    /// Stores and returns the cursor of a reply.
    fn learn_cursor(&self, reply: NodeReply) -> Result<u64, RedisItemError> {
        let cursor = cursor_of(&bytes(CURSOR, reply)?.unwrap_or_else(|| b"0".to_vec()))?;
        self.cursor.store(cursor, Ordering::Relaxed);
        Ok(cursor)
    }

    fn each<I: AsRef<[u8]>>(
        &self,
        items: &[I],
        is_insert: bool,
    ) -> Vec<Result<bool, RedisItemError>> {
        let mut results = Vec::with_capacity(items.len());
        for items in items.chunks(MAX_ITEMS) {
            let offsets = items.iter().map(|item| self.rule.offsets(item.as_ref())).collect();
            let (found, answers) = (Vec::new(), Vec::new());
            let (filter, cursor) = (self, self.cursor());
            let batch =
                BitmapsBatch { filter, cursor, offsets, is_insert, found, answers, ones: 0 };
            results.append(&mut batch.run());
        }
        results
    }
}

/// A batch that inserts items, or tests items in all bitmaps.
struct BitmapsBatch<'f, T> {
    filter: &'f BitmapsFilter<T>,
    /// The number of the newest bitmap that the batch uses.
    cursor: u64,
    offsets: Vec<Vec<u64>>,
    is_insert: bool,
    /// For each item without a result: whether one bitmap contains all bits of the item.
    found: Vec<bool>,
    answers: Vec<Result<bool, RedisItemError>>,
    /// The number of set bits in the newest bitmap.
    ones: u64,
}

impl<T: Transport> BitmapsBatch<'_, T> {
    /// Inserts or tests all items of the batch. If an error occurs, all items without a result get
    /// the error.
    fn run(mut self) -> Vec<Result<bool, RedisItemError>> {
        if let Err(error) = self.answer() {
            self.answers.resize(self.offsets.len(), Err(error));
        }
        self.answers
    }

    fn answer(&mut self) -> Result<(), RedisItemError> {
        let mut restarts = 0;
        while !self.left().is_empty() {
            if !self.look()? {
                restarts += 1;
                if restarts > 8 {
                    return Err(RedisItemError::Unsettled);
                }
            } else if self.is_insert {
                self.write()?;
            } else {
                self.answers.extend(self.found.drain(..).map(Ok));
            }
        }
        Ok(())
    }

    /// Returns the next items without a result, at most as many as one round trip tests.
    fn left(&self) -> &[Vec<u64>] {
        let left = &self.offsets[self.answers.len()..];
        let most = (MAX_TESTS / (self.cursor + 1)) as usize;
        &left[..left.len().min(most)]
    }

    /// Reads the cursor, and the lengths and bits of all bitmaps. Returns false if the cursor has
    /// changed.
    fn look(&mut self) -> Result<bool, RedisItemError> {
        let cursor = self.cursor;
        // Before an insert, Java tests the bitmaps only if the filter has several bitmaps.
        let tests = !self.is_insert || cursor > 0;
        let mut requests = vec![NodeRequest::new("GET", CURSOR.to_vec())];
        requests.push(NodeRequest::new("BITCOUNT", bitmap(cursor)));
        for number in 0..=cursor {
            if tests {
                requests.push(bits::read(&bitmap(number), self.left()));
            }
            // The request for the length comes after the requests for the bits. If the server
            // evicts a bitmap before the bits are read, the bits read as zeros, and the length
            // shows the loss.
            requests.push(NodeRequest::new("STRLEN", bitmap(number)));
        }
        let mut replies = self.filter.transport.send(&requests).into_iter();
        let mut next = || replies.next().expect("one reply for each request");
        self.found = vec![false; self.left().len()];
        self.cursor = self.filter.learn_cursor(next())?;
        if self.cursor != cursor {
            return Ok(false);
        }
        self.ones = integer(&bitmap(cursor), next())?.unsigned_abs();
        for number in 0..=cursor {
            let key = bitmap(number);
            if tests {
                let clear = bits::clear_bits(&key, self.left(), next())?;
                for (found, clear) in self.found.iter_mut().zip(clear) {
                    *found |= clear == 0;
                }
            }
            if integer(&key, next())?.unsigned_abs() != self.filter.len_bytes() {
                return Err(RedisItemError::MissingShard { key: printable(&key) });
            }
        }
        Ok(true)
    }

    /// Inserts the tested items that are absent, until the newest bitmap is more than half full.
    fn write(&mut self) -> Result<(), RedisItemError> {
        while !self.found.is_empty() {
            let count = self.count_that_fits();
            let clear = self.insert(count)?;
            self.ones += clear.iter().sum::<u64>();
            let mut clear = clear.into_iter();
            for found in self.found.drain(..count) {
                let is_new = !found && clear.next().is_some_and(|clear| clear > 0);
                self.answers.push(Ok(is_new));
            }
            let (bits, cursor) = (self.filter.rule.bits(), self.cursor);
            if 2 * self.ones > bits {
                let keys = [CURSOR.to_vec(), bitmap(cursor), bitmap(cursor + 1)];
                let mut request = NodeRequest::script(GROW, &keys);
                request.command.arg(cursor).arg(bits);
                let reply = self.filter.transport.send(&[request]).remove(0);
                self.cursor = self.filter.learn_cursor(reply)?;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns how many of the next items can be inserted without filling more than half of the
    /// newest bitmap. The result is at least 1, even if one item could fill more than half of the
    /// newest bitmap.
    fn count_that_fits(&self) -> usize {
        let probes = u64::from(self.filter.rule.probes());
        let free = (self.filter.rule.bits() / 2).saturating_sub(self.ones);
        let most = (free / probes).max(1);
        let mut absent = 0;
        let fits = |found: &&bool| {
            absent += u64::from(!**found);
            absent <= most
        };
        self.found.iter().take_while(fits).count()
    }

    /// Inserts the absent items among the first `count` items. Returns the number of changed bits
    /// for each inserted item.
    fn insert(&mut self, count: usize) -> Result<Vec<u64>, RedisItemError> {
        let items = self.left()[..count].iter().zip(&self.found);
        let absent = items.filter(|(_, found)| !**found).map(|(offsets, _)| offsets.clone());
        let absent: Vec<Vec<u64>> = absent.collect();
        if absent.is_empty() {
            return Ok(Vec::new());
        }
        let key = bitmap(self.cursor);
        let chunks = bits::chunks(&absent, MAX_SCRIPT_BITS);
        let request = |chunk: &Range<usize>| {
            let mut request = NodeRequest::script(CHECKED_SET, std::slice::from_ref(&key));
            request.command.arg(self.filter.len_bytes());
            bits::append_sets(&mut request, &absent[chunk.clone()]);
            request
        };
        let requests: Vec<_> = chunks.iter().map(request).collect();
        let replies = self.filter.transport.send(&requests);
        let mut clear = Vec::new();
        for (chunk, reply) in chunks.into_iter().zip(replies) {
            if matches!(reply, Ok(Value::Nil)) {
                return Err(RedisItemError::MissingShard { key: printable(&key) });
            }
            clear.append(&mut bits::clear_bits(&key, &absent[chunk], reply)?);
        }
        Ok(clear)
    }
}
