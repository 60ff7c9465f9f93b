//! Texts of `TM.*`. Each text states the error and how to fix the error.

use std::fmt::Display;

use tamis::{Kind, Layout};
use tamis_resp::Reply;

use crate::text::{Text, shown};

/// The filter does not exist, and the command cannot create a filter.
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
/// Copies of repeated items fill the slots of an item, although the filter holds fewer items than
/// planned.
pub const COPIES: Text = "ERR copies of repeated items fill the filter before its capacity: add each \
    item once, or create the filter with TM.RESERVE and BUCKET 4";
/// The place of an item is full, which happens only if an attacker chooses the items.
pub const CROWDED: Text = "ERR too many items hash to the place of this item, as in an attack; \
    other items can still be added: set hash-key and TM.RESERVE a new filter";
/// There is not enough memory to grow the filter.
pub const NO_MEMORY: Text = "ERR not enough memory for the filter to grow";
/// `TM.DUMP`: there is not enough memory for the file.
pub const NO_MEMORY_TO_DUMP: Text = "ERR not enough memory for the file beside the filter";
/// `TM.DEL`: the item was inserted more often than its counter can hold.
pub const STUCK: Text = "ERR the item was added more often than the filter can count, so it cannot \
    be deleted: TM.RESERVE a filter with a larger COUNTER or BUCKET";
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
pub const NO_WINDOW: Text = "ERR WINDOW is missing: give the span after which items expire, for \
    example WINDOW 60000 (milliseconds) or WINDOW 1000000 ITEMS";
/// `WINDOW n ITEMS` is combined with `ITEMS n`.
pub const WINDOW_ITEMS: Text = "ERR WINDOW n ITEMS already gives the number of items: omit ITEMS n";
/// The clock of a window is ahead of the server's clock.
pub const CLOCK_AHEAD: Text = "ERR the window's clock is ahead of this server's clock, which would \
    expire all items: correct the clock, or build the filter again";
/// `TM.ADVANCE`: the time is invalid.
pub const TIME: Text = "ERR the time must be milliseconds since 1970";
/// `TM.ADVANCE`: the time is ahead of the server's clock.
pub const TIME_AHEAD: Text = "ERR the time is more than a minute ahead of this server's clock, \
    which would expire items too early";
/// `TM.ADVANCE`: the value is not a window by time.
pub const NO_CLOCK: Text = "ERR the filter has no clock: only a window by time has one";
/// `TM.MERGE`: the windows have different spans.
pub const SPAN: Text = "ERR windows with different spans, units or REFRESH cannot be merged";

/// Returns the error for an unknown kind of filter.
pub(crate) fn unknown_kind(word: &[u8]) -> Reply {
    let word = shown(word);
    Reply::error(format!(
        "ERR unknown KIND '{word}': use split-block, classic, growing, cuckoo, counting or window"
    ))
}

/// Returns the error for an unknown option of a command.
pub(crate) fn unknown_option(word: &[u8], options: &str) -> Reply {
    Reply::error(format!("ERR unknown option '{}': the options are {options}", shown(word)))
}

/// Returns the error for an option that is given twice.
pub(crate) fn twice(option: &str) -> Reply {
    Reply::error(format!("ERR {option} is given twice"))
}

/// Returns the error for an option that requires a number of at least 1.
pub(crate) fn no_number(option: &str) -> Reply {
    Reply::error(format!("ERR {option} must be a whole number of at least 1"))
}

/// Returns the error for an option of another kind of filter.
pub(crate) fn other_kind(option: &str, kind: Kind) -> Reply {
    Reply::error(format!("ERR {option} is for KIND {kind}"))
}

/// Returns the error for a kind of filter that cannot delete or count items.
pub(crate) fn cannot(what: &str, kind: &str) -> Reply {
    Reply::error(format!(
        "ERR a filter of kind {kind} cannot {what} items: TM.RESERVE a filter of KIND cuckoo or \
            counting"
    ))
}

/// Returns the error for an impossible filter or invalid data.
pub(crate) fn because(reason: impl Display) -> Reply {
    Reply::error(format!("ERR {reason}"))
}

/// Returns the error for a kind of filter that no file format supports.
pub(crate) fn no_file(kind: &str) -> Reply {
    Reply::error(format!(
        "ERR no file format holds a filter of kind {kind}: use DUMP and RESTORE, or SCANDUMP and \
            LOADCHUNK"
    ))
}

/// `TM.DUMP`: the filter has two parts, but a file contains only one part.
pub const TWO_PARTS: Text = "ERR the filter has grown beyond its reservation, and no file format \
    holds both parts: use DUMP and RESTORE, or BF.SCANDUMP and BF.LOADCHUNK";

/// `TM.MERGE`: returns the error for two `BF.RESERVE` filters with different parameters.
pub(crate) fn made_otherwise(one: &[u8], other: &[u8]) -> Reply {
    Reply::error(format!(
        "ERR '{}' and '{}' cannot be merged: reserve both with the same rate and capacity, and \
            both growing or both NONSCALING",
        shown(one),
        shown(other)
    ))
}

/// `TM.MERGE`: returns the error for a `BF.RESERVE` filter and a filter of another kind.
pub(crate) fn other_kinds(one: (&[u8], &str), other: (&[u8], &str)) -> Reply {
    Reply::error(format!(
        "ERR filters of different kinds cannot be merged: '{}' is {}, '{}' is {}",
        shown(one.0),
        one.1,
        shown(other.0),
        other.1
    ))
}

/// `TM.MERGE`: returns the error for a source key that does not exist.
pub(crate) fn no_source(key: &[u8]) -> Reply {
    Reply::error(format!("ERR the filter '{}' does not exist", shown(key)))
}

/// `TM.MERGE`: returns the error for a value that cannot be merged.
pub(crate) fn no_merge(key: &[u8], kind: &str) -> Reply {
    Reply::error(format!(
        "ERR '{}' is of kind {kind}: TM.MERGE merges filters of TM.RESERVE, TM.LOAD and, with \
            bf-layout tamis, BF.RESERVE",
        shown(key)
    ))
}

/// `TM.MERGE`: returns the error for two filters with different hash functions or keys.
pub(crate) fn hash_keys(one: &[u8], other: &[u8]) -> Reply {
    Reply::error(format!(
        "ERR '{}' and '{}' cannot be merged: their hash functions or hash keys differ; TM.RESERVE \
            key LIKE other creates a filter with the hash of the other",
        shown(one),
        shown(other)
    ))
}

/// `TM.MERGE`: returns the error for two filters with different layouts.
pub(crate) fn layouts(one: (&[u8], Layout), other: (&[u8], Layout)) -> Reply {
    Reply::error(format!(
        "ERR filters of different layouts cannot be merged: '{}' is {}, '{}' is {}",
        shown(one.0),
        one.1,
        shown(other.0),
        other.1
    ))
}
