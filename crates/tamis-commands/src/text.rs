//! The error texts of all commands. Clients match on them. Texts of RedisBloom's commands are
//! exactly RedisBloom's, with and without `ERR`, and never change.

pub mod server;

use std::borrow::Cow;

use tamis_resp::Reply;

/// An error text, as it follows the `-` in the reply.
pub type Text = &'static str;

/// The key holds a value of another type.
pub const WRONG_TYPE: Text = "WRONGTYPE Operation against a key holding the wrong kind of value";
/// The key does not exist.
pub const NOT_FOUND: Text = "ERR not found";
/// The key already holds a filter.
pub const ITEM_EXISTS: Text = "ERR item exists";
/// There is not enough memory for a filter.
pub const NO_MEMORY_FOR_FILTER: Text = "ERR Insufficient memory to create filter";
/// An argument or the value of the key is no integer.
pub const NO_INTEGER: Text = "ERR value is not an integer or out of range";
/// The result does not fit 64 bits.
pub const OVERFLOW: Text = "ERR increment or decrement would overflow";
/// `DECRBY`: the number has no negative counterpart.
pub const DECREMENT_OVERFLOW: Text = "ERR decrement would overflow";
/// `SET`: the expiry time is invalid.
pub const SET_EXPIRY: Text = "ERR invalid expire time in 'set' command";
/// `SLOWLOG GET`: the number of entries is no integer, or below -1.
pub const SLOW_COUNT: Text = "ERR count should be greater than or equal to -1";
/// The combination of arguments is invalid.
pub const SYNTAX: Text = "ERR syntax error";

/// Texts of bitmap commands and of string ranges.
pub mod bitmap {
    use crate::text::Text;

    /// The offset of a bit is no integer, negative or beyond the longest string.
    pub const BIT_OFFSET: Text = "ERR bit offset is not an integer or out of range";
    /// `SETBIT`: the bit is neither 0 nor 1.
    pub const BIT_VALUE: Text = "ERR bit is not an integer or out of range";
    /// `BITPOS`: the bit is neither 0 nor 1.
    pub const SOUGHT_BIT: Text = "ERR The bit argument must be 1 or 0.";
    /// `BITOP NOT`: several source keys.
    pub const NOT_OF_SEVERAL: Text = "ERR BITOP NOT must be called with a single source key.";
    /// `BITFIELD`: the type is unknown.
    pub const FIELD_TYPE: Text = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
    /// `BITFIELD`: the overflow rule is unknown.
    pub const OVERFLOW_RULE: Text = "ERR Invalid OVERFLOW type specified";
    /// `BITFIELD_RO` with `SET` or `INCRBY`.
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
    /// `BF.RESERVE`: both `NONSCALING` and `EXPANSION`.
    pub const NONSCALING_EXPANDS: Text = "Nonscaling filters cannot expand";
    /// No filter can reach so low a rate.
    pub const NO_FILTER: Text = "ERR could not create filter";
    /// The filter is full and may not grow.
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
    /// `BF.LOADCHUNK`: the data is no header, or the position of a chunk is impossible.
    pub const BAD_DATA: Text = "ERR received bad data";
    /// `BF.LOADCHUNK`: the chunk begins outside the filter.
    pub const OUTSIDE: Text = "ERR invalid offset - no link found";
    /// Some chunks of the filter are missing.
    pub const INCOMPLETE: Text = "ERR the filter is not complete: send the remaining chunks with BF.LOADCHUNK, or DEL the key";
    /// `BF.LOADCHUNK`: the chunk does not follow the previous chunk of a Tamis filter.
    pub const GAP: Text =
        "ERR the chunk does not continue the previous one: send the chunks of BF.SCANDUMP in order";
    /// `BF.LOADCHUNK`: all chunks of a Tamis filter have arrived, but do not decode to a filter.
    pub const TORN: Text = "ERR the chunks do not form a filter, and the key was deleted: the source changed during the dump; dump it again";
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
    /// The filter is full and may not grow.
    pub const FULL: Text = "Filter is full";
    /// There is not enough memory to grow the filter.
    pub const NO_MEMORY: Text = "ERR Insufficient memory";
    /// The filter has reached its maximum number of expansions.
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

/// Texts of `TM.*`. They state the error and what to do.
pub mod tm {
    use std::fmt::Display;

    use tamis::{Kind, Layout};
    use tamis_resp::Reply;

    use crate::text::{Text, shown};

