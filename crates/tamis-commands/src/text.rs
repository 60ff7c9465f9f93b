//! The error texts of all commands. Clients compare replies with the error texts. The texts of RedisBloom commands
//! equal the texts of RedisBloom, with or without `ERR`, and never change.

#![expect(clippy::must_use_candidate, reason = "an error text is useless unless it is sent")]

pub mod acl;
pub mod server;
pub mod tm;

use std::borrow::Cow;

use tamis_resp::Reply;

/// An error text: the part of an error reply after the `-`.
pub type Text = &'static str;

/// The key holds a value of another type.
pub const WRONG_TYPE: Text = "WRONGTYPE Operation against a key holding the wrong kind of value";
/// The key does not exist.
pub const NOT_FOUND: Text = "ERR not found";
/// The key already holds a filter.
pub const ITEM_EXISTS: Text = "ERR item exists";
/// There is not enough memory for a filter.
pub const NO_MEMORY_FOR_FILTER: Text = "ERR Insufficient memory to create filter";
/// An argument or the value of the key is not an integer.
pub const NO_INTEGER: Text = "ERR value is not an integer or out of range";
/// The result does not fit 64 bits.
pub const OVERFLOW: Text = "ERR increment or decrement would overflow";
/// `DECRBY`: the number has no negative counterpart.
pub const DECREMENT_OVERFLOW: Text = "ERR decrement would overflow";
/// The expiry time of `SET` is invalid.
pub const SET_EXPIRY: Text = "ERR invalid expire time in 'set' command";
/// `SLOWLOG GET`: the number of entries is not an integer, or is less than -1.
pub const SLOW_COUNT: Text = "ERR count should be greater than or equal to -1";
/// The combination of arguments is invalid.
pub const SYNTAX: Text = "ERR syntax error";

/// Texts of bitmap commands and of string ranges.
pub mod bitmap {
    use crate::text::Text;

    /// The offset of a bit is not an integer, is negative, or is beyond the longest string.
    pub const BIT_OFFSET: Text = "ERR bit offset is not an integer or out of range";
    /// `SETBIT`: the bit is neither 0 nor 1.
    pub const BIT_VALUE: Text = "ERR bit is not an integer or out of range";
    /// `BITPOS`: the bit is neither 0 nor 1.
    pub const SOUGHT_BIT: Text = "ERR The bit argument must be 1 or 0.";
    /// `BITOP NOT`: the command has more than one source key.
    pub const NOT_OF_SEVERAL: Text = "ERR BITOP NOT must be called with a single source key.";
    /// `BITFIELD`: the type is unknown.
    pub const FIELD_TYPE: Text = "ERR Invalid bitfield type. Use something like i16 u8. Note that \
        u64 is not supported but i64 is.";
    /// `BITFIELD`: the overflow rule is unknown.
    pub const OVERFLOW_RULE: Text = "ERR Invalid OVERFLOW type specified";
    /// `BITFIELD_RO`: the command contains `SET` or `INCRBY`.
    pub const READ_ONLY: Text = "ERR BITFIELD_RO only supports the GET subcommand";
    /// `SETRANGE`: the offset is negative.
    pub const OFFSET: Text = "ERR offset is out of range";
    /// The string would be longer than 512 MiB.
    pub const TOO_LONG: Text = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
}

/// Texts of `BF.*`.
pub mod bf {
    use crate::text::Text;

    /// `BF.RESERVE`: the rate is not a number.
    pub const BAD_RATE: Text = "ERR bad error rate";
    /// `BF.RESERVE`: the rate is not between 0 and 1.
    pub const RATE_RANGE: Text = "ERR error rate must be in the range (0.000000, 1.000000)";
    /// `BF.RESERVE`: the capacity is not an integer.
    pub const BAD_CAPACITY: Text = "ERR bad capacity";
    /// `BF.RESERVE`: the capacity is too small or too large.
    pub const CAPACITY_RANGE: Text = "ERR capacity must be in the range [1, 1073741824]";
    /// `BF.RESERVE`: `EXPANSION` has no value.
    pub const NO_EXPANSION: Text = "ERR no expansion";
    /// `BF.RESERVE`: the expansion is not an integer.
    pub const BAD_EXPANSION: Text = "ERR bad expansion";
    /// `BF.RESERVE`: the expansion is too large or negative.
    pub const EXPANSION_RANGE: Text = "ERR expansion must be in the range [0, 32768]";
    /// `BF.RESERVE`: the command contains both `NONSCALING` and `EXPANSION`.
    pub const NONSCALING_EXPANDS: Text = "Nonscaling filters cannot expand";
    /// The rate is too low for any filter.
    pub const NO_FILTER: Text = "ERR could not create filter";
    /// The filter is full and must not grow.
    pub const FULL: Text = "ERR non scaling filter is full";
    /// The filter could not grow.
    pub const NOT_INSERTED: Text = "ERR problem inserting into filter";
    /// `BF.INSERT`: the option is unknown.
    pub const UNKNOWN_ARGUMENT: Text = "Unknown argument received";
    /// `BF.INSERT`: the capacity is not an integer, or out of range.
    pub const INSERT_CAPACITY: Text = "Bad capacity";
    /// `BF.INSERT`: the rate is not a number, or out of range.
    pub const INSERT_RATE: Text = "Bad error rate";
    /// `BF.INSERT`: the expansion is not an integer, or out of range.
    pub const INSERT_EXPANSION: Text = "Bad expansion";
    /// `BF.INFO`: the field is unknown.
    pub const UNKNOWN_FIELD: Text = "Invalid information value";
    /// `BF.SCANDUMP`: the position is not an integer.
    pub const POSITION: Text = "Second argument must be numeric";
    /// `BF.LOADCHUNK`: the position is not an integer.
    pub const LOAD_POSITION: Text = "ERR Second argument must be numeric";
    /// `BF.LOADCHUNK`: the data is not a header, or the position of the chunk is invalid.
    pub const BAD_DATA: Text = "ERR received bad data";
    /// `BF.LOADCHUNK`: the chunk begins outside the filter.
    pub const OUTSIDE: Text = "ERR invalid offset - no link found";
    /// Some chunks of the filter are missing.
    pub const INCOMPLETE: Text = "ERR the filter is not complete: send the remaining chunks with \
        BF.LOADCHUNK, or DEL the key";
    /// `BF.LOADCHUNK`: the chunk does not follow the previous chunk of a Tamis filter.
    pub const GAP: Text =
        "ERR the chunk does not continue the previous one: send the chunks of BF.SCANDUMP in order";
    /// `BF.LOADCHUNK`: all chunks of a Tamis filter have arrived, but the chunks do not decode to a
    /// filter.
    pub const TORN: Text = "ERR the chunks do not form a filter, and the key was deleted: the \
        source changed during the dump; dump it again";
    /// `BF.LOADCHUNK`: the chunk exceeds the end of its layer.
    pub const TOO_LONG: Text = "ERR invalid chunk - Too big for current filter";
}