    /// The filter does not exist, and the command does not create it.
    pub const NOT_FOUND: Text = "ERR the filter does not exist: create it with TM.RESERVE";
    /// `TM.RESERVE`: the key exists.
    pub const EXISTS: Text = "ERR the key exists: DEL it first, or use another key";
    /// `TM.LOAD`: the key exists.
    pub const LOAD_EXISTS: Text = "ERR the key exists: add REPLACE after the data to replace it";
    /// `TM.LOAD`: an unknown argument follows the data.
    pub const LOAD_OPTION: Text = "ERR TM.LOAD takes a key, data and optionally REPLACE";
    /// A filter of fixed size is full.
    pub const FULL: Text =
        "ERR the filter is full: TM.RESERVE a filter with more ITEMS, or with KIND growing";
    /// The place of an item is full. This happens only if an attacker chooses the items.
    pub const CROWDED: Text = "ERR too many items hash to the place of this item, as in an attack; other items can still be \
         added: set hash-key and TM.RESERVE a new filter";
    /// There is not enough memory to grow the filter.
    pub const NO_MEMORY: Text = "ERR not enough memory for the filter to grow";
    /// `TM.DUMP`: there is not enough memory for the file.
    pub const NO_MEMORY_TO_DUMP: Text = "ERR not enough memory for the file beside the filter";
    /// `TM.DEL`: the item was inserted more often than its counter can hold.
    pub const STUCK: Text = "ERR the item was added more often than the filter can count, so it cannot be deleted: \
         TM.RESERVE a filter with a larger COUNTER or BUCKET";
    /// `TM.RESERVE`: `KIND` is missing.
    pub const NO_KIND: Text =
        "ERR KIND is missing: use split-block, classic, growing, cuckoo, counting or window";
    /// `TM.RESERVE`: `LIKE` is combined with other options.
    pub const LIKE: Text =
        "ERR LIKE takes the key of another filter and no other option: TM.RESERVE key LIKE other";
    /// `ITEMS`, `RATE` and `MEMORY` are all given.
    pub const THREE: Text = "ERR give two of ITEMS, RATE and MEMORY: the third is computed";
    /// `TM.RESERVE`: `ITEMS` and `MEMORY` are both missing.
    pub const NO_SIZE: Text =
        "ERR the size is missing: give ITEMS, MEMORY or both, for example ITEMS 1000000";
    /// `TM.PLAN`: fewer than two of `ITEMS`, `RATE` and `MEMORY` are given.
    pub const PLAN_TWO: Text =
        "ERR give two of ITEMS, RATE and MEMORY, for example ITEMS 1000000 RATE 0.01";
    /// The rate is not a probability.
    pub const RATE: Text = "ERR RATE must be a probability between 0 and 1, for example 0.01";
    /// The size of `COUNTER` is invalid.
    pub const COUNTER: Text =
        "ERR COUNTER must be 4, 8 or 16 bits: a counter holds at most 15, 255 or 65535";
    /// The size of `BUCKET` is invalid.
    pub const BUCKET: Text =
        "ERR BUCKET must be 2, 3 or 4 slots: an item is counted at most twice that often";
    /// `SLICES` is out of range.
    pub const SLICES: Text = "ERR SLICES must be 1 to 255, and at most n in WINDOW n ITEMS";
    /// The span of a window is missing.
    pub const NO_WINDOW: Text = "ERR WINDOW is missing: give the span after which items expire, for example WINDOW 60000 \
         (milliseconds) or WINDOW 1000000 ITEMS";
    /// `WINDOW n ITEMS` is combined with `ITEMS n`.
    pub const WINDOW_ITEMS: Text =
        "ERR WINDOW n ITEMS already gives the number of items: omit ITEMS n";
    /// The clock of a window is ahead of the server's clock.
    pub const CLOCK_AHEAD: Text = "ERR the window's clock is ahead of this server's clock, which would expire all items: \
         correct the clock, or build the filter again";
    /// `TM.MERGE`: the windows have different spans.
    pub const SPAN: Text = "ERR windows with different spans, units or REFRESH cannot be merged";

    /// Returns the error for an unknown kind of filter.
    #[must_use]
    pub fn unknown_kind(word: &[u8]) -> Reply {
        let word = shown(word);
        Reply::error(format!(
            "ERR unknown KIND '{word}': use split-block, classic, growing, cuckoo, counting or window"
        ))
    }

    /// Returns the error for an unknown option of a command.
    #[must_use]
    pub fn unknown_option(word: &[u8], options: &str) -> Reply {
        Reply::error(format!("ERR unknown option '{}': the options are {options}", shown(word)))
    }

    /// Returns the error for an option that is given twice.
    #[must_use]
    pub fn twice(option: &str) -> Reply {
        Reply::error(format!("ERR {option} is given twice"))
    }

    /// Returns the error for an option that requires a number of at least 1.
    #[must_use]
    pub fn no_number(option: &str) -> Reply {
        Reply::error(format!("ERR {option} must be a whole number of at least 1"))
    }