/// Texts of `CF.*`.
pub mod cf {
    use crate::text::Text;

    /// The capacity is not an integer.
    pub const BAD_CAPACITY: Text = "Bad capacity";
    /// `CF.RESERVE`: the capacity is out of range.
    pub const CAPACITY_RANGE: Text = "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
    /// `CF.INSERT`: the capacity is out of range.
    pub const INSERT_CAPACITY_RANGE: Text =
        "Capacity must be in the range [cf-bucket-size * 2, 1073741824]";
    /// The maximum number of moves is not an integer.
    pub const BAD_ITERATIONS: Text = "Couldn't parse MAXITERATIONS";
    /// The maximum number of moves is out of range.
    pub const ITERATIONS_RANGE: Text = "MAXITERATIONS: value must be in the range [1, 65535]";
    /// The bucket size is not an integer.
    pub const BAD_BUCKET_SIZE: Text = "Couldn't parse BUCKETSIZE";
    /// The bucket size is out of range.
    pub const BUCKET_SIZE_RANGE: Text = "BUCKETSIZE: value must be in the range [1, 255]";
    /// The expansion is not an integer.
    pub const BAD_EXPANSION: Text = "Couldn't parse EXPANSION";
    /// The expansion is out of range.
    pub const EXPANSION_RANGE: Text = "EXPANSION: value must be in the range [0, 32768]";
    /// The filter cannot be created, for a reason other than memory.
    pub const NO_FILTER: Text = "ERR Could not create filter";
    /// The filter is full and must not grow.
    pub const FULL: Text = "Filter is full";
    /// There is not enough memory to grow the filter.
    pub const NO_MEMORY: Text = "ERR Insufficient memory";
    /// The cuckoo filter has reached its maximum number of expansions.
    pub const MAX_EXPANSIONS: Text = "Maximum expansions reached";
    /// `CF.INSERT`: the option is unknown.
    pub const UNKNOWN_ARGUMENT: Text = "Unknown argument received";
    /// `CF.DEL`: the filter does not exist.
    pub const NOT_FOUND: Text = "Not found";
    /// `CF.COMPACT`: the filter does not exist.
    pub const COMPACT_NOT_FOUND: Text = "Cuckoo filter was not found";
    /// The position of a chunk is not an integer, or is negative or zero.
    pub const POSITION: Text = "Invalid position";
    /// `CF.LOADCHUNK`: the header has a wrong length.
    pub const HEADER: Text = "Invalid header";
    /// `CF.LOADCHUNK`: the header is invalid.
    pub const BAD_HEADER: Text = "Couldn't create filter!";
    /// `CF.LOADCHUNK`: the chunk is not within the filter.
    pub const BAD_CHUNK: Text = "Couldn't load chunk!";
}

/// Returns a word of the client as text, truncated to 128 bytes as in Redis.
pub fn shown(word: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&word[..word.len().min(128)])
}

/// Creates the reply to a wrong number of arguments. `name` is the name of the command in the
/// table.
pub fn wrong_arity(name: &str) -> Reply {
    let name = name.to_ascii_lowercase();
    Reply::Error(Cow::Owned(format!("ERR wrong number of arguments for '{name}' command")))
}

/// Creates the reply to an unknown command. The reply contains the name and the first arguments,
/// truncated as in Redis.
pub fn unknown_command(words: &[&[u8]]) -> Reply {
    let name = words.first().map_or_else(Cow::default, |word| shown(word));
    let mut arguments = String::new();
    for word in &words[words.len().min(1)..] {
        if arguments.len() >= 128 {
            break;
        }
        arguments += &format!("'{}' ", shown(word));
    }
    Reply::Error(Cow::Owned(format!(
        "ERR unknown command '{name}', with args beginning with: {arguments}"
    )))
}