    /// Returns the error for an option of another kind of filter.
    #[must_use]
    pub fn other_kind(option: &str, kind: Kind) -> Reply {
        Reply::error(format!("ERR {option} is for KIND {kind}"))
    }

    /// Returns the error for a kind of filter that cannot delete or count items.
    #[must_use]
    pub fn cannot(what: &str, kind: &str) -> Reply {
        Reply::error(format!(
            "ERR a filter of kind {kind} cannot {what} items: TM.RESERVE a filter of KIND cuckoo or counting"
        ))
    }

    /// Returns the error for an impossible filter or invalid data.
    #[must_use]
    pub fn because(reason: impl Display) -> Reply {
        Reply::error(format!("ERR {reason}"))
    }

    /// Returns the error for a kind of filter that no file format supports.
    #[must_use]
    pub fn no_file(kind: &str) -> Reply {
        Reply::error(format!(
            "ERR no file format holds a filter of kind {kind}: use DUMP and RESTORE, or SCANDUMP and LOADCHUNK"
        ))
    }

    /// `TM.DUMP`: the filter has two parts, and a file contains one filter.
    pub const TWO_PARTS: Text = "ERR the filter has grown beyond its reservation, and no file format holds both parts: \
         use DUMP and RESTORE, or BF.SCANDUMP and BF.LOADCHUNK";

    /// `TM.MERGE`: returns the error for two `BF.RESERVE` filters with different parameters.
    #[must_use]
    pub fn made_otherwise(one: &[u8], other: &[u8]) -> Reply {
        Reply::error(format!(
            "ERR '{}' and '{}' cannot be merged: reserve both with the same rate and capacity, and both \
             growing or both NONSCALING",
            shown(one),
            shown(other)
        ))
    }

    /// `TM.MERGE`: returns the error for a `BF.RESERVE` filter and a filter of another kind.
    #[must_use]
    pub fn other_kinds(one: (&[u8], &str), other: (&[u8], &str)) -> Reply {
        Reply::error(format!(
            "ERR filters of different kinds cannot be merged: '{}' is {}, '{}' is {}",
            shown(one.0),
            one.1,
            shown(other.0),
            other.1
        ))
    }

    /// `TM.MERGE`: returns the error for a source key that does not exist.
    #[must_use]
    pub fn no_source(key: &[u8]) -> Reply {
        Reply::error(format!("ERR the filter '{}' does not exist", shown(key)))
    }

    /// `TM.MERGE`: returns the error for a value that cannot be merged.
    #[must_use]
    pub fn no_merge(key: &[u8], kind: &str) -> Reply {
        Reply::error(format!(
            "ERR '{}' is of kind {kind}: TM.MERGE merges filters of TM.RESERVE, TM.LOAD and, with bf-layout tamis, BF.RESERVE",
            shown(key)
        ))
    }

    /// `TM.MERGE`: returns the error for two filters with different hash functions or keys.
    #[must_use]
    pub fn hash_keys(one: &[u8], other: &[u8]) -> Reply {
        Reply::error(format!(
            "ERR '{}' and '{}' cannot be merged: their hash functions or hash keys differ; TM.RESERVE key LIKE \
             other creates a filter with the hash of the other",
            shown(one),
            shown(other)
        ))
    }

    /// `TM.MERGE`: returns the error for two filters with different layouts.
    #[must_use]
    pub fn layouts(one: (&[u8], Layout), other: (&[u8], Layout)) -> Reply {
        Reply::error(format!(
            "ERR filters of different layouts cannot be merged: '{}' is {}, '{}' is {}",
            shown(one.0),
            one.1,
            shown(other.0),
            other.1
        ))
    }
}

/// Texts about users and their permissions.
pub mod acl {
    use tamis_resp::Reply;

    use crate::text::{Text, shown};

    /// The connection is not authenticated.
    pub const NO_AUTH: Text = "NOAUTH Authentication required.";
    /// `HELLO` on a connection that is not authenticated.
    pub const NO_AUTH_HELLO: Text = "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                                     HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                                     select the RESP protocol version at the same time";
    /// The user does not exist, has another password, or is disabled.
    pub const WRONG_PASSWORD: Text =
        "WRONGPASS invalid username-password pair or user is disabled.";
    /// `AUTH` with a password, but the default user requires none.
    pub const NO_PASSWORD: Text = "ERR AUTH <password> called without any password configured for the default \
                                   user. Are you sure your configuration is correct?";
    /// The user has no permission for one of the keys.
    pub const NO_KEY: Text = "NOPERM No permissions to access a key";
    /// The user was deleted or disabled after the connection authenticated.
    pub const GONE: Text = "NOAUTH the user of this connection was deleted or disabled";
    /// The name of a user contains white space or a zero byte.
    pub const NAME: Text = "ERR Usernames can't contain spaces or null characters";
    /// The default user cannot be deleted.
    pub const DEFAULT_STAYS: Text = "ERR The 'default' user cannot be removed";
    /// The change would leave the default user without a password on a network address.
    pub const MUST_ASK: Text = "ERR the server listens on a non-loopback address: the default user must have a password or be disabled";
    /// `ACL LOAD` or `ACL SAVE` without a configured file.
    pub const NO_FILE: Text =
        "ERR no ACL file is configured: start the server with the option aclfile";
    /// `ACL GENPASS`: the number of bits is invalid.
    pub const GENPASS: Text = "ERR ACL GENPASS argument must be the number of bits for the output password, a \
                               positive number up to 4096";
    /// The operating system returned no random numbers.
    pub const NO_RANDOM: Text = "ERR the operating system returned no random numbers";

    // The following texts appear after "Error in ACL SETUSER modifier '...': ".
    /// The rule is unknown.
    pub const SYNTAX: Text = "Syntax error";
    /// The command or category is unknown.
    pub const UNKNOWN_COMMAND: Text = "Unknown command or category name in ACL";
    /// A key pattern after a rule that allows all keys has no effect.
    pub const PATTERN_AFTER_ALL_KEYS: Text = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid \
                                              and does not have any effect. Try 'resetkeys' to start with an empty list \
                                              of patterns";
    /// A channel pattern after a rule that allows all channels has no effect.
    pub const PATTERN_AFTER_ALL_CHANNELS: Text = "Adding a pattern after the * pattern (or the 'allchannels' flag) is \
                                                  not valid and does not have any effect. Try 'resetchannels' to start \
                                                  with an empty list of channels";
    /// The pattern is too long to match keys against it quickly.
    pub const PATTERN_TOO_LONG: Text = "The pattern is longer than 1024 bytes";
    /// The digest is invalid.
    pub const HASH: Text = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
                            characters";
    /// The user does not have this password.
    pub const NO_SUCH_PASSWORD: Text =
        "The password you are trying to remove from the user does not exist";

    /// Returns the error for a user without permission for a command.
    #[must_use]
    pub fn no_command(user: &[u8], command: &str) -> Reply {
        let user = shown(user);
        Reply::error(format!(
            "NOPERM User {user} has no permissions to run the '{command}' command"
        ))
    }

    /// `EXEC`: returns the error for a queued command that is no longer allowed.
    #[must_use]
    pub fn no_longer(is_key: bool) -> Reply {
        let why = if is_key {
            "no permission to access one of the keys used as arguments"
        } else {
            "no permission to execute the command or subcommand"
        };
        Reply::error(format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
             command is no longer allowed for the following reason: {why}"
        ))
    }

    /// `ACL SETUSER`: returns the error for an invalid rule.
    #[must_use]
    pub fn bad_rule(rule: &[u8], why: Text) -> Reply {
        let rule = shown(rule);
        Reply::error(format!("ERR Error in ACL SETUSER modifier '{rule}': {why}"))
    }

    /// `ACL LOAD`: returns the error for a file that cannot be loaded.
    #[must_use]
    pub fn not_loaded(why: impl std::fmt::Display) -> Reply {
        Reply::error(format!("ERR {why}. No user was changed"))
    }

    /// `ACL SETUSER`: returns the error for a selector without a closing parenthesis.
    #[must_use]
    pub fn unmatched(selector: &[u8]) -> Reply {
        let selector = shown(selector);
        Reply::error(format!("ERR Unmatched parenthesis in acl selector starting at '{selector}'."))
    }

    /// Returns the error for an unknown user.
    #[must_use]
    pub fn no_user(name: &[u8]) -> Reply {
        Reply::error(format!("ERR User '{}' not found", shown(name)))
    }

    /// Returns the error for an unknown command.
    #[must_use]
    pub fn no_such_command(name: &[u8]) -> Reply {
        Reply::error(format!("ERR Command '{}' not found", shown(name)))
    }

    /// Returns the error for an unknown category.
    #[must_use]
    pub fn no_category(name: &[u8]) -> Reply {
        Reply::error(format!("ERR Unknown category '{}'", shown(name)))
    }
}

/// Returns a word of the client as text, truncated as in Redis.
#[must_use]
pub fn shown(word: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&word[..word.len().min(128)])
}

/// Creates the reply to a wrong number of arguments. `name` is the name in the table.
#[must_use]
pub fn wrong_arity(name: &str) -> Reply {
    let name = name.to_ascii_lowercase();
    Reply::Error(Cow::Owned(format!("ERR wrong number of arguments for '{name}' command")))
}

/// Creates the reply to an unknown command. It contains the name and the first arguments, truncated
/// as in Redis.
#[must_use]
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
